"""Place and route with one seed, and what is done about a clock that is missed by little."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..board import Board
from ..devices import family_of
from ..devices.family import Family, ToolCommand
from ..devices.report import WORDS, RouteReport
from ..errors import DoesNotFitError, ToolError
from . import tools
from .phases import RouteLog
from .stage import Stage

STATIC, HEAP = "static", "heap"
"""Two placers of nextpnr."""
STEPS = 5000
"""Steps of the placer "static" after which it is taken not to converge: `mini` takes 501 on the ULX3S-45F, and a point
of a front with 198 of 208 block RAMs had a sixth of them overlap from step 600 to step 14,300, when it was ended."""
NEAR = 0.9
"""Of its clock, what a routed design must reach to be brought nearer: some hundredths are what that brings
(`ulx3s-85f+sdram`, asked for 125 MHz: 121.7 to 127.2)."""
AGAIN = 20_000
"""Connections that may be routed again to bring a design nearer to its clock: of 28 that were to be routed in an 85F
without room the router ripped up so many others that 4,800 were missing after 13,000, and 5,900 after 103,000. Where
there is room it takes tens to hundreds (41 for a wire of `ulx3s-85f+sdram`), and 2,400 for 304 wires of a `mini`."""


def log_of(family: Family, seed: int) -> str:
    """The name of the log of place and route."""
    return f"{family.stages[1]}-{seed}.log"


def execute(command: ToolCommand, directory: Path, tick: tools.Tick | None) -> None:
    """Run a family's command. `ToolError` E71xx."""
    tools.run(command.tool, command.arguments, directory, tick=tick)


class _NotConvergedError(Exception):
    """The placer "static" has taken too many steps."""


def place_and_route(directory: Path, board: Board, seed: int, options: Sequence[str], stage: Stage) -> RouteReport:
    """Run place and route with one seed and more options of nextpnr's; leaves what `Family.route` says.

    A clock that is missed by little (`NEAR`) is approached as `Family.close_timing` does. Timing failures are let pass
    here, so that the report is written; `build` refuses them. `DoesNotFitError` E5201 for a design that has more cells
    once packed than the device: nextpnr would look for places without an end. So does its placer "static" where it does
    not converge: then "heap" places the design.
    """
    family = family_of(board)
    stage.log = log = RouteLog(directory / log_of(family, seed))

    def check() -> None:
        require_cells(log.too_many, board)
        if log.steps > STEPS:
            raise _NotConvergedError

    command = family.route(board, seed, log.path.name, options)
    try:
        _execute_checked(command, directory, stage, log, check)
    except _NotConvergedError:
        stage.log = RouteLog(log.path.with_suffix(".heap.log"))
        names = {STATIC: HEAP, log.path.name: stage.log.path.name}
        again = tuple(names.get(word, word) for word in command.arguments)
        execute(ToolCommand(command.tool, again), directory, stage.tick)
    report, last = _report(family, directory), stage.log.path
    if not report.timing_met and report.margin >= NEAR and _closed(directory, board, last, options, report, stage):
        report = _report(family, directory)
    return report


def _execute_checked(
    command: ToolCommand, directory: Path, stage: Stage, log: RouteLog, check: Callable[[], None]
) -> None:
    """Run a command whose `log` the stage follows, and end it as soon as `check` raises."""

    def tick(seconds: float) -> None:
        stage.tick(seconds)
        check()

    execute(command, directory, tick)
    log.look()
    check()  # on a machine so quick that no tick saw it the result is the same


def _report(family: Family, directory: Path) -> RouteReport:
    return family.report(json.loads((directory / "report.json").read_text()), directory)


def _closed(
    directory: Path, board: Board, log: Path, options: Sequence[str], report: RouteReport, stage: Stage
) -> bool:
    """Whether the family has brought the routed design nearer to its clock. The logs of what that runs are put behind
    `log`."""

    def run(command: ToolCommand, folder: Path) -> None:
        stage.log = again = RouteLog(folder / log.name)

        def check() -> None:
            if again.iterations > AGAIN:
                raise ToolError("E7102", f"{command.tool} was ended after {again.iterations:,} connections")

        try:
            _execute_checked(command, folder, stage, again, check)
        finally:
            if again.path.exists():
                with log.open("ab") as whole:
                    whole.write(again.path.read_bytes())

    return family_of(board).close_timing(directory, board, report, log.name, options, run, stage.say)


def require_cells(too_many: Mapping[str, tuple[int, int]], board: Board) -> None:
    """`DoesNotFitError` E5201 if a packed design has more cells than the device, of those that a design is measured by
    (`RouteLog.too_many`). Others may be too many by the log of a design that is routed all the same: of `tang-20k` on a
    GW2A-18C nextpnr counts 25 DQCE, of 24."""
    words = {cell: WORDS[kind] for kind, cell in family_of(board).cells.items() if kind in WORDS}
    over = [f"{used:,} {words[cell]} of {have:,}" for cell, (used, have) in too_many.items() if cell in words]
    if over:
        what, hint = f"takes {', '.join(over)}, when packed for place and route", "lower rows, cols or lanes"
        raise DoesNotFitError("E5201", what, where=board.name, hint=f"{hint}, or take a larger board")
