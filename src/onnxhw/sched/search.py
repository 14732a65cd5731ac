"""Choosing cuts, orders and placement by the exact predicted cycles."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from ..config import HwConfig
from ..errors import DoesNotFitError
from ..ir.graph import Graph, Op
from ..isa.instructions import Code, Ordered
from ..isa.microcode import length
from ..isa.timeline import Timeline, timeline_below
from ..isa.units import Unit
from ..program.layout import Place
from .aliases import producers
from .alloc import Needs, allocate, does_not_fit, find_needs
from .column_groups import chains, wider
from .emit import Emitter
from .live_ranges import live_ranges
from .lower import LoweredGraph
from .search_points import SearchPoint, first_points
from .task import TileTask, Tiling
from .task_order import sequence
from .tiling import neighbours, row_tilings

TRIES = 96
"""Candidate programs that each descent evaluates at most; it binds below 100 instructions, above them `EFFORT`. KWS
takes 9,937 cycles on `ulx3s-85f`, as with 48 and with 192."""
LINKS = 400
"""The same for chains of convolutions with small maps, where each tiling depends on the neighbours'. AD takes 1,445
cycles on `ulx3s-85f-dense`, as with 1,600, with 100 1,456."""
EFFORT = 10_000
"""Instructions of all units but load, summed over the candidates of one descent: about a second of one core. VWW
takes 20,170 cycles on `ulx3s-85f`, with 5,000 20,347, with 20,000 20,014."""
LEAST = 8
"""Candidates that a descent evaluates however large the program is, or the largest would not be improved at all.
VWW takes 20,170 cycles on `ulx3s-85f`, as with 1, with 32 20,117."""
WORTH = 16
"""Idle cycles of the array before an operation from which on other cuts are tried: of shorter waits these seldom take
much, and each costs tries. KWS takes 9,937 cycles on `ulx3s-85f`, with 0 9,929, with 64 9,972."""
NEAR = 6
"""Operations that are changed for a wait at most: the waiting one and its nearest producers. KWS takes 9,937
cycles on `ulx3s-85f`, with 3 9,945, with 12 9,929; VWW 20,170, 20,161 and 20,170."""

CodeTimes = Callable[[HwConfig, Code, int | None], Timeline | None]
"""The times of a program, or None if it takes no fewer cycles than are told: `timeline_below`, or what knows them
already."""


@dataclass
class ScheduledCandidate:
    """A complete program for a search point."""

    point: SearchPoint
    code: dict[Unit, list[Ordered]]
    places: dict[str, Place]
    owners: dict[Unit, list[str]]
    times: Timeline
    tasks: list[TileTask]

    @property
    def cycles(self) -> int:
        """Cycles of a run."""
        return self.times.cycles


def words(code: Code) -> dict[Unit, int]:
    """Microcode words per unit."""
    return {unit: length(code[unit]) for unit in Unit}


def fits_microcode(lowered: LoweredGraph, code: Code) -> bool:
    """Whether every unit's instructions fit its microcode memory."""
    return all(used <= unit.ucode(lowered.config) for unit, used in words(code).items())


def tasks_of(lowered: LoweredGraph, point: SearchPoint) -> list[TileTask]:
    """The sequence of tasks of a search point."""
    tasks = {name: lowered.tasks(name, tiling) for name, tiling in point.tilings.items()}
    interleaved = lowered.use.interleaving
    return sequence(point.graph, tasks, lowered.aliases, lowered.config, point.eager, point.clocked, interleaved)


def _begun(lowered: LoweredGraph, point: SearchPoint) -> tuple[list[TileTask], Needs]:
    """Tasks and needs of a search point: the last ones, if the search points differ in placement alone."""
    order = tuple(op.name for op in point.graph.ops)
    key = order, tuple(point.tilings.items()), point.eager, point.clocked, point.exclusive_inputs
    if key not in lowered.begun:
        tasks = tasks_of(lowered, point)
        lowered.begun.clear()
        needs = find_needs(
            lowered.graph, lowered.aliases, tasks, lowered.config, point.exclusive_inputs, lowered.occupied
        )
        lowered.begun[key] = tasks, needs
    return lowered.begun[key]


def build(
    lowered: LoweredGraph, point: SearchPoint, below: int | None = None, times: CodeTimes = timeline_below
) -> ScheduledCandidate | None:
    """The program of a search point; None if there is no room for its tensors, or if it cannot take fewer cycles than
    `below`."""
    bases = _bases(lowered, point)
    return None if bases is None else _built(lowered, point, bases, below, times)


def _bases(lowered: LoweredGraph, point: SearchPoint) -> dict[str, int] | None:
    """Where the buffers of a search point lie; None if there is no room for them."""
    tasks, needs = _begun(lowered, point)
    if point.overlap and not needs.live:
        inputs = [port.tensor for port in lowered.graph.inputs]
        staying = [name for name in inputs if point.exclusive_inputs or name in lowered.occupied.kept]
        needs.live = live_ranges(lowered.graph, lowered.aliases, tasks, lowered.config, staying)
    return allocate(needs, lowered.config, point.order, point.preferences, point.overlap)


def _built(
    lowered: LoweredGraph, point: SearchPoint, bases: dict[str, int], below: int | None, times: CodeTimes
) -> ScheduledCandidate | None:
    """The program of a search point whose buffers have their bases; None as `build`."""
    tasks, _ = _begun(lowered, point)
    emitter = Emitter(lowered.graph, lowered.aliases, bases, lowered.config)
    for task in tasks:
        emitter.emit(task)
    code = emitter.code(below)
    if code is None:
        return None
    found = times(lowered.config, code, below)
    return None if found is None else ScheduledCandidate(point, code, emitter.places, emitter.owners, found, tasks)


