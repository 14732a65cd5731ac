"""Gowin GW2A-18C, with Yosys, nextpnr-himbaechel-gowin and Apicula's gowin_pack."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...board import Board
from ...config import HwConfig
from ...errors import UsageError
from ..family import NAME, ROUTED, BlockRamLocation, DevicePart, Estimate, Execute, Family, ToolCommand
from ..report import RouteReport
from . import dividers, mapping, parts, pins, report, through, timing

if TYPE_CHECKING:
    from ...rtl.cells import Primitives

NEXTPNR = "nextpnr-himbaechel-gowin"


class Gowin:
    """`Family` of the GW2A-18C. What needs Amaranth is imported when it is asked for."""

    name = "gowin"
    tools: tuple[str, ...] = ("yosys", NEXTPNR, "gowin_pack")
    stages: tuple[str, str, str] = ("yosys", "nextpnr", "gowin_pack")
    small = parts.FAMILY
    routed = ROUTED
    cells: Mapping[str, str] = report.KINDS
    memory, multiplier = timing.MEMORY, timing.MULTIPLIER
    flash_clock = False

    def check_part(self, board: Board) -> None:
        """Refuse a part that was not tried."""
        parts.part_number(board)

    def check_clock(self, board: Board) -> None:
        """By `dividers.choose`."""
        for key, hz in board.clocks.items():
            dividers.choose(board.clock_hz, hz, where=f"board {board.name}: {key}")

    def parts(self) -> Mapping[str, DevicePart]:
        """`parts.KNOWN`."""
        return parts.KNOWN

    def platform(self, board: Board) -> Any:
        """A `GowinPlatform`; `UsageError` E2376 for pins that the part does not have."""
        from amaranth.vendor import GowinPlatform

        from ..declared import declared

        pins.check_pins(board)
        members = {"part": parts.part_number(board), "family": board.device}
        return declared(board, GowinPlatform, members, pins.ATTRIBUTES)

    def device_of(self, platform: Any) -> str:
        """As `GowinPlatform` has it."""
        return str(getattr(platform, "family", ""))

    def boot_seconds(self, board: Board, size: int) -> float:
        """By the slowest rate."""
        return parts.boot_seconds(size)

    def estimate(self, config: HwConfig) -> Estimate:
        """`estimate.estimate`."""
        from .estimate import estimate

        return estimate(config)

    def primitives(self, device: str, config: HwConfig | None) -> "Primitives":
        """`cells.Gw2aCells`."""
        from .cells import Gw2aCells

        return Gw2aCells()

    def clocked(self, design: Any, board: Board, clock_hz: int, *, usb: bool = False) -> Any:
        """`pll.RpllClocked`; `UsageError` E2310 for the clocks of a USB link, which were not made for this family."""
        from .pll import RpllClocked

        if usb:
            what = "there are no clocks for a USB link on this device family"
            raise UsageError("E2310", what, where=f"board {board.name}", hint="--link uart")
        return RpllClocked(design, resource=board.clock_resource, input_hz=board.clock_hz, output_hz=clock_hz)

    def files(self, platform: Any, design: Any, board: Board, synth_opts: Sequence[str]) -> dict[str, str]:
        """RTLIL, Yosys script, pin and clock constraints.

        Amaranth's own script is for nextpnr-gowin, which is no more.
        """
        plan = platform.prepare(design, NAME, emit_src=False)
        wanted = [f"{NAME}.il", f"{NAME}.cst"]
        files = {name: text if isinstance(text := plan.files[name], str) else text.decode() for name in wanted}
        synthesis = " ".join([mapping.SYNTHESIS.format(top=NAME), *synth_opts])
        files[f"{NAME}.ys"] = f"read_rtlil {NAME}.il\n{synthesis} -json {NAME}.json\n"
        setting = getattr(design, "setting", None)
        clock_hz = setting.output_hz if setting else board.clock_hz
        files[f"{NAME}.sdc"] = f"create_clock -name sync -period {1e9 / float(clock_hz):.6f} [get_nets clk]\n"
        return files

    def key(self, board: Board) -> dict[str, str]:
        """How the clock is bounded, for the tools alone say nothing of it, and what becomes of the netlist."""
        return {"bound": report.IDENTITY, "netlist": through.IDENTITY}

    def counts(self, cells: Mapping[str, str]) -> dict[str, int]:
        """`report.counts`."""
        return report.counts(cells)

    def netlist(self, text: str) -> str:
        """With a lookup table before every register (`through`)."""
        return through.pass_through(text)

    def route(self, board: Board, seed: int, log: str, options: Sequence[str]) -> ToolCommand:
        """nextpnr-himbaechel-gowin."""
        arguments = (
            "--device", parts.part_number(board), "--vopt", f"family={parts.FAMILY}", "--vopt", f"cst={NAME}.cst",
            "--sdc", f"{NAME}.sdc", "--seed", str(seed), "--json", f"{NAME}.json", "--write", self.routed,
            "--report", "report.json", "--sdf", report.SDF, "--timing-allow-fail", "--quiet", "--log", log, *options,
        )  # fmt: skip
        return ToolCommand(NEXTPNR, arguments)

    def close_timing(
        self, directory: Path, board: Board, report: RouteReport, log: str, options: Sequence[str], execute: Execute,
        say: Callable[[str], None],
    ) -> bool:  # fmt: skip
        """Never: nextpnr's delays of this family are estimates themselves."""
        return False

    def report(self, record: Mapping[str, Any], directory: Path) -> RouteReport:
        """`report.report`."""
        return report.report(record, directory)

    def pack(self, key: str) -> ToolCommand:
        """gowin_pack; what it writes is a text of bits (``.fs``)."""
        return ToolCommand("gowin_pack", ("-d", parts.FAMILY, "-c", "-o", f"{NAME}.bit", self.routed))

    def locate(self, routed: Mapping[str, Any]) -> list[BlockRamLocation]:
        """`contents.locate`."""
        from .contents import locate

        return locate(routed)

    def bake(self, routed: str, locations: Sequence[BlockRamLocation], images: Mapping[str, Sequence[int]]) -> str:
        """`contents.bake`."""
        from .contents import bake

        return bake(routed, locations, images)


FAMILY: Family = Gowin()
