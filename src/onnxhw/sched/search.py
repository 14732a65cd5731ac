"""Choosing cuts, orders and placement by the exact predicted cycles."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..errors import DoesNotFitError
from ..ir.graph import Graph
from ..isa.instructions import UNITS, Ordered
from ..isa.timing import Timeline, timeline
from ..program.layout import Place
from .alloc import ORDERS, allocate, find_needs, no_room
from .emit import sequence
from .lower import Plan
from .order import Binder
from .places import producers
from .reorder import short_first
from .tiling import candidates, chained, coarsest
from .work import Choice, Region, Work

TRIES = 48
"""Candidate programs evaluated beyond the first ones."""
WORTH = 16
"""Idle cycles of the array before an operation that make a search worth while."""


@dataclass(frozen=True)
class Setting:
    """Everything that is chosen: cuts per operation, the order of operations and works, the placement strategy."""

    graph: Graph
    choices: dict[str, Choice]
    eager: bool = True
    order: str = "size"
    wishes: bool = True


@dataclass
class Candidate:
    """A complete program for a setting."""

    setting: Setting
    code: dict[str, list[Ordered]]
    places: dict[str, Place]
    ranges: dict[str, dict[str, tuple[int, int]]]
    writes: list[Region]
    times: Timeline

    @property
    def cycles(self) -> int:
        """Cycles of a run."""
        return self.times.cycles


def words(code: dict[str, list[Ordered]]) -> dict[str, int]:
    """Microcode words per unit."""
    return {unit: len(code[unit]) * UNITS[unit].words() for unit in UNITS}


def fits_microcode(plan: Plan, code: dict[str, list[Ordered]]) -> bool:
    """Whether every unit's instructions fit its microcode memory."""
    return all(used <= getattr(plan.config, f"{unit}_ucode") for unit, used in words(code).items())


def works_of(plan: Plan, setting: Setting) -> list[Work]:
    """The sequence of works of a setting."""
    works = {name: plan.works(name, choice) for name, choice in setting.choices.items()}
    return sequence(setting.graph, works, plan.homes, plan.config, setting.eager)


def build(plan: Plan, setting: Setting) -> Candidate | None:
    """The program of a setting; None if its tensors find no place."""
    works = works_of(plan, setting)
    needs = find_needs(plan.graph, plan.homes, works, plan.config)
    bases = allocate(needs, plan.config, setting.order, setting.wishes)
    if bases is None:
        return None
    binder = Binder(plan.graph, plan.homes, bases, plan.config)
    for work in works:
        binder.emit(work)
    code = binder.code
    return Candidate(setting, code, binder.places, binder.ranges, binder.writes, timeline(plan.config, code))


def first_settings(plan: Plan) -> Iterator[list[Setting]]:
    """Settings to begin with, from fast to frugal, in groups of which one success is enough."""
    coarse = {op.name: coarsest(op, plan.graph, plan.config) for op in plan.graph.ops}
    finer = chained(plan.graph, plan.config)
    graphs = [plan.graph]
    short = short_first(plan.graph)
    if [op.name for op in short.ops] != [op.name for op in plan.graph.ops]:
        graphs.append(short)
    for choices, eager in ((finer, True), (coarse, True), (coarse, False)):
        for graph in graphs:
            yield [Setting(graph, choices, eager, order, wishes) for wishes in (True, False) for order in ORDERS]


def best(plan: Plan) -> Candidate:
    """The fastest program found; `DoesNotFitError` E5101 or E5104 if there is none."""
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
    return improve(plan, found)


def improve(plan: Plan, found: Candidate) -> Candidate:
    """Descent: where the array waits longest, try other cuts of the operation and of what it waits for."""
    tried: set[tuple[str, Choice, int]] = set()
    tries = 0
    moved = True
    while moved:
        moved = False
        for name in suspects(plan, found):
            op = next(op for op in plan.graph.ops if op.name == name)
            for choice in candidates(op, plan.graph, found.setting.choices, plan.config):
                key = name, choice, found.cycles
                if choice == found.setting.choices[name] or key in tried:
                    continue
                if tries == TRIES:
                    return found
                tried.add(key)
                tries += 1
                setting = replace(found.setting, choices={**found.setting.choices, name: choice})
                candidate = build(plan, setting)
                if candidate and candidate.cycles < found.cycles and fits_microcode(plan, candidate.code):
                    found, moved = candidate, True
            if moved:
                break
    return found


def idle(found: Candidate) -> dict[str, int]:
    """Cycles in which the array did nothing, by the operation that it did next (the last: until the end)."""
    spans, ends = found.times.spans["array"], {}
    waits: dict[str, int] = {}
    for name, units in found.ranges.items():
        first, end = units.get("array", (0, 0))
        for index in range(first, end):
            before = spans[index - 1].end if index else 0
            waits[name] = waits.get(name, 0) + max(0, spans[index].issue - before) + spans[index].stalled
        ends[name] = max((found.times.spans[unit][units[unit][1] - 1].done for unit in units), default=0)
    if ends:
        last = max(ends, key=lambda name: ends[name])
        waits[last] = waits.get(last, 0) + found.cycles - (spans[-1].end if spans else 0)
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
    largest = max(candidate.ranges, key=lambda op: _count(candidate, op, unit))
    return DoesNotFitError(
        "E5104",
        f"microcode does not fit {plan.config.name}: needs {needed}; largest: {largest!r} with "
        f"{_count(candidate, largest, unit)} {unit} instructions",
        hint="a configuration with more " + " or ".join(f"{unit}_ucode" for unit in over),
    )


def _count(candidate: Candidate, op: str, unit: str) -> int:
    first, end = candidate.ranges[op].get(unit, (0, 0))
    return end - first
