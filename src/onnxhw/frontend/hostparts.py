"""`host_parts`: the ONNX model of each stage of host nodes."""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import numpy_helper

from ..ir.parts import HostPart
from .convert import Conversion
from .partition import KINDS, Stages
from .reading.apart import outline
from .values import Const, QuantConst

OLDEST_IR = 4
"""Since this IR version an initializer need not be an input."""


def host_parts(made: Conversion, found: Stages, runnable: bool = True) -> dict[int, HostPart]:
    """The host part of each stage of host nodes; constants that are outputs of the model come from stage 0.

    Unless they shall be `runnable`, large constants have no data there.
    """
    host, model = made.host, made.static.model
    staged: dict[int, list[int]] = {}
    for item in found.order:
        if isinstance(item, int):
            staged.setdefault(found.nodes[item], []).append(item)
    outputs = [value.name for value in model.graph.output]
    constants = [name for name in dict.fromkeys(outputs) if _is_constant(made, name)]
    if constants:
        staged.setdefault(0, [])
    wanted = _crossing(made, found, outputs)
    types = {
        value.name: value for value in [*model.graph.input, *model.graph.value_info, *model.graph.output] if value.name
    }
    whole = made.static.apart.whole if runnable else outline
    initializers = {tensor.name: tensor for tensor in model.graph.initializer}
    parts = {}
    for stage, indices in sorted(staged.items()):
        part = onnx.ModelProto(
            ir_version=max(model.ir_version, OLDEST_IR),
            producer_name="onnxhw",
            opset_import=model.opset_import,
            functions=model.functions,
        )
        graph = part.graph
        graph.name = f"{model.graph.name or 'model'}.host{stage // KINDS}"
        own: set[str] = set()
        inputs: dict[str, None] = {}
        for index in indices:
            for name in host.operands[index]:
                if name in own:
                    continue
                if _is_constant(made, name):
                    graph.initializer.append(whole(_tensor(made, initializers, name)))
                    own.add(name)
                else:
                    inputs[name] = None
            own.update(host.nodes[index].output)
        if stage == 0:
            graph.node.extend(
                onnx.helper.make_node("Constant", [], [name], value=whole(_tensor(made, initializers, name)))
                for name in constants
                if name not in own
            )
        graph.node.extend(host.nodes[index].proto for index in indices)
        results = [name for index in indices for name in host.nodes[index].output if name in wanted]
        results += constants if stage == 0 else []
        graph.input.extend(types.get(name, onnx.ValueInfoProto(name=name)) for name in inputs)
        graph.output.extend(types.get(name, onnx.ValueInfoProto(name=name)) for name in results)
        names = tuple(host.nodes[index].label for index in indices)
        parts[stage] = HostPart(tuple(inputs), tuple(results), part.SerializeToString(deterministic=True), names)
    return parts


def _crossing(made: Conversion, found: Stages, outputs: list[str]) -> set[str]:
    """Results of host nodes that something outside their own stage reads."""
    host = made.host
    stage = {name: found.nodes[index] for index in found.nodes for name in host.nodes[index].output if name}
    wanted = {name for name in outputs if name in stage}
    for item in found.order:
        if isinstance(item, int):
            here = found.nodes[item]
            wanted.update(name for name in host.operands[item] if stage.get(name, here) != here)
        else:
            wanted.update(found.fed[name] for name in item.inputs if found.fed.get(name) in stage)
    return wanted


def _is_constant(made: Conversion, name: str) -> bool:
    return (
        isinstance(made.context.values.get(name), (Const, QuantConst))
        and made.host.producer.get(name) not in made.host.hosted
    )


def _tensor(made: Conversion, initializers: Mapping[str, onnx.TensorProto], name: str) -> onnx.TensorProto:
    """The value of a constant, under its own name."""
    if name in initializers:
        return initializers[name]
    value = made.context.values[name]
    assert isinstance(value, (Const, QuantConst))
    array = value.array if isinstance(value, Const) else value.real()
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
