"""What a quantization did: `QuantizationReport`, for people and for ``--json``."""

from dataclasses import asdict, dataclass
from typing import Any

from .evaluate import Accuracy


@dataclass(frozen=True)
class LayerReport:
    """One quantized layer: its result's grid, and how far the result is from the float model's.

    `value`: the ONNX value; of a layer with a fused clamp, the clamp's result. `low` and `high`: what the grid covers.
    `snr_db`: None where there is no noise at all, or no signal.
    """

    name: str
    op_type: str
    value: str
    scale: float
    zero_point: int
    low: float
    high: float
    snr_db: float | None


@dataclass(frozen=True)
class QuantizationReport:
    """`host`: layers left in float, by name."""

    method: str
    calibration_samples: int
    evaluation_samples: int
    held_out: bool
    layers: tuple[LayerReport, ...]
    host: tuple[str, ...]
    output_snr_db: dict[str, float | None]
    accuracy: Accuracy | None

    def record(self) -> dict[str, Any]:
        """The same as JSON values."""
        record = asdict(self)
        if self.accuracy is not None:
            record["accuracy"] = {**asdict(self.accuracy), "float": self.accuracy.before, "int8": self.accuracy.after}
        return record
