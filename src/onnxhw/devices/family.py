"""`Family`: everything that the rest of onnxhw asks of a device family.

The bitstream flow (`onnxhw.build.flow`) elaborates, runs tools and keeps results; a family says which tools, with which
arguments and files, and reads what they leave. No family runs a tool itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..board import Board, Resources
from ..config import HwConfig
from ..errors import DoesNotFitError, UsageError
from .report import WORDS, RouteReport

if TYPE_CHECKING:
    from ..rtl.cells import Primitives

FILL = 0.91
"""Part of a device's LUT4 and flip-flops that a design may take by estimate: nextpnr makes up to 9 % more LUT4
(21,501 of `ulx3s-25f`, estimated at 19,729), and finds no places for `ulx3s-25f+sdram`, estimated at 92 %."""

NAME = "top"
"""The top module, and how the tools' files begin."""
ROUTED = "routed.json"
"""The netlist that place and route writes, with places and wires."""


@dataclass(frozen=True)
class ToolCommand:
    """One run of a tool (a name of `onnxhw.build.tools`), in a directory that holds its files."""

    tool: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class DevicePart:
    """What is known of a device: what it has, and what it answers over JTAG."""

    resources: Resources
    idcode: int
    core_hz: int
    """A clock that the presets for it reach, for new board files; so are a package and a speed grade of it."""
    package: str
    speed: str


def check_described(board: Board, part: DevicePart) -> None:
    """`UsageError` E2371 if a board's file says what its device is not: another IDCODE, or more resources."""
    if board.idcode != part.idcode:
        what = f"device.idcode is 0x{board.idcode:08x}, an {board.device} answers 0x{part.idcode:08x}"
        raise UsageError("E2371", what, where=f"board {board.name}", hint="correct the board file")
    for name, have in vars(part.resources).items():
        if (said := getattr(board.resources, name)) > have:
            what = f"resources.{name} is {said:,}, an {board.device} has {have:,}"
            raise UsageError("E2371", what, where=f"board {board.name}", hint="correct the board file")


Execute = Callable[[ToolCommand, Path], None]
"""Runs a tool in a folder. `ToolError` E71xx as of `build.tools.run`."""


@dataclass(frozen=True)
class Estimate:
    """Resources of the whole design (core, serial link, clock)."""

    lut: int
    ff: int
    dsp: int
    ebr: int

    def counts(self) -> dict[str, int]:
        """By the names that `check_fit` uses."""
        return {word: getattr(self, kind) for kind, word in WORDS.items()}


@dataclass(frozen=True)
class BlockRamLocation:
    """One block RAM of a routed design: its number, the memory it belongs to and its place in that memory's plan.

    `path` is the memory's place in the hierarchy, `name` what `BlockRam` was given (empty if nothing).
    """

    wid: int
    path: str
    name: str
    width: int
    depth: int
    granularity: int
    tile: int

    def record(self) -> list[Any]:
        """As plain data."""
        return [self.wid, self.path, self.name, self.width, self.depth, self.granularity, self.tile]


def memories(locations: Sequence[BlockRamLocation]) -> dict[str, tuple[int, int]]:
    """``{name or path: (width, depth)}`` of every memory whose contents can be replaced."""
    return {location.name or location.path: (location.width, location.depth) for location in locations}


