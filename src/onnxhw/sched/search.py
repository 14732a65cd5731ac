"""Choosing cuts, orders and placement by the exact predicted cycles."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..config import HwConfig
from ..errors import DoesNotFitError
from ..ir.graph import Graph, Op
from ..isa.instructions import Code, Ordered
from ..isa.microcode import length
from ..isa.timing import Timeline, timeline
from ..isa.units import Unit
from ..program.layout import Place
from .alloc import ORDERS, Needs, allocate, find_needs, no_room
from .emit import sequence
from .lower import Plan
from .order import Binder
from .overlay import find_moments
from .places import producers
from .reorder import short_first
from .sets import AHEAD, HALF, chains, linked, wide, wider
from .tiling import beside, candidates, chained, coarsest, neighbours, pieces
from .work import Choice, Region, Work

TRIES = 96
"""Candidate programs that a search evaluates at most."""
LINKS = 400
"""The same for chains of convolutions with small maps, where each choice depends on the neighbours'."""
EFFORT = 10_000
"""Instructions, summed over those programs: about a second."""
HELD = (0, 2, 3, 4, 8)
"""How many operations at the beginning keep the graph's order: the first of these that finds room."""
PARTS = (0.5, 0.6)
"""Of the rows of the first map, how many the first of two tiles has, beside the depthwise unit: every window takes a
row from it."""
PIECES = 4, 48
"""Beside the depthwise unit: how many tiles an operation may have to begin with, and the fewest pixels of each."""
WORTH = 16
"""Idle cycles of the array before an operation that make a search worth while."""


@dataclass(frozen=True)
class Setting:
    """Everything that is chosen: cuts per operation, the order of operations and works (`sequence`), the placement
    strategy, whether roots may share words (`overlay`), and whether the inputs keep their memory to themselves."""

    graph: Graph
    choices: dict[str, Choice]
    held: int = 0
    timed: bool = False
    order: str = "size"
    wishes: bool = True
    overlay: bool = False
    inputs_stay: bool = False


@dataclass
class Candidate:
    """A complete program for a setting."""

    setting: Setting
    code: dict[Unit, list[Ordered]]
    places: dict[str, Place]
    owners: dict[Unit, list[str]]
    writes: list[Region]
    times: Timeline
    works: list[Work]

    @property
    def cycles(self) -> int:
        """Cycles of a run."""
        return self.times.cycles


def words(code: Code) -> dict[Unit, int]:
    """Microcode words per unit."""
    return {unit: length(code[unit]) for unit in Unit}


def fits_microcode(plan: Plan, code: Code) -> bool:
    """Whether every unit's instructions fit its microcode memory."""
    return all(used <= unit.ucode(plan.config) for unit, used in words(code).items())


def works_of(plan: Plan, setting: Setting) -> list[Work]:
    """The sequence of works of a setting."""
    works = {name: plan.works(name, choice) for name, choice in setting.choices.items()}
    return sequence(setting.graph, works, plan.homes, plan.config, setting.held, setting.timed)


def _begun(plan: Plan, setting: Setting) -> tuple[list[Work], Needs]:
    """Works and needs of a setting: the last ones, if the settings differ in placement alone."""
    order = tuple(op.name for op in setting.graph.ops)
    key = order, tuple(setting.choices.items()), setting.held, setting.timed, setting.inputs_stay
    if key not in plan.begun:
        works = works_of(plan, setting)
        plan.begun.clear()
        plan.begun[key] = works, find_needs(plan.graph, plan.homes, works, plan.config, setting.inputs_stay)
    return plan.begun[key]


def build(plan: Plan, setting: Setting, below: int | None = None) -> Candidate | None:
    """The program of a setting; None if its tensors find no place, or if it is known to take no fewer cycles than
    `below`."""
    works, needs = _begun(plan, setting)
    if setting.overlay and not needs.moments:
        needs.moments = find_moments(plan.graph, plan.homes, works, plan.config, setting.inputs_stay)
    bases = allocate(needs, plan.config, setting.order, setting.wishes, setting.overlay)
    if bases is None:
        return None
    binder = Binder(plan.graph, plan.homes, bases, plan.config)
    for work in works:
        binder.emit(work)
    code = binder.code(below)
    if code is None:
        return None
    return Candidate(setting, code, binder.places, binder.owners, binder.writes, timeline(plan.config, code), works)


def first_settings(plan: Plan) -> Iterator[list[Setting]]:
    """Settings to begin with, from fast to frugal, in groups of which one success is enough."""
    coarse = {op.name: coarsest(op, plan.graph, plan.config) for op in plan.graph.ops}
    finer = chained(plan.graph, plan.config)
    graphs = [plan.graph]
    short = short_first(plan.graph)
    if [op.name for op in short.ops] != [op.name for op in plan.graph.ops]:
        graphs.append(short)
    count = len(plan.graph.ops)
    some = [held for held in HELD if held < count]
    ways = [(finer, some), (coarse, some), (coarse, [count])]
    timed: list[dict[str, Choice]] = []
    for part in PARTS:
        base = chained(plan.graph, plan.config, part)
        choices = beside(plan.graph, base, plan.config)
        if choices != base:
            timed += [choices, base]
    if timed:
        fine = pieces(plan.graph, plan.config, *PIECES)
        timed = [choices for choices in (fine, beside(plan.graph, fine, plan.config)) if choices not in timed] + timed
    else:
        sets = [wide(plan.graph, finer, plan.config, part) for part in AHEAD]
        for choices in (*sets, linked(wide(plan.graph, finer, plan.config, HALF))):
            if all(choices != known for known, _ in ways):
                ways.insert(-2, (choices, some))
    ways = [(choices, some) for choices in timed] + ways
    clocks = [True] * len(timed) + [False] * (len(ways) - len(timed))
    for (choices, held), clock in zip(ways, clocks, strict=True):
        for graph in graphs:
            yield [
                Setting(graph, choices, first, clock, order, wishes, overlay)
                for first in held for overlay in (False, True) for wishes in (True, False) for order in ORDERS
            ]  # fmt: skip


