"""The order of weight loads: tiles for the array and for the depthwise unit, one after the other.

The load unit keeps its order, and a tile waits until its unit has taken the one before: a tile that comes too early
holds up those behind it. So tiles are put into the order of the cycles in which they could be loaded if each had a load
unit to itself, which `timeline` tells from the program without its loads. No deadlock comes of it: whatever a load
waits for lies before it in time. A load of the array's is cut where tiles of the depthwise unit belong among its own;
behind the second tile, when the instruction that takes them has issued, that may as well be up to `LATE` cycles late.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from ..config import HwConfig
from ..isa.instructions import Array, Code, Depthwise, Load, Vector
from ..isa.timeline import Timeline, timeline_below
from ..isa.timing import load_steps, tiles
from ..isa.units import Unit

LATE = 48
"""Cycles that a tile of the depthwise unit may come late to spare a cut inside a group of column tiles: a cut costs two
more loads, and thereby words of microcode. VWW takes 20,170 cycles on `ulx3s-85f`, with
0 20,161, with 96 20,194; KWS 9,937 with each."""


class OwnedLoad(NamedTuple):
    """A load and the operation that it is for."""

    load: Load
    op: str


def parts(load: Load, first: int, end: int, config: HwConfig) -> list[Load]:
    """The loads of the tiles ``first .. end - 1`` of a load: rows of column tiles, the first and last perhaps cut."""
    found: list[Load] = []
    while first < end:
        row, column = divmod(first, load.nt_n)
        base = load.base + row * load_steps(load, config) + column * load.nt_step
        if column or end - first < load.nt_n:
            count = min(load.nt_n - column, end - first)
            found.append(load.but(base=base, tiles=1, nt_n=count))
        else:
            count = (end - first) // load.nt_n * load.nt_n
            found.append(load.but(base=base, tiles=count // load.nt_n))
        first += count
    return found


Arrays = Sequence[tuple[Array, OwnedLoad]]
Strips = Sequence[tuple[Depthwise, OwnedLoad]]


def without_loads(
    arrays: Arrays, strips: Strips, vectors: Sequence[Vector], config: HwConfig, below: int | None = None
) -> Timeline | None:
    """When everything would happen if all weights were there; no order of loads makes it sooner. None if that is not
    `below`."""
    code: Code = {
        Unit.ARRAY: [i for i, _ in arrays], Unit.DEPTHWISE: [i for i, _ in strips], Unit.VECTOR: vectors,
    }  # fmt: skip
    return timeline_below(config, code, below, weightless=True)


def ordered(
    arrays: Arrays, strips: Strips, vectors: Sequence[Vector], config: HwConfig, times: Timeline | None = None
) -> list[OwnedLoad]:
    """The loads of all instructions of the array and the depthwise unit, in order; `times`: `without_loads`."""
    if not strips:
        return [owned for _, owned in arrays]
    times = times or without_loads(arrays, strips, vectors, config)
    assert times is not None
    found: list[OwnedLoad] = []
    window = iter([-1, *times.window_start])
    windows = [(next(window), part) for _, owned in strips for part in _single(owned, config)]
    earliest = [-1, *times.tile_start]
    ends = list(accumulate(tiles(owned.load) for _, owned in arrays))
    at, first = 0, 0
    for (_, owned), end in zip(arrays, ends, strict=True):
        done = first
        while at < len(windows):
            place = _place(windows[at][0], owned.load, first, earliest)
            if place >= end:
                break
            found += [OwnedLoad(part, owned.op) for part in parts(owned.load, done - first, place - first, config)]
            done = max(done, place)
            found.append(windows[at][1])
            at += 1
        found += [OwnedLoad(part, owned.op) for part in parts(owned.load, done - first, end - first, config)]
        first = end
    found += [owned for _, owned in windows[at:]]
    return _joined(found, config)


def _single(owned: OwnedLoad, config: HwConfig) -> list[OwnedLoad]:
    """A load of the depthwise unit, tile by tile."""
    return [OwnedLoad(part, owned.op) for tile in range(tiles(owned.load))
            for part in parts(owned.load, tile, tile + 1, config)]  # fmt: skip


def _place(time: int, load: Load, first: int, earliest: Sequence[int]) -> int:
    """The tile of the array before which a tile that may be loaded from `time` on belongs, in or behind a load whose
    tiles begin with `first`."""
    count = tiles(load)
    place = bisect_right(earliest, time, first, first + count)
    if place <= first + 1:
        return first if place == first or count > 1 else place
    row = first - (first - place) // load.nt_n * load.nt_n
    return row if earliest[row - 1] - time <= LATE else place


def _joined(loads: Sequence[OwnedLoad], config: HwConfig) -> list[OwnedLoad]:
    """Loads of neighbours joined, where one instruction can do both; where there is but one column tile, the step to
    the next is that of the load before, which microcode need not give again."""
    found: list[OwnedLoad] = []
    for owned in loads:
        last, load = found[-1] if found else owned, owned.load
        follows = last.load.base + last.load.tiles * load_steps(load, config) == load.base
        if found and load.depthwise and last.load.depthwise and last.op == owned.op and follows:
            found[-1] = OwnedLoad(last.load.but(tiles=last.load.tiles + load.tiles), owned.op)
        else:
            step = last.load.nt_step if load.nt_n == 1 else load.nt_step
            found.append(OwnedLoad(load.but(nt_step=step), owned.op))
    return found
