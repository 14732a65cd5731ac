"""Inferences for ``simulate`` and ``run``: from a file or random, each the inputs of a program by name."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...batch import Batch
from ...errors import UsageError
from ...ir.parts import ValueInfo
from ...preprocess import Input, Preprocess, open_samples
from ...program.parts import Program
from ...runtime.inputs import typed
from .arrays import Array, read_arrays

MOST_RANDOM = 1 << 28
"""Most values that are drawn at random: what comes of them is kept, too."""

LABELS = ("label", "labels")
"""Arrays of an .npz that, if present, are the classes of the inputs."""


@dataclass(frozen=True)
class Inputs:
    """`count` inferences; `one` gives the inputs of one by name. `labels`: as many classes, if they are known;
    `images`: the name of each one's file, if that is an image."""

    count: int
    one: Callable[[int], dict[str, Any]]
    labels: npt.NDArray[np.int64] | None = None
    source: str = ""
    images: tuple[str, ...] = ()


def wanted(values: Iterable[ValueInfo]) -> list[ValueInfo]:
    """The inputs that have no default value."""
    return [value for value in values if not value.optional]


def wanted_inputs(values: Iterable[ValueInfo]) -> list[Input]:
    """A model's inputs as preprocessing sees them."""
    return [Input.of(value.name, value.shape, value.dtype) for value in values]


def random_inputs(program: Program, count: int, seed: int) -> Inputs:
    """Inputs drawn at random: over the grid of a hardware part that quantizes the input first, else as `_drawn`.

    An inference depends on the seed and its number alone. `UsageError` E2520: an input without a static shape and type
    of numbers; E2901 as `refuse_too_many`.
    """
    values = wanted(program.inputs)
    for value in values:
        _require_drawable(value)
    refuse_too_many(count, sum(prod(_shape(value)) for value in values))
    grids = {
        port.name: port.steps[0]
        for part in program.programs
        for port in part.inputs
        if port.steps and port.steps[0]["op"] == "QuantizeLinear"
    }

    def one(index: int) -> dict[str, Any]:
        random = np.random.default_rng((seed, index))
        return {value.name: _drawn(value, grids.get(value.name), random) for value in values}

    return Inputs(count, one, source=f"random, seed {seed}")


def refuse_too_many(count: int, values: int) -> None:
    """A `UsageError` E2901 if `count` inferences of so many input values are more than `MOST_RANDOM`."""
    if count > 1 and count * values > MOST_RANDOM:
        what = f"--random {count:,}: at most {max(1, MOST_RANDOM // values):,} inputs of this model are drawn at a time"
        raise UsageError("E2901", what, hint="ask for fewer; --seed gives others")


def _require_drawable(value: ValueInfo) -> None:
    shape, hint = value.shape, "give --input FILE"
    if shape is None or not value.dtype or not all(isinstance(dim, int) for dim in shape):
        raise UsageError("E2520", f"input {value.name!r} has no static shape and type to draw from", hint=hint)
    if np.dtype(value.dtype).kind not in "fbiu":
        raise UsageError("E2520", f"input {value.name!r} of type {value.dtype} cannot be drawn at random", hint=hint)


def _shape(value: ValueInfo) -> list[int]:
    return [dim for dim in value.shape or () if isinstance(dim, int)]


def _drawn(value: ValueInfo, grid: dict[str, Any] | None, random: np.random.Generator) -> Array:
    """Every int8 of a grid alike; else floats like a normal distribution, every value of a byte, or small integers."""
    size, kind = _shape(value), np.dtype(value.dtype)
    if kind.kind == "f" and grid is not None:
        q = random.integers(-128, 128, size) - grid["zero_point"]
        return np.asarray(q * grid["scale"]).astype(kind)
    if kind.kind == "f":
        return np.asarray(random.standard_normal(size)).astype(kind)
    if kind.kind == "b":
        return np.asarray(random.integers(0, 2, size)).astype(kind)
    info = np.iinfo(kind) if kind.itemsize == 1 else None
    return np.asarray(random.integers(*((info.min, info.max + 1) if info else (0, 10)), size)).astype(kind)


def refuse_mixing(batch: Batch | None, count: int, where: Path) -> None:
    """`UsageError` E2915 for more than one inference of a model with an open batch whose samples may meet."""
    if count > 1 and batch is not None and batch.mixing:
        raise UsageError(
            "E2915",
            f"{count} samples are not {count} inferences of this model: samples of its batch may meet: {batch.mixing}",
            where=str(where),
            hint="run one sample at a time, or all together with onnxhw.InferenceSession of the .onnx file",
        )


