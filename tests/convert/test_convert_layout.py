"""Each operator, continued: pools, layout, tables, the edges; golden equals onnxruntime on every element."""

from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw.ir.graph import Add, AveragePool, Concat, Conv, Copy, MaxPool, Reshape, Table

from .quantized import S, T, conv, int8, kinds

POOLS: list[dict[str, Any]] = [
    {"kernel_shape": [2, 2], "strides": [2, 2]},
    {"kernel_shape": [3, 2], "strides": [1, 2], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [2, 4], "strides": [2, 3], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 1, 0, 0], "ceil_mode": 1},
]


@pytest.mark.parametrize("attributes", [*POOLS, {"kernel_shape": [2, 2], "dilations": [2, 3], "pads": [1, 1, 0, 0]}])
@pytest.mark.parametrize("zero_point", [-128, 20, 5])
def test_max_pool(model: Any, attributes: dict[str, Any], zero_point: int) -> None:
    x = model.input([1, 3, 8, 9], S, zero_point)
    y = model.requantize(model.node("MaxPool", x, **attributes), S, zero_point)
    assert kinds(model.output(y).check()) == [MaxPool]


def test_max_pool_of_integers_and_of_another_scale(model: Any) -> None:
    model.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8]))
    q = model.node("MaxPool", model.q("x", T, -7), kernel_shape=[2, 2], strides=[2, 2])
    y = model.node("GlobalMaxPool", model.dq(q, T, -7))
    graph = model.output(model.requantize(y, 0.5, 3)).check()
    assert kinds(graph) == [MaxPool, MaxPool, Table]


@pytest.mark.parametrize("attributes", POOLS)
@pytest.mark.parametrize("count_include_pad", [0, 1])
def test_average_pool(model: Any, attributes: dict[str, Any], count_include_pad: int) -> None:
    if attributes.get("ceil_mode") and count_include_pad:
        pytest.skip("refused: see test_blockers")
    x = model.input([1, 3, 8, 9], S, -20)
    y = model.node("AveragePool", x, count_include_pad=count_include_pad, **attributes)
    graph = model.output(model.requantize(y, S, 7)).check()
    assert kinds(graph) == [AveragePool]
    padded = bool(attributes.get("pads") or attributes.get("auto_pad"))
    assert graph.ops[0].count_pad == bool(count_include_pad and padded)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_means_over_the_plane(model: Any, keepdims: int) -> None:
    x = model.input([1, 6, 4, 8], S, -20)
    rank = 4 if keepdims else 2
    model.output(model.requantize(model.node("GlobalAveragePool", x), S, 7))
    model.output(model.requantize(model.node("ReduceMean", x, axes=[-1, 2], keepdims=keepdims), S, 7), rank)
    model.output(model.requantize(model.node("ReduceMean", x, axes=[3], keepdims=1), S, 7))
    graph = model.check()
    assert [op.kernel for op in graph.ops] == [(4, 8), (4, 8), (1, 8)]


def test_free_operators_leave_nothing_behind(model: Any) -> None:
    x = model.input([1, 6, 1, 1], S, -20)
    y = model.node(
        "Identity",
        model.node("Dropout", model.requantize(model.node("Squeeze", x, model.const(np.array([2]))), S, -20)),
    )
    y = model.node("Unsqueeze", y, model.const(np.array([2])))
    y = model.node("Transpose", y, perm=[0, 3, 2, 1])
    y = model.node("Reshape", y, model.const(np.array([-1, 6])))
    y = model.node("Gemm", y, model.constant(int8(4, 6), 2.0**-4), transB=1)
    assert kinds(model.output(model.requantize(y, T), 2).check()) == [Conv]


def test_reshape_of_planes_is_free_and_of_channels_moves_pixels(model: Any) -> None:
    x = model.input([1, 6, 2, 4], S, -20)
    y = model.node("Reshape", x, model.const(np.array([1, 6, 4, 2])))
    y = model.requantize(conv(model, y, 6, 6, (1, 1)), S, 1)
    z = model.node("Reshape", y, model.const(np.array([1, 3, 4, 4])))
    graph = model.output(model.requantize(conv(model, z, 2, 3, (1, 1)), T, 1)).check()
    assert kinds(graph) == [Reshape, Conv, Conv, Conv, Copy, Conv]


def test_shape_arithmetic_of_exporters_is_folded(model: Any) -> None:
    x = model.input(["N", 6, 2, 4], S, -20)
    size = model.node("Gather", model.node("Shape", x), model.const(np.array(0)), axis=0)
    shape = model.node(
        "Concat", model.node("Unsqueeze", size, model.const(np.array([0]))), model.const(np.array([-1])), axis=0
    )
    y = model.node("Gemm", model.node("Reshape", x, shape), model.constant(int8(4, 48), 2.0**-5), transB=1)
    graph = model.output(model.requantize(y, T), 2).check()
    assert kinds(graph) == [Conv]
    assert graph.inputs[0].shape == (1, 6, 2, 4)


