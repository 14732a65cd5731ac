"""`open_samples`: the inferences of an .npy or .npz file, an image or a folder of them, one at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import UsageError
from ..files import read_text
from .formula import IMAGES, Array, Input, Preprocess
from .images import Folder
from .stored import Stored, StoredArrays, assigned, stored_arrays

LABELS = ("label", "labels", "y")
"""Arrays of an .npz that, if present, are the classes of the inputs."""


MOST_TEXT = 1 << 28
"""Most bytes of a text of labels."""


@dataclass(frozen=True)
class Samples:
    """Inferences of a source: `count` of them, each made when it is asked for.

    `labels`: their classes, if known: one for each, or one for each row of the inputs. `images`: the name of each
    one's file, where an image is an inference.
    """

    count: int
    labels: tuple[int, ...] | None
    _source: "_Arrays | Folder"
    images: tuple[str, ...] = ()

    def feeds(self, start: int = 0, stop: int | None = None) -> Iterator[dict[str, Array]]:
        """The model's inputs by name, of inferences `start` to `stop`; none before the first."""
        for index in range(start, self.count if stop is None else min(stop, self.count)) if start >= 0 else ():
            yield self._source.one(index)


def open_samples(
    path: Path, inputs: Sequence[Input], preprocess: Preprocess | None = None, labels: Path | None = None
) -> Samples:
    """The samples of an .npy or .npz file, an image, or a folder of them.

    An .npz has one array per input by name, the first axis counting inferences; of a model with one input it may also
    be ``x``, or the only array. A folder's images are taken in the order of their names. Where `Input.rows` is more
    than 1, so many entries or images are one inference, and what is left at the end is not used. `labels`: a file of
    classes (.npy, .npz, or text with one number per line); an .npz of inputs may have them as ``label``, ``labels`` or
    ``y``.

    `UsageError` E2600 (cannot be read), E2601 (not the model's inputs), E2602 (Pillow is missing), E2603 (images),
    E2605 (labels), E2608 (preprocessing). What is damaged behind its beginning is found when it is read.
    """
    chosen = preprocess or Preprocess()
    source: _Arrays | Folder
    found: Array | Stored | None = None
    if path.is_dir() or path.suffix.lower() in IMAGES:
        source = Folder(path, inputs, chosen)
    else:
        arrays = read_arrays(path)
        source = _Arrays(path, arrays, inputs, chosen)
        found = _labels_in(arrays)
    if labels is not None:
        found = _read_labels(labels)
    named = source.files if isinstance(source, Folder) and source.rows == 1 else []
    classes = None if found is None else _classes(found, source, labels or path)
    return Samples(source.count, classes, source, tuple(file.name for file in named))


def read_arrays(path: Path) -> Stored | StoredArrays:
    """The array of an .npy, or those of an .npz; nothing but headers is read yet."""
    return stored_arrays(path, lambda what: UsageError("E2600", what, where=str(path), hint=assigned(path)))


def _labels_in(arrays: Stored | StoredArrays) -> Stored | None:
    return None if isinstance(arrays, Stored) else next((arrays[name] for name in LABELS if name in arrays), None)


class _Arrays:
    """Inferences along the first axis of arrays. `rows`: how many entries one of them takes, at most."""

    def __init__(
        self, path: Path, arrays: Stored | StoredArrays, inputs: Sequence[Input], preprocess: Preprocess
    ) -> None:
        self.inputs, self.preprocess, self.where = inputs, preprocess, str(path)
        self.arrays = {wanted.name: self._find(arrays, wanted) for wanted in inputs}
        self.rows = max((wanted.rows for wanted in inputs), default=1)
        counts = {len(self.arrays[wanted.name]) // wanted.rows for wanted in inputs}
        self.count = min(counts, default=0)
        if len(counts) != 1 or not self.count:
            what = "its arrays must have equally many samples, and at least one"
            hint = f"one sample has {self.rows} rows, as the model's input" if self.rows > 1 else ""
            raise UsageError("E2601", what, where=self.where, hint=hint)

    def _find(self, arrays: Stored | StoredArrays, wanted: Input) -> Stored:
        if isinstance(arrays, Stored):
            found = arrays if len(self.inputs) == 1 else None
            held = "one"
        else:
            there = arrays.names
            names = [wanted.name]
            if len(self.inputs) == 1:
                names += ["x", *(there if len(there) == 1 else ())]
            found = next((arrays[name] for name in names if name in arrays), None)
            held = ", ".join(there) or "none"
        if found is None:
            what = f"it has no array {wanted.name!r}"
            raise UsageError("E2601", what, where=self.where, hint=f"arrays: {held}")
        fits = found.ndim == len(wanted.shape) > 0 and found.dtype.kind in "iufb"
        if not fits or _order(found.shape[1:], wanted.shape[1:]) is None:
            raise UsageError(
                "E2601",
                f"array for {wanted.name!r} must be numbers of shape {['N', *wanted.shape[1:]]}, not {found.dtype} "
                f"{list(found.shape)}",
                where=self.where,
                hint="its first axis counts samples; channels may come last instead of first",
            )
        return found

    def one(self, index: int) -> dict[str, Array]:
        """The feeds of one inference."""
        feeds = {}
        for wanted in self.inputs:
            array = self.arrays[wanted.name][index * wanted.rows : (index + 1) * wanted.rows]
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


def _read_labels(path: Path) -> Array | Stored:
    if path.suffix in (".npy", ".npz"):
        arrays = read_arrays(path)
        found = arrays if isinstance(arrays, Stored) else _labels_in(arrays)
        if found is None:
            raise UsageError("E2605", f"it has no array {', '.join(LABELS)}", where=str(path))
        return found
    try:
        return np.array([int(line) for line in read_text(path).split()], np.int64)
    except (OSError, ValueError, OverflowError) as error:
        raise UsageError(
            "E2605",
            f"labels cannot be read: {error}",
            where=str(path),
            hint="one class number per line, or an .npy of integers",
        ) from error


def _classes(labels: Array | Stored, source: "_Arrays | Folder", path: Path) -> tuple[int, ...]:
    """One label for each inference, or for each row of those that are used."""
    rows = source.count * source.rows
    fits = labels.ndim == 1 and labels.dtype.kind in "iu"
    if not fits or not (len(labels) == source.count or rows <= len(labels) < rows + source.rows):
        what = f"labels must be {rows} integers, not {labels.dtype} {list(labels.shape)}"
        raise UsageError("E2605", what, where=str(path))
    return tuple(int(label) for label in labels[:rows])
