"""Which int8 values each tensor can hold: what the producers' clamps leave."""

from ..fixed import INT8_MAX, INT8_MIN
from ..ir.graph import Graph
from ..ir.operation import Interval


def value_ranges(graph: Graph) -> dict[str, Interval]:
    """Smallest and largest value of every tensor, by name, both included."""
    ranges: dict[str, Interval] = {port.tensor: (INT8_MIN, INT8_MAX) for port in graph.inputs}
    for op in graph.ops:
        ranges[op.output] = op.range([ranges[name] for name in op.inputs])
    return ranges
