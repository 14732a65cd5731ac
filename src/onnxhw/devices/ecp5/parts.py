"""The ECP5 parts that the open tools know."""

from ...board import Board
from ...errors import UsageError

FAMILIES = {"LFE5U": "", "LFE5UM": "um-", "LFE5UM5G": "um5g-"}
"""What nextpnr puts before a size. The parts with M have transceivers, which we do not use; 5G is a faster one."""
SIZES = {"LFE5U": ("12", "25", "45", "85"), "LFE5UM": ("25", "45", "85"), "LFE5UM5G": ("25", "45", "85")}
SPEEDS = {"LFE5U": ("6", "7", "8"), "LFE5UM": ("6", "7", "8"), "LFE5UM5G": ("8",)}
PACKAGES = {"BG256": "CABGA256", "MG285": "CSFBGA285", "BG381": "CABGA381", "BG554": "CABGA554", "BG756": "CABGA756"}
"""Lattice's short names of packages, and nextpnr's."""
PLACER = "static"
"""nextpnr's placer: spreads the logic over the chip. Its default one, "heap", fills tiles to three quarters before it
takes the next, and leaves the rest of a large chip empty, which the router pays for."""
PLACERS = {"LFE5U-12F": "heap", "LFE5U-25F": "heap"}
"""Another one by device. ``ulx3s-25f`` fills these to four fifths, and "static" had found no legal places for it after
minutes in which "heap" was done."""
MCCLK_MHZ = 2.4
"""The rate at which a bitstream is read from flash memory unless SYSCONFIG says otherwise (FPGA-TN-02039)."""


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


def boot_seconds(board: Board, size: int) -> float:
    """How long the device reads a bitstream of `size` bytes from its flash memory at power-up: a bit per cycle of
    MCCLK_FREQ."""
    rates = [float(word.partition("=")[2]) for word in board.sysconfig if word.startswith("MCCLK_FREQ=")]
    return size * 8 / ((rates or [MCCLK_MHZ])[0] * 1e6)
