"""Models of one operator with random constants, for `rate`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]


def qdq_model(
    op: onnx.NodeProto,
    shapes: Sequence[Sequence[int]],
    scales: Sequence[float],
    zeros: Sequence[int],
    out: tuple[float, int],
    extra: Sequence[onnx.NodeProto] = (),
    constants: Sequence[onnx.TensorProto] = (),
    unsigned: bool = False,
) -> onnx.ModelProto:
    """``int8 inputs -> DQ -> op -> Q -> int8 output``; inputs a, b, ... feed the node's inputs of these names."""
    dtype, kind = (np.uint8, TensorProto.UINT8) if unsigned else (np.int8, TensorProto.INT8)
    nodes, initial, values = [], list(constants), []
    for name, shape, scale, zero in zip("ab", shapes, scales, zeros, strict=False):
        values.append(helper.make_tensor_value_info(name + "_q", kind, list(shape)))
        initial += [
            numpy_helper.from_array(np.array(scale, np.float32), name + "_s"),
            numpy_helper.from_array(np.array(zero, dtype), name + "_z"),
        ]
        nodes.append(helper.make_node("DequantizeLinear", [name + "_q", name + "_s", name + "_z"], [name]))
    initial += [
        numpy_helper.from_array(np.array(out[0], np.float32), "y_s"),
        numpy_helper.from_array(np.array(out[1], dtype), "y_z"),
    ]
    nodes += [*extra, op, helper.make_node("QuantizeLinear", ["y", "y_s", "y_z"], ["y_q"])]
    graph = helper.make_graph(
        nodes, op.op_type, values, [helper.make_tensor_value_info("y_q", kind, [None] * len(shapes[0]))], initial
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _scale(rng: np.random.Generator, powers: bool, low: int = -7, high: int = -3) -> float:
    return float(2.0 ** rng.integers(low, high)) if powers else float(np.float32(2.0 ** rng.uniform(low, high)))


def _binary(op_type: str, rng: np.random.Generator, powers: bool) -> onnx.ModelProto:
    shape = [1, 16, 16, 16]
    scales = [_scale(rng, powers), _scale(rng, powers)]
    out = (_scale(rng, powers), int(rng.integers(-20, 20)))
    if op_type == "Mul":
        out = (_scale(rng, powers, -8, -4), out[1])
    node = helper.make_node(op_type, ["a", "b"], ["y"], name=op_type)
    return qdq_model(node, [shape, shape], scales, [int(z) for z in rng.integers(-100, 100, 2)], out)


def _pool(op_type: str, rng: np.random.Generator, powers: bool, equal: bool = False) -> onnx.ModelProto:
    scale = _scale(rng, powers)
    attributes: dict[str, Any] = {} if op_type.startswith("Global") else {"kernel_shape": [2, 2], "strides": [2, 2]}
    size = int(rng.integers(5, 9)) if op_type.startswith("Global") else 32
    node = helper.make_node(op_type, ["a"], ["y"], name=op_type, **attributes)
    zero = int(rng.integers(-100, 100))
    out = (scale, zero) if equal else (_scale(rng, powers), int(rng.integers(-20, 20)))
    channels = 256 if op_type.startswith("Global") else 16
    return qdq_model(node, [[1, channels, size, size]], [scale], [zero], out)


def _weights(
    q: Array, scale: Array, bias: Array, x_scale: float
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    bias_scale = (np.float32(x_scale) * scale).astype(np.float32)
    constants = [
        numpy_helper.from_array(array, name)
        for name, array in (
            ("w_q", q.astype(np.int8)),
            ("w_s", scale),
            ("w_z", np.zeros(scale.shape, np.int8)),
            ("c_q", bias.astype(np.int32)),
            ("c_s", bias_scale),
            ("c_z", np.zeros(scale.shape, np.int32)),
        )
    ]
    nodes = [helper.make_node("DequantizeLinear", [f"{n}_q", f"{n}_s", f"{n}_z"], [n], axis=0) for n in "wc"]
    return nodes, constants


def _other_bias(
    rng: np.random.Generator, form: str, real: Array, extra: list[onnx.NodeProto], constants: list[onnx.TensorProto]
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    """The constants of `_weights` with another bias: of about the values `real`, in float, or int8 with a grid of its
    own."""
    nodes, kept = extra[:1], [tensor for tensor in constants if not tensor.name.startswith("c_")]
    values = (real * rng.uniform(0.9, 1.1, real.shape)).astype(np.float32)
    if form == "float":
        return nodes, [*kept, numpy_helper.from_array(values, "c")]
    scale, zero = np.float32(np.abs(values).max() / 100), np.int8(3)
    q = np.clip(np.rint(values / scale) + zero, -128, 127).astype(np.int8)
    parts = {"c_q": q, "c_s": np.array(scale), "c_z": np.array(zero)}
    nodes.append(helper.make_node("DequantizeLinear", [*parts], ["c"]))
    return nodes, kept + [numpy_helper.from_array(array, name) for name, array in parts.items()]


def _conv(rng: np.random.Generator, powers: bool, groups: int = 1, bias: str = "") -> onnx.ModelProto:
    channels = 16
    q = rng.integers(-128, 128, (channels, channels // groups, 3, 3))
    x_scale = _scale(rng, powers)
    scale = np.array([_scale(rng, powers, -9, -5) for _ in range(channels)], np.float32)
    integers = rng.integers(-2000, 2000, channels)
    extra, constants = _weights(q, scale, integers, x_scale)
    if bias:
        extra, constants = _other_bias(rng, bias, integers * x_scale * scale, extra, constants)
    node = helper.make_node(
        "Conv", ["a", "w", "c"], ["y"], name="Conv", pads=[1, 0, 1, 2], strides=[1, 2], group=groups
    )
    return qdq_model(
        node,
        [[1, channels, 24, 24]],
        [x_scale],
        [int(rng.integers(0, 256))],
        (_scale(rng, powers, -1, 3), int(rng.integers(0, 256))),
        extra,
        constants,
        unsigned=True,
    )


def _gemm(rng: np.random.Generator, powers: bool, bias: str = "") -> onnx.ModelProto:
    q, x_scale = rng.integers(-128, 128, (512, 64)), _scale(rng, powers)
    scale = np.array(_scale(rng, powers, -9, -5), np.float32)
    integers = rng.integers(-2000, 2000, 512)
    extra, constants = _weights(q, scale, integers, x_scale)
    for node in extra:
        del node.attribute[:]
    constants = [tensor for tensor in constants if tensor.name != "c_s"]
    constants.append(numpy_helper.from_array(np.array(np.float32(x_scale) * scale, np.float32), "c_s"))
    if bias:
        extra, constants = _other_bias(rng, bias, integers * x_scale * scale, extra, constants)
    node = helper.make_node("Gemm", ["a", "w", "c"], ["y"], name="Gemm", transB=1)
    return qdq_model(
        node,
        [[1, 64]],
        [x_scale],
        [int(rng.integers(0, 256))],
        (_scale(rng, powers, -1, 3), int(rng.integers(0, 256))),
        extra,
        constants,
        unsigned=True,
    )


CASES = {
    "Conv": _conv,
    "Conv, depthwise": lambda rng, powers: _conv(rng, powers, 16),
    "Gemm": _gemm,
    "Conv, float bias": lambda rng, powers: _conv(rng, powers, bias="float"),
    "Conv, int8 bias": lambda rng, powers: _conv(rng, powers, bias="int8"),
    "Gemm, float bias": lambda rng, powers: _gemm(rng, powers, "float"),
    "Gemm, int8 bias": lambda rng, powers: _gemm(rng, powers, "int8"),
    "Add": lambda rng, powers: _binary("Add", rng, powers),
    "Mul": lambda rng, powers: _binary("Mul", rng, powers),
    "AveragePool 2x2": lambda rng, powers: _pool("AveragePool", rng, powers),
    "AveragePool 2x2, equal scales": lambda rng, powers: _pool("AveragePool", rng, powers, True),
    "GlobalAveragePool": lambda rng, powers: _pool("GlobalAveragePool", rng, powers),
    "GlobalAveragePool, equal scales": lambda rng, powers: _pool("GlobalAveragePool", rng, powers, True),
}
"""Operators of `rates`: each makes a model with random constants."""
