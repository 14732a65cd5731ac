"""An output directory that never holds half a file: written beside, then renamed into place."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import UsageError


def refuse_unwritable(target: Path) -> None:
    """A `UsageError` E2903 if `target` cannot be made or written to; called before long work begins."""
    place = target
    while not place.exists():
        if place.parent == place:
            break
        place = place.parent
    hint = "choose another directory with -o"
    if not place.is_dir():
        raise UsageError("E2903", f"{place} is not a directory", where=str(target), hint=hint)
    try:
        handle, probe = tempfile.mkstemp(prefix=".onnxhw-", dir=place)
    except OSError as error:
        raise UsageError("E2903", f"cannot write: {error.strerror}", where=str(target), hint=hint) from None
    os.close(handle)
    os.unlink(probe)


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A temporary directory whose files are renamed into `target` if the block ends well.

    It is beside `target`, or inside if that exists: then nothing but `target` needs to be writable.
    If it does not, nothing of it stays, and a `target` that did not exist still does not. Files that
    `target` already has stay unless they are replaced. E2903 as `refuse_unwritable`.
    """
    refuse_unwritable(target)
    made = [p for p in (target.parent, *target.parent.parents) if not p.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target if target.is_dir() else target.parent
        stage = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=beside))
    except OSError as error:
        raise UsageError("E2903", f"cannot write: {error.strerror}", where=str(target)) from None
    try:
        stage.chmod(0o777 & ~_umask())
        yield stage
        if target.exists():
            for file in sorted(stage.iterdir()):
                os.replace(file, target / file.name)
        else:
            os.replace(stage, target)
    except OSError as error:
        if isinstance(error.filename, str) and error.filename.startswith(str(stage)):
            raise UsageError("E2903", f"cannot write: {error.strerror}", where=str(target)) from None
        raise
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        if not target.exists():
            for directory in made:
                with suppress(OSError):
                    directory.rmdir()


def write_atomically(target: Path, data: bytes) -> None:
    """Write one file by way of a temporary one beside it; E2903 as `refuse_unwritable`.

    A symbolic link is followed; anything there that is not a regular file is left alone (E2903).
    """
    target = target.resolve()
    if target.exists() and not target.is_file():
        raise UsageError("E2903", "cannot write: not a regular file", where=str(target), hint="choose another name")
    refuse_unwritable(target.parent)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    except OSError as error:
        raise UsageError("E2903", f"cannot write: {error.strerror}", where=str(target)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        raise UsageError("E2903", f"cannot write: {error.strerror}", where=str(target)) from None
    finally:
        Path(temporary).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
