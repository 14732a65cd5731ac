"""Small quantized networks for the tests of complaints, and ways to run them."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw import golden, sched
from onnxhw.cli import main
from onnxhw.partition import load
from onnxhw.presets import preset
from onnxhw.program import container
from onnxhw.program.parts import Program

MINI = preset("mini")
QONNX = "qonnx.custom_op.general"
S = np.float32(0.125)
Array = npt.NDArray[Any]


class Net:
    """Nodes over constants; every quantized value is on the grid 0.125, 0."""

    def __init__(self, shape: Sequence[int] = (1, 4, 4, 4), name: str = "x") -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))]

    def const(self, array: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op_type: str, *operands: Any, domain: str = "", output: str = "", **attributes: Any) -> str:
        names = [x if isinstance(x, str) else self.const(x) for x in operands]
        result = output or f"v{len(self.nodes)}"
        label = f"{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, names, [result], name=label, domain=domain, **attributes))
        return result

    def grid(self, x: str, scale: Any = S, zero: int = 0) -> str:
        q = self.node("QuantizeLinear", x, np.float32(scale), np.int8(zero))
        return self.node("DequantizeLinear", q, np.float32(scale), np.int8(zero))

    def conv(self, x: str, weight: Array, scale: Any = S, **attributes: Any) -> str:
        return self.node("Conv", x, self.node("DequantizeLinear", weight, np.float32(scale), np.int8(0)), **attributes)

    def model(self, *outputs: str, opset: int = 17, ir: int = 8, kind: int = TensorProto.FLOAT) -> onnx.ModelProto:
        infos = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "net", self.inputs, infos, self.constants)
        imports = [helper.make_opsetid("", opset)]
        imports += [helper.make_opsetid(domain, 1) for domain in sorted({node.domain for node in self.nodes} - {""})]
        return helper.make_model(graph, opset_imports=imports, ir_version=ir)


def weights(*shape: int, seed: int = 3) -> Array:
    return np.random.default_rng(seed).integers(-8, 8, shape).astype(np.int8)


def draw(shape: Sequence[int] = (1, 4, 4, 4), seed: int = 0) -> Array:
    return (np.random.default_rng(seed).integers(-140, 140, shape) / 8).astype(np.float32)


def through(*op_types: str, domain: str = "") -> onnx.ModelProto:
    """A convolution, some other operators, and a convolution again."""
    net = Net()
    x = net.grid(net.conv(net.grid("x"), weights(4, 4, 1, 1)))
    for op_type in op_types:
        x = net.grid(net.node(op_type, x, domain=domain))
    return net.model(net.grid(net.conv(x, weights(4, 4, 1, 1))))


def program_of(model: onnx.ModelProto) -> bytes:
    return container.dumps(Program.of(sched.schedule(load(model.SerializeToString()), MINI)))


def run_golden(model: onnx.ModelProto, feeds: dict[str, Array]) -> dict[str, Array]:
    """The hardware's integers: the model must be all hardware."""
    graph = load(model.SerializeToString())
    return golden.host.finish(graph, golden.run(graph, golden.host.prepare(graph, feeds)))


def json_of(capsys: pytest.CaptureFixture[str], *words: object, status: int = 0) -> Any:
    assert main([*map(str, words), "--json", "-q"]) == status
    return json.loads(capsys.readouterr().out)
