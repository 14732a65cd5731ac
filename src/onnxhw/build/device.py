"""What a bitstream is for: the platform with the pins of a board, and whether one can be made."""

import importlib
from importlib import metadata
from typing import Any

from ..board import Board
from ..board_boot import BootFlash
from ..devices import family_of
from ..errors import ToolError, UsageError
from ..external import ExternalMemory
from . import tools

UART = ("uart", 0)
"""The resource of a platform that is the serial line to the host."""
USB_PACKAGE = "luna-usb"
"""Where the gateware of a USB link comes from."""


def version_of(package: str) -> str:
    """Of an installed package of the extra ``synth``; `ToolError` E7120."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        raise ToolError("E7120", f"{package} is not installed", hint="pip install 'onnxhw[synth]'") from None


def platform_of(board: Board) -> Any:
    """The board's Amaranth platform; `ToolError` E7120 if amaranth-boards is missing, `UsageError` E2303 if there is no
    such platform or it is for another device. Of pins that the board's file declares one is made."""
    if board.pins:
        return family_of(board).platform(board)
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
    device = family_of(board).device_of(platform)
    if device != board.device:
        what = f"{name} of {module} is for device {device or 'unknown'!r}, not {board.device!r}"
        raise UsageError("E2303", what, where=where)
    return platform


def described(board: Board) -> str:
    """What the board's pins are from, for messages."""
    module, _, name = board.platform.partition(":")
    return f"{name} of {module}" if name else "the table pins of its file"


def require_camera(board: Board) -> None:
    """`UsageError` E2381 for a board whose file names no pins for a camera, E2382 where its platform has no such pins.
    """
    where, pins = f"board {board.name}", dict(board.camera)
    if not pins:
        hint = "a board with a connector for a camera names its pins in the table camera of its file"
        raise UsageError("E2381", "the board has no pins for a camera", where=where, hint=hint)
    name = pins.pop("connector")
    found = platform_of(board).connectors.get((name, 0))
    known = list(found.mapping) if found else []
    if missing := [pin for names in pins.values() for pin in names.split() if pin not in known]:
        hint = f"pins of it: {', '.join(known)}" if known else ""
        what = f"connector {name!r} of {described(board)} has no pin {missing[0]!r}"
        raise UsageError("E2382", what, where=where, hint=hint)


def require_flash(board: Board, why: str) -> BootFlash:
    """The flash memory from which a design on the board can load its program; `UsageError` E2384 if there is none, with
    what needs it."""
    where, hint = f"board {board.name}", "without --standalone a host loads the program"
    if board.boot is None:
        reason = "its file has no table boot"
    elif not family_of(board).flash_clock:
        reason = f"no design for family {board.family} clocks the flash memory of its configuration yet"
    elif (board.boot.resource, 0) not in platform_of(board).resources:
        reason = f"{described(board)} has no {board.boot.resource!r}"
    else:
        return board.boot
    raise UsageError("E2384", f"--standalone: {why}, and the board loads none from flash: {reason}",
                     where=where, hint=hint)  # fmt: skip


def require(board: Board, link: str = "uart", external: ExternalMemory | None = None) -> None:
    """Refuse a board of which no bitstream can be made, before anything is compiled for it.

    `ToolError` E7101 or E7120 for what is not installed; `UsageError` E2371 for a part that the tools do not know,
    E2376 for pins that it does not have, E2370 for a board without the clock that its file names, with another
    frequency, or without the pins of `link` (one of `board_tables.LINKS`), E2341 for one whose file names no USB pins,
    E2375 for one without the pins of the design's external memory.
    """
    if link == "usb" and not board.usb_resource:
        hint = "--link uart; a board with USB pins of the FPGA's own names them in the table usb of its file"
        raise UsageError("E2341", "the board has no USB pins for a link", where=f"board {board.name}", hint=hint)
    family = family_of(board)
    family.check_part(board)
    resources = platform_of(board).resources
    for tool in family.tools:
        tools.command(tool)
    lines = {"uart": ("serial line", UART), "usb": ("USB connector", (board.usb_resource, 0))}
    for what, resource in (("clock", (board.clock_resource, 0)), lines[link]):
        if resource not in resources:
            hint = f"a device is run over a {what}: another board, or a platform of your own that has one"
            if what == "clock":
                hint = f"clock.resource is one of: {', '.join(sorted(name for name, number in resources))}"
            text = f"{described(board)} has no {what} {resource[0]!r}"
            raise UsageError("E2370", text, where=f"board {board.name}", hint=hint)
    _require_clock(board)
    if external is not None:
        _require_memory(board, external)
    if link == "usb":
        version_of(USB_PACKAGE)


def _require_clock(board: Board) -> None:
    """Refuse a board file whose oscillator has another frequency than its platform's: every clock would be wrong."""
    clock = platform_of(board).lookup(board.clock_resource, 0).clock
    if clock is not None and round(clock.frequency) != board.clock_hz:
        what = f"clock.hz is {board.clock_hz:,}, but {board.clock_resource!r} of {described(board)} has "
        raise UsageError("E2370", f"{what}{round(clock.frequency):,} Hz", where=f"board {board.name}",
                         hint="correct clock.hz, or name another clock.resource")  # fmt: skip


def _require_memory(board: Board, external: ExternalMemory) -> None:
    """Refuse a platform without the pins of a memory, or with too few of them."""
    platform, name = platform_of(board), board.external.resource if board.external else ""
    hint = "pins of the table pins" if board.pins else "pins as SDRAMResource of amaranth-boards"
    where, hint = f"board {board.name}", f"table external of the board's file; {hint}"
    if (name, 0) not in platform.resources:
        raise UsageError("E2375", f"the platform has no external memory {name!r}", where=where, hint=hint)
    pins = {subsignal.name: len(getattr(subsignal.ios[0], "names", ())) for subsignal in platform.lookup(name, 0).ios}
    needed = {"clk": 1, "ras": 1, "cas": 1, "we": 1, "ba": external.bank_bits, "a": external.address_pins}
    found = {pin: (pins.get(pin, 0), least) for pin, least in needed.items()}
    few = [f"{pin} has {count} pins, not {least}" for pin, (count, least) in found.items() if count < least]
    if pins.get("dq", 0) != external.data_bits:
        few.append(f"dq has {pins.get('dq', 0)} pins, not {external.data_bits}")
    if few:
        what = f"the pins of {name!r} are not the memory's: {'; '.join(few)}"
        raise UsageError("E2375", what, where=where, hint=hint)
