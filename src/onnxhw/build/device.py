"""What a bitstream is for: the ECP5 parts that the open tools know, and the platform with the pins of a board."""

import importlib
from importlib import metadata
from typing import Any

from ..board import Board
from ..errors import ToolError, UsageError
from . import tools

FAMILIES = {"LFE5U": "", "LFE5UM": "um-", "LFE5UM5G": "um5g-"}
"""What nextpnr puts before a size. The parts with M have transceivers, which we do not use; 5G is a faster one."""
SIZES = {"LFE5U": ("12", "25", "45", "85"), "LFE5UM": ("25", "45", "85"), "LFE5UM5G": ("25", "45", "85")}
SPEEDS = {"LFE5U": ("6", "7", "8"), "LFE5UM": ("6", "7", "8"), "LFE5UM5G": ("8",)}
PACKAGES = {"BG256": "CABGA256", "MG285": "CSFBGA285", "BG381": "CABGA381", "BG554": "CABGA554", "BG756": "CABGA756"}
"""Lattice's short names of packages, and nextpnr's."""
UART = ("uart", 0)
"""The resource of a platform that is the serial line to the host."""


def part_options(board: Board) -> list[str]:
    """nextpnr's options for a board's part; `UsageError` E2371 names what of it is not supported."""

    def require(what: str, value: str, known: tuple[str, ...]) -> None:
        if value not in known:
            hint = f"{what}: {', '.join(known)}"
            raise UsageError("E2371", f"{what} {value!r} is not supported", where=f"board {board.name}", hint=hint)

    parts = {f"{family}-{size}F": (family, size) for family in SIZES for size in SIZES[family]}
    require("device", board.device, tuple(parts))
    family, size = parts[board.device]
    require("package", board.package, tuple(PACKAGES))
    require(f"speed grade of an {family}", board.speed, SPEEDS[family])
    return [f"--{FAMILIES[family]}{size}k", "--package", PACKAGES[board.package], "--speed", board.speed]


def version_of(package: str) -> str:
    """Of an installed package of the extra ``synth``; `ToolError` E7120."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        raise ToolError("E7120", f"{package} is not installed", hint="pip install 'onnxhw[synth]'") from None


def platform_of(board: Board) -> Any:
    """The board's Amaranth platform; `ToolError` E7120 if amaranth-boards is missing, `UsageError` E2303 if there is no
    such platform or it is for another device."""
    module, name = board.platform.split(":")
    where = f"board {board.name}"
    try:
        platform = getattr(importlib.import_module(module), name)()
    except ImportError as error:
        if module.partition(".")[0] == "amaranth_boards" and error.name != module:
            raise ToolError("E7120", "amaranth-boards is not installed", hint="pip install 'onnxhw[synth]'") from error
        raise UsageError("E2303", f"platform.module cannot be imported: {error}", where=where) from error
    except AttributeError as error:
        raise UsageError("E2303", f"{module} has no {name}", where=where) from error
    if getattr(platform, "device", "") != board.device:
        what = f"{name} of {module} is for device {getattr(platform, 'device', 'unknown')!r}, not {board.device!r}"
        raise UsageError("E2303", what, where=where)
    return platform


def require(board: Board) -> None:
    """Refuse a board of which no bitstream can be made, before anything is compiled for it.

    `ToolError` E7101 or E7120 for what is not installed; `UsageError` E2371 for a part that the tools do not know,
    E2370 for a board without the clock that its file names, or without a serial line.
    """
    part_options(board)
    resources = platform_of(board).resources
    for tool in ("yosys", "nextpnr-ecp5", "ecppack"):
        tools.command(tool)
    module, name = board.platform.split(":")
    for what, resource in (("clock", (board.clock_resource, 0)), ("serial line", UART)):
        if resource not in resources:
            hint = "a device is run over a serial line: another board, or a platform of your own that has one"
            if what == "clock":
                hint = f"clock.resource is one of: {', '.join(sorted(name for name, number in resources))}"
            text = f"{name} of {module} has no {what} {resource[0]!r}"
            raise UsageError("E2370", text, where=f"board {board.name}", hint=hint)
