"""Functions of one element: the table equals onnxruntime's floats between DequantizeLinear and QuantizeLinear."""

from typing import Any

import numpy as np
import pytest

from onnxhw.convert.blockers import UnsupportedNodesError
from onnxhw.convert.operators.unary import UNARY
from onnxhw.ir.graph import Add, Conv, Table

S, Z = 2.0**-5, -9
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "Celu": {"alpha": 0.5},
    "Elu": {"alpha": 1.5},
    "Gelu": {"approximate": "tanh"},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "LeakyRelu": {"alpha": 0.125},
    "Selu": {"alpha": 1.25, "gamma": 2.0},
    "Shrink": {"bias": 0.25, "lambd": 1.0},
    "ThresholdedRelu": {"alpha": 0.75},
    "Swish": {"alpha": 0.5},
}
NEWER = {"Gelu": 20, "HardSwish": 17, "Mish": 18, "Swish": 24}
DOMAINS: dict[str, tuple[float, int]] = {
    "Log": (S, -128),
    "Sqrt": (S, -128),
    "Acosh": (S, -128),
    "Acos": (2.0**-7, 0),
    "Asin": (2.0**-7, 0),
    "Atanh": (2.0**-8, 0),
}
"""Grids on which the function has a value everywhere."""


def through(models: Any, op_type: str, scale: float, zero: int, out: float, **attributes: Any) -> Any:
    model = models(opset=max(17, NEWER.get(op_type, 17)))
    y = model.node(op_type, model.input([1, 3, 4, 30], scale, zero), **attributes)
    return model.output(model.requantize(y, out, 3))


@pytest.mark.parametrize("op_type", sorted(UNARY))
def test_functions_are_tables(op_type: str, models: Any, check: Any) -> None:
    if op_type in ("Acosh", "Log"):
        model = models()
        shifted = model.node("Add", model.input([1, 3, 4, 30], S, -128), model.const(np.float32(1)))
        graph = check(model.output(model.requantize(model.node(op_type, shifted), S / 2, -60)))
    else:
        scale, zero = DOMAINS.get(op_type, (S, Z))
        for attributes in ({}, ATTRIBUTES.get(op_type, {})):
            graph = check(through(models, op_type, scale, zero, 2.0**-6, **attributes))
    assert [type(op) for op in graph.ops] == [Table]


@pytest.mark.parametrize("op_type", ["Log", "Sqrt", "Acos", "Atanh"])
def test_a_function_without_a_value_on_the_grid_stays_on_the_host(op_type: str, models: Any) -> None:
    with pytest.raises(UnsupportedNodesError, match="no quantized value everywhere"):
        through(models, op_type, S, Z, S).load()


@pytest.mark.parametrize("exponent", [2.0, 3.0, 1.0, 0.0])
def test_power(exponent: float, model: Any, check: Any) -> None:
    y = model.node("Pow", model.input([1, 3, 4, 30], S, Z), model.const(np.float32(exponent)))
    if exponent:
        check(model.output(model.requantize(y, S, 3)))
    else:
        assert set(model.output(model.requantize(y, S, 3)).load().ops[0].table) == {32 + 3}


def test_power_of_a_constant(model: Any, check: Any) -> None:
    y = model.node("Pow", model.const(np.float32(2)), model.input([1, 3, 4, 30], S, Z))
    check(model.output(model.requantize(y, S, 3)))


