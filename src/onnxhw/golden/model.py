"""`run`: a whole graph on int8 arrays."""

from collections.abc import Mapping

import numpy as np

from ..errors import UsageError
from ..ir.graph import Array8, Graph, Op


def evaluate(graph: Graph, op: Op, tensors: Mapping[str, Array8]) -> Array8:
    """One operation on given int8 arrays ``[N, C, H, W]``."""
    arrays = [tensors[name] for name in op.inputs]
    return op.evaluate(arrays, graph.operands(op), graph.tensors[op.output]).astype(np.int8)


def run(graph: Graph, tensors: Mapping[str, Array8]) -> dict[str, Array8]:
    """All tensors of the graph, by name, from its input tensors.

    `tensors` holds int8 ``[N, C, H, W]`` for each input tensor (not model input: see `host.prepare`); N
    may be larger than 1, then every result has N entries. `UsageError` E2201 names a missing or
    misshapen one.
    """
    found: dict[str, Array8] = {}
    for port in graph.inputs:
        found[port.tensor] = _input(graph, port.tensor, tensors)
    if len({len(array) for array in found.values()}) > 1:
        raise UsageError("E2201", "all input tensors must have the same batch size")
    for op in graph.ops:
        found[op.output] = evaluate(graph, op, found)
    return found


def _input(graph: Graph, name: str, tensors: Mapping[str, Array8]) -> Array8:
    if name not in tensors:
        raise UsageError(
            "E2201", f"input tensor {name!r} is missing", hint=f"given: {', '.join(sorted(tensors)) or 'none'}"
        )
    array, shape = np.asarray(tensors[name]), graph.tensors[name].shape
    if array.dtype != np.int8 or array.shape[1:] != shape[1:]:
        wanted = "int8 [N, " + ", ".join(map(str, shape[1:])) + "]"
        raise UsageError("E2201", f"input tensor {name!r} must be {wanted}, not {array.dtype} {list(array.shape)}")
    return array
