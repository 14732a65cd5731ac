"""Inputs that are turned behind arithmetic, as networks that normalize their images themselves have them."""

from typing import Any

import numpy as np
import pytest

from onnxhw.ir.graph import Conv
from onnxhw.ir.steps import SHAPE

S = 2.0**-3


@pytest.mark.parametrize("shift", [True, False])
def test_an_image_that_the_network_normalizes_is_loaded_channels_first(model: Any, shift: bool) -> None:
    x = model.input([1, 6, 7, 3], S, -3)
    x = model.requantize(model.node("Mul", x, model.const(np.float32(0.5))), S / 2, 5)
    if shift:
        x = model.requantize(model.node("Sub", x, model.const(np.float32([[[[1, -2, 0.5]]]]))), S, 2)
    weight = np.random.default_rng(1).integers(-90, 90, (4, 3, 3, 3)).astype(np.int8)
    x = model.node("Transpose", x, perm=[0, 3, 1, 2])
    y = model.node("Conv", x, model.constant(weight, np.float32(S)))
    graph = model.output(model.requantize(y, 8.0, 1)).check()
    assert [graph.tensors[port.tensor].shape for port in graph.inputs] == [(1, 3, 6, 7)]
    assert isinstance(graph.ops[-1], Conv)


def test_one_that_is_turned_at_once_is_loaded_as_before(model: Any) -> None:
    x = model.node("Transpose", model.input([1, 6, 7, 3], S, -3), perm=[0, 3, 1, 2])
    graph = model.output(model.requantize(model.node("MaxPool", x, kernel_shape=[2, 2]), S, -3)).check()
    assert len(graph.ops) == 1
    assert all(step["op"] in {"QuantizeLinear", "Transpose", *SHAPE} for port in graph.inputs for step in port.steps)
