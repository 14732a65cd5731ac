"""`MoveSearch`: shortens the latest paths of a routed design by moving cells and having wires routed again.

How long wires will be is estimated.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...sdf import Delays, Pin
from ...static_timing import NEVER, StaticTiming
from .placed import PlacedDesign, Site, Tile
from .slices import Block, block_of, free, goes_with, sites_of

WITHIN, BASE, COLUMN, ROW, FAR_COLUMN, FAR_ROW, NEAR = 500.0, 620.0, 107.0, 131.0, 45.0, 55.0, 4
"""Picoseconds of a wire within a tile, of any other, and more for each column and row up to the fourth and beyond: the
medians of the 90,000 routed wires of a `mini` (speed grade 6). With these the times of its ends were as routed with a
correlation of 0.90; by nextpnr's own estimate of wires, 0.78."""
REACH = 7
"""Columns and rows around a path in which places are looked for: beyond, a wire there and back is longer than most."""
LONGEST = 4
"""Neighbours on a path that are moved together, at most: one alone cannot leave the others far behind."""
GAIN = 40.0
"""Picoseconds that a move must bring per block. Estimates are off by more; without it there are moves for nothing."""
PINS = 300
"""Wires of blocks that are moved, at most: those of a large net would all be routed again."""
AGAIN = 3
"""How often a cell is moved, at most: by estimates alone two paths could pull it to and fro."""
TABLE_PS, WIDE_PS = 240.0, 170.0
"""Through a lookup table and a multiplexer of two, where the delays do not tell (speed grade 6): not every pin of a
table was in use."""
NEW = 50.0
"""Picoseconds that a wire which is new takes more: not all can have the median where many are wanted."""


class _Wire(NamedTuple):
    """A wire between a block and its surroundings, and its number among the arcs of the timing."""

    arc: int
    driver: Pin
    sink: Pin


@dataclass(frozen=True)
class TimingMove:
    """Blocks with their new sites, or wires (arcs of the timing) with their delays when they will have been routed
    again; and by how many picoseconds the slowest path becomes shorter, by estimate and less what it must be worth."""

    gain: float
    sites: tuple[tuple[Block, tuple[tuple[str, Site], ...]], ...] = ()
    wires: tuple[tuple[int, float], ...] = ()


def wire(columns: NDArray[np.float64] | int, rows: NDArray[np.float64] | int) -> NDArray[np.float64]:
    """About how many picoseconds a wire takes over so many columns and rows."""
    far = FAR_COLUMN * np.maximum(columns - NEAR, 0) + FAR_ROW * np.maximum(rows - NEAR, 0)
    near = BASE + COLUMN * np.minimum(columns, NEAR) + ROW * np.minimum(rows, NEAR)
    return np.where(columns + rows == 0, WITHIN, near + far)


Change = int | tuple[str, Tile]
"""A wire (arc of the timing) that is routed again, or a cell with its new tile."""


