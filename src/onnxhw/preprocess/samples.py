"""`open_samples`: the inferences of an .npy or .npz file, an image or a folder of them, one at a time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import UsageError
from .formula import IMAGES, Array, Input, Preprocess
from .images import Folder

LABELS = ("label", "labels", "y")
"""Arrays of an .npz that, if present, are the classes of the inputs."""


@dataclass(frozen=True)
class Samples:
    """Inferences of a source: `count` of them, each made when it is asked for. `labels`: their classes, if known."""

    count: int
    labels: tuple[int, ...] | None
    _source: "_Arrays | Folder"

    def feeds(self, start: int = 0, stop: int | None = None) -> Iterator[dict[str, Array]]:
        """The model's inputs by name, batch 1, of inferences `start` to `stop`."""
        for index in range(start, self.count if stop is None else min(stop, self.count)):
            yield self._source.one(index)


def open_samples(
    path: Path, inputs: Sequence[Input], preprocess: Preprocess | None = None, labels: Path | None = None
) -> Samples:
    """The samples of an .npy or .npz file, an image, or a folder of them.

    An .npz has one array per input by name, the first axis counting inferences; of a model with one input it may
    also be ``x``, or the only array. A folder's images are taken in the order of their names. `labels`: a file of
    classes (.npy, .npz, or text with one number per line); an .npz of inputs may have them as ``label``, ``labels`` or
    ``y``.

    `UsageError` E2600 (cannot be read), E2601 (not the model's inputs), E2602 (Pillow is missing), E2603 (images),
    E2605 (labels), E2608 (preprocessing).
    """
    chosen = preprocess or Preprocess()
    source: _Arrays | Folder
    found: Array | None = None
    if path.is_dir() or path.suffix.lower() in IMAGES:
        source = Folder(path, inputs, chosen)
    else:
        arrays = read_arrays(path)
        source = _Arrays(path, arrays, inputs, chosen)
        found = next((np.asarray(arrays[name]) for name in LABELS if name in arrays), None)
    if labels is not None:
        found = _read_labels(labels)
    return Samples(source.count, None if found is None else _classes(found, source.count, labels or path), source)


def read_arrays(path: Path) -> Mapping[str, Array]:
    """The arrays of an .npz by name, or that of an .npy as ``""`` (mapped into memory, not read)."""
    try:
        opened = np.load(path, mmap_mode="r", allow_pickle=False)
        return {"": opened} if isinstance(opened, np.ndarray) else {name: opened[name] for name in opened.files}
    except (OSError, ValueError, EOFError, KeyError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or "not an .npy or .npz file of numbers"
        raise UsageError("E2600", f"cannot be read: {reason}", where=str(path)) from error
    except Exception as error:  # zipfile and zlib have errors of their own
        raise UsageError("E2600", f"cannot be read: {error}", where=str(path)) from error


class _Arrays:
    """Inferences along the first axis of arrays."""

    def __init__(
        self, path: Path, arrays: Mapping[str, Array], inputs: Sequence[Input], preprocess: Preprocess
    ) -> None:
        self.inputs, self.preprocess, self.where = inputs, preprocess, str(path)
        self.arrays = {wanted.name: self._find(arrays, wanted) for wanted in inputs}
        counts = {len(array) for array in self.arrays.values()}
        self.count = min(counts, default=0)
        if len(counts) != 1 or not self.count:
            raise UsageError("E2601", "its arrays must have equally many samples, and at least one", where=self.where)

    def _find(self, arrays: Mapping[str, Array], wanted: Input) -> Array:
        names = [wanted.name]
        if len(self.inputs) == 1:
            names += ["", "x", *(arrays if len(arrays) == 1 else ())]
        array = next((arrays[name] for name in names if name in arrays), None)
        if array is None:
            raise UsageError("E2601", f"it has no array {wanted.name!r}", where=self.where,
                             hint=f"arrays: {', '.join(arrays) or 'none'}")  # fmt: skip
        fits = array.ndim == len(wanted.shape) and array.dtype.kind in "iufb"
        if not fits or _order(array.shape[1:], wanted.shape[1:]) is None:
            raise UsageError(
                "E2601",
                f"array for {wanted.name!r} must be numbers of shape {['N', *wanted.shape[1:]]}, not {array.dtype} "
                f"{list(array.shape)}",
                where=self.where,
                hint="its first axis counts samples; channels may come last instead of first",
            )
        return array

    def one(self, index: int) -> dict[str, Array]:
        """The feeds of one inference."""
        feeds = {}
        for wanted in self.inputs:
            array = self.arrays[wanted.name][index : index + 1]
            order = _order(array.shape[1:], wanted.shape[1:]) or ()
            moved = np.ascontiguousarray(array.transpose(0, *(axis + 1 for axis in order)))
            feeds[wanted.name] = self.preprocess.apply(moved, wanted)
        return feeds


def _order(found: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...] | None:
    """The permutation that brings a sample's shape to the wanted one: none, or channels last to first or back."""
    orders = [tuple(range(len(found)))]
    if len(found) == 3:
        orders += [(2, 0, 1), (1, 2, 0)]
    return next((order for order in orders if tuple(found[axis] for axis in order) == wanted), None)


def _read_labels(path: Path) -> Array:
    if path.suffix in (".npy", ".npz"):
        arrays = read_arrays(path)
        return next((np.asarray(arrays[name]) for name in (*LABELS, "") if name in arrays), np.zeros(0))
    try:
        return np.array([int(line) for line in path.read_text(encoding="utf-8").split()], np.int64)
    except (OSError, ValueError) as error:
        raise UsageError(
            "E2605",
            f"labels cannot be read: {error}",
            where=str(path),
            hint="one class number per line, or an .npy of integers",
        ) from error


def _classes(labels: Array, count: int, path: Path) -> tuple[int, ...]:
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or len(labels) != count:
        raise UsageError(
            "E2605", f"labels must be {count} integers, not {labels.dtype} {list(labels.shape)}", where=str(path)
        )
    return tuple(int(label) for label in labels)
