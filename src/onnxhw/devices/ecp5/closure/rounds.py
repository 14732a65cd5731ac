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
from ..report import report
from .figures import agrees, correct
from .moves import Change, MoveSearch
from .pins import constrained, exchanged
from .placed import ROUTE, PlacedDesign
from .slices import REGISTER, faults

REPORT, DELAYS, MOVED, CONSTRAINTS = "report.json", "delays.sdf", "moved.json", "moved.lpf"
"""nextpnr's report; the routed design's delays; the design with cells moved, and its constraints."""
CLOCKED = 0.88
"""Of the goal: registers on paths that take longer, before or behind the changes, have their clock in a round, with
those in their tiles. Of a `mini` 511 of 11,270 are on such paths."""

Route = Callable[[Path], None]
"""Lets nextpnr route the design in a folder (`MOVED`, `CONSTRAINTS`), leaving there what `Family.route` says and
`DELAYS`."""
Tick = Callable[[str], None]
"""Is told what is being done."""


class Closure:
    """A routed design (`ROUTED` and `DELAYS` in `directory`, constraints `lpf`) on its way to the clock of the report
    `found` that is missed most."""

    def __init__(self, directory: Path, lpf: str, found: RouteReport) -> None:
        self.design = PlacedDesign(json.loads((directory / ROUTED).read_text()))
        with (directory / DELAYS).open() as lines:
            self.delays = sdf.read(lines)
        self.clock = found.worst
        self.period = 1e6 / found.clocks[self.clock].wanted
        self._bit: int = self.design.nets[self.clock]["bits"][0]
        self.timing = StaticTiming(self.delays, self.design.cells, self._bit)
        frequencies = [
            f'FREQUENCY NET "{net}" {1e6 / (round(1e6 / clock.wanted) + 0.25):.6f} MHZ;\n'  # it cuts off picoseconds
            for net, clock in found.clocks.items()
        ]
        self._report = found
        self._avoided: set[Change] = set()
        self._constraints = "".join([lpf.rstrip("\n") + "\n", *frequencies])  # it derives clocks only while it packs

    @property
    def possible(self) -> bool:
        """Whether the design is as it is understood here: its clocks are what nextpnr says, all lies where it may, and
        the clock goes over the clock network (wires of another one would be in others' way)."""
        sound = not faults(self.design) and not exchanged(self.design)
        return self.design.is_global(self._bit) and sound and agrees(self._report, self._module, self.delays)

    @property
    def _module(self) -> dict[str, Any]:
        return {"cells": self.design.cells, "netnames": self.design.nets}

    @property
    def worst(self) -> float:
        """The longest path, in picoseconds."""
        return float(self.timing.totals().max())

    @property
    def missed(self) -> float:
        """By how many picoseconds all ends together are late."""
        return float(np.maximum(self.timing.totals() - self.period, 0).sum())

    def round(self, goal: float, route: Route, directory: Path, tick: Tick) -> bool:
        """Change what is later than `goal` picoseconds, and route it; whether fewer ends are late, or less. Else all is
        as before, and what of the changes was late is avoided from then on, until a round brings something."""
        before, delays, missed, late = self.design.state(), self.timing.delay.copy(), self.missed, self._late(goal)
        search = MoveSearch(self.design, self.delays, self.timing, self._avoided)
        if changes := search.run(goal, lambda: tick("late paths are changed")):
            self.design.unroute()
            try:
                with TemporaryDirectory(dir=directory) as scratch:
                    self._write(Path(scratch), late | self._late(goal))
                    route(Path(scratch))
                    self._take(Path(scratch))
            except ToolError:
                self._avoided |= changes  # what cannot be routed is no better
            else:
                if self.missed < missed:
                    self._avoided = set()
                    return True
                self._avoided |= search.late(self.period) or changes
        self.design.restore(before)
        self.timing.delay = delays
        self.timing.run()
        return False

    def finish(self, route: Route, folder: Path) -> None:
        """Let nextpnr take the design as it is, with all its clocks: the folder has what `Family.route` leaves."""
        self._write(folder, None)
        route(folder)

    def margin(self, folder: Path) -> float:
        """`RouteReport.margin` of the design that `finish` left, 0 if something there is wrong; its report is
        corrected."""
        routed, record = json.loads((folder / ROUTED).read_text()), json.loads((folder / REPORT).read_text())
        design = PlacedDesign(routed)
        if exchanged(design) or faults(design):
            return 0.0
        with (folder / DELAYS).open() as lines:
            delays = Delays(sdf.read(lines).wires, self.delays.paths, self.delays.setups)
        correct(record, top_module(routed), delays)
        (folder / REPORT).write_text(json.dumps(record))
        return report(record).margin

    def _late(self, goal: float) -> set[str]:
        """The cells on paths that take longer than `CLOCKED` of a goal."""
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
