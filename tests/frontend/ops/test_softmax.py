"""Softmax in integers: golden = emulator, the bound of its error over all sums, what stays on the host."""

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from onnxhw import InferenceSession, fixed, golden
from onnxhw.frontend import UnsupportedNodesError, read
from onnxhw.frontend.ops.softmax_numbers import HIGH, ONE, Numbers
from onnxhw.ir.graph import Op

Ints = npt.NDArray[np.int64]
STEP = 1 / 256


def computed(numbers: Numbers, d: Ints, sums: Ints, scale: float = STEP) -> Ints:
    """The result for differences and sums of exponentials, by `Numbers` and `fixed.requantize`; at zero point -128."""
    t = np.zeros(sums.shape, np.int64)
    for start, multiplier in zip(numbers.starts, numbers.sum_multipliers, strict=True):
        t += numbers.logarithms[fixed.requantize(sums - start, multiplier, -128) + 128]
    of_d, of_t = numbers.weights
    total = np.zeros(np.broadcast_shapes(d.shape, sums.shape), np.int64)
    for offset, multiplier, place in zip(numbers.offsets, numbers.multipliers, numbers.places, strict=True):
        octave = fixed.requantize(d * of_d - t * of_t + offset, multiplier, 127)
        total += place * numbers.powers[octave + 128]
    return fixed.requantize(total, np.float32(1 / (255 * 128 * np.float64(scale))), -128)


def random_input(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> Any:
    width = rng.choice([4, 20, 60]) * scale
    return (rng.normal(size=shape) * width + rng.uniform(-20, 20) * scale).astype(np.float32)


def softmax_model(model: Any, shape: tuple[int, ...], axis: int, scale: float, step: float = STEP) -> Any:
    """Softmax, then an Add of its input: an operation of the hardware."""
    x = model.input(list(shape), scale, 3)
    y = model.requantize(model.node("Softmax", x, axis=axis), step, -128)
    model.output(y, len(shape))
    return model.output(model.requantize(model.node("Add", y, x), 1 / 16, 0), len(shape))


SHAPES = [
    ((1, 10), -1), ((1, 4, 6, 16), -1), ((1, 3, 7, 5), 2), ((1, 16, 2, 3), 1), ((1, 5, 7), -1), ((1, 6, 3), 1),
    ((1, 2, 2, 33), -1), ((1, 1, 9, 12), 3),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("scale", [0.004, 0.1, 1.7])
def test_golden_is_the_formula_and_near_onnxruntime(
    model: Any, emulate: Any, shape: tuple[int, ...], axis: int, scale: float
) -> None:
    softmax_model(model, shape, axis, scale)
    graph, name = model.load(), model.outputs[0].name
    numbers = Numbers(graph.tensors[graph.inputs[0].tensor].scale, shape[axis])
    rng = np.random.default_rng(1)
    for _ in range(6):
        feeds = {"x": random_input(rng, shape, scale)}
        values = golden.host.prepare(graph, feeds)
        ours = golden.host.finish(graph, golden.run(graph, values))[name]
        q = next(iter(values.values())).astype(np.int64).reshape(shape)
        d = np.maximum(numbers.factor * (q - q.max(axis, keepdims=True)), -255)
        sums = numbers.exponentials[d + 255].sum(axis, keepdims=True)
        np.testing.assert_array_equal(np.rint(ours / STEP) - 128, computed(numbers, d, sums))
        theirs = model.onnxruntime(feeds)[name]
        assert np.abs(np.rint((ours.astype(np.float64) - theirs) / STEP)).max() <= 1
    emulate(graph, feeds)


@pytest.mark.parametrize("scale", [0.0003, 0.0004, 0.0011, 0.004, 0.02, 0.06, 0.1, 0.121, 0.3, 1.0, 30.0, 31.0])
def test_the_error_for_every_sum_and_exponential(scale: float) -> None:
    """Less than 1.3 steps of 1/256 between the real value and ours, for every sum of 64 exponentials."""
    numbers = Numbers(scale, 64)
    sums = np.arange(ONE, 64 * ONE + 1)
    t = np.zeros(len(sums), np.int64)
    for start, multiplier in zip(numbers.starts, numbers.sum_multipliers, strict=True):
        t += numbers.logarithms[fixed.requantize(sums - start, multiplier, -128) + 128]
    edges = np.flatnonzero(np.diff(t))  # between them the result does not change
    ends = np.concatenate([[0], edges, edges + 1, [len(sums) - 1]])
    d = np.arange(-255, 1)[:, None]
    real, chosen = np.exp(numbers.step * d), sums[ends][None]
    possible = chosen >= ONE + np.where(d == 0, 0, numbers.exponentials[d + 255])
    ours = computed(numbers, d, chosen) + 128.0
    slack = 63 * np.abs(numbers.exponentials / ONE - np.exp(numbers.step * np.arange(-255, 1))).max()  # of the sum
    for sign in (-1, 1):
        wanted = np.minimum(real / (chosen / ONE + sign * slack) / STEP, 255)
        gap = np.where(possible, np.abs(ours - wanted), 0)
        assert gap.max() < 1.5, (gap.max(), np.unravel_index(gap.argmax(), gap.shape))