def first(lowered: LoweredGraph) -> ScheduledCandidate:
    """The fastest of the first search points; `DoesNotFitError` E5101 or E5104 if none fits."""
    if max(lowered.aliases.size.values(), default=0) > lowered.config.act_words:
        raise _no_room(lowered)
    found: ScheduledCandidate | None = None
    smallest: ScheduledCandidate | None = None
    for group in first_points(lowered):
        placed = next(((point, bases) for point in group if (bases := _bases(lowered, point)) is not None), None)
        if placed is None:
            continue
        candidate = _built(lowered, *placed, found.cycles if found else None, timeline_below)
        smallest = candidate or smallest
        if candidate and fits_microcode(lowered, candidate.code):
            found = candidate
    if smallest is None:
        raise _no_room(lowered)
    if found is None:
        raise _no_microcode(lowered, smallest)
    return found


def improve(lowered: LoweredGraph, found: ScheduledCandidate) -> ScheduledCandidate:
    """Descent: where the array waits longest, try the depthwise unit's order the other way, other row tiles of the
    operation and of what it waits for, then other column-tile groups, last with the cuts of those who read them. One
    after the other, because tries are few: groups must not cost those of better row tiles.
    """
    use = lowered.use
    if not use.descent:
        return found
    for ways, used in ((neighbours, use.block_by_block), (row_tilings, use.row_tiles), (wider, use.column_groups)):
        if used:
            found = _descend(lowered, found, _alone(ways), TRIES)
    if not use.column_groups:
        return found
    return _descend(lowered, found, partial(chains, looks_ahead=use.lookahead), LINKS)


Ways = Callable[[Op, Graph, Mapping[str, Tiling], HwConfig], list[dict[str, Tiling]]]
"""Changes of tilings that are worth trying for an operation."""


def _alone(ways: Callable[[Op, Graph, Mapping[str, Tiling], HwConfig], list[Tiling]]) -> Ways:
    """Other tilings of an operation as changes."""
    return lambda op, graph, chosen, config: [{op.name: tiling} for tiling in ways(op, graph, chosen, config)]


def _descend(lowered: LoweredGraph, found: ScheduledCandidate, ways: Ways, tries: int) -> ScheduledCandidate:
    size = 1 + sum(len(found.code[unit]) for unit in Unit if unit != Unit.LOAD)
    left = max(LEAST, min(tries, EFFORT // size))
    ops = {op.name: op for op in lowered.graph.ops}
    moved = True
    while moved:
        moved = False
        for name in suspects(lowered, found):
            for change in ways(ops[name], lowered.graph, found.point.tilings, lowered.config):
                tilings = {**found.point.tilings, **change}
                if tilings == found.point.tilings:
                    continue
                if not left:
                    return found
                left -= 1
                candidate = build(lowered, replace(found.point, tilings=tilings), found.cycles)
                if candidate and fits_microcode(lowered, candidate.code):
                    found, moved = candidate, True
    return found


def with_exclusive_inputs(lowered: LoweredGraph, found: ScheduledCandidate) -> ScheduledCandidate:
    """The same with inputs whose memory nothing else uses, if that fits and costs no cycle.

    The next inputs may then be written as soon as the last instruction has read these (`input_release`).
    """
    candidate = build(lowered, replace(found.point, exclusive_inputs=True), found.cycles + 1)
    return candidate if candidate is not None and fits_microcode(lowered, candidate.code) else found


def idle(found: ScheduledCandidate) -> dict[str, int]:
    """Cycles in which the array did nothing, by the operation that it did next (the last: until the end)."""
    spans, waits, end = found.times.spans[Unit.ARRAY], dict[str, int](), 0
    for span, name in zip(spans, found.owners[Unit.ARRAY], strict=True):
        waits[name] = waits.get(name, 0) + span.issue - end + span.stalled
        end = span.end
    final = found.owners[Unit.VECTOR][-1:] or found.owners[Unit.ARRAY][-1:]
    for name in final:
        waits[name] = waits.get(name, 0) + found.cycles - end
    return waits


def suspects(lowered: LoweredGraph, found: ScheduledCandidate) -> list[str]:
    """Operations whose cuts may matter: those the array waits before, and their producers, worst first."""
    makers = producers(lowered.graph)
    by_name = {op.name: op for op in lowered.graph.ops}
    waits = idle(found)
    out: list[str] = []
    for name in sorted(waits, key=lambda name: -waits[name]):
        if waits[name] < WORTH:
            break
        near = [by_name[name]]
        for op in near:
            if len(near) < NEAR:
                near += [makers[x] for x in op.inputs if x in makers and makers[x] not in near]
        out += [op.name for op in near if op.name not in out]
    return out


def _no_room(lowered: LoweredGraph) -> DoesNotFitError:
    *_, last = first_points(lowered)
    tasks = tasks_of(lowered, last[-1])
    return does_not_fit(find_needs(lowered.graph, lowered.aliases, tasks, lowered.config), tasks, lowered.config)


def _no_microcode(lowered: LoweredGraph, candidate: ScheduledCandidate) -> DoesNotFitError:
    over = {u: n for u, n in words(candidate.code).items() if n > u.ucode(lowered.config)}
    needed = ", ".join(f"{unit} {n} words (has {unit.ucode(lowered.config)})" for unit, n in over.items())
    unit = next(iter(over))
    owners = candidate.owners[unit]
    largest = max(dict.fromkeys(owners), key=owners.count)
    return DoesNotFitError(
        "E5104",
        f"microcode of {lowered.config.name}: needs {needed}; largest: {largest!r} with "
        f"{owners.count(largest)} {unit} instructions",
        hint="a configuration with more " + " or ".join(f"{unit}_ucode" for unit in over),
        share=max(n / unit.ucode(lowered.config) for unit, n in over.items()) - 1,
    )
