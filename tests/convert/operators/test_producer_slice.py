"""Channels of a tensor that the operation before it makes alone."""

from typing import Any

import numpy as np

from onnxhw.ir.graph import Conv

S = 2.0**-3


def wide(model: Any, channels: int) -> str:
    weight = np.random.default_rng(3).integers(-90, 90, (channels, 4, 1, 1)).astype(np.int8)
    y = model.node("Conv", model.input([1, 4, 3, 2], S, -3), model.constant(weight, S))
    return str(model.requantize(y, 2.0, 5))


def halves(model: Any, x: str, channels: int) -> Any:
    """A tensor's halves, which become one by a sum."""
    sizes = model.const(np.int64([channels // 2] * 2))
    parts = model.node("Split", x, sizes, outputs=2, axis=1)
    del parts
    model.nodes[-1].output[:] = ["a", "b"]
    kept = [model.requantize(model.node("MaxPool", part, kernel_shape=[1, 1]), 2.0, 5) for part in "ab"]
    return model.output(model.requantize(model.node("Add", *kept), 4.0, 5))


def test_halves_of_a_wide_convolution_are_two_convolutions(model: Any) -> None:
    x = model.requantize(model.node("LeakyRelu", wide(model, 400), alpha=0.125), 2.0, 5)
    graph = halves(model, x, 400).check()
    assert [op.weight.shape for op in graph.ops if isinstance(op, Conv)] == [(200, 4, 1, 1)] * 2


def test_of_others_a_convolution_chooses_channels(model: Any) -> None:
    x = model.requantize(model.node("MaxPool", wide(model, 400), kernel_shape=[1, 1]), 2.0, 5)
    graph = halves(model, x, 400).check()
    assert [op.weight.shape for op in graph.ops if isinstance(op, Conv)][1:] == [(200, 400, 1, 1)] * 2


def test_a_dense_layer_becomes_a_plane(model: Any) -> None:
    """As decoders begin: a convolution for each pixel."""
    weight = np.random.default_rng(3).integers(-90, 90, (3 * 25, 12)).astype(np.int8)
    y = model.node("Gemm", model.input([1, 12], S, -3), model.constant(weight, S), transB=1)
    y = model.node("Reshape", model.requantize(model.node("Relu", y), 2.0, -128), model.const(np.int64([1, 3, 5, 5])))
    graph = model.output(model.requantize(model.node("MaxPool", y, kernel_shape=[2, 2]), 2.0, -128)).check()
    assert sum(op.weight.size for op in graph.ops if isinstance(op, Conv)) == weight.size
