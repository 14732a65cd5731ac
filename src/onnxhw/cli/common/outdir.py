"""An output directory that never holds half a file: written beside, then renamed into place."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import UsageError
from ...files import unwritable, write_whole
from .interrupts import undivided

HINT = "choose another place: in a folder of yours, on a disk with room"
"""What to do about E2903."""


def refuse_unwritable(target: Path) -> None:
    """A `UsageError` E2903 if `target` cannot be made or written to; called before long work begins."""
    place = next((place for place in (target, *target.parents) if place.exists()), target)
    if not place.is_dir():
        raise UsageError("E2903", "is not a directory", where=str(place), hint=HINT)
    if error := unwritable(place):
        raise _unwritable(place, error)


def _unwritable(place: Path, error: OSError) -> UsageError:
    reason = "" if error.errno == errno.ENOENT else f": {error.strerror}"
    return UsageError("E2903", f"cannot be written to{reason}", where=str(place), hint=HINT)


def _real(path: Path) -> Path:
    """The path without symbolic links; with one, where they are a circle (`Path.resolve` then raises before 3.13)."""
    return Path(os.path.realpath(path))


def refuse_unwritable_file(target: Path, *sources: Path | None) -> None:
    """A `UsageError` E2903 if a file of that name cannot be written; called before long work begins.

    A symbolic link is followed; anything there that is not a regular file is left alone. E2561: it is one of the
    `sources` that the command reads.
    """
    target = _real(target)
    if any(source and _real(source) == target for source in sources):
        raise UsageError("E2561", "is read by this command, and would be overwritten", where=str(target),
                         hint="give the output another name")  # fmt: skip
    for wrong, what in (
        (target.is_symlink(), "is a symbolic link in a circle"),
        (target.is_dir(), "is a directory, not a file"),
        (target.exists() and not target.is_file(), "is not a regular file"),
    ):
        if wrong:
            raise UsageError("E2903", what, where=str(target), hint=HINT)
    refuse_unwritable(target.parent)


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A temporary directory whose files are renamed into `target` if the block ends well.

    It is beside `target`, or inside if that exists: then nothing but `target` needs to be writable.
    If it does not, nothing of it stays, and a `target` that did not exist still does not. Files that
    `target` already has stay unless they are replaced; an interrupt waits until all are. E2903 as `refuse_unwritable`.
    """
    refuse_unwritable(target)
    made = [p for p in (target.parent, *target.parent.parents) if not p.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target if target.is_dir() else target.parent
        stage = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=beside))
    except OSError as error:
        raise _unwritable(target, error) from None
    try:
        stage.chmod(0o777 & ~_umask())
        yield stage
        if target.exists():
            with undivided():  # some files of now and some of before are no result
                for file in sorted(stage.iterdir()):
                    os.replace(file, target / file.name)
        else:
            os.replace(stage, target)
    except OSError as error:
        if isinstance(error.filename, str) and error.filename.startswith(str(stage)):
            raise _unwritable(target, error) from None
        raise
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        if not target.exists():
            for directory in made:
                with suppress(OSError):
                    directory.rmdir()


def write_atomically(target: Path, data: bytes) -> None:
    """Write one file by way of a temporary one beside it; E2903 as `refuse_unwritable_file`."""
    target = _real(target)
    refuse_unwritable_file(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, data, f".{target.name}-", 0o666 & ~_umask())
    except OSError as error:
        raise _unwritable(target, error) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