@pytest.mark.parametrize("scales", [(S, S, S), (S, T, T), (S, T, 0.5)])
@pytest.mark.parametrize("relu", [False, True])
def test_concat(model: Any, scales: tuple[float, float, float], relu: bool) -> None:
    zeros = (4, 4, 4) if scales[0] == scales[2] else (4, -9, -9 if scales[1] == scales[2] else 60)
    a = model.input([1, 3, 4, 5], scales[0], zeros[0], "a")
    b = model.input([1, 2, 4, 5], scales[1], zeros[1], "b")
    y = model.node("Concat", a, b, axis=1)
    y = model.node("Relu", y) if relu else y
    graph = model.output(model.requantize(y, scales[2], zeros[2])).check()
    found = kinds(graph)
    if scales[0] == scales[2]:
        assert found == [Concat] + [Table] * relu
    else:
        assert found == [Table] * (2 if relu or scales[1] != scales[2] else 1) + [Concat]


def test_tables(model: Any) -> None:
    x = model.input([1, 3, 4, 5], S, 4)
    model.output(model.requantize(x, T, -30))
    model.output(model.requantize(model.node("Relu", x), S, 4))
    model.output(model.requantize(model.node("Clip", x, "", model.const(np.float32(2))), S, 4))
    model.output(model.requantize(model.node("LeakyRelu", x, alpha=0.25), S, 4))
    assert kinds(model.check()) == [Table] * 4


def test_tables_of_transcendental_functions_are_within_onnxruntimes_last_bit(model: Any) -> None:
    """Sigmoid and Tanh: the rounded function; onnxruntime's approximation may fall on the other side of a tie."""
    x = model.input([1, 1, 1, 256], S / 4, 0)
    for op_type in ("Sigmoid", "Tanh"):
        model.output(model.requantize(model.node(op_type, x), 1 / 128))
    feeds = {"x": (np.arange(-128, 128) * S / 4).astype(np.float32).reshape(1, 1, 1, 256)}
    ours, theirs = model.golden(feeds), model.onnxruntime(feeds)
    for name in ours:
        assert np.abs(ours[name] - theirs[name]).max() <= 1 / 128
        assert (ours[name] != theirs[name]).sum() <= 1


def test_host_steps_at_both_edges(model: Any) -> None:
    """NHWC input transposed and scaled on the host; class probabilities computed there."""
    model.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 5, 3]))
    x = model.node("Mul", model.node("Transpose", "x", perm=[0, 3, 1, 2]), model.const(np.float32(0.5)))
    x = model.requantize(x, S, -3)
    y = model.requantize(model.node("Flatten", conv(model, x, 8, 3, (4, 5))), S, 10)
    y = model.requantize(model.node("Softmax", y, axis=-1), 2.0**-8, -128)
    graph = model.output(model.node("Reshape", y, model.const(np.array([2, 4]))), 2).check()
    assert kinds(graph) == [Conv]
    assert [step["op"] for step in graph.inputs[0].steps] == ["Transpose", "Mul", "QuantizeLinear"]
    assert "Softmax" in [step["op"] for step in graph.outputs[0].steps]


def test_softmax_before_opset_13_covers_the_trailing_axes(models: Any) -> None:
    model = models(opset=12)
    x = model.input([1, 3, 2, 2], S, 3)
    y = model.node("Conv", x, model.constant(int8(3, 3, 1, 1), 2.0**-5))
    y = model.requantize(y, S, 0)
    model.output(model.requantize(model.node("Softmax", y, axis=1), 2.0**-8, -128)).check()


@pytest.mark.parametrize("unsigned", [False, True])
def test_integer_inputs_and_outputs(models: Any, unsigned: bool) -> None:
    model = models(unsigned)
    kind, shift = (TensorProto.UINT8, 128) if unsigned else (TensorProto.INT8, 0)
    model.inputs.append(helper.make_tensor_value_info("x", kind, [1, 3, 4, 4]))
    y = conv(model, model.dq("x", S, -5 + shift), 4, 3, (2, 2))
    graph = model.output(model.q(y, T, 20 + shift), 4, kind).check()
    assert graph.inputs[0].dtype == graph.outputs[0].dtype == ("uint8" if unsigned else "int8")
    assert graph.tensors[graph.inputs[0].tensor].zero_point == -5


