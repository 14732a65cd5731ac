"""Several inferences of a model whose samples may meet are not what the model means by a batch."""

from pathlib import Path

from ..errors import UsageError
from ..files import sha256
from ..host.artifact import manifest
from .artifacts import MODEL, PROGRAM
from .reading import Reading


def refuse_mixing(target: Path, reading: Reading, count: int) -> None:
    """`UsageError` E2915 for more than one inference of a model with an open batch whose samples may meet.

    `target` is a model, or an output directory with a copy of it; nothing is known of a program alone.
    """
    if count == 1:
        return
    if target.name == PROGRAM:
        target = target.parent
    if target.is_dir():
        noted, model = manifest(target), target / MODEL
        if not model.is_file() or noted.get("model_sha256") != sha256(model):
            return
        reading = Reading.recorded(noted, reading.untrusted)
    elif target.suffix == ".ohw":
        return
    else:
        model = target
    from .. import frontend

    batch = frontend.read(reading.source(model), limits=reading.allowed, shapes=reading.sizes).batch
    if batch is not None and batch.mixing:
        raise UsageError(
            "E2915",
            f"{count} samples are not {count} inferences of this model: samples of its batch may meet: {batch.mixing}",
            where=str(model),
            hint="run one sample at a time, or all together with onnxhw.InferenceSession of the .onnx file",
        )
