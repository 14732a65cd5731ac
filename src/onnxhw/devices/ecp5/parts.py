"""The ECP5 parts that the open tools know."""

from ...board import Board, Resources
from ...errors import UsageError
from ..family import DevicePart

FAMILIES = {"LFE5U": "", "LFE5UM": "um-", "LFE5UM5G": "um5g-"}
"""What nextpnr puts before a size. The parts with M have transceivers, which we do not use; 5G is a faster one."""
SIZES = {"LFE5U": ("12", "25", "45", "85"), "LFE5UM": ("25", "45", "85"), "LFE5UM5G": ("25", "45", "85")}
SPEEDS = {"LFE5U": ("6", "7", "8"), "LFE5UM": ("6", "7", "8"), "LFE5UM5G": ("8",)}
PACKAGES = {"BG256": "CABGA256", "MG285": "CSFBGA285", "BG381": "CABGA381", "BG554": "CABGA554", "BG756": "CABGA756"}
"""Lattice's short names of packages, and nextpnr's."""
RESOURCES = {"12": (24288, 28, 56, 2), "25": (24288, 28, 56, 2), "45": (43848, 72, 108, 4), "85": (83640, 156, 208, 4)}
"""LUT4 (flip-flops are as many), multipliers, block RAMs and PLLs by size, as nextpnr prints them."""
IDCODES = {
    "LFE5U-12F": 0x21111043, "LFE5U-25F": 0x41111043, "LFE5U-45F": 0x41112043, "LFE5U-85F": 0x41113043,
    "LFE5UM-25F": 0x01111043, "LFE5UM-45F": 0x01112043, "LFE5UM-85F": 0x01113043,
    "LFE5UM5G-25F": 0x81111043, "LFE5UM5G-45F": 0x81112043, "LFE5UM5G-85F": 0x81113043,
}  # fmt: skip
"""What the devices answer over JTAG (as openFPGALoader 1.1 and Project Trellis know them)."""
PLACER = "static"
"""nextpnr's placer: spreads the logic over the chip. Its default one, "heap", fills tiles to three quarters before it
takes the next, and leaves the rest of a large chip empty, which the router pays for."""
PLACERS = {"LFE5U-12F": "heap", "LFE5U-25F": "heap"}
"""Another one by device. ``ulx3s-25f`` fills these to four fifths, and "static" had found no legal places for it after
minutes in which "heap" was done."""
SYSCONFIG = {
    "CONFIG_IOVOLTAGE": ("1.2", "1.5", "1.8", "2.5", "3.3"), "COMPRESS_CONFIG": ("ON", "OFF"),
    "MCCLK_FREQ": ("2.4", "4.8", "9.7", "19.4", "38.8", "62"),
}  # fmt: skip
"""What may be behind words of SYSCONFIG that the tools look at."""
KEPT = ("SLAVE_SPI_PORT", "MASTER_SPI_PORT", "SLAVE_PARALLEL_PORT", "BACKGROUND_RECONFIG", "DONE_EX", "DONE_OD",
        "DONE_PULL", "TRANSFR", "CONFIG_SECURE", "WAKE_UP", "CONFIG_MODE", "INBUF")  # fmt: skip
"""Other words that nextpnr takes."""
MCCLK_MHZ = 2.4
"""The rate at which a bitstream is read from flash memory unless SYSCONFIG says otherwise (FPGA-TN-02039)."""


def die(device: str) -> str:
    """The device without transceivers of the same size: its places are the same, nextpnr has one database for them."""
    family, _, size = device.partition("-")
    return f"LFE5U-{size}" if family in FAMILIES else device


def known() -> dict[str, DevicePart]:
    """Every device with its resources and idcode."""
    found = {}
    for family, sizes in SIZES.items():
        for size in sizes:
            lut, dsp, ebr, pll = RESOURCES[size]
            name, resources = f"{family}-{size}F", Resources(lut4=lut, ff=lut, dsp=dsp, ebr=ebr, pll=pll)
            found[name] = DevicePart(resources, IDCODES[name], 100_000_000, "BG381", SPEEDS[family][0])
    return found


def part_options(board: Board) -> list[str]:
    """nextpnr's options for a board's part; `UsageError` E2371 names what of it is not supported."""

    def require(key: str, what: str, value: str, known: tuple[str, ...]) -> None:
        if value not in known:
            hint = f"{what}: {', '.join(known)}"
            message = f"device.{key}: {what} {value!r} is not supported"
            raise UsageError("E2371", message, where=f"board {board.name}", hint=hint)

    parts = {f"{family}-{size}F": (family, size) for family in SIZES for size in SIZES[family]}
    require("name", "device", board.device, tuple(parts))
    family, size = parts[board.device]
    require("package", "package", board.package, tuple(PACKAGES))
    require("speed", f"speed grade of an {family}", board.speed, SPEEDS[family])
    for word in board.sysconfig:
        key, _, value = word.partition("=")
        if key not in KEPT:
            _require_setting(board, key, value)
    return [f"--{FAMILIES[family]}{size}k", "--package", PACKAGES[board.package], "--speed", board.speed]


def _require_setting(board: Board, key: str, value: str) -> None:
    """`UsageError` E2371 for a word of SYSCONFIG that nextpnr or ecppack would refuse after minutes."""
    where, known = f"board {board.name}", SYSCONFIG.get(key)
    if known is None:
        hint = f"words: {', '.join(sorted((*SYSCONFIG, *KEPT)))}"
        raise UsageError("E2371", f"platform.sysconfig: no word {key!r} is known", where=where, hint=hint)
    if value not in known:
        hint = f"{key}: {', '.join(known)}"
        raise UsageError("E2371", f"platform.sysconfig: {key} {value!r} is not supported", where=where, hint=hint)


def boot_seconds(board: Board, size: int) -> float:
    """How long the device reads a bitstream of `size` bytes from its flash memory at power-up: a bit per cycle of
    MCCLK_FREQ."""
    rates = [float(word.partition("=")[2]) for word in board.sysconfig if word.startswith("MCCLK_FREQ=")]
    return size * 8 / ((rates or [MCCLK_MHZ])[0] * 1e6)
