"""Each operator: golden equals onnxruntime on every element (scales are powers of two, so that float32 is exact)."""

from typing import Any

import numpy as np
import pytest

from onnxhw.ir.graph import Add, Conv, Mul, Table

from .quantized import RNG, S, T, conv, int8, kinds

CONVS: list[tuple[int, dict[str, Any]]] = [
    (1, {}),
    (1, {"pads": [1, 1, 1, 1]}),
    (1, {"pads": [0, 2, 1, 0], "strides": [2, 1]}),
    (1, {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
    (1, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    (1, {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    (1, {"auto_pad": "VALID", "dilations": [1, 2]}),
    (6, {"pads": [1, 1, 1, 1], "strides": [1, 2]}),
    (2, {"pads": [1, 0, 0, 1]}),
    (3, {"auto_pad": "SAME_UPPER"}),
]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("groups", "attributes"), CONVS)
def test_conv(model: Any, groups: int, attributes: dict[str, Any], bias: bool) -> None:
    x = model.input([1, 6, 9, 8], S, -17)
    y = conv(
        model,
        x,
        12,
        6 // groups,
        (3, 2) if "SAME" not in attributes.get("auto_pad", "") else (3, 3),
        bias,
        group=groups,
        **attributes,
    )
    graph = model.output(model.requantize(y, T * 4, 11)).check()
    assert kinds(graph) == [Conv]
    assert graph.ops[0].groups == groups


def test_conv_of_one_dimension(model: Any) -> None:
    x = model.input([1, 4, 20], S, 3)
    y = conv(model, x, 5, 4, (3,), strides=[2], pads=[2, 1])
    graph = model.output(model.requantize(y, T, -8), 3).check()
    assert graph.tensors[graph.ops[0].inputs[0]].shape == (1, 4, 1, 20)


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("zero_point", [-128, -100, 20])
def test_relu_and_clip_are_clamps(models: Any, zero_point: int, unsigned: bool) -> None:
    model = models(unsigned)
    shift = 128 if unsigned else 0
    x = model.input([1, 3, 6, 6], S, -17 + shift)
    y = model.node("Relu", conv(model, x, 4, 3, (3, 3)))
    z = model.node("Clip", conv(model, x, 4, 3, (1, 1)), model.const(np.float32(-1.5)), model.const(np.float32(6)))
    for value in (y, z):
        model.output(model.requantize(value, T, zero_point + shift))
    graph = model.check()
    assert kinds(graph) == [Conv, Conv]
    assert graph.ops[0].lo == zero_point
    assert graph.ops[0].hi == 127
    assert graph.ops[1].lo == max(-128, zero_point - 6)
    assert graph.ops[1].hi == min(127, zero_point + 24)
    assert [name.split("_")[0] for name in graph.ops[0].nodes] == ["Conv", "Relu", "QuantizeLinear"]


def test_uint8_weights_with_zero_point_128(model: Any) -> None:
    x = model.input([1, 3, 5, 5], S, 9)
    w = model.constant((int8(4, 3, 2, 2).astype(int) + 128).astype(np.uint8), 2.0**-5, np.uint8(128))
    graph = model.output(model.requantize(model.node("Conv", x, w), T, 0)).check()
    assert graph.ops[0].weight.dtype == np.int8


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("per_channel", [False, True])
def test_gemm(model: Any, transposed: int, per_channel: bool) -> None:
    x = model.input([1, 24], S, -5)
    w = int8(7, 24)
    scale = np.array([2.0 ** -(5 + i % 2) for i in range(7)], np.float32) if per_channel else np.float32(2.0**-5)
    zeros = np.zeros(np.shape(scale), np.int8)
    weights = model.constant(w if transposed else w.T.copy(), scale, zeros, axis=0 if transposed else 1)
    bias = model.constant(RNG.integers(-500, 500, 7).astype(np.int32), scale * np.float32(S), zeros.astype(np.int32))
    y = model.node("Gemm", x, weights, bias, transB=transposed)
    graph = model.output(model.requantize(y, T, 4), 2).check()
    assert graph.ops[0].weight.shape == (7, 24, 1, 1)


def test_gemm_after_flatten_is_a_convolution_of_the_whole_input(model: Any) -> None:
    x = model.input([1, 5, 3, 4], S, -5)
    y = model.requantize(model.node("Flatten", x), S, -5)
    y = model.node("Gemm", y, model.constant(int8(6, 60), 2.0**-6), transB=1)
    graph = model.output(model.requantize(y, T, 4), 2).check()
    assert kinds(graph) == [Conv]
    assert graph.ops[0].weight.shape == (6, 5, 3, 4)


def test_gemm_takes_up_the_transpose_before_it(model: Any) -> None:
    x = model.input([1, 5, 3, 4], S, -5)
    y = model.node("Reshape", model.node("Transpose", x, perm=[0, 2, 3, 1]), model.const(np.array([1, -1])))
    y = model.node("MatMul", y, model.constant(int8(60, 6), 2.0**-6))
    graph = model.output(model.requantize(y, T, 4), 2).check()
    assert kinds(graph) == [Conv]


def test_matmul_with_its_bias_behind_it(model: Any) -> None:
    x = model.input([1, 16], S, 2)
    y = model.node("MatMul", x, model.constant(int8(16, 9), 2.0**-5))
    b = model.constant(RNG.integers(-300, 300, 9).astype(np.int32), np.float32(S * 2.0**-5), np.int32(0))
    graph = model.output(model.requantize(model.node("Relu", model.node("Add", b, y)), T, -20), 2).check()
    assert kinds(graph) == [Conv]
    assert graph.ops[0].bias.any()


def test_matmul_on_every_pixel_of_a_channels_last_tensor(model: Any) -> None:
    x = model.input([1, 8, 3, 5], S, 2)
    y = model.node("MatMul", model.node("Transpose", x, perm=[0, 2, 3, 1]), model.constant(int8(8, 6), 2.0**-4))
    y = model.requantize(model.node("Add", y, model.const((np.arange(6) / 128).astype(np.float32))), T, -20)
    graph = model.output(model.node("Transpose", y, perm=[0, 3, 1, 2])).check()
    assert kinds(graph) == [Conv]
    assert graph.ops[0].weight.shape == (6, 8, 1, 1)


def test_float_bias_that_is_a_multiple_is_taken(model: Any) -> None:
    x = model.input([1, 3, 5, 5], S, 9)
    w, b = model.constant(int8(4, 3, 2, 2), 2.0**-5), model.const(np.array([1, -2, 0.5, 0.00390625], np.float32))
    graph = model.output(model.requantize(model.node("Conv", x, w, b), T, 0)).check()
    assert graph.ops[0].bias.tolist() == [256, -512, 128, 1]


@pytest.mark.parametrize(("op_type", "kind"), [("Add", Add), ("Mul", Mul)])
@pytest.mark.parametrize("relu", [False, True])
def test_add_and_mul(model: Any, op_type: str, kind: type, relu: bool) -> None:
    a, b = model.input([1, 5, 4, 6], S, -9, "a"), model.input([1, 5, 4, 6], T, 30, "b")
    y = model.node(op_type, a, b)
    y = model.node("Relu", y) if relu else y
    graph = model.output(model.requantize(y, 0.5 if kind is Add else 4.0, -3)).check()
    assert kinds(graph) == [kind]
    assert graph.ops[0].lo == (-3 if relu else -128)


@pytest.mark.parametrize("swap", [False, True])
def test_mul_broadcasts_one_pixel(model: Any, swap: bool) -> None:
    a, b = model.input([1, 5, 4, 6], S, -9, "a"), model.input([1, 5, 1, 1], T, 30, "b")
    y = model.node("Mul", *((b, a) if swap else (a, b)))
    graph = model.output(model.requantize(y, 4.0, -3)).check()
    assert kinds(graph) == [Mul]


def test_add_of_a_tensor_to_itself_and_shared_operands(model: Any) -> None:
    x = model.input([1, 5, 4, 6], S, -9)
    y = model.requantize(model.node("Add", x, x), T, 1)
    z = model.requantize(model.node("Add", y, x), T, -1)
    assert kinds(model.output(z).check()) == [Add, Add]


def test_mul_with_a_quantized_factor_per_channel(model: Any) -> None:
    x = model.input([1, 5, 4, 6], S, -9)
    factor = model.constant(int8(5, 1, 1), 2.0**-3)
    graph = model.output(model.requantize(model.node("Mul", factor, x), T, 2)).check()
    assert kinds(graph) == [Conv]
    assert graph.ops[0].groups == 5


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("swap", [False, True])
def test_arithmetic_with_a_scalar_is_a_table(model: Any, op_type: str, swap: bool) -> None:
    if swap and op_type == "Div":
        pytest.skip("a quotient has a pole")
    x, c = model.input([1, 5, 4, 6], S, -9), model.const(np.float32(2.5))
    y = model.node(op_type, *((c, x) if swap else (x, c)))
    assert kinds(model.output(model.requantize(y, T, 2)).check()) == [Table]
