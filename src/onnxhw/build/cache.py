"""Results that take minutes are kept: a folder per key, content-addressed, checked when read.

The key is a hash over everything that the result depends on; an entry is written next to its place and moved there
whole, so a reader never meets half of one. A broken entry (its checksums do not match) counts as absent.
"""

import ast
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import platformdirs

from ..errors import UsageError

log = logging.getLogger(__name__)

INDEX = "checksums.json"


def root() -> Path:
    """The cache's folder: ``ONNXHW_CACHE``, or the user's cache folder of this system."""
    chosen = os.environ.get("ONNXHW_CACHE")
    return Path(chosen) if chosen else platformdirs.user_cache_path("onnxhw", appauthor=False)


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
        self.folder = (folder or root()) / kind

    def load(self, key: str) -> dict[str, bytes] | None:
        """The files of an entry, or None if there is none or it is broken."""
        try:
            index = json.loads((self.folder / key / INDEX).read_text())
            files = {name: (self.folder / key / name).read_bytes() for name in index["files"]}
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return files if all(digest(data) == index["files"][name] for name, data in files.items()) else None

    def store(self, key: str, files: Mapping[str, bytes], *, label: str = "") -> None:
        """Keep files under a key. A folder that cannot be written is no error: a warning says that nothing is kept."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".new-", dir=self.folder) as scratch:
                new = Path(scratch) / key
                new.mkdir()
                for name, data in files.items():
                    (new / name).write_bytes(data)
                index = {"label": label, "files": {name: digest(data) for name, data in files.items()}}
                (new / INDEX).write_text(json.dumps(index, sort_keys=True))
                self.remove(key)
                os.replace(new, self.folder / key)
        except OSError as error:
            log.warning(
                "the cache %s cannot be written (%s): %s is not kept; ONNXHW_CACHE names another folder",
                self.folder, error.strerror or error, label or "this result",
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
                label = str(json.loads((place / INDEX).read_text())["label"])
            except (OSError, ValueError, KeyError, TypeError):
                label = ""
            found.append(CacheEntry(self.kind, place.name, label, size, self.load(place.name) is not None))
        return found


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
