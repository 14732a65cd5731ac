"""The design that ``synth`` builds for a board, and what is kept about it."""

import sys
from typing import Any

from ...board import Board
from ...build import flow
from ...build.bitstream import Bitstream
from ...build.cache import list_all, sources
from ...build.device import version_of
from ...build.stage import Progress
from ...config import HwConfig
from ...devices import family_of
from ...devices.family import memories
from ...errors import OnnxhwError, UsageError
from ...isa.camera import CameraSettings
from ...presets import SDRAM
from ...program.model import DeviceProgram


def top(
    board: Board, config: HwConfig, clock_hz: int, baud: int, link: str = "uart", *, boots: bool = False
) -> Any:  # fmt: skip
    """The top level: core, link (one of `board_tables.LINKS`) and clock; with `boots` it loads its program from the
    board's flash memory."""
    from ...rtl.top import Top

    usb = link == "usb"
    ids, pins = (board.usb_ids, board.usb_resource) if usb else (None, "")
    memory, flash = board.external.resource if board.external else "", board.boot if boots else None
    design = Top(
        config, clock_hz=clock_hz, baud=baud, usb=ids, usb_resource=pins, external_resource=memory,
        boot_offset=flash.offset if flash else None, boot_resource=flash.resource if flash else "",
    )  # fmt: skip
    return family_of(board).clocked(design, board, clock_hz, usb=usb)


def recipe(
    config: HwConfig, clock_hz: int, baud: int, link: str = "uart", *, boots: bool = False
) -> dict[str, str]:  # fmt: skip
    """Everything that `top` is made of, but for the board: so it need not be elaborated to be found in the cache."""
    packages = ("amaranth", "amaranth-boards", *(("luna-usb", "usb-protocol") if link == "usb" else ()))
    return {
        "config": config.to_json(), "clock": str(clock_hz), "baud": str(baud), "python": sys.version,
        "rtl": sources("rtl/top.py"), "link": link, **({"boot": "flash"} if boots else {}),
        **{name: version_of(name) for name in packages},
    }  # fmt: skip


def options(board: Board, seeds: int | None) -> flow.FlowOptions:
    """As many seeds as asked for, first the board's; by default all of the board's, as long as the clock is near."""
    if seeds is None:
        return flow.FlowOptions(seeds=board.seeds, only_near=True)
    count = seeds
    more = range(max(board.seeds) + 1, max(board.seeds) + 1 + count)
    return flow.FlowOptions(seeds=(*board.seeds, *more)[:count])


def line_speed(board: Board, clock_hz: int, link: str, baud: int | None) -> int:
    """Bits per second of a board's link: `baud` if asked for, else what adapter and clock allow. `UsageError` E2342 for
    a USB link, which has none, E2343 if the board's adapter does not take it."""
    from ...compiler.cost import line_rate

    if link == "usb" and baud:
        raise UsageError("E2342", "--baud is the speed of a serial line; a USB link has none", hint="leave --baud out")
    if baud and baud > board.baud > 0:
        what = f"the board's adapter takes at most {board.baud:,} baud, not {baud:,}"
        hint = "a lower --baud; for another adapter a board file with its serial.baud"
        raise UsageError("E2343", what, where=f"board {board.name}", hint=hint)
    return baud or line_rate(board, clock_hz, link)


def finished(
    built: Bitstream, config: HwConfig, baud: int, progress: Progress, program: DeviceProgram | None = None,
    link: str = "uart", sensor: CameraSettings | None = None, *, boots: bool = False,
) -> Bitstream:  # fmt: skip
    """The routed design with its build id in its description, by which a driver knows what is on the board.

    With a program that is in its memories, too: it runs once from power-up, then at each press of fire 1, or for each
    frame of a `sensor`. With `boots` the program is in the board's flash memory.
    """
    from ...build.memory_contents import images
    from ...driver.artifact import build_id
    from ...isa.link import Info

    names = memories(built.locations)
    contents = images(program, list(names), sensor) if program else {}
    if "description" in names:
        info = Info.of(
            config, clock_hz=built.clock_hz, baud=baud, build_id=build_id(built.key),
            standalone=program is not None or boots, usb=link == "usb",
        )  # fmt: skip
        contents["description"] = info.to_words()
    return flow.with_memories(built, contents, progress=progress) if contents else built


def cached_route(config: HwConfig) -> dict[str, Any] | None:
    """``{"resources": {kind: (used, available)}, "fmax_mhz": ..., "seed": ...}`` of a bitstream in the cache, or None.

    Looks at the boards for which one was made, those first that have `config` as their own preset, at the board's clock
    and with its seeds.
    """
    from ...board import boards
    from ...compiler.cost import line_rate

    labels = [f"{entry.label} " for entry in list_all() if entry.kind == "bitstream"]
    name = config.name.removesuffix(SDRAM)
    for board in sorted(boards().values(), key=lambda board: board.preset.removesuffix(SDRAM) != name):
        if not any(label.startswith(f"{config.name} on {board.name} ") for label in labels):
            continue
        baud = line_rate(board, hz := board.core_hz_of(config.name))
        try:
            made_of = recipe(config, hz, baud, board.link)
            design, seeds = top(board, config, hz, baud, board.link), options(board, None)
            if built := flow.cached(design, board, clock_hz=hz, options=seeds, recipe=made_of):
                break
        except OnnxhwError:
            continue
    else:
        return None
    return {"resources": built.report.resources, "fmax_mhz": built.report.fmax_mhz, "seed": built.seed}
