"""A new board file: every key with what it says, what is known of the device filled in, the rest to be filled in."""

from collections.abc import Iterator
from dataclasses import replace

from ...board import boards
from ...board_pins import KEYS as PINS
from ...board_tables import NAME, OPTIONAL, SECTIONS, Key
from ...devices import find_part
from ...devices.family import DevicePart, Family
from ...errors import DoesNotFitError, UsageError, short
from ...presets import PRESETS, SIMULATED

UNKNOWN = '"?"'
"""A text that only the board's owner knows."""
NEEDED_PINS = ("clock", "uart_rx", "uart_tx")
"""Pins that a board with a serial line must have; the others are comments."""
HEAD = """\
# {name}: what the bitstream flow and the programmer must know about the board.
#
# Fill in what is "?" or 0, from the board's schematic and the data sheets of its chips, and write beside it where it
# is from. Then `onnxhw check MODEL --board ./{name}.toml` says what is still missing or wrong, by key. docs/boards.md
# goes on from there, to a board that answers. Tables that are comments are optional; one that is there has all keys.
"""
TABLES = {
    "device": "As it is printed on the chip: LFE5U-25F-6BG381C is device LFE5U-25F, speed 6, package BG381.",
    "platform": "Pins are in the table pins below. A board that amaranth-boards has can name its class here instead.",
    "clock": "The oscillator, and the clock to aim at. 100 MHz is what the presets are made for.",
    "resources": "What the device has, as place and route prints it.",
    "presets": "Those that the device has room for, by estimate. The default one places and routes in minutes.",
    "build": "",
    "program": "The programmer. openFPGALoader --list-boards and --list-cables have the names for -b and -c.",
    "serial": "The serial adapter between the host and the pins uart_rx and uart_tx. 115200 baud works anywhere.\n"
    "# Bytes on this line are most of an inference's time, so put its fastest rate here once the board answers.",
    "pins": "Names of the package's pins; where there are several, with spaces between them.",
    "usb": "A USB connector whose D+ and D- are pins of the FPGA. With link = \"usb\" no table serial is needed.",
    "external": "SDR SDRAM: the slowest numbers of all chips that the board may carry (docs/external-memory.md).",
    "boot": "The SPI flash that the device is configured from: designs may load networks from there (--standalone).",
    "bringup": "What a user is told when nothing answers, and what else one should know.",
}
"""What is said of a table before its keys."""


def new_board(name: str, device: str, package: str | None = None, speed: str | None = None) -> str:
    """The text of a board file for a part that a family knows, in a usual package and speed grade of it unless given.

    `UsageError` E2303 for a name that boards cannot have, E2371 for a device that no family knows, or not in this
    package or speed grade.
    """
    if not NAME.fullmatch(name):
        what = f"name must be lower-case letters, digits, '-', '_' and '.', not {short(name)}"
        raise UsageError("E2303", what, hint="for example onnxhw boards new my-board")
    family, part = find_part(device)
    package, speed = package or part.package, speed or part.speed
    any_board = next(iter(boards().values()))
    family.check_part(
        replace(
            any_board, name=name, family=family.name, device=device, package=package, speed=speed, pins=(), sysconfig=()
        )
    )
    values = _values(name, device, package, speed, family, part)
    text = [HEAD.format(name=name), *_keys("", SECTIONS[""], values)]
    for table, keys in SECTIONS.items():
        if table == "pins" or not table:
            continue
        if table == "bringup":
            text += [*_pins(), *_optional("usb"), *_optional("external"), *_optional("boot")]
        wanted = {key: what for key, what in keys.items() if f"{table}.{key}" in values}
        text += _table(table, _keys(table, wanted, values))
    return "\n".join(text) + "\n"


def _values(
    name: str, device: str, package: str, speed: str, family: Family, part: DevicePart
) -> dict[str, str]:  # fmt: skip
    have, fitting = part.resources, _fitting(family, part)
    return {
        "name": f'"{name}"', "title": f'"{name}, {device}"', "aliases": "[]",
        "device.family": f'"{family.name}"', "device.name": f'"{device}"', "device.package": f'"{package}"',
        "device.speed": f'"{speed}"', "device.idcode": f"0x{part.idcode:08x}",
        "platform.sysconfig": "[]",
        "clock.hz": "0", "clock.core_hz": f"{part.core_hz:_}",
        "resources.lut4": str(have.lut4), "resources.ff": str(have.ff), "resources.dsp": str(have.dsp),
        "resources.ebr": str(have.ebr), "resources.pll": str(have.pll),
        "presets.default": '"mini"', "presets.all": f"[{', '.join(f'{chr(34)}{one}{chr(34)}' for one in fitting)}]",
        "build.seeds": "[1, 2, 3, 4, 5]",
        "program.sram": '["openFPGALoader", "-b", "?", "{bitstream}"]',
        "program.flash": '["openFPGALoader", "-b", "?", "--write-flash", "{bitstream}"]',
        "program.detect": '["openFPGALoader", "-b", "?", "--detect"]',
        "serial.usb": UNKNOWN, "serial.baud": "115_200",
        "bringup.connect": '"is the board powered, and its USB connector plugged in?"', "bringup.notes": '""',
    }  # fmt: skip


def _fitting(family: Family, part: DevicePart) -> list[str]:
    """The presets that a device has room for by estimate, the smallest first; `mini` in any case."""
    from ...devices.family import require_room

    found = []
    for name, config in PRESETS.items():
        if name in SIMULATED:
            continue
        guess = family.estimate(config)
        try:
            require_room(guess.counts(), part.resources, name)
        except DoesNotFitError:
            continue
        found.append((guess.lut, name))
    return [name for _, name in sorted(found)] or ["mini"]


def _table(name: str, lines: list[str]) -> list[str]:
    said = [f"# {TABLES[name]}"] if TABLES[name] else []
    return ["", *said, f"[{name}]", *lines]


def _keys(table: str, keys: dict[str, Key], values: dict[str, str]) -> list[str]:
    return [
        line for key, what in keys.items()
        for line in (f"# {what.says}", f"{key} = {values[f'{table}.{key}' if table else key]}")
    ]  # fmt: skip


def _pins() -> list[str]:
    lines = [
        line for key, says in PINS.items()
        for line in (f"# {says}", f"{'' if key in NEEDED_PINS else '# '}{key} = {UNKNOWN}")
    ]  # fmt: skip
    return _table("pins", lines)


def _optional(table: str) -> list[str]:
    """A table as a comment, without keys of a platform's class."""
    return ["", f"# {TABLES[table]}", f"# [{table}]", *_commented(table)]


def _commented(table: str) -> Iterator[str]:
    shown = {str: UNKNOWN, int: "0", float: "0.0", list: "[]"}
    for key, what in OPTIONAL[table].items():
        if key != "resource":
            yield f"# {key} = {shown[what.kind]}  # {what.says}"
