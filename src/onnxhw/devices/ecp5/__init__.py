"""Lattice ECP5, with Yosys, nextpnr-ecp5 and ecppack."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...board import Board
from ...config import HwConfig
from ..family import NAME, ROUTED, BlockRamLocation, DevicePart, Estimate, Execute, Family, ToolCommand
from ..report import RouteReport
from . import carry, closure, dividers, mapping, parts, pins, report, timing

if TYPE_CHECKING:
    from ...rtl.cells import Primitives


class Ecp5:
    """`Family` of the ECP5. What needs Amaranth is imported when it is asked for."""

    name = "ecp5"
    tools: tuple[str, ...] = ("yosys", "nextpnr-ecp5", "ecppack")
    stages: tuple[str, str, str] = ("yosys", "nextpnr", "ecppack")
    small = "LFE5U-25F"
    routed = f"{NAME}.config"
    cells: Mapping[str, str] = report.KINDS
    memory, multiplier = timing.MEMORY, timing.MULTIPLIER
    flash_clock = True

    def check_part(self, board: Board) -> None:
        """Refuse a part that nextpnr does not know, and pins that it does not have."""
        parts.part_options(board)
        pins.check_pins(board)

    def check_clock(self, board: Board) -> None:
        """By `dividers.choose`."""
        for key, hz in board.clocks.items():
            dividers.choose(board.clock_hz, hz, board.speed, where=f"board {board.name}: {key}")

    def parts(self) -> Mapping[str, DevicePart]:
        """`parts.known`."""
        return parts.known()

    def platform(self, board: Board) -> Any:
        """A `LatticeECP5Platform`."""
        from amaranth.vendor import LatticeECP5Platform

        from ..declared import declared

        members = {"device": board.device, "package": board.package, "speed": board.speed}
        return declared(board, LatticeECP5Platform, members, pins.ATTRIBUTES)

    def device_of(self, platform: Any) -> str:
        """As `LatticePlatform` has it."""
        return str(getattr(platform, "device", ""))

    def boot_seconds(self, board: Board, size: int) -> float:
        """By the rate in SYSCONFIG."""
        return parts.boot_seconds(board, size)

    def estimate(self, config: HwConfig) -> Estimate:
        """`estimate.estimate`."""
        from .estimate import estimate

        return estimate(config)

    def primitives(self, device: str, config: HwConfig | None) -> "Primitives":
        """`cells.Cells`."""
        from .cells import Cells

        return Cells(device, config)

    def clocked(self, design: Any, board: Board, clock_hz: int, *, usb: bool = False) -> Any:
        """`pll.PllClocked`."""
        from .pll import PllClocked

        resource, hz = board.clock_resource, board.clock_hz
        return PllClocked(design, resource=resource, input_hz=hz, output_hz=clock_hz, speed=board.speed, usb=usb)

    def files(self, platform: Any, design: Any, board: Board, synth_opts: Sequence[str]) -> dict[str, str]:
        """RTLIL, Yosys script, its last mapping, pin and clock constraints."""
        sysconfig = f"SYSCONFIG {' '.join(board.sysconfig)};" if board.sysconfig else ""
        plan = platform.prepare(
            design, NAME, emit_src=False, synth_opts=list(synth_opts), script_after_synth=mapping.SCRIPT,
            add_preferences=sysconfig,
        )  # fmt: skip
        wanted = [f"{NAME}.il", f"{NAME}.ys", f"{NAME}.lpf"]
        files = {name: text if isinstance(text := plan.files[name], str) else text.decode() for name in wanted}
        return files | {mapping.FILE: mapping.text()}

    def key(self, board: Board) -> dict[str, str]:
        """What becomes of the netlist, and of a route that misses its clock; and the placer, where it is not the usual
        one."""
        placer = parts.PLACERS.get(parts.die(board.device))
        return {"netlist": carry.IDENTITY, "closure": closure.IDENTITY, **({"placer": placer} if placer else {})}

    def counts(self, cells: Mapping[str, str]) -> dict[str, int]:
        """`report.counts`."""
        return report.counts(cells)

    def netlist(self, text: str) -> str:
        """By `carry.finish`."""
        return carry.finish(text)

    def route(self, board: Board, seed: int, log: str, options: Sequence[str]) -> ToolCommand:
        """nextpnr-ecp5."""
        arguments = (
            *parts.part_options(board), "--seed", str(seed),
            "--json", f"{NAME}.json", "--lpf", f"{NAME}.lpf", "--textcfg", self.routed, "--write", ROUTED,
            "--report", closure.REPORT, "--sdf", closure.DELAYS, "--timing-allow-fail", "--quiet", "--log", log,
            "--placer", parts.PLACERS.get(parts.die(board.device), parts.PLACER), *options,
        )  # fmt: skip
        return ToolCommand("nextpnr-ecp5", arguments)

    def close_timing(
        self, directory: Path, board: Board, report: RouteReport, log: str, options: Sequence[str], execute: Execute,
        say: Callable[[str], None],
    ) -> bool:  # fmt: skip
        """`closure.close_timing`."""

        def route(folder: Path) -> None:
            arguments = (
                *parts.part_options(board), "--no-pack",
                "--json", closure.MOVED, "--lpf", closure.CONSTRAINTS, "--textcfg", self.routed, "--write", ROUTED,
                "--report", closure.REPORT, "--sdf", closure.DELAYS, "--timing-allow-fail", "--quiet", "--log", log,
                *options,
            )  # fmt: skip
            execute(ToolCommand("nextpnr-ecp5", arguments), folder)

        lpf = (directory / f"{NAME}.lpf").read_text()
        return closure.close_timing(directory, lpf, report, route, (self.routed, ROUTED, closure.REPORT), say)

    def report(self, record: Mapping[str, Any], directory: Path) -> RouteReport:
        """`report.report`."""
        return report.report(record)

    def pack(self, key: str) -> ToolCommand:
        """ecppack; the device tells its USERCODE over JTAG."""
        usercode = str(int(key[:8], 16))
        arguments = ("--compress", "--usercode", usercode, "--input", self.routed, "--bit", f"{NAME}.bit")
        return ToolCommand("ecppack", arguments)

    def locate(self, routed: Mapping[str, Any]) -> list[BlockRamLocation]:
        """`contents.locate`."""
        from .contents import locate

        return locate(routed)

    def bake(self, routed: str, locations: Sequence[BlockRamLocation], images: Mapping[str, Sequence[int]]) -> str:
        """`contents.bake`."""
        from .contents import bake

        return bake(routed, locations, images)


FAMILY: Family = Ecp5()