class MoveSearch:
    """Looks for moves in a design by its timing, and makes them in both."""

    def __init__(
        self, design: PlacedDesign, delays: Delays, timing: StaticTiming, avoided: Collection[Change] = ()
    ) -> None:
        """`avoided` is not done."""
        self._avoided = avoided
        self.design, self.timing, self.moved = design, timing, dict[str, int]()
        self.routed_again: set[int] = set()
        self._through = {(before.cell, before.port, output.port): ps
                         for output, paths in delays.paths.items() for before, ps in paths}  # fmt: skip
        names = timing.pins
        self._arc = {
            (names[driver], names[sink]): number
            for number, (driver, sink) in enumerate(
                zip(timing.source[: timing.wires].tolist(), timing.sink[: timing.wires].tolist(), strict=True)
            )
        }

    def run(self, goal: float, tick: Callable[[], None] = lambda: None) -> frozenset[Change]:
        """Shorten paths until none takes longer than `goal` picoseconds, or none of those can be shortened: all that
        was done. `tick` is called after every path that was looked at."""
        given_up: set[int] = set()
        while True:
            totals = self.timing.totals()
            late = [int(self.timing.ends[k]) for k in np.argsort(-totals, kind="stable") if totals[k] > goal]
            end = next((pin for pin in late if pin not in given_up), None)
            if end is None:
                return self.changes
            move = self.best(self.timing.path(end), goal)
            if move is None:
                given_up.add(end)
            else:
                self.apply(move)
            tick()

    @property
    def changes(self) -> frozenset[Change]:
        """All that was done."""
        return frozenset({*((cell, self.design.places[cell]) for cell in self.moved), *self.routed_again})

    def late(self, period: float) -> frozenset[Change]:
        """What was done and lies, by the timing as it is, on paths that take longer than `period` picoseconds."""
        timing = self.timing
        lengths = timing.arrival - timing.required
        arcs = timing.arrival[timing.source] + timing.delay - timing.required[timing.sink]
        late = {timing.pins[pin].cell for pin in np.nonzero(lengths > period)[0]}
        return frozenset(
            change for change in self.changes
            if (arcs[change] > period if isinstance(change, int) else change[0] in late)
        )  # fmt: skip

    def best(self, path: list[int], goal: float) -> TimingMove | None:
        """To have wires routed again if that is enough for the path, for then all else stays; or what shortens it
        most."""
        rerouted = self._rerouted(path)
        if rerouted and self.timing.arrival[path[-1]] - self.timing.required[path[-1]] - rerouted.gain <= goal:
            return rerouted
        found = [move for move in (rerouted, self._moved(path)) if move]
        return max(found, key=lambda move: move.gain, default=None)

    def apply(self, move: TimingMove) -> None:
        """Make the move, and take the delays of wires by estimate."""
        timing, design = self.timing, self.design
        for cell, site in (each for _, sites in move.sites for each in sites):
            design.move(cell, site)
            self.moved[cell] = self.moved.get(cell, 0) + 1
        for block, _ in move.sites:
            for arc, _, _ in self._wires(block):
                timing.delay[arc] = self._estimate(arc, timing.delay[arc])
        for arc, delay in move.wires:
            design.cut(timing.pins[timing.sink[arc]])
            self.routed_again.add(arc)
            timing.delay[arc] = delay
        timing.run()

    def _estimate(self, arc: int, otherwise: float) -> float:
        """A new wire's delay by the places of its ends."""
        pins = self.timing.pins
        a, b = (self.design.places.get(pins[side[arc]].cell) for side in (self.timing.source, self.timing.sink))
        return NEW + float(wire(abs(a[0] - b[0]), abs(a[1] - b[1]))) if a and b else otherwise

    def _rerouted(self, path: list[int]) -> TimingMove | None:
        """The wires on a path that go a long way round, to be routed again."""
        timing, found, gain = self.timing, [], 0.0
        for before, pin in pairwise(path):
            sink = timing.pins[pin]
            arc = self._arc.get((timing.pins[before], sink))
            if arc is None or arc in self.routed_again or arc in self._avoided or not self.design.can_cut(sink):
                continue
            delay = self._estimate(arc, timing.delay[arc])
            if timing.delay[arc] - delay > GAIN:
                gain += float(timing.delay[arc]) - delay - GAIN
                found.append((arc, delay))
        return TimingMove(gain, wires=tuple(found)) if found else None

    def _moved(self, path: list[int]) -> TimingMove | None:
        """The blocks on a path that shorten the slowest path through them most where they can be moved to."""
        tiles = self._tiles(path)
        if not tiles:
            return None
        places, best = np.array(tiles, dtype=np.float64), None
        for blocks in self._runs(path):
            wires = [self._wires(block) for block in blocks]
            if sum(map(len, wires)) > PINS:
                continue
            now = max((self._length(each) for several in wires for each in several), default=NEVER)
            gains = now - self._lengths(blocks, wires, places) - GAIN * len(blocks)
            for k in np.argsort(-gains, kind="stable"):
                if gains[k] <= (best.gain if best else 0.0):
                    break
                if sites := self._sites(blocks, tiles[k]):
                    best = TimingMove(float(gains[k]), sites)
                    break
        return best

    def _length(self, found: _Wire) -> float:
        """How long the slowest path over a wire takes."""
        timing = self.timing
        before, after = timing.arrival[timing.number[found.driver]], timing.required[timing.number[found.sink]]
        return float(before + timing.delay[found.arc] - after)

    def _runs(self, path: list[int]) -> Iterator[tuple[Block, ...]]:
        """Neighbours on a path that can be moved, one to `LONGEST` of them."""
        found: list[Block | None] = []
        for pin in path:
            block = block_of(self.design, self.timing.pins[pin].cell)
            if block and not self._movable(block):
                block = None
            if block and max(self.moved.get(cell, 0) for cell in block.cells) >= AGAIN:
                block = None
            if block is None or not found or found[-1] != block:
                found.append(block)
        for size in range(1, LONGEST + 1):
            for first in range(len(found) - size + 1):
                blocks = [block for block in found[first : first + size] if block]
                if len(blocks) == size == len(set(blocks)):
                    yield tuple(blocks)

    def _movable(self, block: Block) -> bool:
        """Whether no net of the clock network leads to a block but the clock to its register: nextpnr's router rips
        up no such net, and what is left of it could be met by another one."""
        return not any(
            self.design.is_global(bit) and (port, bit) != ("CLK", self.timing.clock)
            for cell in block.cells
            for port, bit, _ in self.design.pins(cell)
        )

    def _tiles(self, path: list[int]) -> list[Tile]:
        """The tiles around a path, in order."""
        near = {place for pin in path if (place := self.design.places.get(self.timing.pins[pin].cell))}
        found = {(x, y) for column, row in near for x in range(column - REACH, column + REACH + 1)
                 for y in range(row - REACH, row + REACH + 1) if (x, y) in self.design.tiles}  # fmt: skip
        return sorted(found)

    def _wires(self, block: Block) -> list[_Wire]:
        """The timed wires that lead into a block and out of it."""
        found, inside = [], set(block.cells)
        for cell in block.cells:
            for port, bit, drives in self.design.pins(cell):
                pin = Pin(cell, port)
                both = [(pin, sink) for sink in self.design.readers.get(bit, ())] if drives else []
                if not drives and (driver := self.design.drivers.get(bit)):
                    both = [(driver, pin)]
                for driver, sink in both:
                    if not (driver.cell in inside and sink.cell in inside):
                        arc = self._arc.get((driver, sink))
                        if arc is not None:
                            found.append(_Wire(arc, driver, sink))
        return found

    def _lengths(
        self, blocks: tuple[Block, ...], wires: list[list[_Wire]], places: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """How long the slowest path through blocks takes that follow one another, if all lie in a tile, for each tile
        of `places` (columns and rows)."""
        timing, inside = self.timing, {cell for block in blocks for cell in block.cells}
        worst = np.full(len(places), NEVER)
        outputs: dict[Pin, NDArray[np.float64]] = {}
        for block, several in zip(blocks, wires, strict=True):
            result = np.full(len(places), NEVER)
            for arc, driver, sink in several:
                if sink.cell not in block.cells:
                    continue
                before = outputs.get(driver, timing.arrival[timing.number[driver]])
                arrival = before + self._wire(driver.cell, inside, places, timing.delay[arc])
                if sink.cell in block.tables:
                    result = np.maximum(result, arrival + self._delay(block, sink))
                else:
                    worst = np.maximum(worst, arrival - timing.required[timing.number[sink]])
            if block.tables:
                outputs[Pin(block.tables[0], block.output)] = result
            for arc, driver, sink in several:
                if driver.cell in block.cells and sink.cell not in inside:
                    start = outputs.get(driver)
                    if start is None:
                        start = np.asarray(timing.arrival[timing.number[driver]])
                    reach = self._wire(sink.cell, inside, places, timing.delay[arc])
                    worst = np.maximum(worst, start + reach - timing.required[timing.number[sink]])
            if block.tables and block.register and (end := timing.number.get(Pin(block.register, "DI"))) is not None:
                worst = np.maximum(worst, result - timing.required[end])
        return worst

    def _wire(
        self, cell: str, inside: set[str], places: NDArray[np.float64], delay: float
    ) -> NDArray[np.float64]:
        """The wire between a cell and each of the places; `delay` if it is not known where the cell lies."""
        if cell in inside:
            return np.full(len(places), NEW + WITHIN)
        place = self.design.places.get(cell)
        if place is None:
            return np.full(len(places), delay)
        return NEW + wire(np.abs(places[:, 0] - place[0]), np.abs(places[:, 1] - place[1]))

    def _delay(self, block: Block, sink: Pin) -> float:
        """From an input of a block's tables to its output."""
        first = block.tables[0]
        if sink.cell == first:
            return self._through.get((first, sink.port, block.output), TABLE_PS)
        return TABLE_PS + self._through.get((first, "F1", "OFX"), WIDE_PS)

    def _sites(
        self, blocks: tuple[Block, ...], tile: Tile
    ) -> tuple[tuple[Block, tuple[tuple[str, Site], ...]], ...] | None:
        """A place for each block: the tile, or for several blocks one beside it, each in a slice of its own."""
        column, row = tile
        around = [(column + x, row + y) for x in (0, -1, 1) for y in (0, -1, 1)] if len(blocks) > 1 else [tile]
        used, found = set[tuple[Tile, str]](), list[tuple[Block, tuple[tuple[str, Site], ...]]]()
        taken: dict[Tile, str] = {}
        for block in blocks:
            places = ((near, slice_, half) for near in around
                      if near in self.design.tiles and not any((cell, near) in self._avoided for cell in block.cells)
                      and goes_with(self.design, block.register, taken.get(near))
                      for slice_, half in free(self.design, block, near) if (near, slice_) not in used)  # fmt: skip
            at = next(places, None)
            if at is None:
                return None
            used.add(at[:2])
            if block.register:
                taken[at[0]] = block.register
            found.append((block, tuple(sites_of(block, *at))))
        return tuple(found)
