"""The tables of a board file: which keys there are, what each says, and what is wrong with a file's."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .board_boot import KEYS as BOOT
from .board_boot import require_boot
from .board_memory import KEYS as EXTERNAL
from .board_memory import require_memory
from .board_pins import KEYS as PINS
from .board_pins import require_pins
from .errors import short
from .presets import PRESETS, SDRAM

Tables = Mapping[str, Mapping[str, Any]]
"""A board file: its tables by name, the top level as the table ""."""


@dataclass(frozen=True)
class Key:
    """A key of a table: the type of its value, and what the value says."""

    kind: type
    says: str


NAMES = {str: "a text in quotes", int: "a whole number", float: "a number with a decimal point", list: "a list",
         dict: "a table"}  # fmt: skip
"""Types as a message calls them."""
LINKS = ("uart", "usb")
"""How bytes reach a board: over a serial line, or USB at full speed."""
CAMERA = ("connector", "d", "pclk", "vsync", "href", "xclk", "reset", "pwdn", "sioc", "siod")
"""A connector of the platform, and names of its pins: eight of d, lowest first, one of each other."""
LARGEST = (1 << 40) - 1
"""Of whole numbers: no clock, count or idcode is larger."""
BAUD = range(300, 12_000_001)
"""Speeds of a serial line: no adapter has more."""
SEEDS = range(1 << 31)
"""What nextpnr takes."""
USB_ID = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}")
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII)
"""Names of boards: they become names of folders."""
SETTING = re.compile(r"(?P<name>[A-Z][A-Z0-9_]*)=(?P<value>[A-Za-z0-9._]+)", re.ASCII)
"""A word of ``platform.sysconfig``."""

SECTIONS: dict[str, dict[str, Key]] = {
    "": {
        "name": Key(str, "how --board calls it, in lower case; folders are called so"),
        "title": Key(str, "maker, board and device, for people"),
        "aliases": Key(list, "other names for --board"),
    },
    "device": {
        "family": Key(str, "a package of src/onnxhw/devices"),
        "name": Key(str, "the device as its maker calls it, without package and grade: LFE5U-25F"),
        "package": Key(str, "the maker's short name of the package: BG381"),
        "speed": Key(str, 'the speed grade: "6"'),
        "idcode": Key(int, "what the device answers over JTAG; openFPGALoader --detect shows it"),
    },
    "platform": {
        "module": Key(str, "the Python module of an Amaranth platform that has the board's pins"),
        "class": Key(str, "the platform in that module"),
        "sysconfig": Key(list, "settings of the constraint file's SYSCONFIG line, [] for none"),
    },
    "clock": {
        "resource": Key(str, "what the platform calls the oscillator's pin"),
        "hz": Key(int, "the oscillator's frequency"),
        "core_hz": Key(int, "the clock that the core should run at"),
    },
    "resources": {
        "lut4": Key(int, "lookup tables, as place and route counts them"),
        "ff": Key(int, "flip-flops"),
        "dsp": Key(int, "multipliers"),
        "ebr": Key(int, "block RAMs"),
        "pll": Key(int, "PLLs"),
    },
    "presets": {
        "default": Key(str, f"the preset that is built unless --preset names another; NAME{SDRAM}: with its memory"),
        "all": Key(list, "the presets that fit"),
    },
    "build": {"seeds": Key(list, "seeds of place and route, tried in turn")},
    "program": {
        "sram": Key(list, "the command that loads {bitstream} until power-off; [] if the programmer cannot"),
        "flash": Key(list, "the command that writes {bitstream} to the flash memory; [] if there is none"),
        "detect": Key(list, "the command that asks for the idcode; [] if the programmer cannot"),
    },
    "serial": {
        "usb": Key(str, 'vendor:product of the serial adapter: "0403:6015"'),
        "baud": Key(int, "the fastest rate of the serial adapter"),
    },
    "bringup": {
        "connect": Key(str, "one question for a board that does not answer"),
        "notes": Key(str, "what else a user of the board should know"),
    },
}
"""Every table and its keys; no others are allowed but for `OPTIONAL`."""
OPTIONAL: dict[str, dict[str, Key]] = {
    "": {
        "link": Key(str, 'what synth builds unless asked: "uart" or "usb"'),
        "unused_memory": Key(str, "memory of the board that no controller is there for, for people"),
    },
    "clock": {"preset_hz": Key(dict, "by preset, a clock that its design was seen to meet: { NAME = 125_000_000 }")},
    "presets": {"external": Key(str, "the preset that large networks are built for, with the table external's memory")},
    "usb": {
        "resource": Key(str, "what the platform calls the pins of a USB connector of the FPGA's own"),
        "id": Key(str, 'vendor:product of a device there: "1209:0001" is for tests'),
    },
    "external": {name: Key(kind, says) for name, (kind, says) in EXTERNAL.items()},
    "boot": {name: Key(kind, says) for name, (kind, says) in BOOT.items()},
    "camera": {name: Key(str, "a connector of the platform" if name == "connector" else "pins of the connector")
               for name in CAMERA},
    "pins": {name: Key(str, says) for name, says in PINS.items()},
}  # fmt: skip
"""Keys of the top level, of ``clock`` and of ``presets`` that may be there, and tables that may be missing. One that
is there has all its keys, but for ``pins``, whose keys may be missing, too."""
OF_CLASS = {("platform", "module"), ("platform", "class"), ("clock", "resource"), ("usb", "resource"),
            ("external", "resource"), ("boot", "resource")}  # fmt: skip
"""Keys that speak of a platform's class: a file with a table ``pins`` has none of them."""


