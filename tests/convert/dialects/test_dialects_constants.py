"""Operators of com.microsoft of which an operand is a constant: computed, wherever, and never an assertion."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from onnxhw import InferenceSession
from onnxhw.errors import OnnxhwError
from onnxhw.partition import read

I8 = np.int8


def model(
    pooled: dict[str, Any], op_type: str = "NhwcMaxPool", added: bool = True, shape: tuple[int, ...] = ()
) -> ModelProto:
    """A pool of a constant, or of an input if there is a `shape`; a QLinearAdd of an input to it."""
    rng = np.random.default_rng(1)
    arrays = {"c": rng.integers(-128, 128, (1, 4, 4, 3)).astype(I8), "s": np.float32(0.1), "z": I8(3)}
    grid = ["s", "z"] if op_type != "NhwcMaxPool" else []
    x = "x" if shape else "c"
    nodes = [helper.make_node(op_type, [x, *grid, *grid], ["p"], "pool", domain="com.microsoft", **pooled)]
    if added:
        nodes.append(
            helper.make_node("QLinearAdd", ["a", "s", "z", "p", "s", "z", "s", "z"], ["y"], domain="com.microsoft")
        )
    inputs = [helper.make_tensor_value_info("a", TensorProto.INT8, [1, 1, 1, 3])] if added else []
    inputs += [helper.make_tensor_value_info("x", TensorProto.INT8, shape)] if shape else []
    y = helper.make_tensor_value_info("y" if added else "p", TensorProto.INT8, None)
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, [y], tensors), opset_imports=sets, ir_version=9)


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("NhwcMaxPool", {"kernel_shape": [4, 4]}),
        ("NhwcMaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("QLinearGlobalAveragePool", {"channels_last": 1}),
        ("QLinearAveragePool", {"channels_last": 1, "kernel_shape": [4, 4]}),
    ],
)
@pytest.mark.parametrize("added", [False, True])
def test_a_pool_of_a_constant_is_computed(op_type: str, attributes: dict[str, Any], added: bool) -> None:
    proto = model(attributes, op_type, added).SerializeToString()
    feeds = {"a": np.array([[[[-100, 5, 90]]]], I8)} if added else {}
    with InferenceSession(proto) as session:
        (y,) = session.run(None, feeds)
    (wanted,) = onnxruntime.InferenceSession(proto).run(None, feeds)
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize(
    ("code", "op_type", "attributes"),
    [
        ("E3383", "NhwcMaxPool", {"kernel_shape": [2]}),
        ("E3380", "NhwcMaxPool", {"kernel_shape": [2, 0]}),
        ("E3388", "NhwcMaxPool", {"kernel_shape": [2, 5]}),
        ("E3383", "QLinearAveragePool", {"kernel_shape": [2], "channels_last": 1}),
        ("E3388", "QLinearAveragePool", {"kernel_shape": [4, 4]}),
    ],
)
def test_windows_with_their_channels_last_have_the_rules_of_windows(
    code: str, op_type: str, attributes: dict[str, Any]
) -> None:
    """The input is 4 by 4 with its 3 channels last, or 4 channels of 4 by 3."""
    with pytest.raises(OnnxhwError, match=code):
        read(model(attributes, op_type, added=False, shape=(1, 4, 4, 3)).SerializeToString())
    read(model({**attributes, "kernel_shape": [2, 2]}, op_type, added=False, shape=(1, 4, 4, 3)).SerializeToString())
