"""The comparison with onnxruntime of `bench/accuracy.py layers`."""

from types import ModuleType
from typing import Any

import numpy as np


def test_a_max_pool_between_dq_and_q_is_compared_by_its_integers(model: Any, against_ort: ModuleType) -> None:
    """onnxruntime's result of that MaxPool is real."""
    model.dtype = np.uint8
    y = model.node("MaxPool", model.input([1, 3, 8, 8], 0.05, 128), kernel_shape=[2, 2])
    model.output(model.requantize(y, 0.05, 128))
    x = np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32) * 4
    (layer,) = against_ort.compare_layers(model.proto(), [{"x": x}])
    assert (layer.kind, layer.elements, layer.differ) == ("MaxPool", 147, 0)
