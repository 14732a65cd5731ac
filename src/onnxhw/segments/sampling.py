"""`sampled`: 1 x 1 convolutions with strides read pixels that were picked before.

    Conv 1 x 1, strides 2 (x)        Conv 1 x 1 (Copy of every second pixel of x)

The convolution needs a part of its operand's pixels, but boxes hold all: a segment would load four times what it
reads, and keep it on chip. The picked pixels are a tensor of their own, often small enough to stay there while weights
come. ResNet-50 has four such layers.
"""

from collections.abc import Container
from dataclasses import replace
from typing import Any

from ..ir.graph import Graph, Op
from ..ir.ops.movement import Copy, Piece


def sampled(graph: Graph) -> Graph:
    """The graph with a Copy before each 1 x 1 convolution that has strides, one for all that pick the same pixels."""
    tensors, ops, picked = dict(graph.tensors), list[Op](), dict[tuple[str, tuple[int, int]], str]()
    for op in graph.ops:
        if _samples(op):
            key = op.inputs[0], op.window.strides
            if key not in picked:
                copy = _picked(op, graph, _unused(f"{op.output}.pixels", tensors))
                y = graph.tensors[op.output]
                shape = (*tensors[op.inputs[0]].shape[:2], y.height, y.width)
                tensors[copy.output] = replace(tensors[op.inputs[0]], name=copy.output, shape=shape)
                ops.append(copy)
                picked[key] = copy.output
            dense: dict[str, Any] = {"strides": (1, 1)}  # a field of convolutions
            op = replace(op, inputs=(picked[key],), **dense)
        ops.append(op)
    return replace(graph, tensors=tensors, ops=ops)


def _samples(op: Op) -> bool:
    """Whether an operation is a 1 x 1 convolution that reads a part of the pixels."""
    if not op.weight.size or op.channelwise or len(op.inputs) != 1:
        return False
    window = op.window
    return window.kernel == (1, 1) and window.strides != (1, 1) and not any(window.pads)


def _unused(name: str, tensors: Container[str]) -> str:
    """The name, with an apostrophe for each tensor of a model that has it already."""
    while name in tensors:
        name += "'"
    return name


def _picked(op: Op, graph: Graph, name: str) -> Copy:
    (x,), y, (down, across) = graph.operands(op), graph.tensors[op.output], op.window.strides
    piece = Piece(0, 0, down * x.width, across, y.height, y.width)
    return Copy(f"{op.name}.pixels", (x.name,), name, op.nodes, (piece,))
