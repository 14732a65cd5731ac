"""`Board`: a board file read and checked. Board files are TOML, one per board and device.

They are found in the checkout's ``boards`` folder or in the installed package; ``ONNXHW_BOARDS`` names another
folder that is looked at first.
"""

import difflib
import os
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from .errors import ToolError, UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Resources:
    """What the device has, as the open tools count it."""

    lut4: int
    ff: int
    dsp: int
    ebr: int
    pll: int


@dataclass(frozen=True)
class Board:
    """One board with one device.

    `platform` is ``module:class`` of its Amaranth platform; `clock_hz` the oscillator at `clock_resource`, `core_hz`
    the clock that the core should run at; `idcode` what the device answers over JTAG. In the commands ``{bitstream}``
    stands for the file.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    device: str
    package: str
    speed: str
    idcode: int
    platform: str
    clock_resource: str
    clock_hz: int
    core_hz: int
    resources: Resources
    preset: str
    presets: tuple[str, ...]
    seeds: tuple[int, ...]
    program: tuple[str, ...]
    flash: tuple[str, ...]
    detect: tuple[str, ...]
    usb: str
    notes: str

    @property
    def baud(self) -> int:
        """Bits per second of the serial line to the board."""
        return 1_000_000

    def program_command(self, bitstream: Path | str, *, flash: bool = False) -> list[str]:
        """The words that load a bitstream into the device, or into its flash memory."""
        return [word.replace("{bitstream}", str(bitstream)) for word in (self.flash if flash else self.program)]


SECTIONS: dict[str, dict[str, type]] = {
    "": {"name": str, "title": str, "aliases": list},
    "device": {"name": str, "package": str, "speed": str, "idcode": int},
    "platform": {"module": str, "class": str},
    "clock": {"resource": str, "hz": int, "core_hz": int},
    "resources": {"lut4": int, "ff": int, "dsp": int, "ebr": int, "pll": int},
    "presets": {"default": str, "all": list},
    "build": {"seeds": list},
    "program": {"sram": list, "flash": list, "detect": list},
    "serial": {"usb": str},
    "bringup": {"notes": str},
}
"""Every table of a board file and its keys; all are required and no others are allowed."""


def read_board(path: Path) -> Board:
    """The board of one file; `UsageError` E2301 to E2303 says what is wrong with it."""
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError("E2301", f"cannot read the board file: {error.strerror}", where=str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError("E2302", f"the board file is not TOML: {error}", where=str(path)) from error
    tables: dict[str, dict[str, Any]] = {"": {k: v for k, v in record.items() if not isinstance(v, dict)}}
    tables |= {key: value for key, value in record.items() if isinstance(value, dict)}
    for section, keys in SECTIONS.items():
        found = tables.get(section, {})
        for key, kind in keys.items():
            if type(found.get(key)) is not kind:
                what = f"{section + '.' if section else ''}{key} must be a {kind.__name__}, not {found.get(key)!r}"
                raise UsageError("E2303", what, where=str(path))
        extra = sorted(set(found) - set(keys))
        if extra:
            raise UsageError("E2303", f"unknown key {extra[0]!r} in table {section!r}", where=str(path))
    unknown = sorted(set(tables) - set(SECTIONS))
    if unknown:
        raise UsageError("E2303", f"unknown table {unknown[0]!r}", where=str(path))
    device, clock, commands = tables["device"], tables["clock"], tables["program"]
    return Board(
        name=tables[""]["name"],
        title=tables[""]["title"],
        aliases=tuple(tables[""]["aliases"]),
        device=device["name"],
        package=device["package"],
        speed=device["speed"],
        idcode=device["idcode"],
        platform=f"{tables['platform']['module']}:{tables['platform']['class']}",
        clock_resource=clock["resource"],
        clock_hz=clock["hz"],
        core_hz=clock["core_hz"],
        resources=Resources(**tables["resources"]),
        preset=tables["presets"]["default"],
        presets=tuple(tables["presets"]["all"]),
        seeds=tuple(tables["build"]["seeds"]),
        program=tuple(commands["sram"]),
        flash=tuple(commands["flash"]),
        detect=tuple(commands["detect"]),
        usb=tables["serial"]["usb"],
        notes=tables["bringup"]["notes"].strip(),
    )


def folders() -> list[Path]:
    """Where board files may lie, best first."""
    here = Path(__file__).resolve().parent
    chosen = os.environ.get("ONNXHW_BOARDS")
    return [*([Path(chosen)] if chosen else []), here / "boards", here.parents[1] / "boards"]


@lru_cache(maxsize=8)
def _read_all(places: tuple[Path, ...]) -> dict[str, Board]:
    found: dict[str, Board] = {}
    for place in places:
        for path in sorted(place.glob("*.toml")):
            board = read_board(path)
            found.setdefault(board.name, board)
    if not found:
        looked = ", ".join(str(place) for place in places)
        raise UsageError(
            "E2304", "there are no board files", where=looked, hint="reinstall onnxhw or set ONNXHW_BOARDS"
        )
    return found


def boards() -> dict[str, Board]:
    """All boards by name."""
    return dict(_read_all(tuple(folders())))


def names() -> list[str]:
    """The names of all boards, without aliases."""
    return sorted(boards())


def find(name: str) -> Board:
    """The board of that name or alias; `UsageError` E2305 suggests the nearest name."""
    everything = boards()
    known = {alias: entry for entry in everything.values() for alias in entry.aliases} | everything
    key = name.lower()
    if key in known:
        return known[key]
    near = difflib.get_close_matches(key, sorted(known), n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UsageError("E2305", f"no board named {name!r}", hint=f"{hint}boards: {', '.join(sorted(known))}")


def parse_idcodes(detect_output: str) -> list[int]:
    """The JTAG idcodes in what ``openFPGALoader --detect`` prints."""
    return [int(text, 16) for text in re.findall(r"idcode\s*:?\s*(0x[0-9a-fA-F]+)", detect_output)]


def idcode_matches(entry: Board, idcode: int) -> bool:
    """Whether a device with this idcode is the board's. All 32 bits count: 12F and 25F differ in the top three."""
    return idcode == entry.idcode


def check_device(entry: Board, detect_output: str) -> None:
    """Refuse to go on unless the connected device is the board's: `ToolError` E7201 none found, E7202 another one."""
    found = parse_idcodes(detect_output)
    if not found:
        hint = "is the board powered and connected to its US1 connector?"
        raise ToolError("E7201", "no device answers over JTAG", where=entry.name, hint=hint)
    if any(idcode_matches(entry, idcode) for idcode in found):
        return
    known = {other.idcode: other for other in boards().values()}
    seen = [f"0x{idcode:08X}" + (f" ({known[idcode].device})" if idcode in known else "") for idcode in found]
    others = [known[idcode].name for idcode in found if idcode in known]
    raise ToolError(
        "E7202",
        f"the connected device answers {', '.join(seen)}, not 0x{entry.idcode:08X} ({entry.device})",
        where=entry.name,
        hint=f"use --board {others[0]}" if others else "choose the board that is connected",
    )
