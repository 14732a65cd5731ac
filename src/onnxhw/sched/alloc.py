"""Where every buffer lies in activation memory: lifetimes, reuse, and operands in different banks.

A buffer lives from the position in the task sequence that first writes it to the position that last reads
it, both included (inputs from the start, outputs to the end; inputs too where there is room, so that the
next ones may come early); buffers whose lives overlap do not overlap in memory, unless they may share words one by one
(`live_ranges`). The two operands of an Add, Mul or MatMul are read in the same cycle and must meet in different banks
(a *bank constraint*). Work of the vector unit or the depthwise unit does not wait for the array's if what it reads lies
in other banks than what the array reads at that time (a *bank preference*).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..errors import DoesNotFitError
from ..ir.graph import Graph
from ..isa.instructions import Array, VectorOp
from .aliases import Aliases, block_count
from .live_ranges import LiveRange, may_overlap
from .memory_trace import spans
from .task import ArrayStep, TileTask, WordRegion

LOOK_AHEAD = 2
"""Array steps after a step of another unit that are taken to run at the same time, and before a depthwise step: the
accumulators have two banks, so the array is two tiles ahead of the drains at most. With 1 or 4 KWS and VWW take as
many cycles on `ulx3s-85f`."""


class BankConstraint(NamedTuple):
    """Operands read in the same cycle: offsets in their buffers and words; `lockstep`: word i meets word i."""

    buffers: tuple[str, str]
    offsets: tuple[int, int]
    words: tuple[int, int]
    lockstep: bool


Spans = npt.NDArray[np.int64]
"""Rows of words that are read side by side: first and last word in one buffer, first and last in another."""
Bases = npt.NDArray[np.int64]
"""First words of a buffer that may be tried."""


@dataclass(frozen=True)
class Occupied:
    """What is in activation memory already, of a part of a larger program.

    `fixed`: bases of inputs that are there; `kept`: inputs that stay until the end; `reserved`: first words and numbers
    of words that are not to be used, `busy` the same of words that no input may use, because the part before does;
    `ranges`: first and end of the words between which a tensor's buffer must lie; `from_end`: those that lie as near
    the end of them as may be, instead of the begin. Results may be `fixed`, too, within what is reserved: rows of a
    larger tensor that lies there, whose blocks are so many words apart as `planes` says.
    """

    fixed: Mapping[str, int] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    reserved: tuple[tuple[int, int], ...] = ()
    busy: tuple[tuple[int, int], ...] = ()
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    from_end: frozenset[str] = frozenset()
    planes: Mapping[str, int] = field(default_factory=dict)


NOTHING = Occupied()
"""An empty memory."""


@dataclass
class Needs:
    """What an allocation must respect; `live` if buffers may share words."""

    size: dict[str, int]
    life: dict[str, tuple[int, int]]
    constraints: dict[str, list[BankConstraint]] = field(default_factory=lambda: defaultdict(list))
    preferences: dict[str, dict[str, Spans]] = field(default_factory=lambda: defaultdict(dict))
    live: dict[str, LiveRange] = field(default_factory=dict)
    within: dict[str, int] = field(default_factory=dict)
    """Words from 0 on in which a buffer must lie, if not in all."""
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    """First and end of the words in which a buffer must lie, if not in all."""
    from_end: frozenset[str] = frozenset()
    """Buffers that lie as near the end as may be."""
    gathered: frozenset[str] = frozenset()
    """Buffers that are rows of a larger tensor, and so lie within what is reserved."""
    placed: dict[str, int] = field(default_factory=dict)
    """Bases of buffers that have one, and of what is reserved."""


def find_needs(
    graph: Graph, aliases: Aliases, tasks: Sequence[TileTask], config: HwConfig, exclusive_inputs: bool = False,
    occupied: Occupied = NOTHING,
) -> Needs:  # fmt: skip
    """Lifetimes, bank constraints and preferences of a task sequence; `exclusive_inputs`: nothing else lies there."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}

    def touch(name: str, position: int) -> None:
        buffer = aliases.of[name].buffer
        first[buffer] = min(first.get(buffer, position), position)
        last[buffer] = max(last.get(buffer, position), position)

    for port in graph.inputs:
        touch(port.tensor, -1)
        if exclusive_inputs or port.tensor in occupied.kept:
            touch(port.tensor, len(tasks))
    for position, task in enumerate(tasks):
        for name in task.tensors:
            touch(name, position)
    for port in graph.outputs:
        touch(port.tensor, len(tasks))
    life = {buffer: (first.get(buffer, 0), last.get(buffer, 0)) for buffer in aliases.size}
    needs = Needs(aliases.size, life)
    for constraint in {constraint for task in tasks for constraint in _constraints(task, graph, aliases, config)}:
        for buffer in set(constraint.buffers):
            needs.constraints[buffer].append(constraint)
    unaligned = {step.tensor for task in tasks for step in task.arrays if _unaligned(step)}
    needs.within = {aliases.of[name].buffer: config.unaligned_words for name in unaligned}
    _find_preferences(graph, tasks, aliases, needs)
    needs.placed = {aliases.of[name].buffer: base for name, base in occupied.fixed.items()}
    needs.gathered = frozenset(aliases.of[name].buffer for name in occupied.planes)
    needs.ranges = {aliases.of[name].buffer: ends for name, ends in occupied.ranges.items()}
    needs.from_end = frozenset(aliases.of[name].buffer for name in occupied.from_end)
    for kind, taken, lives in (("reserved", occupied.reserved, (-1, len(tasks))), ("busy", occupied.busy, (-1, -1))):
        for number, (base, words) in enumerate(taken):
            name = f"{kind} {number}"
            needs.size = {**needs.size, name: words}
            needs.life[name], needs.placed[name] = lives, base
    return needs


