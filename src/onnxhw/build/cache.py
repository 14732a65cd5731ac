"""Results that take minutes are kept: a folder per key, content-addressed, checked when read.

The key is a hash over everything that the result depends on. A file of an entry is called after its content, and the
entry's index, which names them, is replaced whole: so readers meet the entry of before or the one of now, whatever
other processes do, and nothing is locked. What a new index no longer names is removed an hour later. A broken entry
(its checksums do not match) counts as absent.

Entries are executed, so the folder must be the user's: see `distrust`.
"""

import ast
import atexit
import functools
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import platformdirs

from ..errors import UsageError
from ..files import read_json, read_regular, write_whole

log = logging.getLogger(__name__)

INDEX = "checksums.json"
NEW = ".new-"
"""How the names of files begin that are being written."""
STALE = 3600
"""Seconds for which a file that no index names may still be about to be named, or read."""
LARGEST = 1 << 31
"""Bytes of one file of an entry; bitstreams and simulators have some megabytes."""
TRIES = 20
"""How often something is done again that another process interfered with."""


def root() -> Path:
    """The cache's folder: ``ONNXHW_CACHE``, or the user's cache folder of this system."""
    chosen = os.environ.get("ONNXHW_CACHE")
    return Path(chosen) if chosen else platformdirs.user_cache_path("onnxhw", appauthor=False)


def distrust(folder: Path) -> str:
    """Why a folder must not be used, empty if it may: as ssh asks of its files (StrictModes).

    The folder and all above it, so far as they exist, must belong to the user or to root and be writable by nobody
    else; above it, a folder in which only owners may rename and remove (as /tmp) will do. A group of the user alone, as
    many systems give to each, is nobody else.
    """
    if not hasattr(os, "geteuid"):
        return ""
    for place in (folder, *folder.parents):
        try:
            state = os.stat(place)
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"{place}: {error.strerror}"
        if state.st_uid not in (0, os.geteuid()):
            return f"{place} belongs to another user"
        others = stat.S_IWOTH | (0 if _own_group(state.st_gid) else stat.S_IWGRP)
        if state.st_mode & others and not (place != folder and state.st_mode & stat.S_ISVTX):
            return f"others may write to {place}"
    return ""


@functools.cache
def _own_group(number: int) -> bool:
    """Whether a group is the user's alone: called like the user, without other members."""
    import grp  # not on every system
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(number)
    except KeyError:
        return False
    return group.gr_name == user and not {*group.gr_mem} - {user}


@functools.cache
def usable(folder: Path, process: int) -> Path:
    """The folder itself, without links in its path, if it may be used; else a `private` one, which is said once."""
    place = Path(os.path.realpath(folder))
    why = distrust(place)
    if not why:
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place):
                return place
        except OSError as error:
            why = f"it cannot be written: {error.strerror or error}"
    log.warning(
        "the cache %s is not used (%s): results are not kept; ONNXHW_CACHE names another folder", folder, why
    )
    return private(process)


@functools.cache
def private(process: int) -> Path:
    """A folder of this process (of that number), which goes with it."""
    found = Path(tempfile.mkdtemp(prefix="onnxhw-cache-"))
    atexit.register(_remove, found, process)
    return found


def _remove(folder: Path, process: int) -> None:
    """Remove a private cache, but not in a fork of the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def digest(data: bytes) -> str:
    """The checksum of a file's content."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def key_of(parts: Mapping[str, str | bytes]) -> str:
    """A key over named parts; no two different sets of parts give the same."""
    state = hashlib.blake2b(digest_size=20)
    for name in sorted(parts):
        value = parts[name]
        data = value.encode() if isinstance(value, str) else value
        for piece in (name.encode(), data):
            state.update(len(piece).to_bytes(8, "little") + piece)
    return state.hexdigest()


