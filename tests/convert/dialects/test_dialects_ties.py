"""Results that lie halfway between two integers are rounded to the even one, in every operator that rounds.

Scales are powers of two, an operand's scale (or the product of two) half of the result's, and the result's zero point
is even: float32 is exact whatever a kernel adds before it rounds, and half of all results are ties. Scales drawn at
random hardly ever make one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from onnxhw import fixed

MICROSOFT = "com.microsoft"
F = np.float32
Array = npt.NDArray[Any]
Z, ONE = np.int8(4), F(1)
Make = Callable[[Any], tuple[str, dict[str, Array], Array]]


def small(*shape: int) -> npt.NDArray[np.int8]:
    """Operands whose sums do not saturate."""
    return np.random.default_rng(sum(shape)).integers(-6, 7, shape).astype(np.int8)


def conv(model: Any) -> tuple[str, dict[str, Array], Array]:
    x, w = small(1, 3, 6, 6), small(4, 3, 1, 1)
    name = model.input("x", np.int8, [1, 3, 6, 6])
    sums = np.einsum("nchw,kc->nkhw", x.astype(int), w[:, :, 0, 0].astype(int))
    return model.node("QLinearConv", name, ONE, np.int8(0), w, ONE, np.int8(0), F(2), Z), {"x": x}, sums / 2


def matmul(model: Any) -> tuple[str, dict[str, Array], Array]:
    x, w = small(1, 7), small(7, 60)
    name = model.input("x", np.int8, [1, 7])
    sums = x.astype(int) @ w.astype(int)
    return model.node("QLinearMatMul", name, ONE, np.int8(0), w, ONE, np.int8(0), F(2), Z), {"x": x}, sums / 2


def gemm(model: Any) -> tuple[str, dict[str, Array], Array]:
    x, w, bias = small(1, 7), small(7, 60), np.arange(-30, 30).astype(np.int32)
    name = model.input("x", np.int8, [1, 7])
    operands = [name, ONE, np.int8(0), w, ONE, np.int8(0), bias, F(2), Z]
    return model.node("QGemm", *operands, domain=MICROSOFT), {"x": x}, (x.astype(int) @ w.astype(int) + bias) / 2


def binary(op_type: str, combine: Callable[[Array, Array], Array]) -> Make:
    def make(model: Any) -> tuple[str, dict[str, Array], Array]:
        values = {"a": small(1, 3, 6, 6), "b": small(1, 3, 6, 6)[..., ::-1]}
        operands = [part for name in values for part in (model.input(name, np.int8, [1, 3, 6, 6]), ONE, np.int8(0))]
        exact = combine(*(value.astype(int) for value in values.values()))
        return model.node(op_type, *operands, F(2), Z, domain=MICROSOFT), values, exact / 2

    return make


def average(op_type: str, size: int, **attributes: Any) -> Make:
    def make(model: Any) -> tuple[str, dict[str, Array], Array]:
        x = small(1, 48, size, size)
        name = model.input("x", np.int8, [1, 48, size, size])
        blocks = x.astype(int).reshape(1, 48, size // 2, 2, size // 2, 2)
        operands = [name, ONE, np.int8(0), ONE, Z]
        return model.node(op_type, *operands, domain=MICROSOFT, **attributes), {"x": x}, blocks.sum((3, 5)) / 4

    return make


def requantize(model: Any) -> tuple[str, dict[str, Array], Array]:
    """From a grid to one of twice the step, around a MaxPool that the hardware holds."""
    x = small(1, 3, 6, 6)
    q = model.node("QuantizeLinear", model.input("x", np.float32, [1, 3, 6, 6]), ONE, np.int8(0))
    real = model.node("DequantizeLinear", model.node("MaxPool", q, kernel_shape=[1, 1]), ONE, np.int8(0))
    return model.node("QuantizeLinear", real, F(2), Z), {"x": x.astype(np.float32)}, x / 2


def concat(model: Any) -> tuple[str, dict[str, Array], Array]:
    x = small(1, 3, 6, 6)
    name = model.input("x", np.int8, [1, 3, 6, 6])
    y = model.node("QLinearConcat", F(2), Z, name, ONE, np.int8(0), name, ONE, np.int8(0), domain=MICROSOFT, axis=1)
    return y, {"x": x}, np.concatenate([x, x], 1) / 2


CASES: dict[str, Make] = {
    "QLinearConv": conv,
    "QLinearMatMul": matmul,
    "QGemm": gemm,
    "QLinearAdd": binary("QLinearAdd", np.add),
    "QLinearMul": binary("QLinearMul", np.multiply),
    "QLinearAveragePool": average("QLinearAveragePool", 6, kernel_shape=[2, 2], strides=[2, 2]),
    "QLinearGlobalAveragePool": average("QLinearGlobalAveragePool", 2, channels_last=0),
    "QuantizeLinear": requantize,
    "QLinearConcat": concat,
}


@pytest.mark.parametrize("name", CASES)
def test_ties_go_to_the_even_integer_as_in_onnxruntime(nodes: Any, name: str) -> None:
    model = nodes()
    y, feeds, exact = CASES[name](model)
    ties = exact[exact % 1 == 0.5]
    assert {*(np.floor(ties).astype(int) % 4)} == {0, 1, 2, 3}, "ties of both signs, above even integers and odd ones"
    model.output(y, np.int8).check(feeds)
    np.testing.assert_array_equal(model.golden(feeds)[0], np.rint(exact) + Z)


def away(values: Array) -> Array:
    """Half away from zero: how a definition would round that is wrong in ties alone."""
    return np.sign(values) * np.floor(np.abs(values) + 0.5)


@pytest.mark.parametrize("name", CASES)
def test_a_definition_that_rounds_half_away_from_zero_is_seen(
    nodes: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rational(numerators: Array, denominator: int) -> Array:
        signs, whole = np.sign(numerators), np.abs(numerators)
        return np.asarray(signs * ((2 * whole + denominator) // (2 * denominator)))

    monkeypatch.setattr(fixed.np, "rint", away)
    monkeypatch.setattr(fixed, "round_rational", rational)
    model = nodes()
    y, feeds, _ = CASES[name](model)
    (ours,) = model.output(y, np.int8).golden(feeds)
    assert (ours != model.onnxruntime(feeds)[0]).any()
