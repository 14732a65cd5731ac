"""`host_parts`: the ONNX model of each stage of host nodes."""

from math import prod

import numpy as np
import onnx
from onnx import numpy_helper

from ..convert.conversion import Conversion
from ..convert.values import Const, QuantConst
from ..errors import UnsupportedError
from ..ir.parts import HostPart
from ..onnxfile.large_constants import LEAST, outline
from .stages import KINDS, Stages

OLDEST_IR = 4
"""Since this IR version an initializer need not be an input."""


def host_parts(made: Conversion, found: Stages, runnable: bool = True) -> dict[int, HostPart]:
    """The host part of each stage of host nodes; constants that are outputs of the model come from stage 0.

    Unless they shall be `runnable`, large constants have no data there. `LimitError` E3116, `UnsupportedError` E4402 if
    the constants are too large.
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
    held = _Constants(made, runnable)
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
        held.enter(graph)
        inputs: dict[str, None] = {}
        for index in indices:
            for name in host.operands[index]:
                if name in own:
                    continue
                if _is_constant(made, name):
                    if not held.again(name):
                        held.fill(graph.initializer.add(), name)
                    own.add(name)
                else:
                    inputs[name] = None
            own.update(host.nodes[index].output)
        if stage == 0:
            for name in constants:
                if name not in own and not held.again(name):
                    node = graph.node.add(op_type="Constant", output=[name])
                    value = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
                    held.fill(value.t, name)
        graph.node.extend(host.nodes[index].proto for index in indices)
        results = [name for index in indices for name in host.nodes[index].output if name in wanted]
        results += constants if stage == 0 else []
        graph.input.extend(types.get(name, onnx.ValueInfoProto(name=name)) for name in inputs)
        graph.output.extend(types.get(name, onnx.ValueInfoProto(name=name)) for name in results)
        inner = dict.fromkeys(name for index in indices for name in host.nodes[index].output if name in types)
        graph.value_info.extend(types[name] for name in inner if name not in results)
        names = tuple(host.nodes[index].label for index in indices)
        parts[stage] = HostPart(tuple(inputs), tuple(results), serialized(part), names)
    return parts


class _Constants:
    """The constants of host parts. A large one, which several names may have, is in a part once; all parts together
    hold no more than `Limits.total_bytes`: `LimitError` E3116, before any is copied."""

    def __init__(self, made: Conversion, runnable: bool) -> None:
        self.made, self.runnable, self.total = made, runnable, 0
        self.initializers = {tensor.name: tensor for tensor in made.static.model.graph.initializer}

    def enter(self, graph: onnx.GraphProto) -> None:
        """Begin with the graph of another part."""
        self.graph, self.names = graph, dict[int, str]()

    def again(self, name: str) -> bool:
        """Is it in the part by another name? Then it is now the Identity of that one."""
        value = self.made.context.values[name]
        size = value.array.nbytes if isinstance(value, Const) else prod(value.shape or ()) * 4
        if size < LEAST:
            return False
        kept = value.array if isinstance(value, Const) else value
        first = self.names.setdefault(id(kept), name)
        if first != name:
            self.graph.node.add(op_type="Identity", input=[first], output=[name])
            return True
        self.total += size
        what = "constants of nodes on the host, those of each host part in its own copy, have bytes:"
        self.made.context.limits.check("E3116", "total_bytes", self.total, what)
        return False

    def fill(self, tensor: onnx.TensorProto, name: str) -> None:
        """Make the tensor this constant."""
        large_constants = self.made.static.large_constants
        if name in self.initializers:
            tensor.CopyFrom(self.initializers[name] if self.runnable else outline(self.initializers[name]))
            if self.runnable and name in large_constants.data:
                tensor.raw_data = large_constants.data[name]
            return
        value = self.made.context.values[name]
        assert isinstance(value, (Const, QuantConst))
        tensor.name = name
        tensor.dims.extend(value.shape)
        kind = value.array.dtype if isinstance(value, Const) else np.dtype(np.float32)
        if not self.runnable and prod(value.shape) * kind.itemsize >= LEAST:
            tensor.data_type = onnx.helper.np_dtype_to_tensor_dtype(kind)
            return
        array = value.array if isinstance(value, Const) else value.real()
        tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))


def serialized(part: onnx.ModelProto) -> bytes:
    """The part's bytes; `UnsupportedError` E4402 if they are too many for protobuf."""
    try:
        return bytes(part.SerializeToString(deterministic=True))
    except Exception as error:  # protobuf's implementations raise different ones
        raise UnsupportedError(
            "E4402",
            "constants of nodes on the host take more than the 2 GiB of a protobuf message",
            where=part.graph.name,
            hint="use smaller constants, or several of them with operators of the hardware between",
        ) from error


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

