"""Where every root lies in activation memory: lifetimes, reuse, and operands in different banks.

A root lives from the position in the work sequence that first writes it to the position that last reads
it, both included (inputs from the start, outputs to the end; inputs too where there is room, so that the
next ones may come early); roots whose lives overlap do not overlap in memory, unless they may share words one by one
(`overlay`). The two operands of an Add,
Mul or MatMul are read in the same cycle and must meet in different banks (a *pair*). Work of the vector unit or the
depthwise unit that runs beside the array runs without waiting if what it reads lies in other banks than what the array
reads then (a *wish*).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..errors import DoesNotFitError
from ..ir.graph import Graph
from ..isa.instructions import VectorOp
from .overlay import Moments, share
from .places import Homes, blocks
from .trace import accesses, spans
from .work import Region, Work

LOOK_AHEAD = 2
"""Array steps after a step of another unit that are taken to run beside it, and before a depthwise step."""


@dataclass(frozen=True)
class Pair:
    """Operands read in the same cycle: offsets in their roots and words; `lockstep`: word i meets word i."""

    roots: tuple[str, str]
    offsets: tuple[int, int]
    words: tuple[int, int]
    lockstep: bool


Spans = npt.NDArray[np.int64]
"""Rows of words that are read side by side: first and last word in one root, first and last in another."""


@dataclass
class Needs:
    """What an allocation must respect; `moments` if roots may share words."""

    size: dict[str, int]
    life: dict[str, tuple[int, int]]
    pairs: dict[str, list[Pair]] = field(default_factory=lambda: defaultdict(list))
    wishes: dict[str, dict[str, Spans]] = field(default_factory=lambda: defaultdict(dict))
    moments: dict[str, Moments] = field(default_factory=dict)


def find_needs(
    graph: Graph, homes: Homes, works: Sequence[Work], config: HwConfig, inputs_stay: bool = False
) -> Needs:
    """Lifetimes, pairs and wishes of a work sequence; `inputs_stay`: nothing else is put where they lie."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}

    def touch(name: str, position: int) -> None:
        root = homes.of[name].root
        first[root] = min(first.get(root, position), position)
        last[root] = max(last.get(root, position), position)

    for port in graph.inputs:
        touch(port.tensor, -1)
        if inputs_stay:
            touch(port.tensor, len(works))
    for access in accesses(works):
        touch(access.region.tensor, access.work)
    for port in graph.outputs:
        touch(port.tensor, len(works))
    life = {root: (first.get(root, 0), last.get(root, 0)) for root in homes.size}
    needs = Needs(homes.size, life)
    for pair in {pair for work in works for pair in _pairs(work, graph, homes, config)}:
        for root in set(pair.roots):
            needs.pairs[root].append(pair)
    _find_wishes(graph, works, homes, needs)
    return needs


def _pairs(work: Work, graph: Graph, homes: Homes, config: HwConfig) -> Iterable[Pair]:
    for step in work.vectors:
        if step.a and step.b:
            a, b = graph.tensors[step.a.tensor], graph.tensors[step.b.tensor]
            roots = homes.of[a.name].root, homes.of[b.name].root
            words = blocks(a, config) * a.height * a.width, blocks(b, config) * b.height * b.width
            lockstep = step.vector.op != VectorOp.DOT and a.shape == b.shape
            yield Pair(roots, (homes.offset(a), homes.offset(b)), words, lockstep)


def _find_wishes(graph: Graph, works: Sequence[Work], homes: Homes, needs: Needs) -> None:
    arrays = [(position, step) for position, work in enumerate(works) for step in work.arrays if work.on_array]
    found: dict[tuple[str, str], list[tuple[int, int, int, int]]] = defaultdict(list)
    at = 0
    for position, work in enumerate(works):
        while at < len(arrays) and arrays[at][0] <= position:
            at += 1
        first = at if work.on_array or not work.arrays else max(0, at - LOOK_AHEAD)
        for region in _operands(work):
            mine = homes.of[region.tensor].root
            own = _spans(graph, homes, region)
            for _, step in arrays[first : at + LOOK_AHEAD]:
                other = homes.of[step.tensor].root
                if mine != other:
                    beside = [span for read in step.reads for span in _spans(graph, homes, read)]
                    found[mine, other] += [(*a, *b) for a in own for b in beside]
    for (mine, other), rows in found.items():
        both = [*rows, *((c, d, a, b) for a, b, c, d in found.get((other, mine), ()))]
        table = np.array(both, np.int64).reshape(-1, 4)
        needs.wishes[mine][other] = table
        needs.wishes[other][mine] = table[:, [2, 3, 0, 1]]


def _spans(graph: Graph, homes: Homes, region: Region) -> list[tuple[int, int]]:
    """First and last word in its root of each plane of a region."""
    tensor = graph.tensors[region.tensor]
    return spans(region, homes.offset(tensor), tensor.height * tensor.width, tensor.width)


