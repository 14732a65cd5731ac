"""What cannot be mapped is refused by name, all of it at once, with a hint; nothing is computed wrongly."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxhw.convert.blockers import UnsupportedNodesError
from onnxhw.errors import InvalidModelError, UnsupportedError
from onnxhw.partition import load, read

S, T = 0.125, 0.25
W = np.ones((4, 3, 1, 1), np.int8)


def refused(model: Any) -> UnsupportedNodesError:
    with pytest.raises(UnsupportedNodesError) as caught:
        model.load()
    assert caught.value.exit_status == 4
    for blocker in caught.value.blockers:
        assert blocker.node
        assert blocker.op_type
        assert blocker.reason
        assert blocker.text() in str(caught.value)
    return caught.value


def one(model: Any) -> Any:
    (blocker,) = refused(model).blockers
    return blocker


def weights(model: Any, q: Any = W, scale: Any = 2.0**-5, zero: Any = None, axis: int = 0) -> str:
    return str(model.constant(q, scale, zero, axis))


def test_all_blockers_are_named_in_order(model: Any) -> None:
    x = model.input([1, 3, 8, 8], S)
    a = model.requantize(model.node("LRN", x, size=3), S)
    b = model.requantize(model.node("Conv", a, weights(model)), S)
    c = model.requantize(model.node("LpPool", b, kernel_shape=[1, 1]), S)
    d = model.requantize(model.node("Div", c, b), S)
    error = refused(model.output(d))
    assert [blocker.op_type for blocker in error.blockers] == ["LRN", "LpPool", "Div"]
    assert error.code == "E4001"
    assert str(error).startswith("E4001 unsupported: model: 3 nodes cannot run on this release:")
    assert error.blockers[0].op_type == "LRN"


def test_a_node_behind_a_blocked_one_is_not_blamed(model: Any) -> None:
    x = model.input([1, 3, 8, 8], S)
    y = model.node("Relu", model.node("LpPool", model.node("LRN", x, size=3), kernel_shape=[2, 2]))
    assert [blocker.op_type for blocker in refused(model.output(model.requantize(y, S))).blockers] == [
        "LRN",
        "LpPool",
    ]


def test_float_model(model: Any) -> None:
    model.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 4]))
    model.output(model.node("Relu", "x"))
    with pytest.raises(
        UnsupportedError, match=r"E4002 unsupported.*not quantized.*Hint: quantize it to int8 in QDQ"
    ) as caught:
        model.load()
    assert caught.value.exit_status == 4


def test_float_activation_in_a_quantized_model(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S)
    y = model.node("Conv", model.node("Conv", x, weights(model)), weights(model, np.ones((2, 4, 1, 1), np.int8)))
    blocker = one(model.output(model.requantize(y, T)))
    assert "comes from 'Conv_" in blocker.reason
    assert "without QuantizeLinear" in blocker.reason
    assert "QuantizeLinear and DequantizeLinear" in blocker.hint


def test_float_output(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S)
    blocker = one(model.output(model.node("Conv", x, weights(model))))
    assert blocker.op_type == "Conv"
    assert "float output" in blocker.reason


def test_weights_in_float(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S)
    y = model.node("Conv", x, model.const(W.astype(np.float32)))
    assert one(model.output(model.requantize(y, T))).reason == "the weights are not quantized"


@pytest.mark.parametrize(
    ("q", "scale", "zero", "axis", "reason"),
    [
        (W, [0.5] * 3, np.zeros(3, np.int8), 1, "weights are quantized along axis 1"),
        (W.astype(np.int32) * 382, 0.5, np.int32(0), 0, "leave -384..381"),
    ],
)
def test_weights_of_other_kinds(model: Any, q: Any, scale: Any, zero: Any, axis: int, reason: str) -> None:
    x = model.input([1, 3, 4, 4], S)
    y = model.node("Conv", x, weights(model, q, scale, zero, axis))
    assert reason in one(model.output(model.requantize(y, T))).reason


def test_weight_zero_point_that_leaves_int8s_range_intact_is_taken(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S)
    y = model.node("Conv", x, weights(model, W * 7, 2.0**-5, np.int8(5)))
    graph = model.output(model.requantize(y, T)).check()
    assert set(graph.ops[0].weight.ravel().tolist()) == {2}


@pytest.mark.parametrize("value", [2.0**31 * S * 2.0**-5, -np.inf, np.nan])
def test_bias_that_leaves_32_bits(model: Any, value: float) -> None:
    x = model.input([1, 3, 4, 4], S)
    y = model.node("Conv", x, weights(model), model.const(np.array([0, 0.3, value, 1], np.float32)))
    blocker = one(model.output(model.requantize(y, T)))
    assert blocker.op_type == "Conv"
    assert blocker.reason == "the bias in units of input scale * weight scale leaves 32 bits"


def test_bias_scale_may_differ_in_the_last_bits(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S)
    bias = model.constant(np.full(4, 5, np.int32), np.nextafter(np.float32(S * 2.0**-5), np.float32(1)), np.int32(0))
    y = model.node("Conv", x, weights(model), bias)
    assert model.output(model.requantize(y, T)).load().ops[0].bias.tolist() == [5] * 4


def test_sum_beyond_32_bits(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S, -128)
    bias = model.constant(np.full(4, 2**31 - 100, np.int32), S * 2.0**-5, np.int32(0))
    y = model.node("Conv", x, weights(model), bias)
    assert "exceed 32 bits" in one(model.output(model.requantize(y, T))).reason


def test_activation_per_channel_and_of_16_bits(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S)
    scales, zeros = model.const(np.full(3, S, np.float32)), model.const(np.zeros(3, np.int8))
    y = model.node("DequantizeLinear", model.node("QuantizeLinear", x, scales, zeros), scales, zeros)
    assert "per channel" in one(model.output(y)).reason
    model.opset, model.outputs = 21, []
    scale, zero = model.const(np.float32(S)), model.const(np.int16(0))
    z = model.node("DequantizeLinear", model.node("QuantizeLinear", x, scale, zero), scale, zero)
    assert "activations are int16" in refused(model.output(z)).blockers[-1].reason


def test_quotient_of_two_activations(model: Any) -> None:
    a, b = model.input([1, 3, 4, 4], S, 0, "a"), model.input([1, 3, 1, 4], S, 0, "b")
    blocker = one(model.output(model.requantize(model.node("Div", a, b), S)))
    assert blocker.reason == "Div of two activations"


def test_factor_per_pixel(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S)
    y = model.node("Mul", x, model.const(np.arange(4, dtype=np.float32)))
    assert "a scalar or one value per channel" in one(model.output(model.requantize(y, S))).hint


def test_transpose_that_moves_data(model: Any) -> None:
    x = model.requantize(model.node("MaxPool", model.input([1, 3, 8, 8], S), kernel_shape=[5, 5]), S)
    y = model.node("Transpose", x, perm=[0, 2, 1, 3])
    y = model.node("MaxPool", y, kernel_shape=[2, 2])
    assert "it mixes channels and pixels" in one(model.output(model.requantize(y, S))).reason


def test_matmul_of_rows_of_channels(model: Any) -> None:
    x = model.requantize(model.node("MaxPool", model.input([1, 20, 12], S), kernel_shape=[2], strides=[2]), S)
    y = model.node("MatMul", x, weights(model, np.ones((6, 4), np.int8)))
    assert "it mixes channels and pixels" in one(model.output(model.requantize(y, S), 3)).reason


def test_gemm_with_alpha(model: Any) -> None:
    x = model.input([1, 6], S)
    y = model.node("Gemm", x, weights(model, np.ones((6, 4), np.int8)), alpha=0.5)
    assert "alpha and beta" in one(model.output(model.requantize(y, S), 2)).reason


@pytest.mark.parametrize(
    ("op_type", "attributes", "reason"),
    [
        (
            "AveragePool",
            {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1},
            "ceil_mode together",
        ),
        (
            "MaxPool",
            {"kernel_shape": [2, 2], "strides": [3, 3], "pads": [0, 0, 1, 1], "ceil_mode": 1},
            "starts in the padding",
        ),
    ],
)
def test_windows_without_a_meaning(model: Any, op_type: str, attributes: dict[str, Any], reason: str) -> None:
    x = model.input([1, 3, 8, 8], S)
    assert reason in one(model.output(model.requantize(model.node(op_type, x, **attributes), S))).reason


def test_max_pool_indices(model: Any) -> None:
    x = model.input([1, 3, 8, 8], S)
    y = model.requantize(model.node("MaxPool", x, outputs=2, kernel_shape=[2, 2]), S)
    assert "Indices" in one(model.output(y)).reason


def test_concat_of_batches(model: Any) -> None:
    a, b = model.input([1, 3, 4, 4], S, 0, "a"), model.input([1, 3, 4, 4], S, 0, "b")
    blocker = refused(model.output(model.requantize(model.node("Concat", a, b, axis=0), S))).blockers[0]
    assert "axis 0" in blocker.reason
    assert "after the batch" in blocker.hint


@pytest.mark.parametrize(
    ("shape", "what"),
    [((), "the weights have shape []"), (3, "the matrix has shape [3]"), ((2, 3, 1), "the matrix has shape [2, 3, 1]")],
)
def test_weights_that_are_no_matrix(model: Any, shape: Any, what: str) -> None:
    weights = np.ones(shape, np.int8)
    model.input([1, 3], S)
    grid = [model.const(np.float32(S)), model.const(np.int8(0))]
    node = model.node("QGemm", model.nodes[-1].input[0], *grid, model.const(weights), *grid, "", *grid, transB=1,
                      domain="com.microsoft")  # fmt: skip
    assert what in refused(model.output(model.dq(node, S), 2)).blockers[0].reason


def test_batch_of_two_whose_samples_meet(model: Any) -> None:
    x = model.input([2, 3, 4, 4], S)
    error = refused(model.output(model.requantize(model.node("Concat", x, x, axis=0), S)))
    assert "must be the batch, 1" in error.blockers[0].reason


def test_three_spatial_dimensions(model: Any) -> None:
    x = model.input([1, 3, 4, 4, 4], S)
    error = refused(model.output(model.requantize(model.node("Relu", x), S), 5))
    assert "rank 5" in error.blockers[0].reason


def test_foreign_domain(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S)
    y = model.node("Shuffle", x, domain="example.org")
    assert "domain 'example.org'" in one(model.output(y)).reason


def test_dynamic_image_size(model: Any) -> None:
    x = model.input([1, 3, "height", 4], S)
    with pytest.raises(
        UnsupportedError, match=r"E4003 .*dynamic dimension 'height' on axis 2.*Hint: export with a fixed size"
    ):
        model.output(model.requantize(model.node("Relu", x), T)).load()


def test_nothing_for_the_hardware(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S)
    with pytest.raises(UnsupportedError, match="E4006"):
        model.output(x).load()


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan, 1e-40])
def test_scale_that_is_no_scale(model: Any, scale: float) -> None:
    x = model.input([1, 3, 4, 4], S)
    with pytest.raises(InvalidModelError, match=r"E3020 .*QuantizeLinear_.*scale must be finite, positive and normal"):
        model.output(model.requantize(x, scale)).load()


def test_zero_point_of_another_shape(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S)
    w = model.node(
        "DequantizeLinear", model.const(W), model.const(np.ones(4, np.float32)), model.const(np.int8(0)), axis=0
    )
    with pytest.raises(InvalidModelError, match="E3021"):
        model.output(model.requantize(model.node("Conv", x, w), T)).load()


def test_scales_that_do_not_fit_their_axis(model: Any) -> None:
    x = model.input([1, 3, 4, 4], S)
    with pytest.raises(InvalidModelError, match=r"E3022 .*3 scales do not fit axis 0"):
        model.output(model.requantize(model.node("Conv", x, weights(model, W, [1.0] * 3)), T)).load()


@pytest.mark.parametrize(
    ("scales", "axis", "fits"), [([4], 1, True), ([3], 1, False), ([4], 7, False), ([2, 2], 1, False), ([4], -3, True)]
)
@pytest.mark.parametrize("op_type", ["QuantizeLinear", "DequantizeLinear"])
def test_scales_of_an_activation_must_fit_its_axis(
    op_type: str, scales: list[int], axis: int, fits: bool, models: Any
) -> None:
    """What fits, but is not for the hardware, runs on the host; what does not fit is invalid wherever it would run."""
    model = models(opset=21)
    x = model.q(model.input([1, 4, 2, 3], S), S) if op_type == "DequantizeLinear" else model.input([1, 4, 2, 3], S)
    more = [model.const(np.ones(scales, np.float32)), model.const(np.zeros(scales, np.int8))]
    kind = TensorProto.FLOAT if op_type == "DequantizeLinear" else TensorProto.INT8
    data = model.output(model.node(op_type, x, *more, axis=axis), 4, kind).bytes()
    if fits:
        assert [row.where for row in read(data).placement][-1] == "host"
    else:
        with pytest.raises(InvalidModelError, match="E3022"):
            read(data)


@pytest.mark.parametrize("where", ["output", "value"])
def test_a_declared_shape_that_the_operator_does_not_make(where: str, model: Any) -> None:
    """onnx infers nothing of other domains: what the model says is believed until the operator is looked at."""
    s, z = model.const(np.float32(S)), model.const(np.int8(0))
    x = model.q(model.input([1, 4, 2, 3], S), S)
    y = model.node("QLinearAdd", x, s, z, x, s, z, s, z, domain="com.microsoft")
    proto = model.output(model.dq(y, S)).proto()
    name = proto.graph.output[0].name if where == "output" else y
    kind = TensorProto.FLOAT if where == "output" else TensorProto.INT8
    proto.graph.ClearField("output")
    proto.graph.output.append(helper.make_tensor_value_info(model.outputs[0].name, TensorProto.FLOAT, [1, 4, 2, 3]))
    target = proto.graph.output if where == "output" else proto.graph.value_info
    del target[:]
    target.append(helper.make_tensor_value_info(name, kind, [1, 4, 2, 3]))
    assert read(proto.SerializeToString()).hardware
    target[0].type.tensor_type.shape.dim[3].dim_value = 5
    with pytest.raises(InvalidModelError, match=r"E3400 .*shape \[1, 4, 2, 3\], the model says it is \[1, 4, 2, 5\]"):
        read(proto.SerializeToString())


@pytest.mark.parametrize("zero_point", [0, 5])
def test_zero_point_of_int32(zero_point: int, model: Any) -> None:
    """The operator has none for int32; onnxruntime refuses it as well."""
    bias = [model.const(np.arange(3, dtype=np.int32)), model.const(np.float32(S)), model.const(np.int32(zero_point))]
    x = model.input([1, 3, 4, 4], S)
    w = weights(model, W[:3], [1.0] * 3)
    model.output(model.requantize(model.node("Conv", x, w, model.node("DequantizeLinear", *bias)), T))
    if zero_point:
        with pytest.raises(InvalidModelError, match="E3024"):
            model.load()
    else:
        assert model.load().ops


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({"kernel_shape": [2, 2]}, "E3384"),
        ({"group": 2}, "E3381"),
        ({"auto_pad": "EVIL"}, "E3461"),
        ({"strides": [0, 1]}, "E3380"),
        ({"dilations": [1]}, "E30(10|30)"),
        ({"pads": [0, -1, 0, 0]}, "E3382"),
    ],
)
def test_windows_that_contradict_themselves(model: Any, attributes: dict[str, Any], code: str) -> None:
    x = model.input([1, 3, 4, 4], S)
    with pytest.raises(InvalidModelError, match=code):
        model.output(model.requantize(model.node("Conv", x, weights(model), **attributes), T)).load()


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml"])
def test_an_operator_that_onnx_does_not_know_is_a_blocker_among_the_others(model: Any, domain: str) -> None:
    """onnx.checker stops at it and calls the model invalid; it may be one of a later release, or somebody's own."""
    x = model.input([1, 3, 8, 8], S)
    a = model.requantize(model.node("Frobnicate", x, domain=domain), S)
    b = model.requantize(model.node("LRN", a, size=3), S)
    model.output(b)
    error = refused(model)
    assert [blocker.op_type for blocker in error.blockers] == ["Frobnicate", "LRN"]
    assert ("no operation" if domain == "" else "nor other operators of domain") in error.blockers[0].reason
    assert error.blockers[0].hint == ("docs/operators.md lists what becomes operations" if domain == "" else "")
    (row,) = read(model.bytes()).refused
    assert (row.op_type, row.code) == ("Frobnicate", "E4401")