def _unaligned(step: ArrayStep) -> bool:
    return isinstance(step.array, Array) and bool(step.array.unaligned)


def _constraints(task: TileTask, graph: Graph, aliases: Aliases, config: HwConfig) -> Iterable[BankConstraint]:
    for step in task.vectors:
        if step.a and step.b:
            a, b = graph.tensors[step.a.tensor], graph.tensors[step.b.tensor]
            buffers = aliases.of[a.name].buffer, aliases.of[b.name].buffer
            words = block_count(a, config) * aliases.plane(a), block_count(b, config) * aliases.plane(b)
            lockstep = step.vector.op != VectorOp.DOT and a.shape == b.shape and aliases.plane(a) == aliases.plane(b)
            yield BankConstraint(buffers, (aliases.offset(a), aliases.offset(b)), words, lockstep)


def _find_preferences(graph: Graph, tasks: Sequence[TileTask], aliases: Aliases, needs: Needs) -> None:
    arrays = [(position, step) for position, task in enumerate(tasks) for step in task.arrays if task.on_array]
    found: dict[tuple[str, str], list[tuple[int, int, int, int]]] = defaultdict(list)
    words: list[tuple[int, int]] = []
    read = [_appended(words, graph, aliases, step.reads) for _, step in arrays]
    buffers = [aliases.of[step.tensor].buffer for _, step in arrays]
    at = 0
    for position, task in enumerate(tasks):
        while at < len(arrays) and arrays[at][0] <= position:
            at += 1
        first = at if task.on_array or not task.arrays else max(0, at - LOOK_AHEAD)
        for region in _operands(task):
            mine = aliases.of[region.tensor].buffer
            own = _appended(words, graph, aliases, (region,))
            for number in range(first, min(at + LOOK_AHEAD, len(arrays))):
                if mine != buffers[number]:
                    found[mine, buffers[number]].append(own + read[number])
    ends = np.array(words, np.int64).reshape(-1, 2)
    for (mine, other), ranges in found.items():
        both = [*ranges, *((c, d, a, b) for a, b, c, d in found.get((other, mine), ()))]
        table = _side_by_side(ends, np.array(both, np.int64))
        needs.preferences[mine][other] = table
        needs.preferences[other][mine] = table[:, [2, 3, 0, 1]]


def _appended(
    words: list[tuple[int, int]], graph: Graph, aliases: Aliases, regions: Iterable[WordRegion]
) -> tuple[int, int]:
    """Append the first and last words of regions to `words`: the first row and the end of them."""
    first = len(words)
    for region in regions:
        words += _spans(graph, aliases, region)
    return first, len(words)


