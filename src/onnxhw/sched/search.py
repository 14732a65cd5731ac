"""Choosing cuts, orders and placement by the exact predicted cycles."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from ..config import HwConfig
from ..errors import DoesNotFitError
from ..ir.graph import Graph, Op
from ..isa.instructions import UNITS, Ordered
from ..isa.microcode import length
from ..isa.timing import Timeline, timeline
from ..program.layout import Place
from .alloc import ORDERS, Needs, allocate, find_needs, no_room
from .emit import Emitter
from .lower import Plan
from .order import sequence
from .overlay import find_moments
from .places import producers
from .reorder import short_first
from .sets import AHEAD, HALF, chains, linked, wide, wider
from .tiling import beside, candidates, chained, coarsest, neighbours, pieces
from .work import Choice, Work

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
    code: dict[str, list[Ordered]]
    places: dict[str, Place]
    owners: dict[str, list[str]]
    times: Timeline
    works: list[Work]

    @property
    def cycles(self) -> int:
        """Cycles of a run."""
        return self.times.cycles


def words(code: dict[str, list[Ordered]]) -> dict[str, int]:
    """Microcode words per unit."""
    return {unit: length(code[unit]) for unit in UNITS}


def fits_microcode(plan: Plan, code: dict[str, list[Ordered]]) -> bool:
    """Whether every unit's instructions fit its microcode memory."""
    return all(used <= getattr(plan.config, f"{unit}_ucode") for unit, used in words(code).items())


def works_of(plan: Plan, setting: Setting) -> list[Work]:
    """The sequence of works of a setting."""
    works = {name: plan.works(name, choice) for name, choice in setting.choices.items()}
    return sequence(setting.graph, works, plan.homes, plan.config, setting.held, setting.timed, plan.use.interleaving)


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
    emitter = Emitter(plan.graph, plan.homes, bases, plan.config)
    for work in works:
        emitter.emit(work)
    code = emitter.code(below)
    if code is None:
        return None
    return Candidate(setting, code, emitter.places, emitter.owners, timeline(plan.config, code), works)


def first_settings(plan: Plan) -> Iterator[list[Setting]]:
    """Settings to begin with, from fast to frugal, in groups of which one success is enough."""
    use, count = plan.use, len(plan.graph.ops)
    some = [held for held in HELD if held < count]
    some = (some if use.graph_order_first else some[:1]) if use.eager else [count]
    timed = _beside_depthwise(plan)
    ways = [(choices, some, use.clock_order) for choices in timed]
    ways += [(choices, some, False) for choices in _tilings(plan, not timed)]
    ways.append((_coarse(plan), [count], False))
    overlays, orders = (False, True)[: 1 + use.overlap], ORDERS if use.strategies else ORDERS[:1]
    preferences = (True, False) if use.bank_preferences else (False,)
    graphs = _orders(plan)
    for choices, held, clock in ways:
        for graph in graphs:
            yield [
                Setting(graph, choices, first, clock, order, wishes, overlay)
                for first in held for overlay in overlays for wishes in preferences for order in orders
            ]  # fmt: skip


def _orders(plan: Plan) -> list[Graph]:
    """The graph, and another order of its operations where that differs."""
    short = short_first(plan.graph) if plan.use.short_branches else plan.graph
    differs = [op.name for op in short.ops] != [op.name for op in plan.graph.ops]
    return [plan.graph, short] if differs else [plan.graph]


def _coarse(plan: Plan) -> dict[str, Choice]:
    return {op.name: coarsest(op, plan.graph, plan.config) for op in plan.graph.ops}


def _finer(plan: Plan, part: float = 0.5) -> dict[str, Choice]:
    return chained(plan.graph, plan.config, part) if plan.use.row_tiles else _coarse(plan)


def _beside_depthwise(plan: Plan) -> list[dict[str, Choice]]:
    """Choices to begin with where the depthwise unit works beside the array; none where it does not."""
    graph, config, use = plan.graph, plan.config, plan.use
    found: list[dict[str, Choice]] = []
    for part in PARTS:
        base = _finer(plan, part)
        choices = beside(graph, base, config)
        if choices != base:
            found += [choices, base] if use.plane_by_plane else [base]
    if not found or not use.row_tiles:
        return found
    fine = pieces(graph, config, *PIECES)
    first = (fine, beside(graph, fine, config)) if use.plane_by_plane else (fine,)
    return [choices for choices in first if choices not in found] + found


def _tilings(plan: Plan, groups: bool) -> list[dict[str, Choice]]:
    """Choices to begin with on the array and the vector unit; `groups`: also with column tiles together."""
    graph, config, use = plan.graph, plan.config, plan.use
    finer, coarse = _finer(plan), _coarse(plan)
    found = [finer]
    if groups and use.column_groups:
        more = [wide(graph, finer, config, part) for part in AHEAD]
        more += [linked(wide(graph, finer, config, HALF))] if use.lookahead else []
        for choices in more:
            if choices != coarse and choices not in found:
                found.append(choices)
    return [*found, coarse]


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
    use = plan.use
    if not use.descent:
        return found
    for ways, used in ((neighbours, use.plane_by_plane), (candidates, use.row_tiles), (wider, use.column_groups)):
        if used:
            found = _descend(plan, found, _alone(ways), TRIES)
    if not use.column_groups:
        return found
    return _descend(plan, found, partial(chains, lookahead=use.lookahead), LINKS)


Ways = Callable[[Op, Graph, Mapping[str, Choice], HwConfig], list[dict[str, Choice]]]
"""Changes of choices that are worth trying for an operation."""


def _alone(ways: Callable[[Op, Graph, Mapping[str, Choice], HwConfig], list[Choice]]) -> Ways:
    """Other choices of an operation as changes."""
    return lambda op, graph, chosen, config: [{op.name: choice} for choice in ways(op, graph, chosen, config)]


def _descend(plan: Plan, found: Candidate, ways: Ways, tries: int) -> Candidate:
    size = 1 + sum(len(found.code[unit]) for unit in UNITS if unit != "load")
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
    spans, waits, end = found.times.spans["array"], dict[str, int](), 0
    for span, name in zip(spans, found.owners["array"], strict=True):
        waits[name] = waits.get(name, 0) + span.issue - end + span.stalled
        end = span.end
    final = found.owners["vector"][-1:] or found.owners["array"][-1:]
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
    over = {u: n for u, n in words(candidate.code).items() if n > getattr(plan.config, f"{u}_ucode")}
    needed = ", ".join(f"{unit} {n} words (has {getattr(plan.config, f'{unit}_ucode')})" for unit, n in over.items())
    unit = next(iter(over))
    owners = candidate.owners[unit]
    largest = max(dict.fromkeys(owners), key=owners.count)
    return DoesNotFitError(
        "E5104",
        f"microcode of {plan.config.name}: needs {needed}; largest: {largest!r} with "
        f"{owners.count(largest)} {unit} instructions",
        hint="a configuration with more " + " or ".join(f"{unit}_ucode" for unit in over),
    )