class Family(Protocol):
    """A device family: the object ``FAMILY`` of a package in this folder, whose name is `name`."""

    name: str
    tools: tuple[str, ...]
    """The tools that decide over a bitstream, in the order of their use."""
    stages: tuple[str, str, str]
    """What progress, notes of durations and logs call synthesis, place and route, and packing."""
    small: str
    """A device for which there is no floor plan: netlists without a board are for it."""
    routed: str
    """The text file that place and route leaves, of which `pack` makes the bitstream."""
    cells: Mapping[str, str]
    """Our names of the resources (`report.KINDS`), and those of nextpnr's log."""
    memory: int
    multiplier: int
    """Registers of its block RAMs and multipliers: at most `isa.timing.MEMORY` and `MULTIPLY`, as a design counts."""

    flash_clock: bool
    """Whether a design can clock the flash memory that the device was configured from."""

    def check_part(self, board: Board) -> None:
        """`UsageError` E2371 names what of a board's part the family's tools do not support, E2376 a pin of the board's
        file that the part does not have."""
        ...

    def check_clock(self, board: Board) -> None:
        """`UsageError` E2310 for one of `Board.clocks` that the PLL cannot make of the board's oscillator."""
        ...

    def parts(self) -> Mapping[str, DevicePart]:
        """The devices that the family's tools know, as board files name them."""
        ...

    def platform(self, board: Board) -> Any:
        """An Amaranth platform of the pins that the board's file declares itself (`devices.declared`)."""
        ...

    def device_of(self, platform: Any) -> str:
        """The device that an Amaranth platform is for, as board files name it; empty for another vendor's platform."""
        ...

    def boot_seconds(self, board: Board, size: int) -> float:
        """How long the device reads a bitstream of `size` bytes from its flash memory at power-up."""
        ...

    def estimate(self, config: HwConfig) -> Estimate:
        """What a configuration takes, before anything is synthesized."""
        ...

    def primitives(self, device: str, config: HwConfig | None) -> "Primitives":
        """The cells of the RTL, at the places of the device's floor plan for a configuration if there is one."""
        ...

    def clocked(self, design: Any, board: Board, clock_hz: int, *, usb: bool = False) -> Any:
        """A design with domain "sync" at `clock_hz`, made from the board's oscillator by the device's PLL.

        With `usb` also the domains of a USB link (`rtl.link.usb.UsbSerial`).

        `UsageError` E2310 for a clock that it cannot make. The result has the design's `config`.
        """
        ...

    def files(self, platform: Any, design: Any, board: Board, synth_opts: Sequence[str]) -> dict[str, str]:
        """The files for the tools, without paths of sources: ``top.ys`` is the script of Yosys, which leaves the
        netlist."""
        ...

    def key(self, board: Board) -> dict[str, str]:
        """What else of the family decides over a bitstream, by name: neither in `files` nor in the options."""
        ...

    def counts(self, cells: Mapping[str, str]) -> dict[str, int]:
        """Resources by the names of `check_fit`, of the cells' kinds by name in what `netlist` returns."""
        ...

    def netlist(self, text: str) -> str:
        """The netlist (JSON) for place and route, of the one that Yosys has left."""
        ...

    def route(self, board: Board, seed: int, log: str, options: Sequence[str]) -> ToolCommand:
        """Place and route; leaves `routed`, `ROUTED` and ``report.json``. A missed clock is no failure."""
        ...

    def close_timing(
        self, directory: Path, board: Board, report: RouteReport, log: str, options: Sequence[str], execute: Execute,
        say: Callable[[str], None],
    ) -> bool:  # fmt: skip
        """Bring what `route` has left in a directory nearer to the clock that it misses most: whether it was. Then the
        directory has all that of the better design; else nothing there has changed.

        `execute` runs a command in a folder, whose log is to be called `log`; `say` is told what else is done.
        """
        ...

    def report(self, record: Mapping[str, Any], directory: Path) -> RouteReport:
        """What is told of the ``report.json``, and of whatever else place and route has left in the directory."""
        ...

    def pack(self, key: str) -> ToolCommand:
        """Make ``top.bit`` of `routed`; the device can be asked for the first 32 bits of `key`, where it has a way."""
        ...

    def locate(self, routed: Mapping[str, Any]) -> list[BlockRamLocation]:
        """The block RAMs in the netlist `ROUTED`, by number."""
        ...

    def bake(self, routed: str, locations: Sequence[BlockRamLocation], images: Mapping[str, Sequence[int]]) -> str:
        """The text of `routed` with other memory contents: words from address 0 on by the memory's name or path; the
        rest of a memory becomes 0, memories that are not named stay as they are. `UsageError` E2330 to E2332."""
        ...


def check_fit(counts: Mapping[str, int], board: Board, where: str = "") -> None:
    """`DoesNotFitError` E5201 with all resources that are too few, before place and route."""
    require_room(counts, board.resources, board.device, where or board.name)


def require_estimated_room(guess: Estimate, board: Board, where: str, hint: str = "") -> None:
    """`DoesNotFitError` E5201 for a design that by estimate leaves place and route too little room (`FILL`), before
    anything is synthesized."""
    have, counts = board.resources, guess.counts()
    over = [
        f"about {counts[kind]:,} {kind} of {total:,}, of which place and route needs {100 * (1 - FILL):.0f} % free"
        for kind, total in (("LUT4", have.lut4), ("flip-flops", have.ff))
        if counts[kind] > FILL * total
    ]
    if over:
        raise DoesNotFitError("E5201", f"takes {'; '.join(over)}", where=where, hint=hint)
    require_room(counts, have, board.device, where)


def require_room(counts: Mapping[str, int], resources: Resources, device: str, where: str = "") -> None:
    """`check_fit` of a device without a board."""
    have = {
        "LUT4": resources.lut4, "flip-flops": resources.ff, "multipliers": resources.dsp, "block RAMs": resources.ebr,
    }  # fmt: skip
    over = [f"{counts[kind]} {kind}, {device} has {have[kind]}" for kind in have if counts.get(kind, 0) > have[kind]]
    if over:
        hint = {
            "multipliers": "lower rows or cols, or use multiplier='fabric'",
            "block RAMs": "lower the memory depths or word",
            "LUT4": "lower rows, cols or lanes, or use multiplier='dsp'",
            "flip-flops": "lower rows, cols or lanes",
        }
        lower = next(hint[kind] for kind in hint if counts.get(kind, 0) > have[kind])
        raise DoesNotFitError(
            "E5201", f"needs {'; '.join(over)}", where=where, hint=lower + " or take a larger board"
        )
