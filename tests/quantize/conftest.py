"""Small float networks, each with what a quantizer can stumble over, and onnxruntime's kernel of a convolution."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw.ir.graph import Conv, Graph


class Net:
    """A float network of one input under construction; methods add a node and give the name of its result."""

    def __init__(self, shape: list[int], seed: int = 1, opset: int = 17) -> None:
        self.rng, self.opset, self.shape = np.random.default_rng(seed), opset, shape
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, value: Any) -> str:
        """An initializer; arrays keep their type, other numbers are float32."""
        array = value if isinstance(value, np.ndarray) else np.array(value, np.float32)
        self.constants.append(numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def random(self, *shape: int, scale: float = 1.0, shift: float = 0.0) -> str:
        """An initializer of normal float32 numbers."""
        return self.constant((self.rng.normal(size=shape) * scale + shift).astype(np.float32))

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """A node of any operator."""
        names = [f"{op.lower()}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=names[0], **attributes))
        return names[0] if outputs == 1 else names

    def conv(
        self, x: str, outputs: int, inputs: int, kernel: tuple[int, ...] = (3, 3), bias: bool = True, **attributes: Any
    ) -> str:
        """A Conv of random weights; `inputs` are those of a group."""
        size = inputs * int(np.prod(kernel))
        parts = [self.random(outputs, inputs, *kernel, scale=size**-0.5)]
        parts += [self.random(outputs, scale=0.3)] if bias else []
        return self.add("Conv", x, *parts, kernel_shape=kernel, **attributes)

    def normalization(self, x: str, channels: int) -> str:
        """A BatchNormalization."""
        parts = [self.random(channels, shift=1), self.random(channels), self.random(channels)]
        variance = self.constant(self.rng.uniform(0.3, 2, channels).astype(np.float32))
        return self.add("BatchNormalization", x, *parts, variance)

    def model(self, *outputs: str, shape: list[int] | None = None) -> onnx.ModelProto:
        """The checked model; `shape` of the input may have a symbolic batch."""
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape or self.shape)],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self.constants,
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        made = onnx.shape_inference.infer_shapes(made)
        onnx.checker.check_model(made, full_check=True)
        return made


def _relu() -> onnx.ModelProto:
    net = Net([1, 3, 10, 9])
    y = net.add("Relu", net.conv("x", 8, 3, pads=[1, 1, 1, 1], strides=[2, 2]))
    return net.model(net.conv(y, 5, 8, (1, 1)))


def _depthwise_clip6() -> onnx.ModelProto:
    net = Net([1, 4, 9, 9])
    y = net.add("Clip", net.conv("x", 4, 1, group=4, pads=[1, 1, 1, 1]), net.constant(0.0), net.constant(6.0))
    y = net.add("Clip", net.conv(y, 6, 4, (1, 1)), net.constant(0.0), net.constant(6.0))
    return net.model(net.add("GlobalAveragePool", y))


def _residual() -> onnx.ModelProto:
    net = Net([1, 4, 8, 8])
    a = net.add("Relu", net.conv("x", 6, 4, pads=[1, 1, 1, 1]))
    b = net.conv(a, 6, 6, pads=[1, 1, 1, 1])
    y = net.add("Relu", net.add("Add", a, b))
    return net.model(net.conv(y, 3, 6, (8, 8)))


def _normalized() -> onnx.ModelProto:
    net = Net([1, 3, 8, 8])
    y = net.add("Relu", net.normalization(net.conv("x", 6, 3, bias=False), 6))
    y = net.normalization(net.conv(y, 4, 6), 4)
    return net.model(net.add("Relu", y))


def _normalization_alone() -> onnx.ModelProto:
    net = Net([1, 4, 8, 8])
    y = net.add("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2])
    y = net.add("Relu", net.normalization(y, 4))
    return net.model(net.conv(y, 4, 4))


def _channel_arithmetic() -> onnx.ModelProto:
    net = Net([1, 3, 8, 8])
    y = net.add("Div", net.add("Sub", "x", net.random(1, 3, 1, 1)), net.random(3, 1, 1, shift=4))
    y = net.add("Mul", net.conv(y, 5, 3), net.random(1, 5, 1, 1))
    y = net.add("Add", net.random(5, 1, 1), y)
    return net.model(net.add("Sub", net.constant(0.5), net.conv(net.add("Relu", y), 4, 5)))


def _pools() -> onnx.ModelProto:
    net = Net([1, 4, 12, 12])
    y = net.add("Relu", net.conv("x", 4, 4))
    y = net.add("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    y = net.add("AveragePool", y, kernel_shape=[2, 2], pads=[0, 0, 1, 1], strides=[2, 2])
    y = net.add("Flatten", y)
    return net.model(net.add("Gemm", y, net.random(3, 36, scale=0.2), net.random(3), transB=1))


def _concat() -> onnx.ModelProto:
    net = Net([1, 3, 8, 8])
    a, b = net.add("Relu", net.conv("x", 4, 3, (1, 1))), net.conv("x", 5, 3, (1, 1))
    return net.model(net.conv(net.add("Concat", a, b, axis=1), 3, 9))


def _one_dimension() -> onnx.ModelProto:
    net = Net([1, 3, 20])
    y = net.add("Relu", net.conv("x", 6, 3, (5,), pads=[2, 2]))
    y = net.add("MaxPool", y, kernel_shape=[2], strides=[2])
    y = net.normalization(net.conv(y, 4, 6, (3,)), 4)
    return net.model(net.add("Flatten", net.add("GlobalAveragePool", y)))


def _gemms() -> onnx.ModelProto:
    net = Net([1, 16])
    y = net.add("Relu", net.add("Gemm", "x", net.random(16, 12, scale=0.3), net.random(12), alpha=0.5, beta=2.0))
    y = net.add("Relu", net.add("Gemm", y, net.random(10, 12, scale=0.3), transB=1))
    y = net.add("Add", net.add("MatMul", y, net.random(10, 8, scale=0.3)), net.random(8))
    return net.model(net.add("Softmax", net.add("MatMul", net.add("Relu", y), net.random(8, 4)), axis=-1))


def _functions() -> onnx.ModelProto:
    net = Net([1, 3, 6, 6])
    y = net.add("Sigmoid", net.conv("x", 4, 3))
    z = net.add("Mul", y, net.conv(y, 4, 4, (1, 1)))
    z = net.add("LeakyRelu", net.conv(z, 4, 4, (1, 1)), alpha=0.2)
    return net.model(net.add("Tanh", net.conv(z, 2, 4, (1, 1))))


def _two_heads() -> onnx.ModelProto:
    net = Net([1, 3, 8, 8])
    y = net.add("Relu", net.conv("x", 4, 3))
    return net.model(y, net.conv(y, 2, 4, (1, 1)))


def _dead_channels() -> onnx.ModelProto:
    net = Net([1, 3, 8, 8])
    y = net.add("Relu", net.conv("x", 4, 3))
    weight = net.rng.normal(size=(4, 4, 3, 3)).astype(np.float32)
    weight[1] = 0
    weight[2] *= 1e-12
    bias = np.array([100, 3.7, -2.2, 1e-9], np.float32)
    y = net.add("Conv", y, net.constant(weight), net.constant(bias))
    return net.model(net.conv(y, 2, 4, (1, 1)))


NETS: dict[str, Callable[[], onnx.ModelProto]] = {
    "relu": _relu,
    "depthwise, clip 6": _depthwise_clip6,
    "residual": _residual,
    "batch normalization": _normalized,
    "batch normalization alone": _normalization_alone,
    "arithmetic per channel": _channel_arithmetic,
    "pools": _pools,
    "concat": _concat,
    "one dimension": _one_dimension,
    "gemm and matmul": _gemms,
    "functions": _functions,
    "two heads": _two_heads,
    "dead channels": _dead_channels,
}


@pytest.fixture(params=NETS.values(), ids=list(NETS))
def net(request: pytest.FixtureRequest) -> onnx.ModelProto:
    """Each of the networks."""
    model: onnx.ModelProto = request.param()
    return model


@pytest.fixture(scope="session")
def make_net() -> type[Net]:
    """The builder."""
    return Net


@pytest.fixture(scope="session")
def draw() -> Callable[[onnx.ModelProto, int], list[dict[str, np.ndarray]]]:
    """Random feeds of a network of one input."""

    def drawn(model: onnx.ModelProto, count: int = 12) -> list[dict[str, np.ndarray]]:
        value = model.graph.input[0]
        shape = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
        rng = np.random.default_rng(7)
        return [{value.name: rng.normal(size=shape).astype(np.float32)} for _ in range(count)]

    return drawn


@pytest.fixture(scope="session")
def integer_kernel() -> Callable[..., Callable[[np.ndarray], np.ndarray]]:
    """A convolution of the integer graph as onnxruntime's QLinearConv.

    Values and weights are moved to uint8 (+ 128): no x86 kernel saturates that pair, with or without VNNI. Called with
    the QDQ model, its graph and the operation; the result takes and gives int8 arrays.
    """
    ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install onnxhw[ort])")

    def lift(q: Any) -> np.ndarray:
        return (np.asarray(q).astype(np.int16) + 128).astype(np.uint8)

    def make(model: onnx.ModelProto, graph: Graph, op: Conv) -> Callable[[np.ndarray], np.ndarray]:
        arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        makers = {name: node for node in model.graph.node for name in node.output}
        node = next(node for node in model.graph.node if node.name == op.nodes[0])
        x, y = graph.tensors[op.inputs[0]], graph.tensors[op.output]
        constants = {
            "xs": np.float32(x.scale),
            "xz": lift(x.zero_point),
            "w": lift(op.weight),
            "ws": arrays[makers[node.input[1]].input[1]],
            "wz": np.full(len(op.weight), 128, np.uint8),
            "ys": np.float32(y.scale),
            "yz": lift(y.zero_point),
            "b": op.bias,
        }
        attributes = {"strides": op.strides, "pads": op.pads, "dilations": op.dilations, "group": op.groups}
        body = helper.make_graph(
            [helper.make_node("QLinearConv", ["x", *constants], ["y"], **attributes)],
            "kernel",
            [helper.make_tensor_value_info("x", TensorProto.UINT8, None)],
            [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
        )
        made = helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        return lambda q: (session.run(["y"], {"x": lift(q)})[0].astype(np.int16) - 128).astype(np.int8)

    return make
