"""`refuse_endless`: a Loop that no run ends is known before any."""

import numpy as np
import onnx

from ..errors import UnsupportedError
from .constants import KnownConstants
from .nodes import needed
from .specification.findings import label

MAX_ITERATIONS = 10_000_000
"""The host computes no Loop of more: it would take minutes at least, and is taken for one without end."""
CONDITION = 1
"""Which input of a Loop's body is its condition."""
TRIPS, START = 0, 1
"""Which inputs of a Loop are its trip count and its first condition."""


def refuse_endless(model: onnx.ModelProto, where: str) -> None:
    """`UnsupportedError` E4780 for a Loop of the main graph whose condition is proved to stay true, and whose trip
    count is not there or beyond `MAX_ITERATIONS`. What no output needs is not looked at, nor what is nested: it may
    never run.
    """
    graph = model.graph
    if not any(node.op_type == "Loop" for node in graph.node):
        return
    opset = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)
    known, overridable = KnownConstants(opset), {value.name for value in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in overridable:
            known.add(tensor.name, tensor)
    for node in needed(graph):
        known.node(node)
        if node.op_type != "Loop" or node.domain not in ("", "ai.onnx"):
            continue
        names = [*node.input, "", ""]
        trips, start = (known.get(name) if name else None for name in names[:2])
        if names[TRIPS] and (trips is None or trips.size != 1 or trips.max() <= MAX_ITERATIONS):
            continue
        if names[START] and (start is None or not start.all()):
            continue
        if _goes_on(next(one.g for one in node.attribute if one.name == "body"), known):
            count = f"it runs {int(trips.max()):,} times" if trips is not None else "without a trip count it never ends"
            what = f"{label(node)}: its condition is always true: {count}"
            hint = f"the host computes at most {MAX_ITERATIONS:,} iterations; give it a trip count, or export again"
            raise UnsupportedError("E4780", what, where=where, hint=hint)


def _goes_on(body: onnx.GraphProto, outer: KnownConstants) -> bool:
    """Is the condition true behind the body wherever it is before?"""
    hidden = {name for node in body.node for name in node.output} | {value.name for value in body.input}
    own = KnownConstants(outer.opset, outer=outer, hidden=frozenset(hidden))
    for tensor in body.initializer:
        own.add(tensor.name, tensor)
    own.values[body.input[CONDITION].name] = np.array(True)
    for node in body.node:
        own.node(node)
    value = own.get(body.output[0].name)
    return value is not None and bool(value.all())
