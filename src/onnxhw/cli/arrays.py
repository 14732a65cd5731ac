"""Arrays of numbers from .npy and .npz files, and what to say of files that have none."""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from ..errors import UsageError

Array = npt.NDArray[Any]

HINT = "numpy.save(path, array) or numpy.savez(path, NAME=array) write such files"
ZIP, NPY, PICKLE = b"PK", npy.MAGIC_PREFIX, b"\x80"
"""How the files begin."""


def read_arrays(path: Path, wanted: Sequence[str], welcome: Sequence[str] = ()) -> dict[str | None, Array]:
    """Those arrays of an .npz that are wanted, one at least, or welcome; or the one of an .npy under None.

    Which of the two a file is, its content says. `UsageError` E2905 names what is wrong with it; nothing that
    it may hold besides numbers is ever executed, and other arrays are not looked at.
    """
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise _refuse(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if data.startswith(NPY):
        return {None: _array(path, data, "")}
    if not data.startswith(ZIP):
        what = "is empty" if not data else "is a pickle, which is not loaded" if data.startswith(PICKLE) else ""
        raise _refuse(path, what or "is neither an .npy nor an .npz file")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name.removesuffix(".npy"): name for name in archive.namelist()}
            if not any(name in members for name in wanted):
                held = ", ".join(members) or "nothing"
                what = f"none of its arrays is named like an input; it has {held}"
                raise UsageError("E2905", what, where=str(path), hint=f"inputs: {', '.join(wanted)}")
            contents = {name: archive.read(members[name]) for name in (*wanted, *welcome) if name in members}
    except UsageError:
        raise
    except Exception as error:  # zipfile and zlib raise many kinds for damaged files
        raise _refuse(path, "is a damaged or truncated .npz file") from error
    return {name: _array(path, content, name) for name, content in contents.items()}


def _array(path: Path, data: bytes, name: str) -> Array:
    """The array of an .npy file's bytes, which may be a member of an .npz."""
    which = f"its array {name!r}" if name else "it"
    stream = io.BytesIO(data)
    try:
        version = npy.read_magic(stream)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        objects = dtype.hasobject
        if not objects and len(data) - stream.tell() < int(np.prod(shape, dtype=object)) * dtype.itemsize:
            raise ValueError("truncated")
        stream.seek(0)
        if not objects:
            return np.asarray(npy.read_array(stream, allow_pickle=False))
    except Exception as error:  # so does numpy
        raise _refuse(path, f"{which} is damaged or truncated") from error
    raise _refuse(path, f"{which} holds Python objects, not numbers")


def _refuse(path: Path, what: str) -> UsageError:
    return UsageError("E2905", what, where=str(path), hint=HINT)
