"""`Closure`: a routed design, and a round of changes to it."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ....errors import ToolError
from ... import sdf
from ...family import ROUTED
from ...netlist import top_module
from ...report import RouteReport
from ...sdf import Delays
from ...static_timing import StaticTiming
from .figures import correct
from .moves import Change, MoveSearch
from .pins import constrained, exchanged
from .placed import ROUTE, PlacedDesign
from .slices import REGISTER, faults

REPORT, DELAYS, MOVED, CONSTRAINTS = "report.json", "delays.sdf", "moved.json", "moved.lpf"
"""nextpnr's report; the routed design's delays; the design with cells moved, and its constraints."""
CLOCKED = 0.88
"""Of the goal: registers on ways that take longer, before or behind the changes, have their clock in a round: 511 of
the 11,270 of a `mini`."""

Route = Callable[[Path], None]
"""Lets nextpnr route the design in a folder (`MOVED`, `CONSTRAINTS`), leaving there what `Family.route` says and
`DELAYS`."""
Tick = Callable[[str], None]
"""Is told what is being done."""


class Closure:
    """A routed design (`ROUTED` and `DELAYS` in `directory`, constraints `lpf`) on its way to the clock of `report`
    that is missed most."""

    def __init__(self, directory: Path, lpf: str, report: RouteReport) -> None:
        self.design = PlacedDesign(json.loads((directory / ROUTED).read_text()))
        with (directory / DELAYS).open() as lines:
            self.delays = sdf.read(lines)
        self.clock = report.worst
        self.period = 1e6 / report.clocks[self.clock].wanted
        self._bit: int = self.design.nets[self.clock]["bits"][0]
        self.timing = StaticTiming(self.delays, self.design.cells, self._bit)
        frequencies = [
            f'FREQUENCY NET "{net}" {1e6 / (round(1e6 / clock.wanted) + 0.25):.6f} MHZ;\n'  # it cuts off picoseconds
            for net, clock in report.clocks.items()
        ]
        self._tried: set[frozenset[Change]] = set()
        self._avoided: set[Change] = set()
        self._constraints = "".join([lpf.rstrip("\n") + "\n", *frequencies])  # it derives clocks only while it packs

    @property
    def possible(self) -> bool:
        """Whether the clock goes over the clock network: wires of another one would be in the way of others."""
        return self.design.is_global(self._bit)

    @property
    def worst(self) -> float:
        """The longest way, in picoseconds."""
        return float(self.timing.totals().max())

    @property
    def missed(self) -> float:
        """By how many picoseconds all ends together are late."""
        return float(np.maximum(self.timing.totals() - self.period, 0).sum())

    def round(self, goal: float, route: Route, directory: Path, tick: Tick) -> bool:
        """Change what is later than `goal` picoseconds, and route it; whether fewer ends are late, or less. Else all is
        as before, and what of the changes was late is avoided from then on, until a round brings something."""
        before, delays, missed = self.design.state(), self.timing.delay.copy(), self.missed
        known, late = faults(self.design), self._late(goal)
        search = MoveSearch(self.design, self.delays, self.timing, self._avoided)
        search.run(goal, lambda: tick("late ways are changed"))
        if faults(self.design) - known:
            self._avoided |= search.changes
        elif search.changes and search.changes not in self._tried:
            self._tried.add(search.changes)
            self.design.unroute()
            try:
                with TemporaryDirectory(dir=directory) as scratch:
                    self._write(Path(scratch), late | self._late(goal))
                    route(Path(scratch))
                    self._take(Path(scratch))
            except ToolError:
                self._avoided |= search.changes  # what cannot be routed is no better
            else:
                if self.missed < missed:
                    self._avoided, self._tried = set(), set()
                    return True
                self._avoided |= search.late(self.period)
        self.design.restore(before)
        self.timing.delay = delays
        self.timing.run()
        return False

    def finish(self, route: Route, folder: Path) -> None:
        """Let nextpnr take the design as it is, with all its clocks: the folder has what `Family.route` leaves."""
        self._write(folder, None)
        route(folder)

    def margin(self, folder: Path) -> float:
        """How much of its frequency the worst of all clocks reaches in the design that `finish` left, 0 if something
        there is wrong; the report is corrected."""
        path, routed = folder / REPORT, json.loads((folder / ROUTED).read_text())
        design, record = PlacedDesign(routed), json.loads(path.read_text())
        if exchanged(design) or faults(design):
            return 0.0
        with (folder / DELAYS).open() as lines:
            correct(record, routed, Delays(sdf.read(lines).wires, self.delays.paths, self.delays.setups))
        path.write_text(json.dumps(record))
        return min((clock["achieved"] / clock["constraint"] for clock in record["fmax"].values()), default=0.0)

    def _late(self, goal: float) -> set[str]:
        """The cells on ways that take longer than `CLOCKED` of a goal."""
        lengths = self.timing.arrival - self.timing.required
        return {self.timing.pins[k].cell for k in np.nonzero(lengths > CLOCKED * goal)[0]}

    def _write(self, folder: Path, late: set[str] | None) -> None:
        """The design for nextpnr; if `late` cells are named, without the clock of registers of other tiles (those of
        one have one clock, nextpnr sees to that)."""
        unclocked: list[dict[str, Any]] = []
        if late is not None:
            cells, sites = self.design.cells, self.design.sites
            tiles = {sites[cell].tile for cell in late if cell in sites and cells[cell]["type"] == REGISTER}
            unclocked = [
                connections
                for cell, site in sites.items()
                if site.kind == "FF" and site.tile not in tiles
                if (connections := cells[cell]["connections"]).get("CLK") == [self._bit]
            ]
        for connections in unclocked:
            connections["CLK"] = []
        try:
            with constrained(self.design):
                (folder / MOVED).write_text(json.dumps(self.design.record))
        finally:
            for connections in unclocked:
                connections["CLK"] = [self._bit]
        (folder / CONSTRAINTS).write_text(self._constraints)

    def _take(self, folder: Path) -> None:
        """Take the routes of a round, and the delays of its wires."""
        nets = top_module(json.loads((folder / ROUTED).read_text()))["netnames"]
        nets[self.clock] = self.design.nets[self.clock]  # that of the round does not lead to all
        attributes = {name: net["attributes"] for name, net in nets.items()}
        self.design.take_routes({name: each[ROUTE] for name, each in attributes.items() if ROUTE in each})
        with (folder / DELAYS).open() as lines:
            wires = sdf.read(lines).wires
        pins, timing = self.timing.pins, self.timing
        for arc, sink in enumerate(timing.sink[: timing.wires].tolist()):
            if pins[sink] in wires:
                timing.delay[arc] = wires[pins[sink]][1]
        timing.run()
