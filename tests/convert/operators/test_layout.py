"""Operators on tensors whose channels come last, as networks from TensorFlow have them: nothing moves for them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

S, Z = 2.0**-3, -9
SHAPE = [1, 20, 4, 5]
"""More channels than there are ways to choose them for a pixel: what turned channels into rows would be refused."""
TO_LAST, TO_FIRST = [0, 2, 3, 1], [0, 3, 1, 2]
SLOPES = np.linspace(-1, 1, 20).astype(np.float32)
POWERS = (2.0 ** np.arange(-3, 2)).astype(np.float32).repeat(4)


def last(model: Any, x: str) -> str:
    """A tensor that the hardware has made, with its channels last."""
    made = model.requantize(model.node("MaxPool", x, kernel_shape=[1, 1]), S, Z)
    return str(model.node("Transpose", made, perm=TO_LAST))


def first(model: Any, x: str) -> str:
    return str(model.node("Transpose", model.requantize(x, S, Z), perm=TO_FIRST))


Made = Callable[[Any, str, str], str]
CASES: dict[str, Made] = {
    "concat": lambda model, x, y: model.node("Concat", x, y, axis=3),
    "concat of rows": lambda model, x, y: model.node("Concat", x, y, axis=1),
    "a number for each channel added": lambda model, x, y: model.node("Add", x, model.const(SLOPES)),
    "a factor for each channel": lambda model, x, y: model.node("Mul", x, model.const(POWERS)),
    "slopes": lambda model, x, y: model.node("PRelu", x, model.const(POWERS)),
    "mean of the pixels": lambda model, x, y: model.node("ReduceMean", x, axes=[1, 2]),
    "mean of a row": lambda model, x, y: model.node("ReduceMean", x, axes=[2]),
    "scaled by means": lambda model, x, y: model.node(
        "Mul", x, model.requantize(model.node("ReduceMax", y, axes=[1, 2]), S, Z)
    ),
    "pad": lambda model, x, y: model.node("Pad", x, model.const(np.int64([0, 1, 2, 0, 0, 0, 1, 0]))),
    "pad by reflection": lambda model, x, y: model.node(
        "Pad", x, model.const(np.int64([0, 1, 2, 0, 0, 0, 1, 0])), mode="reflect"
    ),
    "every second row": lambda model, x, y: model.node(
        "Slice", x, *(model.const(np.int64([n])) for n in (0, 100, 1, 2))
    ),
    "some channels": lambda model, x, y: model.node("Slice", x, *(model.const(np.int64([n])) for n in (3, 17, 3, 2))),
    "twice as large, as Keras writes it": lambda model, x, y: twice(model, twice(model, x, 1), 2),
}


def twice(model: Any, x: str, axis: int) -> str:
    """Every row, or column, twice: by a fifth axis."""
    sizes = [1, 4 if axis == 1 else 8, 5, 20]
    between = model.node("Reshape", x, model.const(np.int64([*sizes[: axis + 1], 1, *sizes[axis + 1 :]])))
    repeats = [2 if n == axis + 1 else 1 for n in range(5)]
    tiled = model.requantize(model.node("Tile", between, model.const(np.int64(repeats))), S, Z)
    return str(model.node("Reshape", tiled, model.const(np.int64([1, 8, 5 if axis == 1 else 10, 20]))))


@pytest.mark.parametrize("case", CASES)
def test_channels_last(case: str, model: Any, check: Any) -> None:
    x = last(model, model.input(SHAPE, S, Z))
    y = last(model, model.node("Relu", model.input(SHAPE, S, Z, "y")))
    z = model.node("MaxPool", first(model, CASES[case](model, x, y)), kernel_shape=[1, 1])
    check(model.output(model.requantize(z, S, Z)))


def test_a_bias_behind_a_matrix_product_of_one_row(model: Any, check: Any) -> None:
    """Its result has its columns as channels, whatever axes the model gives it."""
    weight = np.random.default_rng(2).integers(-40, 40, (24, 35)).astype(np.int8)
    y = model.requantize(model.node("MatMul", model.input([1, 1, 24], S, Z), model.constant(weight, S)), 2.0, 3)
    check(model.output(model.requantize(model.node("Add", y, model.const(np.arange(35, dtype=np.float32))), 2.0, 3), 3))