def first(plan: Plan) -> Candidate:
    """The fastest of the first settings; `DoesNotFitError` E5101 or E5104 if none fits."""
    if max(plan.homes.size.values(), default=0) > plan.config.act_words:
        raise _no_room(plan)
    found: Candidate | None = None
    smallest: Candidate | None = None
    for group in first_settings(plan):
        candidate = next((c for c in (build(plan, setting) for setting in group) if c), None)
        if candidate is None:
            continue
        smallest = candidate
        if fits_microcode(plan, candidate.code) and (found is None or candidate.cycles < found.cycles):
            found = candidate
    if smallest is None:
        raise _no_room(plan)
    if found is None:
        raise _no_microcode(plan, smallest)
    return found


def improve(plan: Plan, found: Candidate) -> Candidate:
    """Descent: where the array waits longest, try other orders beside the depthwise unit, other cuts of the
    operation and of what it waits for, then other sets of column tiles, last with the cuts of those who read them. One
    after the other, because tries are few: sets must not cost those of better cuts.
    """
    for ways in (neighbours, candidates, wider):
        found = _descend(plan, found, _alone(ways), TRIES)
    return _descend(plan, found, chains, LINKS)


Ways = Callable[[Op, Graph, Mapping[str, Choice], HwConfig], list[dict[str, Choice]]]
"""Changes of choices that are worth trying for an operation."""


def _alone(ways: Callable[[Op, Graph, Mapping[str, Choice], HwConfig], list[Choice]]) -> Ways:
    """Other choices of an operation as changes."""
    return lambda op, graph, chosen, config: [{op.name: choice} for choice in ways(op, graph, chosen, config)]


def _descend(plan: Plan, found: Candidate, ways: Ways, tries: int) -> Candidate:
    size = 1 + sum(len(found.code[unit]) for unit in Unit if unit != Unit.LOAD)
    left = max(8, min(tries, EFFORT // size))
    ops = {op.name: op for op in plan.graph.ops}
    moved = True
    while moved:
        moved = False
        for name in suspects(plan, found):
            for change in ways(ops[name], plan.graph, found.setting.choices, plan.config):
                choices = {**found.setting.choices, **change}
                if choices == found.setting.choices:
                    continue
                if not left:
                    return found
                left -= 1
                candidate = build(plan, replace(found.setting, choices=choices), found.cycles)
                if candidate and candidate.cycles < found.cycles and fits_microcode(plan, candidate.code):
                    found, moved = candidate, True
    return found


def apart(plan: Plan, found: Candidate) -> Candidate:
    """The same with inputs that keep their memory to themselves, if that fits and costs no cycle.

    The next inputs may then be written as soon as the last instruction has read these (`window`).
    """
    candidate = build(plan, replace(found.setting, inputs_stay=True))
    fits = candidate is not None and candidate.cycles <= found.cycles and fits_microcode(plan, candidate.code)
    return candidate if candidate is not None and fits else found


def idle(found: Candidate) -> dict[str, int]:
    """Cycles in which the array did nothing, by the operation that it did next (the last: until the end)."""
    spans, waits, end = found.times.spans[Unit.ARRAY], dict[str, int](), 0
    for span, name in zip(spans, found.owners[Unit.ARRAY], strict=True):
        waits[name] = waits.get(name, 0) + span.issue - end + span.stalled
        end = span.end
    final = found.owners[Unit.VECTOR][-1:] or found.owners[Unit.ARRAY][-1:]
    for name in final:
        waits[name] = waits.get(name, 0) + found.cycles - end
    return waits


def suspects(plan: Plan, found: Candidate) -> list[str]:
    """Operations whose cuts may matter: those the array waits before, and their producers, worst first."""
    makers = producers(plan.graph)
    by_name = {op.name: op for op in plan.graph.ops}
    waits = idle(found)
    out: list[str] = []
    for name in sorted(waits, key=lambda name: -waits[name]):
        if waits[name] < WORTH:
            break
        near = [by_name[name]]
        for op in near:
            if len(near) < 6:
                near += [makers[x] for x in op.inputs if x in makers and makers[x] not in near]
        out += [op.name for op in near if op.name not in out]
    return out


def _no_room(plan: Plan) -> DoesNotFitError:
    *_, last = first_settings(plan)
    works = works_of(plan, last[-1])
    return no_room(find_needs(plan.graph, plan.homes, works, plan.config), works, plan.config)


def _no_microcode(plan: Plan, candidate: Candidate) -> DoesNotFitError:
    over = {u: n for u, n in words(candidate.code).items() if n > u.ucode(plan.config)}
    needed = ", ".join(f"{unit} {n} words (has {unit.ucode(plan.config)})" for unit, n in over.items())
    unit = next(iter(over))
    owners = candidate.owners[unit]
    largest = max(dict.fromkeys(owners), key=owners.count)
    return DoesNotFitError(
        "E5104",
        f"microcode of {plan.config.name}: needs {needed}; largest: {largest!r} with "
        f"{owners.count(largest)} {unit} instructions",
        hint="a configuration with more " + " or ".join(f"{unit}_ucode" for unit in over),
    )
