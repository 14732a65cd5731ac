"""`Board`: a board file read and checked. Board files are TOML, one per board and device.

They are found in the checkout's ``boards`` folder or in the installed package; ``ONNXHW_BOARDS`` names another
folder that is looked at first.
"""

import difflib
import os
import re
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from .board_boot import BootFlash
from .board_memory import BoardMemory
from .board_tables import LINKS, read_tables
from .config import HwConfig
from .errors import ToolError, UsageError, short
from .external import ExternalMemory
from .files import read_text, reason
from .presets import SDRAM, preset

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SAID = 300
"""Most characters that are told of what a programmer has printed."""
CLOCK_PIN, UART_PINS, USB_PINS, SDRAM_PINS, FLASH_PINS = "clock", "uart", "usb", "sdram", "spi_flash"
"""Resources of a platform that is made of a board file's table ``pins`` (`onnxhw.devices.declared`)."""


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

    `preset` is its own, by default with `external` if `presets.SDRAM` is behind the name; `presets` are all that
    fit, by their names without it. `family` is its family, one of `families`; `platform` is ``module:class`` of its
    Amaranth platform, or empty, and `pins` are those of the file's own (`board_pins.KEYS`); `sysconfig` are the
    settings of the constraint file's SYSCONFIG line; `baud` is the fastest rate of the serial adapter `usb`; `link`
    is what `synth` builds unless asked, one of `LINKS`; `usb_resource` are the platform's pins of a USB connector
    of the FPGA's own (empty: there is none) and `usb_id` what a device there calls itself, ``vendor:product``;
    `external` is its SDR SDRAM, if the board file describes one; `boot` its SPI flash, if designs may load networks
    from there; `camera` the pins of a connector that a camera goes to, by their names (`board_tables.CAMERA`; none:
    there is no place for one); `clock_hz` the oscillator at `clock_resource`, `core_hz` the clock that the core
    should run at, and `preset_hz` that of presets with another one (`core_hz_of`); `idcode` what the device answers
    over JTAG; `connect` what to look at if none answers; `unused_memory` what memory the board has that there is no
    controller for; `external_preset` the preset that large networks are built for, with `external` (empty: none is
    named). `usb` is empty and `baud` 0 where there is no serial line. In the commands ``{bitstream}`` stands for
    the file; one that is empty the programmer does not have.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    family: str
    device: str
    package: str
    speed: str
    idcode: int
    platform: str
    sysconfig: tuple[str, ...]
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
    baud: int
    connect: str
    notes: str
    link: str = "uart"
    usb_resource: str = ""
    usb_id: str = ""
    external: BoardMemory | None = None
    boot: BootFlash | None = None
    camera: tuple[tuple[str, str], ...] = ()
    pins: tuple[tuple[str, str], ...] = ()
    unused_memory: str = ""
    external_preset: str = ""
    preset_hz: tuple[tuple[str, int], ...] = ()

    @property
    def usb_ids(self) -> tuple[int, int]:
        """`usb_id` as numbers."""
        vendor, product = self.usb_id.split(":")
        return int(vendor, 16), int(product, 16)

    def offers(self, name: str) -> bool:
        """Whether a preset is one of the board's, alone or with external memory (`presets.SDRAM`)."""
        return name.removesuffix(SDRAM) in self.presets

    def core_hz_of(self, name: str, link: str = "") -> int:
        """The clock that the core should run at with a preset. A preset's own is known to be met with the board's own
        link alone, so with another `link` (one of `board_tables.LINKS`) it is `core_hz`."""
        return dict(self.preset_hz).get(name, self.core_hz) if link in ("", self.link) else self.core_hz

    @property
    def clocks(self) -> dict[str, int]:
        """Every clock of the core by its key in the board file."""
        return {"clock.core_hz": self.core_hz, **{f"clock.preset_hz: {name}": hz for name, hz in self.preset_hz}}

    def external_memory(self, clock_hz: int | None = None) -> ExternalMemory:
        """The external memory at a clock, by default `core_hz`; `UsageError` E2373 if that cannot be, E2374 if there is
        none."""
        if self.external is None:
            unused = f": for its {self.unused_memory} there is no controller" if self.unused_memory else ""
            hint = f"the preset without {SDRAM}; a board's file describes its memory in the table external"
            what = f"the board has no external memory{unused}"
            raise UsageError("E2374", what, where=f"board {self.name}", hint=hint)
        return self.external.external(clock_hz or self.core_hz)

    def configuration(self, name: str = "", clock_hz: int | None = None) -> HwConfig:
        """A preset, as `presets.preset` knows it, by default the board's own; one with external memory has the board's
        at that clock, by default `core_hz_of` it. Errors: those of `preset` and `external_memory`."""
        found = preset(name or self.preset)
        if found.external is None:
            return found
        return replace(found, external=self.external_memory(clock_hz or self.core_hz_of(found.name)))

    def program_command(self, bitstream: Path | str, *, flash: bool = False) -> list[str]:
        """The words that load a bitstream into the device, or into its flash memory."""
        return [word.replace("{bitstream}", str(bitstream)) for word in (self.flash if flash else self.program)]


