"""YoWASP's own cache: the tools from PyPI are WebAssembly, compiled to machine code at their first run and kept.

Where that folder cannot be written the tool ends with a traceback before it does anything; `refuse_unwritable` says it
in one sentence beforehand.
"""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import platformdirs

from ..errors import ToolError

VARIABLE = "YOWASP_CACHE_DIR"
"""Names another folder."""


def folder(environment: Mapping[str, str] | None = None) -> Path:
    """Where YoWASP keeps machine code: as ``yowasp_runtime`` chooses it."""
    chosen = (os.environ if environment is None else environment).get(VARIABLE)
    return Path(platformdirs.user_cache_dir("YoWASP", appauthor=False) if chosen is None else chosen)


def problem(place: Path) -> str:
    """Why a folder cannot be made or written to; empty if it can."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def refuse_unwritable(
    tool: str, package: str, directory: Path, environment: Mapping[str, str] | None = None
) -> None:  # fmt: skip
    """`ToolError` E7104 if a tool that is to run in `directory` has to write its cache and cannot.

    A folder that is read-only and has the tool's machine code already is good enough.
    """
    place = directory / folder(environment)
    reason = problem(place / package)
    if reason and not _is_kept(place, package):
        raise ToolError(
            "E7104",
            f"{tool} has to keep its machine code in {place}, which cannot be written: {reason}",
            where=str(place),
            hint=f"make the folder writable, or point {VARIABLE} at one that is (and ONNXHW_CACHE at one for results)",
        )


def _is_kept(place: Path, package: str) -> bool:
    """Whether the machine code of every program in a package is there."""
    modules = [item for item in resources.files(package).iterdir() if item.name.endswith(".wasm")]
    try:
        return bool(modules) and all(
            (place / package / item.name / hashlib.sha1(item.read_bytes()).hexdigest()).is_file() for item in modules
        )
    except OSError:
        return False