def _side_by_side(ends: npt.NDArray[np.int64], ranges: npt.NDArray[np.int64]) -> Spans:
    """Of each row of `ranges`, two ranges of rows of `ends`, every row of the first beside every row of the second."""
    first, second = ranges[:, 1] - ranges[:, 0], ranges[:, 3] - ranges[:, 2]
    counts = first * second
    which = np.repeat(np.arange(len(ranges)), counts)
    number = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = ranges[which, 0] + number // second[which], ranges[which, 2] + number % second[which]
    return np.concatenate([ends[each] for each in rows], axis=1)


def _spans(graph: Graph, aliases: Aliases, region: WordRegion) -> list[tuple[int, int]]:
    """First and last word in its buffer of each plane of a region."""
    tensor = graph.tensors[region.tensor]
    return spans(region, aliases.offset(tensor), aliases.plane(tensor), tensor.width)


def _operands(task: TileTask) -> list[WordRegion]:
    strips = [] if task.on_array else [region for step in task.arrays for region in step.reads]
    return strips + [region for step in task.vectors for region in (step.a, step.b) if region]


def banks_meet(a: int, b: int, words: int, depth: int) -> bool:
    """Whether ``a + i`` and ``b + i`` lie in the same bank for some i below `words`."""
    low, distance = min(a, b), abs(a - b)
    if distance >= depth:
        return False
    if low % depth < depth - distance:
        return True
    return low + words > (low // depth + 1) * depth


def share_banks(a: int, a_words: int, b: int, b_words: int, depth: int) -> bool:
    """Whether two ranges touch a common bank."""
    return a // depth <= (b + b_words - 1) // depth and b // depth <= (a + a_words - 1) // depth


ORDERS = ("size", "birth", "constrained")
"""Strategies: largest first, in order of birth, those with bank constraints and preferences first. The first that has
room is taken, so the order is that in which they usually have: large buffers find gaps hardest."""


def allocate(
    needs: Needs, config: HwConfig, order: str, preferences: bool, overlap: bool = False
) -> dict[str, int] | None:
    """Bases of all buffers by one strategy, or None if it has no room; `overlap`: buffers may share words."""
    size, life = needs.size, needs.life
    if not _possible(needs, config):
        return None

    def key(buffer: str) -> tuple[int, ...]:
        if order == "size":
            return -size[buffer], *life[buffer]
        if order == "birth":
            return *life[buffer], -size[buffer]
        preferred = sum(map(len, needs.preferences.get(buffer, {}).values()))
        return -len(needs.constraints.get(buffer, ())), -preferred, -size[buffer]

    placed = dict(needs.placed)
    for buffer in sorted(size, key=lambda buffer: (buffer not in needs.within, key(buffer), buffer)):
        if buffer in placed:
            continue
        base = _place(buffer, placed, needs, config, preferences, overlap)
        if base is None:
            return None
        placed[buffer] = base
    return placed


def _possible(needs: Needs, config: HwConfig) -> bool:
    """Whether what has its place already is within the memory, apart from one another and from what is reserved (a
    buffer may be larger than the input that is there, as that of a Concat is), and meets in no bank where it must
    not."""
    reserved = {name for name in needs.placed if name.startswith("reserved ")}
    buffers = {name for name in needs.placed if not name.startswith(("reserved ", "busy "))}
    apart = all(_lie_apart(names, needs) for names in (buffers, (buffers - needs.gathered) | reserved))
    constraints = (one for name in buffers for one in needs.constraints.get(name, ()))
    met = any(_meets(one, needs.placed, config) for one in constraints)
    return apart and not met and all(needs.placed[name] + needs.size[name] <= config.act_words for name in buffers)


def _lie_apart(names: Collection[str], needs: Needs) -> bool:
    """Whether no two of these share a word."""
    spans = sorted((needs.placed[name], needs.placed[name] + needs.size[name]) for name in names)
    return all(end <= first for (_, end), (first, _) in pairwise(spans))


def _place(
    buffer: str, placed: dict[str, int], needs: Needs, config: HwConfig, preferences: bool, overlap: bool
) -> int | None:
    size, depth = needs.size[buffer], config.act_depth
    birth, death = needs.life[buffer]
    taken = {
        other: base for other, base in placed.items() if needs.life[other][0] <= death and birth <= needs.life[other][1]
    }
    low, high = needs.ranges.get(buffer, (0, config.act_words))
    starts = {0}
    for other, base in taken.items():
        starts |= {base + needs.size[other], base - size}
        if overlap and other in needs.live:
            starts |= set(range(base, base + needs.size[other], needs.live[other].plane))
    for bank in range(config.act_banks):
        starts |= {bank * depth, (bank + 1) * depth - size}

    sharing = [other for other in taken if overlap and other in needs.live]
    apart = [(base, base + needs.size[other]) for other, base in taken.items() if other not in sharing]
    end = min(high, needs.within.get(buffer, config.act_words))
    able = _free(np.array(sorted(base for base in starts if low <= base <= end - size), np.int64), size, apart)
    if buffer in needs.from_end:
        able = able[::-1]
    if preferences:
        able = able[np.argsort(_costs(needs.preferences.get(buffer, {}), placed, able, depth), kind="stable")]
    for base in able.tolist():
        if any(_meets(one, {**placed, buffer: base}, config) for one in needs.constraints.get(buffer, ())):
            continue
        if all(may_overlap(needs.live[buffer], base, needs.live[other], taken[other]) for other in sharing):
            return int(base)
    return None


def _free(bases: Bases, size: int, taken: Sequence[tuple[int, int]]) -> Bases:
    """Of ordered bases of so many words those that touch none of the words that are taken: first and end of each."""
    if not taken:
        return bases
    free, (firsts, ends) = np.ones(len(bases), bool), np.array(taken, np.int64).T
    lows, highs = np.searchsorted(bases, firsts - size, "right").tolist(), np.searchsorted(bases, ends).tolist()
    for low, high in zip(lows, highs, strict=True):
        free[low:high] = False
    return bases[free]


def _costs(preferences: Mapping[str, Spans], placed: dict[str, int], bases: Bases, depth: int) -> Spans:
    """Of each base, how many spans lie in a bank with one that is read at the same time."""
    cost = np.zeros(len(bases), np.int64)
    for other, rows in preferences.items():
        if other in placed:
            mine = (bases[:, None, None] + rows[:, :2]) // depth
            theirs = (placed[other] + rows[:, 2:]) // depth
            cost += ((mine[..., 0] <= theirs[:, 1]) & (theirs[:, 0] <= mine[..., 1])).sum(axis=1)
    return cost


def _meets(constraint: BankConstraint, bases: dict[str, int], config: HwConfig) -> bool:
    if any(buffer not in bases for buffer in constraint.buffers):
        return False
    a, b = (bases[buffer] + offset for buffer, offset in zip(constraint.buffers, constraint.offsets, strict=True))
    if constraint.lockstep:
        return banks_meet(a, b, constraint.words[0], config.act_depth)
    return share_banks(a, constraint.words[0], b, constraint.words[1], config.act_depth)


SCATTERED = 1 / 16
"""By what part a memory is said to be too small that has enough words, but not in the banks where they are wanted: less
than one whose words are too few by a tenth, for a search that looks for one that is large enough."""


def peak(needs: Needs) -> tuple[int, int]:
    """Most words alive at once, and the position in the sequence where that is."""
    starts = sorted({birth for birth, _ in needs.life.values()})
    sums = [(sum(needs.size[r] for r, (b, d) in needs.life.items() if b <= p <= d), p) for p in starts]
    return max(sums, default=(0, 0))


def does_not_fit(needs: Needs, tasks: Sequence[TileTask], config: HwConfig) -> DoesNotFitError:
    """The error for a graph that no strategy could place."""
    words, position = peak(needs)
    where = tasks[position].op if 0 <= position < len(tasks) else ""
    alive = {buffer: needs.size[buffer] for buffer, (birth, death) in needs.life.items() if birth <= position <= death}
    largest = ", ".join(f"{buffer!r} {size}" for buffer, size in sorted(alive.items(), key=lambda item: -item[1])[:3])
    if words > config.act_words:
        what = f"activations need {words} words of {config.word} bytes at once, {config.name} has {config.act_words}"
    else:
        what = (
            f"no placement found for {words} words of activations alive at once in {config.act_banks} banks of "
            f"{config.act_depth} words, with both operands of every Add, Mul and MatMul in different banks"
        )
    return DoesNotFitError(
        "E5101", f"{what}; largest: {largest}", where=f"node {where!r}" if where else "",
        hint="a configuration with more act_depth or act_banks", share=max(SCATTERED, words / config.act_words - 1),
    )  # fmt: skip
