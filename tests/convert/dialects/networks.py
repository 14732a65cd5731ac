"""Few-bit networks as QONNX exporters write them, and QONNX's own meaning of them in numpy, float32 node by node.

The topologies are those of the public ones: TFC (784-64-64-64-10), KWS MLP (490-256-256-256-12), UNSW-NB15
(593-64-64-64-1) and the first blocks of CNV.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

F = np.float32
Floats = npt.NDArray[np.float32]
DOMAINS = ("qonnx.custom_op.general", "finn.custom_op.general", "onnx.brevitas")


class Network:
    """A chain of nodes; `at` is the value that the next one reads."""

    def __init__(self, shape: Sequence[int], domain: str = DOMAINS[0], seed: int = 0, exact: bool = True) -> None:
        self.rng, self.domain, self.exact = np.random.default_rng(seed), domain, exact
        self.shape, self.nodes, self.initializers = list(shape), list[onnx.NodeProto](), list[onnx.TensorProto]()
        self.at = "x"

    def const(self, array: Any) -> str:
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, op_type: str, *more: Any, domain: str = "", at: str = "", **attributes: Any) -> "Network":
        """A node on `at` (or the current value); arrays among `more` become constants."""
        name = f"{op_type}_{len(self.nodes)}"
        names = [value if isinstance(value, str) else self.const(value) for value in more]
        inputs = [at or self.at, *names]
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=name, domain=domain, **attributes))
        self.at = name
        return self

    def quant(self, bits: int, scale: float | Floats = 0.25, at: str = "", **attributes: Any) -> "Network":
        """Quant, or BipolarQuant for one signed bit."""
        scale = np.asarray(scale, F)
        if bits == 1 and attributes.get("signed", 1):
            return self.op("BipolarQuant", scale, domain=self.domain, at=at)
        found = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND", **attributes}
        return self.op("Quant", scale, F(0), F(bits), domain=self.domain, at=at, **found)

    def scale(self) -> float:
        """Of weights: a power of two, with which float32 sums are exact, or any."""
        return float(2.0 ** -self.rng.integers(2, 6)) if self.exact else float(self.rng.uniform(0.02, 0.2))

    def dense(self, inputs: int, outputs: int, bits: int, transposed: bool = True) -> "Network":
        """MatMul with quantized weights, transposed at run time, as PyTorch's exporter writes it."""
        here, scale = self.at, self.scale()
        weight = (self.rng.normal(size=(outputs, inputs)) * scale * (1 << bits) / 3).astype(F)
        weight = weight if transposed else np.ascontiguousarray(weight.T)
        self.quant(bits, scale, self.const(weight), narrow=1)
        if transposed:
            self.op("Transpose", perm=[1, 0])
        return self.op("MatMul", self.at, at=here)

    def conv(self, inputs: int, outputs: int, bits: int, kernel: int = 3, **attributes: Any) -> "Network":
        here, scale = self.at, self.scale()
        weight = (self.rng.normal(size=(outputs, inputs, kernel, kernel)) * scale * (1 << bits) / 3).astype(F)
        self.quant(bits, scale, self.const(weight), narrow=1)
        return self.op("Conv", self.at, at=here, kernel_shape=[kernel, kernel], **attributes)

    def norm(self, channels: int, spread: float, negative: float = 0.25) -> "Network":
        """BatchNormalization of values of this spread; a part of the slopes is negative."""
        rng = self.rng
        slope = rng.uniform(0.3, 2, channels) * np.where(rng.random(channels) < negative, -1, 1)
        return self.op(
            "BatchNormalization", slope.astype(F), rng.normal(size=channels).astype(F) / F(4),
            (rng.normal(size=channels) * spread / 4).astype(F), (spread**2 * rng.uniform(0.5, 2, channels)).astype(F),
        )  # fmt: skip

    def model(self, outputs: Sequence[int], opset: int = 11, second: str = "") -> onnx.ModelProto:
        entries = [helper.make_tensor_value_info(self.at, TensorProto.FLOAT, list(outputs))]
        if second:
            entries = [helper.make_tensor_value_info(second, TensorProto.INT64, None)]
        value = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        graph = helper.make_graph(self.nodes, "network", [value], entries, self.initializers)
        imports = [helper.make_opsetid("", opset), helper.make_opsetid(self.domain, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


def tfc(
    weights: int, activations: int, domain: str = DOMAINS[0], exact: bool = True, opset: int = 11
) -> onnx.ModelProto:
    """TFC: an image of 0 .. 1, bipolar or of few bits, and a normalization of the logits."""
    made = Network([1, 1, 28, 28], domain, 10 * weights + activations, exact)
    made.op("Reshape", np.array([1, 784], np.int64))
    made.op("Mul", F(2)).op("Sub", F(1)).quant(activations, 0.5)
    inputs = 784
    for outputs in (64, 64, 64):
        made.dense(inputs, outputs, weights).norm(outputs, 0.5 * inputs**0.5 * 0.1)
        made.quant(activations, 0.5, narrow=1)
        inputs = outputs
    made.dense(64, 10, weights)
    made.op("Sub", F(0.37)).op("Div", F(1.7)).op("Mul", F(0.9)).op("Add", F(-0.2))
    return made.model([1, 10], opset)


def kws(domain: str = DOMAINS[0], exact: bool = True) -> onnx.ModelProto:
    """The keyword network of 3 bits: an 8-bit input, Relu, and the class as the result."""
    made = Network([1, 490], domain, 33, exact)
    made.quant(8, 0.0625)
    inputs, spread = 490, 10.0
    for outputs in (256, 256, 256):
        made.dense(inputs, outputs, 3).norm(outputs, spread, 0.1).op("Relu").quant(3, 0.25, signed=0)
        inputs, spread = outputs, 2.0
    made.dense(256, 12, 3).op("Add", (made.rng.normal(size=12) / 4).astype(F)).op("Mul", F(0.125))
    return made.model([1, 12])


def unsw(domain: str = DOMAINS[0], exact: bool = True) -> onnx.ModelProto:
    """The intrusion detector: bits in, weights and activations of two bits, one bipolar result."""
    made = Network([1, 593], domain, 5, exact)
    made.quant(1, 1.0)
    inputs = 593
    for outputs in (64, 64, 64):
        made.dense(inputs, outputs, 2, transposed=False)
        made.op("Mul", (made.rng.uniform(16, 64, (1, outputs)) / inputs**0.5).astype(F))
        made.op("Add", made.rng.normal(size=(outputs,)).astype(F))
        made.quant(2, 0.5, signed=0)
        inputs = outputs
    made.dense(64, 1, 2, transposed=False).op("Add", np.array([0.0], F)).quant(1, 1.0)
    return made.model([1, 1])


def cnv(domain: str = DOMAINS[0], bits: int = 1) -> onnx.ModelProto:
    """The first blocks of CNV, smaller: Conv, BatchNormalization, BipolarQuant, MaxPool."""
    made = Network([1, 3, 12, 12], domain, 7 + bits)
    made.quant(8, 0.0078125)
    made.conv(3, 16, bits).norm(16, 0.4).quant(bits, 0.5)
    made.conv(16, 16, bits).norm(16, 0.8).quant(bits, 0.5)
    made.op("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    made.conv(16, 24, bits, pads=[1, 1, 1, 1]).norm(24, 0.8).quant(bits, 0.5)
    made.op("Flatten").dense(24 * 16, 10, bits).op("Mul", F(0.25))
    return made.model([1, 10])


def float_run(model: onnx.ModelProto, x: Floats) -> dict[str, Any]:
    """Every value, by QONNX's formulas in float32. Shares nothing with the compiler."""
    values = {entry.name: numpy_helper.to_array(entry) for entry in model.graph.initializer}
    values["x"] = x
    for node in model.graph.node:
        a, *rest = (values[name] for name in node.input)
        found = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
        values[node.output[0]] = np.asarray(_node(node.op_type, a, rest, found))
    return values


def _node(op_type: str, a: Any, rest: Any, found: dict[str, Any]) -> Any:
    if op_type in ("Add", "Sub", "Mul", "Div", "MatMul"):
        functions = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "MatMul": np.matmul}
        return functions[op_type](a, rest[0], dtype=F)
    if op_type == "BipolarQuant":
        return np.where(a >= 0, rest[0], -rest[0]).astype(F)
    if op_type == "Quant":
        scale, _, bits = rest
        low = (-(2 ** (bits - 1)) + found["narrow"]) if found["signed"] else F(0)
        high = 2 ** (bits - 1) - 1 if found["signed"] else 2**bits - 1 - found["narrow"]
        mode = {b"ROUND": np.rint, b"FLOOR": np.floor, b"CEIL": np.ceil}[found["rounding_mode"]]
        return (mode(np.clip(a / scale, F(low), F(high))) * scale).astype(F)
    if op_type == "BatchNormalization":
        scale, bias, mean, variance = rest
        factor = (F(1) / np.sqrt(variance + F(1e-5))) * scale
        over = [1, -1] + [1] * (a.ndim - 2)
        return (a * factor.reshape(over) + (bias - mean * factor).reshape(over)).astype(F)
    if op_type == "Conv":
        pad = found.get("pads", [0])[0]
        seen = np.lib.stride_tricks.sliding_window_view(
            np.pad(a, [(0, 0), (0, 0), (pad, pad), (pad, pad)]), rest[0].shape[2:], axis=(2, 3)
        )
        return np.einsum("nchwij,ocij->nohw", seen, rest[0]).astype(F)
    if op_type == "MaxPool":
        return np.lib.stride_tricks.sliding_window_view(a, (2, 2), axis=(2, 3))[:, :, ::2, ::2].max(axis=(4, 5))
    simple = {"Relu": lambda: np.maximum(a, F(0)), "Transpose": lambda: a.T, "Flatten": lambda: a.reshape(len(a), -1),
              "Reshape": lambda: a.reshape(rest[0])}  # fmt: skip
    return simple[op_type]()
