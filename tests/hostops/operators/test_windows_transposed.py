"""ConvTranspose on the host: what is inferred is what is computed, whatever says how much of its windows is left."""

from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxhw import InferenceSession
from onnxhw.errors import InvalidModelError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.onnxmodel.shapes import specialise

RANDOM = np.random.default_rng(3)
AUTO = ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]
STEPS = [(1, 1, 1), (1, 3, 2), (2, 1, 1), (2, 3, 2), (4, 2, 1), (4, 1, 2)]
"""Stride, kernel, dilation."""


def transposed(opset: int, size: Any, kernel: int, element: int = 1, **attributes: Any) -> onnx.ModelProto:
    """A model of one node; `size` is that of its input, or a variable's name."""
    given = {name: value for name, value in attributes.items() if value is not None}
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **given)
    value = helper.make_tensor_value_info
    inputs = [value("x", element, [1, 1, size]), value("w", element, [1, 1, kernel])]
    graph = helper.make_graph([node], "g", inputs, [value("y", element, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def defined(x: Any, w: Any, stride: int, dilation: int, auto: str, extra: int, wanted: int | None, pads: Any) -> Any:
    """``y[stride * i + dilation * k]`` is the sum of ``x[i] * w[k]``, less what is cut, and with what is added."""
    full = stride * (len(x) - 1) + dilation * (len(w) - 1) + 1 + extra
    y = np.zeros(full + (wanted or 0))
    for i, k in product(range(len(x)), range(len(w))):
        y[stride * i + dilation * k] += x[i] * w[k]
    if wanted is None and auto.startswith("SAME"):
        wanted = min(stride * len(x), full)
    if wanted is None:
        return y[pads[0] : full - pads[1]] if auto == "NOTSET" else y[:full]
    total = max(full - wanted, 0)
    begin = total // 2 if auto == "SAME_UPPER" else total - total // 2
    return y[begin : begin + wanted]


@pytest.mark.parametrize("opset", [7, 11, 22])
@pytest.mark.parametrize("auto", AUTO)
@pytest.mark.parametrize(("stride", "kernel", "dilation"), STEPS)
@pytest.mark.parametrize("element", [onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE])
def test_what_is_inferred_is_computed(
    opset: int, auto: str, stride: int, kernel: int, dilation: int, element: int
) -> None:
    """Of float there is a kernel; double is ours. Every output_shape that is not refused, and every output_padding."""
    size = 3
    x, w = (RANDOM.integers(-3, 4, (1, 1, n)).astype(helper.tensor_dtype_to_np_dtype(element)) for n in (size, kernel))
    reached = stride * (size - 1) + dilation * (kernel - 1) + 1
    for extra in range(max(stride, dilation)):
        for wanted in (None, 1, 2, reached, reached + max(extra, stride - 1)):
            pads = [1, 0] if auto == "NOTSET" and reached + extra > 1 else [0, 0]
            proto = transposed(
                opset, size, kernel, element, strides=[stride], dilations=[dilation], auto_pad=auto,
                output_padding=[extra], output_shape=None if wanted is None else [wanted],
                pads=pads if auto == "NOTSET" else None,
            )  # fmt: skip
            fixed, shapes = specialise(proto)
            found = evaluate(fixed, {"x": x, "w": w})["y"]
            right = defined(x.ravel(), w.ravel(), stride, dilation, auto, extra, wanted, pads)
            assert shapes["y"] == found.shape, (extra, wanted)
            np.testing.assert_array_equal(found.ravel(), right, f"{extra} {wanted}")


@pytest.mark.parametrize("opset", [11, 22])
def test_onnx_counts_otherwise(opset: int) -> None:
    """What makes `miscounted_windows` necessary; where this fails, onnx has mended it."""
    same = transposed(opset, 3, 3, strides=[2], auto_pad="SAME_UPPER", output_padding=[1])
    small = transposed(opset, 3, 3, output_shape=[2])
    found = [onnx.shape_inference.infer_shapes(one).graph.output[0].type.tensor_type.shape.dim for one in (same, small)]
    assert [[dim.dim_value for dim in dims] for dims in found] != [[1, 1, 6], [1, 1, 2]]


@pytest.mark.parametrize(
    ("kernel", "attributes", "wanted"),
    [
        (2, {"strides": [2], "auto_pad": "SAME_LOWER", "output_padding": [1]}, 10),
        (2, {"strides": [2], "output_padding": [1], "output_shape": [3]}, 3),
        (3, {"strides": [2], "output_shape": [9]}, 9),
    ],
)
def test_sizes_that_are_open(kernel: int, attributes: Any, wanted: int) -> None:
    """What is padded as needed is known without the size of the input."""
    session = InferenceSession(transposed(11, "n", kernel, **attributes).SerializeToString())
    (y,) = session.run(None, {"x": np.ones((1, 1, 5), np.float32), "w": np.ones((1, 1, kernel), np.float32)})
    assert y.shape == (1, 1, wanted)


def test_windows_of_a_pool_beside_an_open_axis() -> None:
    """A window in ceil mode that starts behind the padded input is not counted along the other axis."""
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[1, 2], strides=[1, 3], pads=[0, 1, 0, 0],
                            ceil_mode=1)  # fmt: skip
    value = helper.make_tensor_value_info
    graph = helper.make_graph([node], "g", [value("x", 1, [1, 1, "h", 5])], [value("y", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    (y,) = InferenceSession(model.SerializeToString()).run(None, {"x": np.ones((1, 1, 3, 5), np.float32)})
    assert y.shape == (1, 1, 3, 2)


@pytest.mark.parametrize("size", [5, 6])
def test_what_onnx_counts_may_be_declared(size: int) -> None:
    """5 elements come; onnx's inference adds output_padding, and has written that into files."""
    proto = transposed(11, 5, 1, auto_pad="SAME_UPPER", dilations=[2], output_padding=[1])
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, [1, 1, size]))
    assert specialise(proto)[1]["y"] == (1, 1, 5)


@pytest.mark.parametrize(
    ("code", "broken", "right"),
    [
        ("E3374", {"output_padding": [1]}, {"output_padding": [1], "dilations": [2]}),
        ("E3374", {"output_padding": [2], "strides": [2]}, {"output_padding": [2], "strides": [3]}),
        ("E3375", {"output_shape": [0]}, {"output_shape": [1]}),
        ("E3375", {"output_shape": [9], "strides": [2]}, {"output_shape": [8], "strides": [2]}),
        ("E3375", {"pads": [3, 2]}, {"pads": [2, 2]}),
    ],
)  # fmt: skip
def test_what_no_run_could_compute_is_refused_before(code: str, broken: Any, right: Any) -> None:
    """Of three elements and a kernel of 3, and of sizes that nobody tries."""
    for size in (3, 1 << 20):
        more = size - 3

        def made(given: Any, more: int = more, size: int = size) -> onnx.ModelProto:
            given = {name: list(value) for name, value in given.items()}
            if "output_shape" in given and given["output_shape"][0] > 1:
                given["output_shape"][0] += 2 * more
            if "pads" in given:
                given["pads"][0] += more
            return transposed(22, size, 3, **given)

        specialise(made(right))
        with pytest.raises(InvalidModelError, match=code):
            specialise(made(broken))


def test_an_output_shape_below_the_input_on_one_axis_and_beyond_the_windows_on_the_other() -> None:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[1, 3], output_shape=[3, 6])
    value = helper.make_tensor_value_info
    graph = helper.make_graph([node], "g", [value("x", 1, [1, 1, 5, 2]), value("w", 1, [1, 1, 2, 1])],
                              [value("y", 1, None)])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=8)
    fixed, shapes = specialise(model)
    x = np.arange(10, dtype=np.float32).reshape(1, 1, 5, 2)
    found = evaluate(fixed, {"x": x, "w": np.ones((1, 1, 2, 1), np.float32)})["y"]
    assert shapes["y"] == found.shape == (1, 1, 3, 6)
    rows = np.zeros((6, 6))
    rows[:5, ::3] += x[0, 0]
    rows[1:, ::3] += x[0, 0]
    np.testing.assert_array_equal(found[0, 0], rows[2:5])  # of three rows too many two are cut at the beginning