def file_inputs(
    values: Iterable[ValueInfo], path: Path, count: int | None, preprocess: Preprocess | None = None
) -> Inputs:
    """The first `count` (default: all) inferences of an .npy or .npz file, or of what needs `preprocess`.

    An .npz has one array per input by name, and perhaps `label`; other arrays are not looked at. The first dimension
    counts inferences where the input has batch 1; other inputs are the same in all. `UsageError` E2905: not such a
    file, an array that is missing, or arrays of different numbers of inferences, of another shape or type; E2980:
    labels that are none; E260x as `onnxhw.preprocess.open_samples`.
    """
    values = wanted(values)
    if preprocess is not None and preprocess.needed(path):
        return _prepared(values, path, count, preprocess)
    names = [value.name for value in values]
    arrays = _read(values, path, count)
    given = _typed(values, _by_name(arrays, names, path), path)
    rows = {value.name for value in values if _counts(value, given[value.name])}
    sizes = {name: len(given[name]) for name in names if name in rows}
    if len(set(sizes.values())) > 1:
        text = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise UsageError("E2905", f"the inputs hold different numbers of inferences: {text}", where=str(path))
    size = next(iter(sizes.values()), 1)
    labels = next((arrays[name] for name in LABELS if name in arrays and name not in names), None)
    if labels is not None and (labels.ndim != 1 or len(labels) < size or labels.dtype.kind not in "iu"):
        what = f"its labels must be {size} whole numbers or more, not {labels.dtype} {list(labels.shape)}"
        raise UsageError("E2980", what, where=str(path), hint=f"the arrays {', '.join(LABELS)} are taken as classes")

    def one(index: int) -> dict[str, Any]:
        return {name: array[index : index + 1] if name in rows else array for name, array in given.items()}

    return Inputs(size, one, None if labels is None else labels[:size].astype(np.int64), str(path))


def whole_arrays(values: Iterable[ValueInfo], path: Path, count: int | None) -> dict[str, Array]:
    """The arrays of `file_inputs` as they are, of at most `count` rows: one run of all samples."""
    values = wanted(values)
    names = [value.name for value in values]
    arrays = _read(values, path, count)
    return _typed(values, _by_name(arrays, names, path), path)


def _read(values: Sequence[ValueInfo], path: Path, count: int | None) -> dict[str | None, Array]:
    """`read_arrays` of these inputs and labels, none of another shape than its input's."""
    by_name = {value.name: value for value in values}
    rows = {value.name for value in values if _by_row(value)}

    def check(name: str, shape: tuple[int, ...]) -> None:
        _refuse_shape(by_name[name], shape, path)

    return read_arrays(path, list(by_name), LABELS, count, rows, check)


def _prepared(values: Sequence[ValueInfo], path: Path, count: int | None, preprocess: Preprocess) -> Inputs:
    """Images, or a file whose arrays are preprocessed: each sample when it is asked for."""
    samples = open_samples(path, wanted_inputs(values), preprocess)
    size = samples.count if count is None else min(count, samples.count)
    labels = None if samples.labels is None else np.array(samples.labels[:size], np.int64)
    return Inputs(size, lambda index: next(samples.feeds(index, index + 1)), labels, str(path), samples.images[:size])


def _typed(values: Sequence[ValueInfo], arrays: dict[str, Array], path: Path) -> dict[str, Array]:
    try:
        return {value.name: typed(value, arrays[value.name]) for value in values}
    except UsageError as error:
        raise UsageError("E2905", error.what, where=str(path), hint=error.hint) from error


def _by_row(value: ValueInfo) -> bool:
    """May the first dimension of an input's array count inferences?"""
    return value.shape is None or value.shape[:1] == (1,)


def _counts(value: ValueInfo, array: Array) -> bool:
    """Does the first dimension of an input's array count inferences?"""
    return array.ndim > 0 if value.shape is None else _by_row(value)


def _refuse_shape(value: ValueInfo, found: tuple[int, ...], path: Path) -> None:
    """`UsageError` E2905 for the shape of an array that is not its input's."""
    shape, counts = value.shape, _by_row(value)
    if shape is None:
        return
    fits = len(shape) == len(found) and all(
        not isinstance(want, int) or want == size or (counts and axis == 0)
        for axis, (want, size) in enumerate(zip(shape, found, strict=True))
    )
    if not fits:
        dims = ["N", *shape[1:]] if counts else list(shape)
        text = ", ".join(str("?" if dim is None else dim) for dim in dims)
        what = f"input {value.name!r} must have shape [{text}], not {list(found)}"
        raise UsageError("E2905", what, where=str(path))


def _by_name(arrays: dict[str | None, Array], names: Sequence[str], path: Path) -> dict[str, Array]:
    if None in arrays:
        if len(names) != 1:
            raise UsageError("E2905", f"an .npy file has one array, the model has {len(names)} inputs", where=str(path),
                             hint=f"an .npz with the arrays {', '.join(names)}")  # fmt: skip
        return {names[0]: arrays[None]}
    for name in names:
        if name not in arrays:
            raise UsageError("E2905", f"has no array for input {name!r}", where=str(path))
    return {name: arrays[name] for name in names}
