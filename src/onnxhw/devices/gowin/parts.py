"""The Gowin parts that are taken: those with the GW2A-18C die, alone or with SDRAM in the package."""

from ...board import Board, Resources
from ...errors import UsageError
from ..family import DevicePart

FAMILY = "GW2A-18C"
"""The die, as nextpnr's and Apicula's databases are called."""
PARTS = {"GW2A-18C": "GW2A-LV18", "GW2AR-18C": "GW2AR-LV18"}
"""Devices as Amaranth's platforms name them, and how their part numbers begin."""
PACKAGES = {"GW2A-18C": ("PG256", "PG256S", "QN88"), "GW2AR-18C": ("QN88", "QN88P")}
RESOURCES = Resources(lut4=20_736, ff=15_552, dsp=48, ebr=46, pll=2)
"""What nextpnr can place of what the die has (of four PLLs two)."""
SPEEDS = ("C8/I7",)
"""The grade whose delays `bound` has; slower ones would be told a clock that they may not reach."""
KNOWN = {
    name: DevicePart(RESOURCES, 0x0000081B, 27_000_000, PACKAGES[name][0], SPEEDS[0]) for name in PARTS
}  # fmt: skip
"""What a die answers over JTAG as openFPGALoader knows it; `tang-20k` is good for 30.9 MHz by `bound`."""
FLASH_MHZ = 2.5
"""The rate at which a bitstream is read from flash memory, unless the bitstream says otherwise: the least of Gowin's
programming guide (UG290), as remembered; no second source confirms it."""


def part_number(board: Board) -> str:
    """The part for nextpnr; `UsageError` E2371 names what of it is not supported."""

    def require(key: str, what: str, value: str, known: tuple[str, ...]) -> None:
        if value not in known:
            hint = f"{what}: {', '.join(known)}"
            message = f"device.{key}: {what} {value!r} is not supported"
            raise UsageError("E2371", message, where=f"board {board.name}", hint=hint)

    require("name", "device", board.device, tuple(PARTS))
    require("package", f"package of a {board.device}", board.package, PACKAGES[board.device])
    require("speed", "speed grade", board.speed, SPEEDS)
    if board.sysconfig:
        what, hint = "platform.sysconfig: this family's tools know no such words", "leave it empty: []"
        raise UsageError("E2371", what, where=f"board {board.name}", hint=hint)
    return f"{PARTS[board.device]}{board.package}{board.speed}"


def boot_seconds(size: int) -> float:
    """How long the device reads `size` bytes of a ``.fs`` file at power-up: its text has a character per bit, of which
    one is read per cycle."""
    return size / (FLASH_MHZ * 1e6)
