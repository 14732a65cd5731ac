"""`layers`: a network as plain data, for tools that know nothing of this project."""

from typing import Any

from onnxhw.ir.graph import Add, AveragePool, Conv, Graph

Layer = dict[str, Any]


def layers(graph: Graph) -> list[Layer]:
    """The input, then the operations in order; shapes without the batch, (channels, height, width).

    `kind` is "input", "conv" (dense layers, too), "add", "average" or the operation's class.
    """
    (port,) = graph.inputs
    found: list[Layer] = [{"kind": "input", "output": port.tensor, "shape": graph.tensors[port.tensor].shape[1:]}]
    for op in graph.ops:
        y = graph.tensors[op.output]
        layer: Layer = {"kind": type(op).__name__, "name": op.name, "inputs": op.inputs, "output": op.output}
        layer.update(shape=y.shape[1:], input_shape=graph.tensors[op.inputs[0]].shape[1:])
        if isinstance(op, Conv):
            layer.update(kind="conv", weight=op.weight.shape, pads=op.pads, strides=op.strides, groups=op.groups)
            layer["relu"] = op.lo == y.zero_point
        elif isinstance(op, Add):
            layer["kind"] = "add"
        elif isinstance(op, AveragePool):
            layer.update(kind="average", kernel=op.kernel)
        found.append(layer)
    return found
