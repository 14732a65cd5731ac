"""The pins of a board file's table ``pins``: which there may be, and which belong together."""

import re
from collections.abc import Collection, Iterator, Mapping

from .errors import short

KEYS = {
    "io_type": "electrical standard of all pins; LVCMOS33 unless given",
    "clock": "the oscillator's pin",
    "uart_rx": "serial line: the FPGA's input, the adapter's TXD",
    "uart_tx": "serial line: the FPGA's output, the adapter's RXD",
    "leds": "LEDs that a high level lights, four at most are used",
    "leds_n": "LEDs that a low level lights",
    "button": "a button that gives a high level when pressed",
    "button_n": "a button that gives a low level when pressed",
    "usb_d_p": "D+ of a USB connector of the FPGA's own",
    "usb_d_n": "D- of it",
    "usb_pullup": "what connects 1.5 kOhm at D+ with 3.3 V; without it the resistor is always connected",
    "sdram_clk": "SDR SDRAM: clock",
    "sdram_cke": "clock enable; without it, it is tied high on the board",
    "sdram_cs_n": "chip select; without it, it is tied low on the board",
    "sdram_ras_n": "row address strobe",
    "sdram_cas_n": "column address strobe",
    "sdram_we_n": "write enable",
    "sdram_dqm": "data masks, lowest byte first; without them they are tied low on the board",
    "sdram_ba": "bank address, BA0 first",
    "sdram_a": "address, A0 first",
    "sdram_dq": "data, DQ0 first",
    "flash_cs_n": "SPI flash that the device is configured from: chip select",
    "flash_copi": "data to it (DI, IO0)",
    "flash_cipo": "data from it (DO, IO1)",
    "flash_wp_n": "its write protect (IO2), where a pin of the FPGA has it",
    "flash_hold_n": "its hold (IO3), likewise",
}
"""What each key says. A value is the names of pins of the device's package, with spaces between them."""
MANY = ("leds", "leds_n", "sdram_dqm", "sdram_ba", "sdram_a", "sdram_dq")
"""Keys that may name several pins."""
PIN = re.compile(r"[A-Za-z0-9]{1,8}", re.ASCII)
IO_TYPES = ("LVCMOS33", "LVCMOS25", "LVCMOS18", "LVCMOS15", "LVCMOS12", "LVTTL33")
"""Standards of single wires that all families' tools know."""
GROUPS = {
    "serial": ("uart_rx", "uart_tx"),
    "usb": ("usb_d_p", "usb_d_n"),
    "boot": ("flash_cs_n", "flash_copi", "flash_cipo"),
    "external": ("sdram_clk", "sdram_ras_n", "sdram_cas_n", "sdram_we_n", "sdram_ba", "sdram_a", "sdram_dq"),
}
"""Tables of a board file, and the pins that a file with the table must have."""
PREFIX = {"serial": "uart_", "usb": "usb_", "external": "sdram_", "boot": "flash_"}
"""How keys begin that make no sense without the table."""
EITHER = (("leds", "leds_n"), ("button", "button_n"))


def names(pins: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Every pin with the key that names it."""
    for key, value in pins.items():
        if key != "io_type":
            yield from ((key, pin) for pin in value.split())


def require_pins(pins: Mapping[str, str], tables: Collection[str]) -> None:
    """What a table ``pins`` must be beyond types, in a file with these `tables`; else `ValueError`."""
    if "clock" not in pins:
        raise ValueError(f"pins.clock is missing: {KEYS['clock']}")
    if (kind := pins.get("io_type", IO_TYPES[0])) not in IO_TYPES:
        raise ValueError(f"pins.io_type must be one of {', '.join(IO_TYPES)}, not {short(kind)}")
    for key, value in pins.items():
        found = value.split()
        if key != "io_type" and (not found or (len(found) > 1 and key not in MANY)):
            count = "names of pins with spaces between them" if key in MANY else "the name of one pin"
            raise ValueError(f"pins.{key} must be {count}, not {short(value)}; without such a pin leave it out")
    used: dict[str, str] = {}
    for key, pin in names(pins):
        if not PIN.fullmatch(pin):
            raise ValueError(f"pins.{key}: {short(pin)} is no name of a pin; names are like G2")
        if pin in used:
            raise ValueError(f"pins: {pin} is both {used[pin]} and {key}" if used[pin] != key else
                             f"pins.{key} names {pin} twice")  # fmt: skip
        used[pin] = key
    for one, other in EITHER:
        if one in pins and other in pins:
            raise ValueError(f"pins: {one} or {other}, not both")
    _require_groups(pins, tables)


def _require_groups(pins: Mapping[str, str], tables: Collection[str]) -> None:
    for table, needed in GROUPS.items():
        some = [key for key in pins if key.startswith(PREFIX[table])]
        missing = [key for key in needed if key not in pins]
        if table in tables and missing:
            raise ValueError(f"pins.{missing[0]} is missing: {KEYS[missing[0]]} (the file has a table {table})")
        if table not in tables and some:
            raise ValueError(f"pins.{some[0]} needs the table {table}")
