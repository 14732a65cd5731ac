"""`plot`: signal-to-noise ratio per layer and accuracy before and after, as a PNG."""

from io import BytesIO

from ..errors import UsageError
from .report import Report


def plot(report: Report) -> bytes:
    """The PNG; `UsageError` E2606 without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(
            "E2606", "a plot needs matplotlib, which is not installed", hint="pip install 'onnxhw[plot]'"
        ) from None
    figure = Figure(figsize=(10, 2 + 0.22 * len(report.layers)), layout="constrained")
    FigureCanvasAgg(figure)
    found = report.accuracy
    left, *right = figure.subplots(1, 2, width_ratios=(4, 1)) if found is not None else [figure.subplots()]
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
    png = BytesIO()
    figure.savefig(png, format="png", dpi=120, metadata={"Software": None})
    return png.getvalue()