SENSORS = ("camera-ov7670",)
"""Sources of inputs at a board's pins."""


@lru_cache(maxsize=1)
def families() -> tuple[str, ...]:
    """The names of the device families there are: the packages in the folder ``devices``."""
    folder = Path(__file__).resolve().parent / "devices"
    return tuple(sorted(path.parent.name for path in folder.glob("*/__init__.py")))


def require_family(name: str, where: str) -> None:
    """`UsageError` E2306 names the device families there are, if that is none of them."""
    if name not in families():
        hint = f"families: {', '.join(families())}"
        raise UsageError("E2306", f"no device family {short(name)}", where=where, hint=hint)


def read_board(path: Path) -> Board:
    """The board of one file; `UsageError` E2301 to E2303 says what is wrong with it, E2306 names a device family that
    is not there."""
    try:
        record = tomllib.loads(read_text(path).removeprefix("\ufeff"))  # which some editors begin files with
    except OSError as error:
        raise UsageError("E2301", f"cannot read the board file: {reason(error)}", where=str(path)) from error
    except RecursionError:
        raise UsageError("E2302", "the board file is not TOML: nested too deep", where=str(path)) from None
    except ValueError as error:  # of tomllib, and for bytes that are no UTF-8 and numbers of thousands of digits
        raise UsageError("E2302", f"the board file is not TOML: {error}", where=str(path)) from error
    try:
        found = _board(record)
    except ValueError as error:
        raise UsageError("E2303", str(error), where=str(path)) from error
    require_family(found.family, str(path))
    return found


def _board(record: dict[str, Any]) -> Board:
    """The board of a file's contents; `ValueError`."""
    tables = read_tables(record)
    device, clock, commands = tables["device"], tables["clock"], tables["program"]
    platform, usb, memory = tables["platform"], tables.get("usb", {}), dict(tables.get("external", {}))
    boot = dict(tables.get("boot", {}))
    if "pins" in tables:
        memory |= {"resource": SDRAM_PINS} if memory else {}
        boot |= {"resource": FLASH_PINS} if boot else {}
    if boot:
        boot["program"] = tuple(boot["program"])
    return Board(
        name=tables[""]["name"],
        title=tables[""]["title"],
        aliases=tuple(tables[""]["aliases"]),
        family=device["family"],
        device=device["name"],
        package=device["package"],
        speed=device["speed"],
        idcode=device["idcode"],
        platform="" if "pins" in tables else f"{platform['module']}:{platform['class']}",
        sysconfig=tuple(platform["sysconfig"]),
        clock_resource=clock.get("resource", CLOCK_PIN),
        clock_hz=clock["hz"],
        core_hz=clock["core_hz"],
        preset_hz=tuple(clock.get("preset_hz", {}).items()),
        resources=Resources(**tables["resources"]),
        preset=tables["presets"]["default"],
        presets=tuple(tables["presets"]["all"]),
        seeds=tuple(tables["build"]["seeds"]),
        program=tuple(commands["sram"]),
        flash=tuple(commands["flash"]),
        detect=tuple(commands["detect"]),
        usb=tables.get("serial", {}).get("usb", ""),
        baud=tables.get("serial", {}).get("baud", 0),
        connect=tables["bringup"]["connect"],
        notes=tables["bringup"]["notes"].strip(),
        link=tables[""].get("link", LINKS[0]),
        usb_resource=usb.get("resource", USB_PINS) if usb else "",
        usb_id=usb.get("id", ""),
        external=BoardMemory(**memory) if memory else None,
        boot=BootFlash(**boot) if boot else None,
        camera=tuple(tables.get("camera", {}).items()),
        pins=tuple(tables.get("pins", {}).items()),
        unused_memory=tables[""].get("unused_memory", ""),
        external_preset=tables["presets"].get("external", ""),
    )


