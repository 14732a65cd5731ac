"""`over_table_limit`: the operations of a part that go to the host where it needs more tables than the hardware has."""

from collections import Counter
from math import prod

from ..ir.graph import Graph, Op
from .rewrite import same_operand


def tables_of(graph: Graph) -> dict[int, bytes]:
    """The 256 entries of each operation that reads a table, by its index; equal entries are one table."""
    ops = same_operand(graph).ops
    return {index: op.table.tobytes() for index, op in enumerate(ops) if op.table.size}


def over_table_limit(graph: Graph, count: int) -> list[Op]:
    """Operations without which no part of the graph needs more than `count` tables; empty if it needs no more as it is.

    What reads the result of such an operation is in a later part, which has all tables for itself. Operations are taken
    in order; of the first ``count + 1`` tables of a part the one goes whose operations make the fewest elements in the
    whole graph, of equals the last.
    """
    entries, moved = tables_of(graph), set[int]()
    elements = Counter[bytes]()
    for index, table in entries.items():
        elements[table] += prod(graph.tensors[graph.ops[index].output].shape)
    parts: dict[str, int] = {}
    placed: dict[int, int] = {}
    held: dict[int, dict[bytes, list[int]]] = {}
    index = 0
    while index < len(graph.ops):
        op = graph.ops[index]
        part = max((parts.get(name, 0) for name in op.inputs), default=0)
        parts[op.output] = part + (index in moved)
        if index in entries and index not in moved:
            placed[index], mine = part, held.setdefault(part, {})
            mine.setdefault(entries[index], []).append(index)
            if len(mine) > count:
                fewest = min(reversed(mine), key=elements.__getitem__)
                first = mine[fewest][0]
                moved.update(mine[fewest])
                for later in range(index, first - 1, -1):  # to be placed anew
                    if later in placed:
                        other = held[placed.pop(later)]
                        other[entries[later]].pop()
                        if not other[entries[later]]:
                            del other[entries[later]]
                index = first
                continue
        index += 1
    return [graph.ops[index] for index in sorted(moved)]