def sources(root: str) -> str:
    """A digest of a module of this package (``rtl/core.py``) and of all it imports, directly or not.

    Imports under a condition or in a function count, too. The package's own ``__init__`` does not.
    """
    package = Path(str(resources.files("onnxhw")))
    found: set[Path] = set()
    waiting = [package / root]
    while waiting:
        path = waiting.pop()
        if path not in found and path.is_file() and path != package / "__init__.py":
            found.add(path)
            waiting += _imports(path)
    state = hashlib.blake2b(digest_size=16)
    for path in sorted(found):
        state.update(f"{path.relative_to(package).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return state.hexdigest()


def family_sources(name: str) -> str:
    """A digest of all files of a device family: its cells, mapping, floor plan, cell models."""
    folder = resources.files("onnxhw").joinpath("devices", name)
    state = hashlib.blake2b(sources(f"devices/{name}/__init__.py").encode(), digest_size=16)
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_file():
            state.update(item.name.encode() + b"\0" + item.read_bytes() + b"\0")
    return state.hexdigest()


def _imports(path: Path) -> Iterator[Path]:
    """Files that the relative imports of a module may mean, whether they exist or not."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            place = path.parents[node.level - 1]
            for part in (node.module or "").split("."):
                yield place / "__init__.py"
                place /= part
            for module in (place, *(place / alias.name for alias in node.names)):
                yield module.with_suffix(".py")
                yield module / "__init__.py"


@dataclass(frozen=True)
class CacheEntry:
    """One kept result, for listing."""

    kind: str
    key: str
    label: str
    size: int
    intact: bool

    def record(self) -> dict[str, object]:
        """The entry for ``--json``."""
        return {"kind": self.kind, "key": self.key, "label": self.label, "bytes": self.size, "intact": self.intact}


class Cache:
    """The entries of one kind ("bitstream", ...), below `root` or another folder."""

    def __init__(self, kind: str, folder: Path | None = None) -> None:
        self.kind = kind
        self.folder = (folder or usable(root(), os.getpid())) / kind

    def load(self, key: str) -> dict[str, bytes] | None:
        """The files of an entry, or None if there is none or it is broken."""
        for _ in range(TRIES):
            index = self._index(key)
            files = None if index is None else self._contents(key, index)
            if files is not None or index == self._index(key):  # else the entry was replaced meanwhile
                return files
        return None

    def path(self, key: str, name: str) -> Path | None:
        """Where a file of an entry lies, which is intact; None if there is none."""
        files = self.load(key)
        return self.folder / key / _stored(name, digest(files[name])) if files and name in files else None

    def _index(self, key: str) -> dict[str, str] | None:
        """The digests of an entry's files by name, or None."""
        if distrust(self.folder / key):
            return None
        try:
            files = read_json(self.folder / key / INDEX)["files"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        plain = isinstance(files, dict) and all(isinstance(each, str) and each.isalnum() for each in files.values())
        return files if plain and all(name == Path(name).name for name in files) else None

    def _contents(self, key: str, index: Mapping[str, str]) -> dict[str, bytes] | None:
        try:
            places = {name: self.folder / key / _stored(name, wanted) for name, wanted in index.items()}
            files = {name: read_regular(place, LARGEST) for name, place in places.items()}
        except OSError:
            return None
        return files if all(digest(data) == index[name] for name, data in files.items()) else None

    def store(self, key: str, files: Mapping[str, bytes], *, label: str = "") -> None:
        """Keep files under a key. A folder that cannot be written is no error: a warning says that nothing is kept."""
        index = {"label": label, "files": {name: digest(data) for name, data in files.items()}}
        contents = {_stored(name, digest(data)): data for name, data in files.items()}
        contents[INDEX] = json.dumps(index, sort_keys=True).encode()
        for attempt in range(TRIES):
            try:
                for place in (self.folder, self.folder / key):
                    place.mkdir(mode=0o700, parents=True, exist_ok=True)
                for name, data in contents.items():  # the index last: it names the others
                    write_whole(self.folder / key / name, data, NEW)
                self._tidy(key, contents)
                return
            except FileNotFoundError:  # another process has removed the entry
                if attempt == TRIES - 1:
                    self._not_kept(label, "another process removes it")
            except OSError as error:
                self._not_kept(label, error.strerror or str(error))
                break
        with suppress(OSError):
            (self.folder / key).rmdir()

    def _tidy(self, key: str, named: Mapping[str, bytes]) -> None:
        """Remove what lies in an entry's folder, is not named and has not been touched for a while."""
        with suppress(OSError):
            for path in (self.folder / key).iterdir():
                if path.name not in named and time.time() - path.stat().st_mtime > STALE:
                    path.unlink()

    def _not_kept(self, label: str, why: str) -> None:
        log.warning(
            "the cache %s cannot be written (%s): %s is not kept; ONNXHW_CACHE names another folder",
            self.folder, why, label or "this result",
        )  # fmt: skip

    def remove(self, key: str) -> None:
        """Forget an entry, if there is one."""
        shutil.rmtree(self.folder / key, ignore_errors=True)

    def entries(self) -> list[CacheEntry]:
        """What is kept, in order of the key."""
        found = []
        for place in sorted(self.folder.glob("[0-9a-f]*")) if self.folder.is_dir() else []:
            size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
            try:
                label = str(read_json(place / INDEX)["label"])
            except (OSError, ValueError, KeyError, TypeError):
                label = ""
            found.append(CacheEntry(self.kind, place.name, label, size, self.load(place.name) is not None))
        return found


def _stored(name: str, content: str) -> str:
    """What a file of an entry is called: after its content, so that no two contents share a name."""
    return f"{content}-{name}"


def kinds(folder: Path | None = None) -> list[str]:
    """The kinds of which something is kept. `UsageError` E2321 if the folder cannot be read."""
    place = folder or root()
    try:
        return sorted(path.name for path in place.iterdir() if path.is_dir()) if place.is_dir() else []
    except OSError as error:
        what = f"the cache cannot be read: {error.strerror or error}"
        hint = "make it readable, or point ONNXHW_CACHE at another folder"
        raise UsageError("E2321", what, where=str(place), hint=hint) from error


def list_all(folder: Path | None = None) -> list[CacheEntry]:
    """Every entry of every kind."""
    return [entry for kind in kinds(folder) for entry in Cache(kind, folder).entries()]


def clear(folder: Path | None = None) -> int:
    """Forget everything; the number of bytes freed. `UsageError` E2320 if something cannot be removed."""
    place = folder or root()
    freed = 0
    for kind in kinds(folder):
        freed += sum(path.stat().st_size for path in (place / kind).rglob("*") if path.is_file())
        try:
            shutil.rmtree(place / kind)
        except OSError as error:
            what = f"cannot remove the cache: {error.strerror}"
            raise UsageError("E2320", what, where=str(place / kind), hint="remove it by hand") from error
    return freed
