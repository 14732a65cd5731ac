"""Arrays of numbers from .npy and .npz files, and what to say of files that have none."""

from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ...errors import UsageError
from ...preprocess.stored import Stored, assigned, stored_arrays

Array = npt.NDArray[Any]

Check = Callable[[str, tuple[int, ...]], None]
"""Of an array's name and shape; raises what refuses it."""
NAMES, NAME = 12, 60
"""Most names of arrays in a message, and most characters of each."""

HINT = "numpy.save(path, array) or numpy.savez(path, NAME=array) write such files"


def read_arrays(
    path: Path,
    wanted: Sequence[str],
    welcome: Sequence[str] = (),
    count: int | None = None,
    rows: Container[str] = (),
    check: Check = lambda name, shape: None,
) -> dict[str | None, Array]:
    """Those arrays of an .npz that are wanted, one at least, or welcome; or the one of an .npy under None.

    Which of the two a file is, its content says. Of those in `rows`, and of the welcome ones, no more than the first
    `count` rows are read; an .npy is the one that is wanted. `UsageError` E2905 names what is wrong with the file, an
    array of `rows` without any too; `check` may refuse a wanted array before it is read: an .npz of a megabyte can hold
    one of a gigabyte. Nothing that it may hold besides numbers is ever executed, and other arrays are not looked at.
    """
    hint = assigned(path) or HINT
    found = stored_arrays(path, lambda what: UsageError("E2905", what, where=str(path), hint=hint))
    if isinstance(found, Stored):
        if len(wanted) == 1:
            check(wanted[0], found.shape)
        array = found[: count if wanted[0] in rows else None]
        return {None: _some(array, wanted[0], path) if wanted[0] in rows else array}
    if not any(name in found for name in wanted):
        more = ", ..." if len(found.names) > NAMES else ""
        held = ", ".join(name[:NAME] for name in found.names[:NAMES]) + more or "nothing"
        what = f"none of its arrays is named like an input; it has {held}"
        raise UsageError("E2905", what, where=str(path), hint=f"inputs: {', '.join(wanted)}")
    for name in wanted:
        if name in found:
            check(name, found[name].shape)
    arrays: dict[str | None, Array] = {
        name: found[name][: count if name in rows or name in welcome else None]
        for name in (*wanted, *welcome)
        if name in found
    }
    for name in wanted:
        if name in arrays and name in rows:
            _some(arrays[name], name, path)
    return arrays


def _some(array: Array, name: str, path: Path) -> Array:
    """The array; `UsageError` E2905 if it has no rows."""
    if array.ndim and not len(array):
        what = f"holds no inference: the array for input {name!r} has the shape {list(array.shape)}"
        raise UsageError("E2905", what, where=str(path), hint="a session gives outputs of no rows for it")
    return array
