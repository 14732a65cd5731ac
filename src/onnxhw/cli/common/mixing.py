"""Several inferences of a model whose samples may meet are not what the model means by a batch."""

from pathlib import Path

from ...batch import Batch
from ...errors import UsageError


def refuse_mixing(batch: Batch | None, count: int, where: Path) -> None:
    """`UsageError` E2915 for more than one inference of a model with an open batch whose samples may meet."""
    if count > 1 and batch is not None and batch.mixing:
        raise UsageError(
            "E2915",
            f"{count} samples are not {count} inferences of this model: samples of its batch may meet: {batch.mixing}",
            where=str(where),
            hint="run one sample at a time, or all together with onnxhw.InferenceSession of the .onnx file",
        )