def folders() -> list[Path]:
    """Where board files may lie, best first."""
    here = Path(__file__).resolve().parent
    chosen = os.environ.get("ONNXHW_BOARDS")
    return [*([Path(chosen)] if chosen else []), here / "boards", here.parents[1] / "boards"]


@lru_cache(maxsize=8)
def _read_all(places: tuple[Path, ...]) -> tuple[dict[str, Board], dict[str, UsageError]]:
    """The boards by name, and what is wrong with the other files by path."""
    found: dict[str, Board] = {}
    wrong: dict[str, UsageError] = {}
    for place in places:
        for path in sorted(place.glob("*.toml")):
            try:
                board = read_board(path)
                found.setdefault(board.name, board)
            except UsageError as error:
                wrong[str(path)] = error
    if not found and not wrong:
        looked = ", ".join(str(place) for place in places)
        raise UsageError(
            "E2304", "there are no board files", where=looked, hint="reinstall onnxhw or set ONNXHW_BOARDS"
        )
    return found, wrong


def boards() -> dict[str, Board]:
    """All boards by name, but those of `wrong_files`."""
    return dict(_read_all(tuple(folders()))[0])


def wrong_files() -> dict[str, UsageError]:
    """Board files that are not taken, by path: what is wrong with them."""
    return dict(_read_all(tuple(folders()))[1])


def names() -> list[str]:
    """The names of all boards, without aliases."""
    return sorted(boards())


def find(name: str) -> Board:
    """The board of that name or alias, or of a board file given by its path (with a "/" or ending in ".toml").

    `UsageError` E2305 suggests the nearest name; E2301 to E2303 and E2306 as of `read_board`, also if a file is called
    like the board and cannot be read: another one of the name that lies further back is not what was meant.
    """
    if name.endswith(".toml") or "/" in name or os.sep in name:
        return read_board(Path(name))
    everything = boards()
    known = {alias: entry for entry in everything.values() for alias in entry.aliases} | everything
    key = name.lower()
    for path, error in wrong_files().items():
        if Path(path).stem in (key, known[key].name if key in known else key):
            raise error
    if key in known:
        return known[key]
    near = difflib.get_close_matches(key, sorted(known), n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    hint += "".join(f"not read: {error.text()}; " for error in wrong_files().values())
    hint += f"boards: {', '.join(sorted(known))}; or the path of a board file (ONNXHW_BOARDS names a folder of them)"
    raise UsageError("E2305", f"no board named {name!r}", hint=hint)


def parse_idcodes(detect_output: str) -> list[int]:
    """The JTAG idcodes in what ``openFPGALoader --detect`` prints."""
    return [int(text, 16) for text in re.findall(r"idcode\s*:?\s*(0x[0-9a-fA-F]+)", detect_output)]


def idcode_matches(entry: Board, idcode: int) -> bool:
    """Whether a device with this idcode is the board's. All 32 bits count: 12F and 25F differ in the top three."""
    return idcode == entry.idcode


def check_device(entry: Board, detect_output: str) -> None:
    """Refuse to go on unless the connected device is the board's: `ToolError` E7201 none found, with what the
    programmer says of it, E7202 another one."""
    found = parse_idcodes(detect_output)
    if not found:
        said = "; ".join(line.strip() for line in detect_output.splitlines() if line.strip())
        what = "no device answers over JTAG" + (f"; {entry.detect[0]} says: {short(said, SAID)}" if said else "")
        raise ToolError("E7201", what, where=entry.name, hint=entry.connect)
    if any(idcode_matches(entry, idcode) for idcode in found):
        return
    alike = sorted(boards().values(), key=lambda other: other.detect == entry.detect)  # asked in the same way: last
    known = {other.idcode: other for other in alike}
    seen = [f"0x{idcode:08X}" + (f" ({known[idcode].device})" if idcode in known else "") for idcode in found]
    others = [known[idcode].name for idcode in found if idcode in known]
    raise ToolError(
        "E7202",
        f"the connected device answers {', '.join(seen)}, not 0x{entry.idcode:08X} ({entry.device})",
        where=entry.name,
        hint=f"use --board {others[0]}" if others else "choose the board that is connected",
    )
