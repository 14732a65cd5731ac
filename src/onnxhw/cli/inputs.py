"""Arrays for ``simulate``: from a file or random, as int8 tensors of the graph."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..ir.graph import Array8, Graph, Port
from ..ir.parts import Value
from ..preprocess import Input, Preprocess, open_samples
from .arrays import Array, read_arrays

MOST_RANDOM = 1 << 28
"""Most values that are drawn at random together; each takes eight bytes on its way."""

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
    """Uniform int8 values for every input tensor; `UsageError` E2901 as `refuse_too_many`."""
    refuse_too_many(count, sum(prod(graph.tensors[port.tensor].shape) for port in graph.inputs))
    random = np.random.default_rng(seed)
    tensors = {}
    for port in graph.inputs:
        shape = graph.tensors[port.tensor].shape
        tensors[port.tensor] = random.integers(-128, 128, (count, *shape[1:])).astype(np.int8)
    return Inputs(tensors, source=f"random, seed {seed}")


def refuse_too_many(count: int, values: int) -> None:
    """A `UsageError` E2901 if `count` inferences of so many input values are more than `MOST_RANDOM`."""
    if count > 1 and count * values > MOST_RANDOM:
        what = f"--random {count:,}: at most {max(1, MOST_RANDOM // values):,} inputs of this model are drawn at a time"
        raise UsageError("E2901", what, hint="ask for fewer; --seed gives others")


def wanted_inputs(values: Iterable[Port | Value]) -> list[Input]:
    """A model's inputs as preprocessing sees them."""
    return [Input.of(value.name, value.shape, value.dtype) for value in values]


def prepared_inputs(graph: Graph, path: Path, count: int | None, preprocess: Preprocess) -> Inputs:
    """The first `count` (default: all) inferences of images, or of a file whose arrays are preprocessed.

    `UsageError` E260x as `onnxhw.preprocess.open_samples`.
    """
    from ..golden import host

    samples = open_samples(path, wanted_inputs(graph.inputs), preprocess)
    size = samples.count if count is None else min(count, samples.count)
    found = [host.prepare(graph, feeds) for feeds in samples.feeds(0, size)]
    tensors = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
    labels = None if samples.labels is None else np.array(samples.labels[:size], np.int64)
    return Inputs(tensors, labels, str(path))


def file_inputs(graph: Graph, path: Path, count: int | None, preprocess: Preprocess | None = None) -> Inputs:
    """The first `count` (default: all) inferences of an .npy or .npz file, or of what needs `preprocess`.

    An .npz has one array per model input by name, and perhaps `label`; other arrays are not looked at. The first
    dimension counts inferences where the model has batch 1; other inputs are the same in all. `UsageError` E2905: not
    such a file, or arrays of different numbers of them; E2980: labels that are none.
    """
    from ..golden import host

    if preprocess is not None and preprocess.needed(path):
        return prepared_inputs(graph, path, count, preprocess)
    names = [port.name for port in graph.inputs]
    batched = {port.name for port in graph.inputs if port.shape[:1] == (1,)}
    arrays = read_arrays(path, names, LABELS, count, batched)
    feeds = _by_name(arrays, names, path)
    tensors = host.prepare(graph, feeds)
    size = next((len(tensors[port.tensor]) for port in graph.inputs if port.name in batched), 1)
    for port in graph.inputs:
        if port.name not in batched:
            tensors[port.tensor] = np.repeat(tensors[port.tensor], size, axis=0)
    if any(len(values) != size for values in tensors.values()):
        sizes = ", ".join(f"{name} {len(feeds[name])}" for name in feeds if name in batched)
        raise UsageError("E2905", f"the inputs hold different numbers of inferences: {sizes}", where=str(path))
    labels = next((arrays[name] for name in LABELS if name in arrays and name not in names), None)
    if labels is not None and (labels.ndim != 1 or len(labels) < size or labels.dtype.kind not in "iu"):
        what = f"its labels must be {size} whole numbers or more, not {labels.dtype} {list(labels.shape)}"
        raise UsageError("E2980", what, where=str(path), hint=f"the arrays {', '.join(LABELS)} are taken as classes")
    return Inputs(tensors, None if labels is None else labels[:size].astype(np.int64), str(path))


def named_arrays(
    path: Path, names: Sequence[str], count: int | None = None, rows: Container[str] = ()
) -> dict[str, Array]:
    """The arrays of an .npy or .npz file for all inputs `names`, of those in `rows` the first `count` rows;
    `UsageError` E2905 if one is missing."""
    found = _by_name(read_arrays(path, names, (), count, rows), names, path)
    for name in names:
        if name not in found:
            raise UsageError("E2905", f"has no array for input {name!r}", where=str(path))
    return found


def _by_name(arrays: dict[str | None, Array], names: Sequence[str], path: Path) -> dict[str, Array]:
    if None in arrays:
        if len(names) != 1:
            raise UsageError("E2905", f"an .npy file has one array, the model has {len(names)} inputs", where=str(path),
                             hint=f"an .npz with the arrays {', '.join(names)}")  # fmt: skip
        return {names[0]: arrays[None]}
    return {name: arrays[name] for name in names if name in arrays}