def read_tables(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The tables of a parsed board file, checked; `ValueError` says what is wrong with the first that is."""
    for name, value in record.items():
        if not name:
            raise ValueError("a key has no name")
        if name in {*SECTIONS, *OPTIONAL} and not isinstance(value, dict):
            raise ValueError(f"{name} must be a table, not {short(value)}")
        if name in {*SECTIONS[""], *OPTIONAL[""]} and isinstance(value, dict):
            raise ValueError(f"{name} must not be a table")
    tables: dict[str, dict[str, Any]] = {"": {k: v for k, v in record.items() if not isinstance(v, dict)}}
    tables |= {key: dict(value) for key, value in record.items() if isinstance(value, dict)}
    if unknown := sorted({*tables, *tables[""]} - {*SECTIONS, *OPTIONAL, *SECTIONS[""], *OPTIONAL[""]}):
        known = [*SECTIONS, *OPTIONAL, *SECTIONS[""], *OPTIONAL[""]]
        what = "table" if unknown[0] in tables else "key"
        raise ValueError(f"unknown {what} {unknown[0]!r}{_near(unknown[0], known)}")
    needed, allowed = _wanted(tables)
    for section, keys in needed.items():
        found = tables.setdefault(section, {})
        for key, wanted in keys.items():
            if key not in found:
                typo = difflib.get_close_matches(key, sorted({*found} - {*allowed[section]}), 1)
                other = f"; the file has {typo[0]!r} there, which is no key" if typo else ""
                raise ValueError(f"{_full(section, key)} is missing: {wanted.says}{other}")
    for section, found in tables.items():
        for key, value in found.items():
            _require_value(section, key, value, allowed[section], pins="pins" in tables)
    _require_tables(tables)
    return tables


def _full(section: str, key: str) -> str:
    return f"{section}.{key}" if section else key


def _near(name: str, known: list[str]) -> str:
    found = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {found[0]!r}?" if found else ""


def _wanted(tables: Tables) -> tuple[dict[str, dict[str, Key]], dict[str, dict[str, Key]]]:
    """The keys that a file must have, and those that it may have."""
    pins = "pins" in tables
    allowed = {name: {**SECTIONS.get(name, {}), **OPTIONAL.get(name, {})} for name in (*SECTIONS, *OPTIONAL)}
    if pins:
        allowed = {
            section: {key: what for key, what in keys.items() if (section, key) not in OF_CLASS}
            for section, keys in allowed.items()
        }
    needed = {name: {key: allowed[name][key] for key in keys if key in allowed[name]}
              for name, keys in SECTIONS.items()}  # fmt: skip
    needed |= {name: allowed[name] for name in OPTIONAL if name not in (*SECTIONS, "pins") and name in tables}
    if tables[""].get("link") == "usb" and "serial" not in tables:
        del needed["serial"]
    return needed, allowed


def _require_value(section: str, key: str, value: Any, keys: Mapping[str, Key], *, pins: bool) -> None:
    """The key is known, and the value of its type."""
    name = _full(section, key)
    if key not in keys:
        if pins and (section, key) in OF_CLASS:
            raise ValueError(f"{name} goes with a platform's class; this file has a table pins: leave {key} out")
        place = f"in table {section!r}" if section else "at the top level"
        raise ValueError(f"unknown key {key!r} {place}{_near(key, list(keys))}")
    what = keys[key]
    if type(value) is not what.kind:
        raise ValueError(f"{name} must be {NAMES[what.kind]}, not {short(value)}: {what.says}")
    if isinstance(value, int) and not 0 <= value <= LARGEST:
        raise ValueError(f"{name} must be 0..{LARGEST}, not {short(value)}")
    items = int if key == "seeds" else str
    if isinstance(value, list) and not all(type(item) is items for item in value):
        raise ValueError(f"{name} must be a list whose items are each {NAMES[items]}, not {short(value)}")


def _require_tables(tables: Tables) -> None:
    """What the values must be beyond their types; else `ValueError`."""
    _require_top(tables)
    _require_presets(tables["presets"])
    _require_programs(tables["program"])
    _require_sysconfig(tables["platform"]["sysconfig"])
    if not tables["build"]["seeds"]:
        raise ValueError("build.seeds must not be empty")
    if wrong := [seed for seed in tables["build"]["seeds"] if seed not in SEEDS]:
        raise ValueError(f"build.seeds must be {SEEDS[0]} to {SEEDS[-1]:,}, not {short(wrong[0])}")
    for key in ("hz", "core_hz"):
        if not tables["clock"][key]:
            raise ValueError(f"clock.{key} must not be 0: {SECTIONS['clock'][key].says}")
    _require_preset_clocks(tables)
    if "serial" in tables:
        _require_serial(tables["serial"])
    if "external" in tables:
        require_memory(tables["external"])
    elif "external" in tables["presets"]:
        raise ValueError("presets.external goes with a table external, which describes the memory")
    elif tables["presets"]["default"].endswith(SDRAM):
        what = f"presets.default {tables['presets']['default']!r}"
        raise ValueError(f"{what} goes with a table external, which describes the memory")
    if "boot" in tables:
        require_boot(tables["boot"])
    if "usb" in tables:
        _require_usb(tables["usb"])
    if "camera" in tables:
        _require_camera(tables["camera"])
    if "pins" in tables:
        require_pins(tables["pins"], {*tables})


def _require_top(tables: Tables) -> None:
    top = tables[""]
    for name in (top["name"], *top["aliases"]):
        if not NAME.fullmatch(name):
            what = "name" if name == top["name"] else "aliases"
            raise ValueError(f"{what} must be lower-case letters, digits, '-', '_' and '.', not {short(name)}")
    if (link := top.get("link", LINKS[0])) not in LINKS:
        raise ValueError(f"link must be one of {', '.join(LINKS)}, not {short(link)}")
    if link == "usb" and "usb" not in tables:
        raise ValueError('link "usb" needs the table usb, which names the pins')
    if not tables["device"]["name"].isprintable():
        raise ValueError("device.name must be printable")


def _require_presets(table: Mapping[str, Any]) -> None:
    external = [table["external"]] if "external" in table else []
    default = table["default"].removesuffix(SDRAM)
    for name in (default, *table["all"], *external):
        if name not in PRESETS:
            raise ValueError(f"presets: there is no preset {name!r}{_near(name, list(PRESETS))}; "
                             f"presets: {', '.join(sorted(PRESETS))}")  # fmt: skip
    if default not in table["all"]:
        raise ValueError(f"presets.default {default!r} is not in presets.all")
    if any(name not in table["all"] for name in external):
        raise ValueError(f"presets.external {table['external']!r} is not in presets.all")


def _require_preset_clocks(tables: Tables) -> None:
    """Each is a whole number, of a preset of the board."""
    for name, hz in tables["clock"].get("preset_hz", {}).items():
        known = [*tables["presets"]["all"], *(preset + SDRAM for preset in tables["presets"]["all"])]
        if name not in known:
            raise ValueError(f"clock.preset_hz: {name!r} is not one of presets.all{_near(name, known)}")
        if type(hz) is not int or not 0 < hz <= LARGEST:
            raise ValueError(f"clock.preset_hz: {name!r} must be 1..{LARGEST}, not {short(hz)}")


def _require_programs(table: Mapping[str, Any]) -> None:
    if not table["sram"] and not table["flash"]:
        raise ValueError("program.sram and program.flash must not both be empty: how else is the board loaded?")
    for key in ("sram", "flash", "detect"):
        words = table[key]
        if any(not word.isprintable() or not word for word in words):
            raise ValueError(f"program.{key}: the words of a command must be printable")
        if "?" in words:
            raise ValueError(f'program.{key}: fill in the "?"')
        if words and key != "detect" and not any("{bitstream}" in word for word in words[1:]):
            raise ValueError(f'program.{key} must have a word "{{bitstream}}", where the file\'s name goes')


def _require_sysconfig(words: list[str]) -> None:
    for word in words:
        found = SETTING.fullmatch(word)
        if not found:
            raise ValueError(f'platform.sysconfig must have words like "MCCLK_FREQ=38.8", not {short(word)}')
        if found["name"] == "MCCLK_FREQ" and not re.fullmatch(r"\d*[1-9]\d*(\.\d+)?|\d+\.\d*[1-9]\d*", found["value"]):
            raise ValueError(f"platform.sysconfig: MCCLK_FREQ must be a number of MHz, not {short(found['value'])}")


def _require_serial(table: Mapping[str, Any]) -> None:
    if not USB_ID.fullmatch(table["usb"].lower()):
        raise ValueError(f"serial.usb must be like '0403:6015', not {short(table['usb'])}")
    if table["baud"] not in BAUD:
        raise ValueError(f"serial.baud must be {BAUD[0]:,} to {BAUD[-1]:,}, not {table['baud']:,}: "
                         f"{SECTIONS['serial']['baud'].says}")  # fmt: skip


def _require_usb(table: Mapping[str, Any]) -> None:
    if not USB_ID.fullmatch(table["id"]):
        raise ValueError(f"usb.id must be like '1209:0001', not {short(table['id'])}")
    if not table.get("resource", "usb"):
        raise ValueError("usb.resource must not be empty; without pins leave the table out")


def _require_camera(table: Mapping[str, Any]) -> None:
    camera = {name: pins.split() for name, pins in table.items()}
    for name, pins in camera.items():
        if len(pins) != (8 if name == "d" else 1):
            raise ValueError(f"camera.{name} must be {'eight names' if name == 'd' else 'one name'}, not {short(pins)}")
    used = [pin for name, pins in camera.items() if name != "connector" for pin in pins]
    if len({*used}) < len(used):
        raise ValueError("camera: a pin is named twice")