def test_multiplier_is_onnxruntimes(model: Any) -> None:
    """f32(f32(sx * sw[c]) / sy), in this order."""
    rng = np.random.default_rng(3)
    sx, sw, sy = np.float32(0.0371), rng.uniform(0.001, 0.1, 64).astype(np.float32), np.float32(0.0913)
    x = model.input([1, 1, 2, 2], sx, 0)
    y = model.node("Conv", x, model.constant(np.full((64, 1, 1, 1), 127, np.int8), sw, np.zeros(64, np.int8)))
    graph = model.output(model.requantize(y, sy, 0)).load()
    assert np.array_equal(graph.ops[0].multiplier, (sx * sw).astype(np.float32) / sy)
    other = (sx.astype(np.float64) * sw / sy).astype(np.float32)
    assert not np.array_equal(graph.ops[0].multiplier, other)


def test_same_parameters_by_another_route_cost_nothing(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S, -5)
    for _ in range(3):
        x = model.requantize(x, S, -5)
    graph = model.output(model.requantize(conv(model, x, 2, 3, (1, 1)), T)).check()
    assert kinds(graph) == [Conv]


def test_a_symbolic_batch_is_one(model: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "onnxhw")
    x = model.input(["batch", 3, 4, 4], S, -5)
    graph = model.output(model.requantize(conv(model, x, 2, 3, (1, 1)), T)).load()
    assert graph.inputs[0].shape == (1, 3, 4, 4)
    assert "batch dimension 'batch' set to 1" in caplog.text


def test_tensors_carry_the_models_names_in_order(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S, -5)
    a = model.requantize(conv(model, x, 3, 3, (1, 1)), S)
    graph = model.output(model.requantize(model.node("Add", a, x), S)).load()
    outputs = {node.name: node.output[0] for node in model.nodes}
    for op in graph.ops:
        assert op.output == outputs[op.nodes[-1]]
    places = [list(outputs).index(op.nodes[-1]) for op in graph.ops]
    assert all(a < b for a, b in pairwise(places))


def test_what_no_output_needs_is_removed(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S, -5)
    model.requantize(conv(model, x, 3, 3, (1, 1)), S)
    graph = model.output(model.requantize(model.node("Add", x, x), S)).load()
    assert kinds(graph) == [Add]
    assert len(graph.tensors) == 2


def test_channels_without_weights_keep_the_models_constants(model: Any) -> None:
    """Bias 2^30 and a scale of 2^-31, as trained networks have them: the graph is what the model says."""
    x = model.input([1, 3, 4, 4], S, -5)
    w = int8(4, 3, 1, 1)
    w[1] = w[2] = 0
    scale = np.array([2.0**-5, 2.0**-31, 2.0**-5, 2.0**-5], np.float32)
    bias = np.array([5, 2**30, 1 << 20, -7], np.int32)
    weights = model.constant(w, scale, np.zeros(4, np.int8))
    y = model.node("Conv", x, weights, model.constant(bias, scale * np.float32(S), np.zeros(4, np.int32)))
    graph = model.output(model.requantize(y, 2.0**-5, 3)).check()
    assert graph.ops[0].bias.tolist() == bias.tolist()


def test_loads_a_path_with_external_data(model: Any, tmp_path: Any) -> None:
    x = model.input([1, 3, 4, 4], S, -5)
    model.output(model.requantize(conv(model, x, 2, 3, (1, 1)), T))
    path = tmp_path / "model.onnx"
    onnx.save(model.proto(), path, save_as_external_data=True, size_threshold=0, location="weights.bin")
    from onnxhw.partition import load

    assert np.array_equal(load(path).ops[0].weight, model.load().ops[0].weight)


@pytest.mark.parametrize("again", [False, True])
def test_an_input_with_its_channels_last_is_loaded_as_it_is_needed(model: Any, again: bool) -> None:
    """Quantized before its Transpose, too, as converted TensorFlow models have it."""
    x = model.input([1, 6, 5, 3], S, -5)
    moved = model.node("Transpose", x, perm=[0, 3, 1, 2])
    moved = model.requantize(moved, S, -5) if again else moved
    y = model.requantize(conv(model, moved, 4, 3, (3, 3), pads=[1, 1, 1, 1]), 8 * T, 3)
    graph = model.output(model.node("Transpose", y, perm=[0, 2, 3, 1])).check()
    assert kinds(graph) == [Conv]
    assert [step["op"] for step in graph.inputs[0].steps] == ["QuantizeLinear", "Transpose"]


def test_an_input_that_is_needed_in_two_forms_is_loaded_twice(model: Any) -> None:
    x = model.input([1, 3, 5, 3], S, -5)
    turned = conv(model, model.node("Transpose", x, perm=[0, 3, 2, 1]), 4, 3, (1, 1))
    model.output(model.requantize(turned, 8 * T, 3))
    graph = model.output(model.requantize(conv(model, x, 4, 3, (1, 1)), 8 * T, 3)).check()
    assert kinds(graph) == [Conv, Conv]
    assert len(graph.inputs) == 2
