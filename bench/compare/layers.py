"""`layers`: a network as plain data, for tools that know nothing of this project."""

from typing import Any

from onnxhw.ir.graph import Add, AveragePool, Conv, Graph, Reshape

Layer = dict[str, Any]


def layers(graph: Graph) -> list[Layer]:
    """The input, then the operations in order; shapes without the batch, (channels, height, width).

    `kind` is "input", "conv" (dense layers, too), "add", "average" or the operation's class. Reshapes are left out:
    where one is read, what it reads is named.
    """
    (port,) = graph.inputs
    found: list[Layer] = [{"kind": "input", "output": port.tensor, "shape": graph.tensors[port.tensor].shape[1:]}]
    same: dict[str, str] = {}
    for op in graph.ops:
        inputs = [same.get(name, name) for name in op.inputs]
        y = graph.tensors[op.output]
        if isinstance(op, Reshape):
            same[op.output] = inputs[0]
            continue
        layer: Layer = {"kind": type(op).__name__, "name": op.name, "inputs": inputs, "output": op.output}
        layer.update(shape=y.shape[1:], input_shape=graph.tensors[inputs[0]].shape[1:])
        if isinstance(op, Conv):
            layer.update(kind="conv", weight=op.weight.shape, pads=op.pads, strides=op.strides, groups=op.groups)
            layer["relu"] = op.lo == y.zero_point
        elif isinstance(op, Add):
            layer["kind"] = "add"
        elif isinstance(op, AveragePool):
            layer.update(kind="average", kernel=op.kernel)
        found.append(layer)
    return found
