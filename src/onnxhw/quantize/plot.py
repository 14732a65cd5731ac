"""`plot_noise`: signal-to-noise ratio per layer and accuracy before and after, as a PNG."""

from ..report.figure import figure, png
from .report import QuantizationReport


def plot_noise(report: QuantizationReport) -> bytes:
    """The PNG; `UsageError` E2606 without matplotlib."""
    picture = figure(10, 2 + 0.22 * len(report.layers))
    found = report.accuracy
    left, *right = picture.subplots(1, 2, width_ratios=(4, 1)) if found is not None else [picture.subplots()]
    names = [layer.name for layer in report.layers]
    left.barh(names, [layer.snr_db or 0.0 for layer in report.layers])
    left.invert_yaxis()
    left.set_xlabel("signal-to-noise ratio [dB]")
    left.set_title(f"{report.method}, {report.calibration_samples} calibration samples")
    if found is not None:
        axes = right[0]
        bars = axes.bar(["float", "int8"], [found.before, found.after])
        axes.bar_label(bars, fmt="%.1f")
        axes.set_ylim(0, 100)
        axes.set_ylabel("top-1 [%]")
        axes.set_title(f"{found.total} samples")
    return png(picture)