@pytest.mark.parametrize("op_type", ["Max", "Min", "Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("swapped", [False, True])
def test_scalar_constants(op_type: str, swapped: bool, model: Any, check: Any) -> None:
    x, c = model.input([1, 3, 4, 30], S, -128), model.const(np.float32(0.75))
    x = model.node("Add", x, model.const(np.float32(0.5)))
    y = model.node(op_type, c, x) if swapped else model.node(op_type, x, c)
    graph = check(model.output(model.requantize(y, S, 3)))
    assert [type(op) for op in graph.ops] == [Table]


def test_prelu_with_one_slope(model: Any, check: Any) -> None:
    x = model.input([1, 3, 4, 30], S, Z)
    check(model.output(model.requantize(model.node("PRelu", x, model.const(np.full((3, 1, 1), 0.25, np.float32))), S)))


@pytest.mark.parametrize("slopes", [[0.25, 0.5, 0.125], [-0.3, 0.0, 1.7], [1.0, -1.0, 0.1]])
@pytest.mark.parametrize("grid", [(S, 3), (0.07, -128), (0.31, 127)])
def test_prelu_with_a_slope_per_channel(model: Any, check: Any, slopes: list[float], grid: tuple[float, int]) -> None:
    constant = model.const(np.array(slopes, np.float32).reshape(3, 1, 1))
    y = model.node("PRelu", model.input([1, 3, 4, 30], 0.11, Z), constant)
    graph = check(model.output(model.requantize(y, *grid)))
    assert [type(op) for op in graph.ops] == [Table, Table, Conv, Add]


def test_prelu_with_a_slope_per_channel_and_a_clamp(model: Any, check: Any) -> None:
    constant = model.const(np.array([0.25, -0.5, 2], np.float32).reshape(3, 1, 1))
    y = model.node("PRelu", model.input([1, 3, 4, 30], S, Z), constant)
    check(model.output(model.requantize(model.node("Relu", y), S, 3)))


def test_prelu_with_a_slope_per_pixel_stays_on_the_host(model: Any) -> None:
    slopes = model.const(np.arange(360, dtype=np.float32).reshape(3, 4, 30) / 100)
    y = model.node("PRelu", model.input([1, 3, 4, 30], S, Z), slopes)
    with pytest.raises(UnsupportedNodesError, match="differ between pixels"):
        model.output(model.requantize(y, S)).load()


def silu(model: Any, x: str) -> str:
    return str(model.node("Mul", x, model.node("Sigmoid", x)))


def hard_swish(model: Any, x: str) -> str:
    inner = model.node("Clip", model.node("Add", x, model.const(np.float32(3))), model.const(np.float32(0)),
                       model.const(np.float32(6)))  # fmt: skip
    return str(model.node("Div", model.node("Mul", x, inner), model.const(np.float32(6))))


def gelu(model: Any, x: str) -> str:
    inner = model.node("Erf", model.node("Div", x, model.const(np.float32(2**0.5))))
    shifted = model.node("Add", inner, model.const(np.float32(1)))
    return str(model.node("Mul", model.node("Mul", x, shifted), model.const(np.float32(0.5))))


def ratio(model: Any, x: str) -> str:
    return str(model.node("Div", x, model.node("Add", model.node("Abs", x), model.const(np.float32(1)))))


def largest(model: Any, x: str) -> str:
    return str(model.node("Max", x, model.node("Neg", x), model.node("Sub", x, model.node("Exp", x))))


@pytest.mark.parametrize("chain", [silu, hard_swish, gelu, ratio, largest])
def test_chains_that_branch_and_join_are_one_table(chain: Any, model: Any, check: Any) -> None:
    graph = check(model.output(model.requantize(chain(model, model.input([1, 3, 4, 30], S, Z)), S, 3)))
    assert [type(op) for op in graph.ops] == [Table]


def test_a_function_of_a_result_that_was_not_quantized_stays_on_the_host(model: Any) -> None:
    weight = model.constant(np.ones((3, 3, 1, 1), np.int8), np.float32(0.125), np.int8(0))
    y = model.node("HardSwish", model.node("Conv", model.input([1, 3, 4, 4], S, Z), weight))
    with pytest.raises(UnsupportedNodesError, match="without QuantizeLinear"):
        model.output(model.requantize(y, S)).load()


def test_cast_to_float_is_nothing(model: Any, check: Any) -> None:
    weight = model.constant(np.eye(3, dtype=np.int8).reshape(3, 3, 1, 1), np.float32(0.125), np.int8(0))
    x = model.node("Cast", model.input([1, 3, 4, 4], S, Z), to=1)
    graph = check(model.output(model.requantize(model.node("Cast", model.node("Conv", x, weight), to=1), S)))
    assert [type(op) for op in graph.ops] == [Conv]


@pytest.mark.parametrize("shape", [[1, 40], [1, 5, 8], [1, 2, 4, 5]])
def test_every_rank(shape: list[int], model: Any, check: Any) -> None:
    y = model.node("Tanh", model.input(shape, S, Z))
    check(model.output(model.requantize(y, 2.0**-7), len(shape)))
