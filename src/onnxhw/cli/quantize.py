"""``onnxhw quantize``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .common.options import common, examples, preprocess_options, reading_options
from .common.output import Output, pass_output

if TYPE_CHECKING:
    from ..preprocess import Preprocess
    from ..quantize import QuantizationReport
    from .common.read_options import ReadOptions


@click.command(
    "quantize",
    help="Quantize a float model to int8 with calibration data.\n\n"
    + examples("""
  onnxhw quantize model.onnx --calibration data.npz
  onnxhw quantize model.onnx --calibration data.npz --samples 200 --method percentile --bias-correction
  onnxhw quantize model.onnx --calibration photos/ --scale 1/255 --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225
"""),
    epilog="DATA is an .npz with one array per model input (or x), an .npy, or a folder of images; each value becomes "
    "(x * scale - mean) / std. Labels are --labels, or an array of the .npz named label, labels or y. Samples after "
    "the first --samples are not calibrated with: noise and accuracy are measured on them.",
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-c", "--calibration", required=True, type=click.Path(path_type=Path), metavar="DATA", help=".npz, .npy or folder."
)
@click.option(
    "-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE",
    help="Default: MODEL_int8.onnx, here. Missing folders are made.",
)  # fmt: skip
@click.option(
    "-m",
    "--method",
    type=click.Choice(["min-max", "percentile", "entropy"]),
    default="min-max",
    show_default=True,
    help="How the range of an activation is chosen.",
)
@click.option("--percentile", type=float, default=99.99, show_default=True, metavar="P", help="Of --method percentile.")
@click.option("--bias-correction", is_flag=True, help="Take the mean error of each channel out of its bias.")
@click.option("-n", "--samples", type=click.IntRange(min=1), metavar="N", help="Calibrate with the first N samples.")
@click.option(
    "--labels", type=click.Path(path_type=Path), metavar="FILE", help="Classes of the samples: .npy, .npz or text."
)
@click.option("--plot", "picture", type=click.Path(path_type=Path), metavar="FILE", help="Write a plot (PNG).")
@preprocess_options
@reading_options
@common
@pass_output
def command(
    output: Output, model: Path, calibration: Path, out: Path | None, method: str, percentile: float,
    bias_correction: bool, samples: int | None, labels: Path | None, picture: Path | None, preprocess: "Preprocess",
    reading: "ReadOptions",
) -> None:  # fmt: skip
    from ..errors import UnsupportedError
    from ..partition import load
    from ..preprocess import open_samples
    from ..quantize import inputs_of, plot_noise, quantize
    from .common.outdir import refuse_unwritable_file, write_atomically

    place = out or Path(f"{model.stem}_int8.onnx")
    for target in (place, picture):
        if target is not None:
            refuse_unwritable_file(target, model, calibration, labels)
    allowed, known, read = reading.allowed, reading.sizes, reading.source(model)
    data = open_samples(calibration, inputs_of(read, allowed, known), preprocess, labels)
    used = min(samples or data.count, data.count)
    held_out = used < data.count
    with output.stage(f"quantize {model.name}"):
        made = quantize(
            read,
            lambda: data.feeds(0, used),
            method=method,
            percentile=percentile,
            bias_correction=bias_correction,
            evaluation=(lambda: data.feeds(used)) if held_out else None,
            labels=None if data.labels is None else _measured(data.labels, data.count, used),
            limits=allowed,
            shapes=known,
        )
    content = made.bytes()
    mapping = ""
    try:
        load(content, limits=allowed, shapes=known, exact_softmax=reading.exact_softmax)
    except UnsupportedError as error:  # what it names stays on the host: a finding, and the file is written
        mapping = error.text()
    image = plot_noise(made.report) if picture is not None else None
    write_atomically(place, content)
    if picture is not None and image is not None:
        write_atomically(picture, image)
    record = {
        "model": str(model),
        "output": str(place),
        "plot": None if picture is None else str(picture),
        "bytes": len(content),
        "mapped": not mapping,
        "blockers": mapping,
        **made.report.record(),
    }
    _print(output, made.report, record)


def _measured(labels: tuple[int, ...], count: int, used: int) -> tuple[int, ...]:
    """The labels of the samples behind the first `used` of `count`; all if there are none."""
    return labels[used * (len(labels) // count) if used < count else 0 :]


def _print(output: Output, report: "QuantizationReport", record: dict[str, Any]) -> None:
    output.data(record)
    rows = [(layer.name, layer.op_type, layer.low, layer.high, layer.scale, layer.zero_point,
             None if layer.snr_db is None else round(layer.snr_db, 1)) for layer in report.layers]  # fmt: skip
    output.table(["layer", "operator", "low", "high", "scale", "zero point", "SNR dB"], rows)
    if report.host:
        output.line(f"left in float: {', '.join(report.host)}")
    which = "held-out" if report.held_out else "calibration"
    for name, snr in report.output_snr_db.items():
        output.line(f"output {name}: {'exact' if snr is None else f'{snr:.1f} dB'} on {report.evaluation_samples} "
                    f"{which} samples")  # fmt: skip
    if report.accuracy is not None:
        found = report.accuracy
        output.line(f"top-1: float {found.before:.2f} %, int8 {found.after:.2f} % of {found.total} {which} samples")
    if record["blockers"]:
        output.message(f"not every node runs on the hardware: {record['blockers']}")
    output.line(f"{record['output']}: {record['bytes']:,} bytes")
