"""Arrays for ``simulate``: from a file or random, as int8 tensors of the graph."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..ir.graph import Array8, Graph
from .arrays import read_arrays

LABELS = ("label", "labels")
"""Arrays of an .npz that, if present, are the classes of the inputs."""


@dataclass
class Inputs:
    """`tensors`: int8 ``[N, C, H, W]`` by tensor name. `labels`: N classes, if the file had them."""

    tensors: dict[str, Array8]
    labels: npt.NDArray[np.int64] | None = None
    source: str = ""
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = len(next(iter(self.tensors.values())))

    def one(self, index: int) -> dict[str, Array8]:
        """Inference `index`: int8 ``(1, C, H, W)`` by tensor name."""
        return {name: values[index : index + 1] for name, values in self.tensors.items()}


def random_inputs(graph: Graph, count: int, seed: int) -> Inputs:
    """Uniform int8 values for every input tensor."""
    random = np.random.default_rng(seed)
    tensors = {}
    for port in graph.inputs:
        shape = graph.tensors[port.tensor].shape
        tensors[port.tensor] = random.integers(-128, 128, (count, *shape[1:])).astype(np.int8)
    return Inputs(tensors, source=f"random, seed {seed}")


def file_inputs(graph: Graph, path: Path, count: int | None) -> Inputs:
    """The first `count` (default: all) inferences of an .npy or .npz file.

    An .npz has one array per model input by name, and perhaps `label`; other arrays are not looked at. The first
    dimension counts inferences. `UsageError` E2905: not such a file, or arrays of different numbers of them.
    """
    from ..golden import host

    names = [port.name for port in graph.inputs]
    arrays = read_arrays(path, names, LABELS)
    if None in arrays:
        if len(names) != 1:
            raise UsageError("E2905", f"an .npy file has one array, the model has {len(names)} inputs", where=str(path),
                             hint=f"an .npz with the arrays {', '.join(names)}")  # fmt: skip
        feeds = {names[0]: arrays[None]}
    else:
        feeds = {name: arrays[name] for name in names if name in arrays}
    if count is not None:
        feeds = {name: values[:count] if values.ndim else values for name, values in feeds.items()}
    tensors = host.prepare(graph, feeds)
    size = len(next(iter(tensors.values())))
    if any(len(values) != size for values in tensors.values()):
        sizes = ", ".join(f"{name} {len(values)}" for name, values in feeds.items())
        raise UsageError("E2905", f"the inputs hold different numbers of inferences: {sizes}", where=str(path))
    labels = next((arrays[name] for name in LABELS if name in arrays), None)
    if labels is not None and (labels.ndim != 1 or len(labels) < size or labels.dtype.kind not in "iu"):
        labels = None
    return Inputs(tensors, None if labels is None else labels[:size].astype(np.int64), str(path))