def test_an_unknown_operator_of_a_float_model_or_of_a_subgraph_is_named(model: Any) -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])
    inner = helper.make_graph([helper.make_node("Frobnicate", ["x"], ["i"], name="inner")], "then", [],
                              [helper.make_tensor_value_info("i", TensorProto.FLOAT, [1, 3])])  # fmt: skip
    flag = helper.make_tensor("flag", TensorProto.BOOL, [], [True])
    for node, name in (
        (helper.make_node("Frobnicate", ["x"], ["y"], name="outer"), "outer"),
        (helper.make_node("If", ["flag"], ["y"], name="if", then_branch=inner, else_branch=inner), "inner"),
    ):
        graph = helper.make_graph([node], "g", [value], [y], [flag])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        with pytest.raises(UnsupportedNodesError, match=r"Frobnicate") as caught:
            load(made.SerializeToString())
        assert (caught.value.exit_status, caught.value.blockers[0].node.split("/")[-1]) == (4, name)


def test_a_model_with_an_unknown_operator_can_still_be_invalid(model: Any) -> None:
    x = model.input([1, 3, 8, 8], S)
    model.output(model.requantize(model.node("Frobnicate", x), S))
    model.nodes[-1].input[0] = "nowhere"
    with pytest.raises(InvalidModelError, match=r"E3... .*nowhere"):
        model.load()


def test_an_operator_newer_than_the_models_operator_set_is_invalid(model: Any) -> None:
    model.opset = 13
    x = model.input([1, 3, 8, 8], S)
    model.output(model.requantize(model.node("HardSwish", x), S))
    with pytest.raises(InvalidModelError, match=r"E3... .*HardSwish"):
        model.load()
