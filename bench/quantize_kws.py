"""What our own quantization costs on reference models: top-1 of float, int8 and the golden model, per method.

    python bench/quantize_kws.py [--models kws ic] [--calibration 200] [--json]

The float models and their data are looked for in ``../shared`` beside the checkout. The first 200 of the 1,000 samples
calibrate, the others are classified: by the float model, by the QDQ model (onnxruntime if it is installed) and by the
golden model, which is what the hardware computes.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onnxhw import golden
from onnxhw.partition import load
from onnxhw.quantize import METHODS, quantize

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"
MODELS = {
    "kws": ("kws_dscnn_float.onnx", "kws01_mfcc_int8_nchw.npz"),
    "ic": ("ic_resnet8_float.onnx", "cifar10_test1000_jpeg_nhwc_u8.npz"),
}
BATCH = 50
"""Samples that the golden model takes at once."""


@dataclass(frozen=True)
class Row:
    """Top-1 in percent of the `samples` that were not calibrated with; `worst_snr_db` is that of the noisiest layer."""

    model: str
    method: str
    bias_correction: bool
    samples: int
    float_top1: float
    int8_top1: float
    golden_top1: float
    output_snr_db: float
    worst_snr_db: float


def read(name: str) -> tuple[Path, npt.NDArray[np.float32], list[int]]:
    """A model, its float inputs and their classes; FileNotFoundError where they are absent."""
    file, data = MODELS[name]
    arrays = np.load(SHARED / "data" / data)
    x: npt.NDArray[Any] = arrays["x"]
    if "scale" in arrays:  # features that were stored on the int8 model's grid
        real = (x.astype(np.float32) - np.float32(arrays["zero_point"])) * arrays["scale"]
    else:  # pixels, channels last
        real = x.transpose(0, 3, 1, 2).astype(np.float32)
    return SHARED / "models" / file, np.ascontiguousarray(real), [int(label) for label in arrays["y"]]


def measure(name: str, method: str, correct: bool, calibration: int = 200) -> Row:
    """Quantize with the first `calibration` samples and classify the others."""
    path, x, labels = read(name)

    def feeds(start: int, stop: int) -> Iterator[dict[str, npt.NDArray[Any]]]:
        return ({"input": x[i : i + 1]} for i in range(start, stop))

    made = quantize(
        path,
        lambda: feeds(0, calibration),
        method=method,
        bias_correction=correct,
        evaluation=lambda: feeds(calibration, len(x)),
        labels=labels[calibration:],
    )
    found = made.report.accuracy
    assert found is not None
    right = golden_right(made.bytes(), x[calibration:], labels[calibration:])
    (output,) = made.report.output_snr_db.values()
    return Row(
        name,
        method,
        correct,
        found.total,
        found.before,
        found.after,
        100 * right / found.total,
        round(output or 0.0, 2),
        round(min(layer.snr_db or 0.0 for layer in made.report.layers), 2),
    )


def golden_right(model: bytes, x: npt.NDArray[np.float32], labels: Sequence[int]) -> int:
    """How many samples the golden model classifies rightly."""
    graph, right = load(model), 0
    for start in range(0, len(x), BATCH):
        tensors = golden.run(graph, golden.host.prepare(graph, {"input": x[start : start + BATCH]}))
        classes = golden.host.finish(graph, tensors)["output"].argmax(1)
        right += int((classes == np.array(labels[start : start + BATCH])).sum())
    return right


def main() -> int:
    """The command line; exit status 2 where the data is absent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--calibration", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not SHARED.is_dir():
        print(f"the reference models are not here: {SHARED}", file=sys.stderr)
        return 2
    rows = [
        asdict(measure(name, method, correct, arguments.calibration))
        for name in arguments.models
        for method in METHODS
        for correct in (False, True)
    ]
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    print("  ".join(rows[0]))
    for row in rows:
        print("  ".join(str(value).ljust(len(key)) for key, value in row.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
