"""`groups`: how a hardware part that is larger than a configuration is divided into parts that run in turn.

Each takes as many operations, in the graph's order, as have room, or fewer, down to `LEAST` of them, where that lets
fewer bytes pass per operation. Then each cut is moved to where as few bytes pass and less work stands on one side of
it: of two neighbours the smaller is what could hide under the other.
"""

from collections.abc import Callable
from itertools import pairwise
from math import prod

from ..ir.graph import Graph, Port

LEAST = 0.5
"""Least part of the operations that have room that a part may keep: a model has at most about twice as many parts as
it needs. KWS on `mini` (3 programs) and IC on `ulx3s-25f` (6) take as many cycles and bytes with 0.25, 0.75
and 1."""
MOVES = 8
"""Places that are tried for a cut: each costs two initial schedules of a part. The same models take as many cycles and
bytes with 1 and with 32."""

Room = Callable[[Graph], bool]


class OperationRanges:
    """A graph by ranges of its operations."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.fed = {port.tensor: port for port in graph.inputs}
        self.last_read = {name: at for at, op in enumerate(graph.ops) for name in op.inputs}

    def __len__(self) -> int:
        return len(self.graph.ops)

    def piece(self, first: int, last: int) -> Graph:
        """Operations ``first .. last - 1`` as a graph of their own; what passes in and out are int8 ports."""
        graph, ops = self.graph, self.graph.ops[first:last]
        made = {op.output for op in ops}
        read = dict.fromkeys(name for op in ops for name in op.inputs if name not in made)
        inputs = [self.fed.get(name) or self._port(name) for name in read]
        outputs = [port for port in graph.outputs if port.tensor in made]
        outputs += [self._port(op.output) for op in ops if self.last_read.get(op.output, 0) >= last]
        return Graph(graph.name, {name: graph.tensors[name] for name in [*read, *made]}, ops, inputs, outputs)

    def bytes_at_cut(self) -> list[int]:
        """Per operation the bytes that those before it make for it and what follows."""
        change = [0] * (len(self) + 1)
        for at, op in enumerate(self.graph.ops):
            _, channels, height, width = self.graph.tensors[op.output].shape
            change[at + 1] += channels * height * width
            change[max(at, self.last_read.get(op.output, 0)) + 1] -= channels * height * width
        total = 0
        return [total := total + step for step in change]

    def work_at_cut(self) -> list[int]:
        """Per operation the smaller work of it and the one before: multiply-accumulates, or elements of the result."""
        ops, tensors = self.graph.ops, self.graph.tensors
        work = [max(self.graph.macs_of(op), prod(tensors[op.output].shape)) for op in ops]
        return [0, *(min(pair) for pair in pairwise(work)), 0]

    def _port(self, name: str) -> Port:
        return Port(f"{name}:int8", self.graph.tensors[name].shape, "int8", name)


def groups(graph: Graph, room: Room) -> list[list[str]]:
    """All operations by result, group after group.

    At least two groups if there are two operations, even if the graph has room; a group of one operation may have none.
    """
    pieces, starts = OperationRanges(graph), [0]
    passing, first = pieces.bytes_at_cut(), 0
    while (last := _most(pieces, first, room)) < len(pieces):
        least = first + max(1, int(LEAST * (last - first)))
        first = min(range(last, least - 1, -1), key=lambda at: passing[at] / (at - first))
        starts.append(first)
    starts = _moved(pieces, starts, room)
    if len(starts) == 1 < len(pieces):
        starts.append(len(pieces) // 2)
    names = [op.output for op in graph.ops]
    return [names[first:last] for first, last in pairwise([*starts, len(names)])]


def _moved(pieces: OperationRanges, starts: list[int], room: Room) -> list[int]:
    """The same number of cuts, each, from the last on, where least passes and least work is beside it."""
    edges, cost = [*starts, len(pieces)], list(zip(pieces.bytes_at_cut(), pieces.work_at_cut(), strict=True))
    for cut in range(len(starts) - 1, 0, -1):
        before, now, after = edges[cut - 1 : cut + 2]
        better = [at for at in range(before + 1, after) if cost[at] < cost[now]]
        for at in sorted(better, key=lambda at: cost[at])[:MOVES]:
            if room(pieces.piece(before, at)) and room(pieces.piece(at, after)):
                edges[cut] = at
                break
    return edges[:-1]


def _most(pieces: OperationRanges, first: int, room: Room) -> int:
    """The end of the longest piece from `first` on that has room; of at least one operation."""
    count = len(pieces)

    def has_room(last: int) -> bool:
        return room(pieces.piece(first, last))

    has, step = first + 1, 1
    while has < count and has_room(min(has + step, count)):
        has, step = min(has + step, count), 2 * step
    has_not = has + step
    while has < count and has + 1 < has_not:
        middle = (has + has_not) // 2
        has, has_not = (middle, has_not) if has_room(middle) else (has, middle)
    return has
