"""Windows of pooling and reductions: golden = onnxruntime = emulator (scales and counts are powers of two)."""

from typing import Any

import numpy as np
import pytest

from onnxhw.convert.blockers import UnsupportedNodesError
from onnxhw.ir.graph import AveragePool, Conv, MaxPool, Table

S = 2.0**-3


def kinds(graph: Any) -> list[type]:
    return [type(op) for op in graph.ops]


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


MAX_POOLS: list[tuple[list[int], dict[str, Any]]] = [
    ([1, 3, 7, 8], {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 0, 0, 2]}),
    ([1, 3, 7, 8], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}),
    ([1, 3, 8, 8], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1}),
    ([1, 3, 9, 8], {"kernel_shape": [2, 3], "dilations": [3, 2]}),
    ([1, 3, 9, 8], {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ([1, 3, 9, 8], {"kernel_shape": [3, 2], "strides": [2, 3], "auto_pad": "SAME_LOWER"}),
    ([1, 3, 12], {"kernel_shape": [4], "strides": [3], "ceil_mode": 1}),
    ([1, 40, 2, 7], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
]


@pytest.mark.parametrize(("shape", "attributes"), MAX_POOLS)
def test_max_pool(shape: list[int], attributes: dict[str, Any], model: Any, check: Any) -> None:
    y = model.node("MaxPool", model.input(shape, S, -7), **attributes)
    assert kinds(check(model.output(model.requantize(y, S, -7), len(shape)))) == [MaxPool]


def test_max_pool_of_what_is_not_quantized_yet(model: Any, check: Any) -> None:
    x = model.input([1, 3, 6, 6], S, -7)
    q = np.array([[3, -5, 1], [2, 7, -9]], np.int8).reshape(2, 3, 1, 1)
    weight = model.constant(q, np.float32(0.25), np.int8(0))
    y = model.node("MaxPool", model.node("Relu", model.node("Conv", x, weight)), kernel_shape=[2, 2])
    graph = check(model.output(model.requantize(y, S, -100)))
    assert kinds(graph) == [Conv, MaxPool]


def test_max_pool_of_a_function(model: Any, check: Any) -> None:
    y = model.node("MaxPool", model.node("Abs", model.input([1, 3, 6, 6], S, -7)), kernel_shape=[2, 2])
    assert kinds(check(model.output(model.requantize(y, S, -100)))) == [Table, MaxPool]


@pytest.mark.parametrize("op_type", ["GlobalMaxPool", "GlobalAveragePool"])
@pytest.mark.parametrize("shape", [[1, 5, 4, 8], [1, 5, 16]])
def test_global_pools(op_type: str, shape: list[int], model: Any, check: Any) -> None:
    y = model.node(op_type, model.input(shape, S, -7))
    check(model.output(model.requantize(y, S if "Max" in op_type else S / 4, -7), len(shape)))


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        {"kernel_shape": [2, 4], "pads": [1, 1, 0, 2], "count_include_pad": 1},
        {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
        {"kernel_shape": [2, 4], "dilations": [3, 1]},
        {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
    ],
)
def test_average_pool(attributes: dict[str, Any], models: Any, check: Any) -> None:
    model = models(opset=19 if "dilations" in attributes else 17)
    y = model.node("AveragePool", model.input([1, 3, 7, 9], S, -7), **attributes)
    assert kinds(check(model.output(model.requantize(y, S / 2, 5)))) == [AveragePool]


REDUCES: list[tuple[list[int], list[int]]] = [
    ([1, 6, 4, 8], [2, 3]),
    ([1, 6, 4, 8], [-1]),
    ([1, 6, 4, 8], [2]),
    ([1, 6, 8], [2]),
]
OVER_CHANNELS: list[tuple[list[int], list[int]]] = [
    ([1, 8, 4, 2], [1]),
    ([1, 8, 4, 2], [1, 2, 3]),
    ([1, 8, 4, 2], [3, 1]),
    ([1, 16], [1]),
    ([1, 8, 4], [1, -1]),
]


@pytest.mark.parametrize("op_type", ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(("shape", "axes"), REDUCES)
def test_reductions(op_type: str, keepdims: int, shape: list[int], axes: list[int], models: Any, check: Any) -> None:
    reduced(op_type, keepdims, shape, axes, models(), check)


@pytest.mark.parametrize("op_type", ["ReduceMean", "ReduceSum"])
@pytest.mark.parametrize(("shape", "axes"), OVER_CHANNELS)
def test_reductions_over_channels(op_type: str, shape: list[int], axes: list[int], models: Any, check: Any) -> None:
    for keepdims in (0, 1):
        assert kinds(reduced(op_type, keepdims, shape, axes, models(), check)) == [Conv]


@pytest.mark.parametrize("op_type", ["ReduceMean", "ReduceSum"])
@pytest.mark.parametrize("keepdims", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_one_behind_the_other(op_type: str, keepdims: tuple[int, int], models: Any, check: Any) -> None:
    """``x.mean(3).mean(2)``: nothing is quantized between them."""
    model = models(opset=18)
    y = model.node(op_type, model.input([1, 8, 4, 2], 2 * S, -7), model.const(ints(3)), keepdims=keepdims[0])
    y = model.node(op_type, y, model.const(ints(2)), keepdims=keepdims[1])
    scale = S / 4 if op_type == "ReduceMean" else 8 * S
    graph = check(model.output(model.requantize(y, scale, -7), 2 + sum(keepdims)))
    assert len(graph.ops) == 1
    assert len(graph.ops[0].nodes) == 3


def test_three_behind_each_other(models: Any, check: Any) -> None:
    model = models(opset=18)
    y = model.input([1, 8, 4, 2], 2 * S, -7)
    for axis in (2, 2, 1):
        y = model.node("ReduceSum", y, model.const(ints(axis)), keepdims=0)
    check(model.output(model.requantize(y, 32 * S, -7), 1))


def reduced(op_type: str, keepdims: int, shape: list[int], axes: list[int], model: Any, check: Any) -> Any:
    x = model.input(shape, 2 * S, -7)
    scale = {"ReduceMean": S / 4, "ReduceSum": 8 * S}.get(op_type, 2 * S)
    if op_type == "ReduceSum":  # its axes are an input since operator set 13, those of the others since 18
        y = model.node(op_type, x, model.const(ints(*axes)), keepdims=keepdims)
    else:
        y = model.node(op_type, x, axes=axes, keepdims=keepdims)
    rank = len(shape) if keepdims else len(shape) - len(axes)
    return check(model.output(model.requantize(y, scale, -7), rank))


def test_reductions_with_axes_as_input_and_none_at_all(models: Any, check: Any) -> None:
    model = models(opset=18)
    y = model.node("ReduceMax", model.input([1, 6, 4, 8], S, -7), model.const(ints(3, 2)))
    check(model.output(model.requantize(y, S, -7)))
    model = models(opset=18)
    y = model.node("ReduceMean", model.input([1, 4, 4, 8], S, -7))
    check(model.output(model.requantize(y, S / 4, -7)))
    model = models(opset=18)
    y = model.node("ReduceMean", model.node("Neg", model.input([1, 4, 4, 8], S, -7)), noop_with_empty_axes=1)
    check(model.output(model.requantize(y, S, -7)))


REFUSED: list[tuple[str, list[int], dict[str, Any], str]] = [
    ("ReduceMean", [1, 6, 4, 8], {"axes": [0, 2], "keepdims": 0}, "reduces the batch away"),
    ("LpPool", [1, 6, 4, 8], {"kernel_shape": [2, 2]}, "no operation"),
    (
        "AveragePool",
        [1, 3, 8, 8],
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1},
        "ceil_mode together with count_include_pad",
    ),
]


@pytest.mark.parametrize(("op_type", "shape", "attributes", "reason"), REFUSED)
def test_what_stays_on_the_host_says_why(
    op_type: str, shape: list[int], attributes: dict[str, Any], reason: str, model: Any
) -> None:
    y = model.node(op_type, model.input(shape, S), **attributes)
    with pytest.raises(UnsupportedNodesError, match=reason):
        model.output(model.requantize(y, S), 2 if attributes.get("keepdims", 1) == 0 else 4).load()


@pytest.mark.parametrize("shape", [[1, 8, 257], [1, 8, 17, 17]])
@pytest.mark.parametrize("scale", [np.float32(0.1), np.float32(0.0371)])
def test_average_pool_of_equal_scales_differs_from_onnxruntime_on_ties_alone(
    shape: list[int], scale: np.float32, model: Any
) -> None:
    window = [2] * (len(shape) - 2)
    y = model.node("AveragePool", model.input(shape, float(scale), 3), kernel_shape=window)
    model.output(model.requantize(y, float(scale), -5), len(shape))
    centred = np.random.default_rng(0).integers(-128, 128, shape) - 3
    feeds = {"x": (centred * scale).astype(np.float32)}
    ours, theirs = (
        np.rint(next(iter(run(feeds).values())) / scale).astype(np.int64) for run in (model.golden, model.onnxruntime)
    )
    spatial = tuple(range(2, len(shape)))
    windows = np.lib.stride_tricks.sliding_window_view(centred, window, spatial)
    sums = windows.sum(tuple(range(-len(window), 0)))
    count = int(np.prod(window))
    ties = sums * 2 % (2 * count) == count
    np.testing.assert_array_equal(ours, np.clip(np.rint(sums / count), -128 + 5, 127 + 5))
    np.testing.assert_array_equal(ours[~ties], theirs[~ties])
    assert np.abs(ours - theirs)[ties].max() == 1