def _operands(work: Work) -> list[Region]:
    strips = [] if work.on_array else [region for step in work.arrays for region in step.reads]
    return strips + [region for step in work.vectors for region in (step.a, step.b) if region]


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


ORDERS = ("size", "birth", "tied")
"""Strategies: largest first, in order of birth, those with pairs and wishes first."""


def allocate(
    needs: Needs, config: HwConfig, order: str, wishes: bool, overlay: bool = False
) -> dict[str, int] | None:
    """Bases of all roots by one strategy, or None if it finds no room; `overlay`: roots may share words (`overlay`)."""
    size, life = needs.size, needs.life

    def key(root: str) -> tuple[int, ...]:
        if order == "size":
            return -size[root], *life[root]
        if order == "birth":
            return *life[root], -size[root]
        return -len(needs.pairs.get(root, ())), -sum(map(len, needs.wishes.get(root, {}).values())), -size[root]

    placed: dict[str, int] = {}
    for root in sorted(size, key=lambda root: (key(root), root)):
        base = _place(root, placed, needs, config, wishes, overlay)
        if base is None:
            return None
        placed[root] = base
    return placed


def _place(
    root: str, placed: dict[str, int], needs: Needs, config: HwConfig, wishes: bool, overlay: bool
) -> int | None:
    size, depth = needs.size[root], config.act_depth
    birth, death = needs.life[root]
    taken = {
        other: base for other, base in placed.items() if needs.life[other][0] <= death and birth <= needs.life[other][1]
    }
    starts = {0}
    for other, base in taken.items():
        starts |= {base + needs.size[other], base - size}
        if overlay:
            starts |= set(range(base, base + needs.size[other], needs.moments[other].plane))
    for bank in range(config.act_banks):
        starts |= {bank * depth, (bank + 1) * depth - size}

    def free(base: int, other: str) -> bool:
        if overlay:
            return share(needs.moments[root], base, needs.moments[other], taken[other])
        return taken[other] + needs.size[other] <= base or base + size <= taken[other]

    able = [base for base in sorted(starts) if 0 <= base <= config.act_words - size]
    if wishes:
        costs = _costs(needs.wishes.get(root, {}), placed, np.array(able, np.int64), depth)
        able = [able[index] for index in np.argsort(costs, kind="stable")]
    for base in able:
        if any(_meets(pair, {**placed, root: base}, config) for pair in needs.pairs.get(root, ())):
            continue
        if all(free(base, other) for other in taken):
            return base
    return None


def _costs(wishes: Mapping[str, Spans], placed: dict[str, int], bases: Spans, depth: int) -> Spans:
    """Of each base, how many spans lie in a bank with one that they are read beside."""
    cost = np.zeros(len(bases), np.int64)
    for other, rows in wishes.items():
        if other in placed:
            mine = (bases[:, None, None] + rows[:, :2]) // depth
            beside = (placed[other] + rows[:, 2:]) // depth
            cost += ((mine[..., 0] <= beside[:, 1]) & (beside[:, 0] <= mine[..., 1])).sum(axis=1)
    return cost


def _meets(pair: Pair, bases: dict[str, int], config: HwConfig) -> bool:
    if any(root not in bases for root in pair.roots):
        return False
    a, b = (bases[root] + offset for root, offset in zip(pair.roots, pair.offsets, strict=True))
    if pair.lockstep:
        return banks_meet(a, b, pair.words[0], config.act_depth)
    return share_banks(a, pair.words[0], b, pair.words[1], config.act_depth)


def peak(needs: Needs) -> tuple[int, int]:
    """Most words alive at once, and the position in the sequence where that is."""
    starts = sorted({birth for birth, _ in needs.life.values()})
    sums = [(sum(needs.size[r] for r, (b, d) in needs.life.items() if b <= p <= d), p) for p in starts]
    return max(sums, default=(0, 0))


def no_room(needs: Needs, works: Sequence[Work], config: HwConfig) -> DoesNotFitError:
    """The error for a graph that no strategy could place."""
    words, position = peak(needs)
    where = works[position].op if 0 <= position < len(works) else ""
    alive = {root: needs.size[root] for root, (birth, death) in needs.life.items() if birth <= position <= death}
    largest = ", ".join(f"{root!r} {size}" for root, size in sorted(alive.items(), key=lambda item: -item[1])[:3])
    if words > config.act_words:
        what = f"activations need {words} words of {config.word} bytes at once, {config.name} has {config.act_words}"
    else:
        what = (
            f"no placement found for {words} words of activations alive at once in {config.act_banks} banks of "
            f"{config.act_depth} words, with both operands of every Add, Mul and MatMul in different banks"
        )
    return DoesNotFitError(
        "E5101", f"{what}; largest: {largest}", where=f"node {where!r}" if where else "",
        hint="a configuration with more act_depth or act_banks",
    )
