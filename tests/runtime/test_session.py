"""`InferenceSession` runs whole models as a user of onnxruntime would, on every device with the same result."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from session_net import SHAPE, Net, draw, mixed

from onnxhw.errors import OnnxhwError, UnsupportedError, UsageError
from onnxhw.hostops import onnxruntime_node
from onnxhw.hostops.evaluator import evaluate
from onnxhw.presets import preset
from onnxhw.runtime.session import InferenceSession


@pytest.mark.parametrize("device", ["golden", "emulator"])
def test_every_device_gives_what_the_model_means(device: str) -> None:
    x = draw()
    wanted = evaluate(mixed(), {"x": x})
    with InferenceSession(mixed(), device=device, config=preset("mini")) as session:
        assert len(session.model.parts) == 3
        results = session.run(None, {"x": x})
        assert len(session.get_outputs()) == len(results) == 2
        for value, got in zip(session.get_outputs(), results, strict=True):
            np.testing.assert_array_equal(got, wanted[value.name])
        assert (session.cycles > 0) == (device != "golden")
        if session.program:
            assert session.cycles == session.program.cycles


@pytest.mark.slow
@pytest.mark.rtl
def test_the_rtl_gives_what_the_model_means() -> None:
    x = draw()
    wanted = evaluate(mixed(), {"x": x})
    with InferenceSession(mixed(), device="cxxrtl", config=preset("mini")) as session:
        for value, got in zip(session.get_outputs(), session.run(None, {"x": x}), strict=True):
            np.testing.assert_array_equal(got, wanted[value.name])


def test_several_samples_are_several_inferences() -> None:
    x = draw([5, 4, 4, 4])
    session = InferenceSession(mixed())
    together, _ = session.run(None, {"x": x})
    ones = [session.run(None, {"x": x[i : i + 1]})[0] for i in range(5)]
    np.testing.assert_array_equal(together, np.concatenate(ones))
    assert len({one.tobytes() for one in ones}) == 5


def test_samples_of_a_model_with_open_dimensions() -> None:
    net = Net(["N", "K"])
    session = InferenceSession(net.model(net.node("Softmax", "x"), rank=2))
    (value,) = session.get_inputs()
    assert value.shape == ["N", "K"]
    for shape in ([1, 5], [3, 4]):
        (got,) = session.run(None, {"x": draw(shape)})
        np.testing.assert_allclose(got.sum(axis=1), np.ones(shape[0]), rtol=1e-5)  # a sum of float32 quotients
    with pytest.raises(UsageError, match=r"E2503.*\[1, 'K'\], not \[5\]"):
        session.run(None, {"x": draw([5])})


def test_a_dimension_variable_has_one_value_in_a_run() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
        g (float["K", "N"] x, float["K", "N"] y) => (float["K", "N"] z) { z = Add(x, y) }"""
    session = InferenceSession(onnx.parser.parse_model(text))
    (found,) = session.run(None, {"x": draw([1, 3]), "y": draw([1, 3])})
    np.testing.assert_array_equal(found, draw([1, 3]) * 2)
    with pytest.raises(UsageError, match="E2503"):
        session.run(None, {"x": draw([1, 3]), "y": draw([1, 1])})


def of_sequences(dims: list[Any]) -> InferenceSession:
    """The length of a sequence, an optional tensor and a tensor, which share their dimensions."""
    inner = helper.make_tensor_type_proto(TensorProto.FLOAT, dims)
    graph = helper.make_graph(
        [helper.make_node("SequenceLength", ["s"], ["n"]), helper.make_node("OptionalHasElement", ["o"], ["there"]),
         helper.make_node("Relu", ["x"], ["y"])],
        "sequences",
        [helper.make_value_info("s", helper.make_sequence_type_proto(inner)),
         helper.make_value_info("o", helper.make_optional_type_proto(inner)),
         helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("n", TensorProto.INT64, []),
         helper.make_tensor_value_info("there", TensorProto.BOOL, []),
         helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)],
    )  # fmt: skip
    return InferenceSession(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))


@pytest.mark.parametrize("dims", [[2, "K"], ["N", "K"], [2, 3]])
def test_a_variable_in_a_sequence_has_one_value_in_a_run(dims: list[Any]) -> None:
    session, x = of_sequences(dims), np.ones((2, 3), np.float32)
    odd = np.ones((2, 4), np.float32)
    n, there, _ = session.run(None, {"s": [x, x], "o": x, "x": x})
    assert (int(n), bool(there)) == (2, True)
    assert not session.run(None, {"s": [], "o": None, "x": x})[1]
    for feeds in ({"s": [x], "o": odd, "x": x}, {"s": [odd, odd], "o": None, "x": x}, {"s": [x[:1]], "o": None, "x": x},
                  {"s": [x[0]], "o": None, "x": x}):  # fmt: skip
        with pytest.raises(UsageError, match="E2503"):
            session.run(None, feeds)
    several = {"s": [x, odd], "o": x, "x": x}
    if "K" in dims:  # as in onnx's own suite
        assert int(session.run(None, several)[0]) == 2
    else:
        with pytest.raises(UsageError, match="E2503"):
            session.run(None, several)


def test_outputs_are_chosen_by_name_and_described() -> None:
    session = InferenceSession(mixed())
    first, second = session.get_outputs()
    assert (first.shape, first.dtype) == ([1, 4, 4, 4], "float32")
    x = draw()
    a, b = session.run(None, {"x": x})
    (c,) = session.run([second.name], {"x": x})
    np.testing.assert_array_equal(b, c)
    assert not np.array_equal(a, b)
    (value,) = session.get_inputs()
    assert (value.name, value.shape, value.dtype) == ("x", [1, 4, 4, 4], "float32")


@pytest.mark.parametrize(
    ("names", "feeds", "code"),
    [
        (["nothing"], {"x": draw()}, "E2501"),
        (None, {}, "E2502"),
        (None, {"x": draw(), "y": draw()}, "E2502"),
        (None, {"x": draw([1, 4, 4, 5])}, "E2503"),
        (None, {"x": draw([0, 4, 4, 4])}, "E2503"),
        (None, {"x": draw()[0]}, "E2503"),
        (None, {"x": draw().astype(np.int32)}, "E2503"),
        (None, {"x": "text"}, "E2503"),
        (None, {"x": [[1.0, 2.0], [3.0]]}, "E2503"),
    ],
)
def test_wrong_calls_are_refused(names: Any, feeds: Any, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        InferenceSession(mixed()).run(names, feeds)
    assert caught.value.code == code


def test_unknown_device() -> None:
    with pytest.raises(UsageError, match=r"E2500.*devices: golden, emulator, cxxrtl"):
        InferenceSession(mixed(), device="gpu")


def test_a_feed_replaces_an_initializer_that_is_an_input() -> None:
    net = Net()
    net.inputs.append(helper.make_tensor_value_info("w", TensorProto.INT8, [4, 4, 1, 1]))
    model = net.model(net.conv(net.grid("x")))
    session = InferenceSession(model)
    assert [value.name for value in session.get_overridable_initializers()] == ["w"]
    x, w = draw(), np.full((4, 4, 1, 1), 3, np.int8)
    (before,) = session.run(None, {"x": x})
    (got,) = session.run(None, {"x": x, "w": w})
    (after,) = session.run(None, {"x": x})
    (wanted,) = evaluate(model, {"x": x, "w": w}).values()
    np.testing.assert_array_equal(got, wanted)
    assert not np.array_equal(before, got)
    np.testing.assert_array_equal(before, after)


def test_a_float_model_runs_on_the_host() -> None:
    net = Net()
    model = net.model(net.node("Erf", net.node("Relu", "x")))
    session = InferenceSession(model)
    assert session.model.hardware == []
    (got,), (wanted,) = session.run(None, {"x": draw()}), evaluate(model, {"x": draw()}).values()
    np.testing.assert_array_equal(got, wanted)


def test_a_dynamic_shape_runs_on_the_host() -> None:
    net = Net()
    y = net.grid(net.node("Relu", net.grid("x")))
    picked = net.node("NonZero", y)
    net.constants.append(numpy_helper.from_array(np.array([4, -1]), "shape"))
    model = net.model(net.node("Cast", net.node("Reshape", picked, "shape"), to=TensorProto.FLOAT), rank=2)
    session = InferenceSession(model)
    assert len(session.model.hardware) == 1
    (got,), (wanted,) = session.run(None, {"x": draw()}), evaluate(model, {"x": draw()}).values()
    np.testing.assert_array_equal(got, wanted)


def test_a_fixed_batch_runs() -> None:
    shape = [2, 4, 4, 4]
    net = Net(shape)
    model = net.model(net.conv(net.grid("x")))
    (got,) = InferenceSession(model).run(None, {"x": draw(shape)})
    (wanted,) = evaluate(model, {"x": draw(shape)}).values()
    np.testing.assert_array_equal(got, wanted)


def test_strings_and_sequences_run_on_the_host() -> None:
    nodes = [
        helper.make_node("Identity", ["t"], ["u"]),
        helper.make_node("SequenceConstruct", ["x", "x"], ["q"]),
        helper.make_node("SequenceLength", ["q"], ["n"]),
    ]
    graph = helper.make_graph(
        nodes,
        "odd",
        [helper.make_tensor_value_info("t", TensorProto.STRING, [2]),
         helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("u", TensorProto.STRING, [2]),
         helper.make_tensor_value_info("n", TensorProto.INT64, [])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    u, n = InferenceSession(model).run(None, {"t": np.array(["a", "bc"], object), "x": np.zeros(2, np.float32)})
    assert u.tolist() == ["a", "bc"]
    assert int(n) == 2


def test_text_is_an_array_of_objects_as_in_onnxruntime() -> None:
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_int64s=[0, 1],
                            values_strings=["no", "y"], default_string="?")  # fmt: skip
    graph = helper.make_graph(
        [node], "labels", [helper.make_tensor_value_info("x", TensorProto.INT64, [3])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, [3])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    session = InferenceSession(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    (y,) = session.run(None, {"x": np.array([1, 7, 0])})
    assert (y.dtype, y.tolist()) == (np.dtype(object), ["y", "?", "no"])


def test_nan_weights_run_on_the_host() -> None:
    net = Net()
    net.constants.append(numpy_helper.from_array(np.full(SHAPE, np.nan, np.float32), "nan"))
    model = net.model(net.node("Add", net.grid("x"), "nan"))
    (got,) = InferenceSession(model).run(None, {"x": draw()})
    assert np.isnan(got).all()


def test_what_nothing_implements_is_refused_by_name_when_it_runs() -> None:
    net = Net()
    model = net.model(net.grid(net.node("Wobble", net.conv(net.grid("x")), domain="made.up")))
    session = InferenceSession(model)
    (row,) = session.model.refused
    assert (row.node, row.op_type, row.domain, row.code) == (row.node, "Wobble", "made.up", "E4401")
    assert row.hint
    with pytest.raises(UnsupportedError, match=r"E4401.*\n.*Wobble"):
        session.run(None, {"x": draw()})
    with pytest.raises(UnsupportedError, match="E4401"):
        InferenceSession(model, device="emulator")


def test_what_the_scheduler_cannot_map_goes_to_the_host() -> None:
    """A scale so small that no constant of the requantizer is proved: the scheduler finds that, not the conversion."""
    net = Net()
    net.constants += [numpy_helper.from_array(np.float32(2.0**-20 / 37), "tiny")]
    x = net.conv(net.grid("x"))
    q = net.node("QuantizeLinear", net.node("AveragePool", x, kernel_shape=[2, 2]), "tiny", "z")
    model = net.model(net.node("DequantizeLinear", q, "tiny", "z"), x)
    with InferenceSession(model, device="emulator", config=preset("mini")) as session:
        results = session.run(None, {"x": draw()})
        for got, wanted in zip(results, evaluate(model, {"x": draw()}).values(), strict=True):
            np.testing.assert_array_equal(got, wanted)
        rows = {row.op_type: row for row in session.model.placement}
        assert rows["Conv"].where == "hardware"
        assert rows["AveragePool"].where == "host"
        assert "scale ratio" in rows["AveragePool"].reason


def test_errors_are_ours() -> None:
    with pytest.raises(OnnxhwError):
        InferenceSession(b"nonsense")


MIXES = {
    "sum": ('<ir_version: 10, opset_import: ["" : 21]> g (float[batch,3] x) => (float[1,3] y) '
            "<int64[1] a = {0}> { y = ReduceSum<keepdims=1>(x, a) }"),
    "softmax": ('<ir_version: 10, opset_import: ["" : 21]> g (float[batch,3] x) => (float[batch,3] y) '
                "{ y = Softmax<axis=0>(x) }"),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXES)
def test_samples_of_an_open_batch_may_meet_on_the_host(name: str) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3) - 2.5
    model = onnx.parser.parse_model(MIXES[name])
    (found,) = InferenceSession(model).run(None, {"x": x})
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    assert found.shape == wanted.shape
    assert np.allclose(found, wanted)


def test_an_input_without_a_batch_goes_with_every_sample() -> None:
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[N,3] x, float[3] z) => (float[N,3] y) { y = Add(x, z) }'
    x, z = np.ones((2, 3), np.float32), np.arange(3, dtype=np.float32)
    (found,) = InferenceSession(onnx.parser.parse_model(text)).run(None, {"x": x, "z": z})
    assert np.array_equal(found, x + z)


def test_a_constant_node_may_be_sparse() -> None:
    values = onnx.helper.make_tensor("v", onnx.TensorProto.FLOAT, [2], [1.5, -2.0])
    indices = onnx.helper.make_tensor("i", onnx.TensorProto.INT64, [2], [1, 5])
    sparse = onnx.helper.make_sparse_tensor(values, indices, [2, 3])
    constant = onnx.helper.make_node("Constant", [], ["w"], sparse_value=sparse)
    nodes = [constant, onnx.helper.make_node("Add", ["x", "w"], ["y"])]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in "xy"]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:])
    model = onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 21)])
    (found,) = InferenceSession(model).run(None, {"x": np.zeros((2, 3), np.float32)})
    assert found.tolist() == [[0, 1.5, 0], [0, 0, -2]]


QDQ = """<ir_version: 8, opset_import: ["" : 17]> g (uint8[1,64,6,6] x, int8[32,64,3,3] w) => (uint8[1,32,6,6] y) {
    xs = Constant<value=float {0.0625}>() ws = Constant<value=float {0.0078125}>() ys = Constant<value=float {32.0}>()
    z = Constant<value=uint8 {0}>() wz = Constant<value=int8 {0}>()
    a = DequantizeLinear(x, xs, z) b = DequantizeLinear(w, ws, wz) c = Conv<pads=[1, 1, 1, 1]>(a, b)
    y = QuantizeLinear(c, ys, z) }"""
SUMS = """<ir_version: 8, opset_import: ["" : 17]> g (uint8[8,64] x, int8[64,16] w) => (int32[8,16] y) {
    y = MatMulInteger(x, w) }"""


@pytest.mark.parametrize("text", [QDQ, SUMS])
def test_onnxruntime_computes_products_of_uint8_and_int8_exactly(text: str) -> None:
    """By default it adds pairs of products in 16 bits where the processor has no VNNI; sums of MatMulInteger it adds so
    whatever the options say, so these are ours there."""
    proto = onnx.parser.parse_model(text)
    rng = np.random.default_rng(7)
    shapes = [[dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in proto.graph.input]
    weights = rng.integers(90, 128, shapes[1], np.int8)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    del proto.graph.input[1]
    feeds = {"x": rng.integers(160, 256, shapes[0], np.uint8)}
    if text == QDQ:
        session = onnxruntime.InferenceSession(proto.SerializeToString(), onnxruntime_node.options())
        np.testing.assert_array_equal(session.run(None, feeds)[0], evaluate(proto, feeds)["y"])
    else:
        sums = feeds["x"].astype(np.int32) @ weights.astype(np.int32)
        np.testing.assert_array_equal(evaluate(proto, feeds)["y"], sums)
    assert onnxruntime_node.options().get_session_config_entry("session.x64quantprecision") == "1"


def test_an_empty_path_is_not_the_current_folder() -> None:
    with pytest.raises(OnnxhwError, match=r"E3001 .*its path is empty"):
        InferenceSession("")


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')


@pytest.mark.parametrize("text", [
    "g (float[2] x) => (float[2] y, float[2] w) <float[2] w = {1, 2}> { y = Add(x, w) }",
    "g (float[2] x) => (float[2] y, float[2] w, float[2] v) <float[2] w = {1, 2}> { v = Identity(w) y = Add(x, v) }",
    "g (float[2] x) => (float[2] y, float[2] w) <float[2] u = {1, 2}> { w = Neg(u) y = Add(x, w) }",
    "g (float[2] x) => (float[2] y, float[2] w) { w = Constant<value = float[2] {1, 2}>() y = Add(x, w) }",
])  # fmt: skip
def test_results_are_the_callers_own(text: str) -> None:
    session, x = InferenceSession(parsed(text)), np.ones(2, np.float32)
    before = [array.copy() for array in session.run(None, {"x": x})]
    for array in session.run(None, {"x": x}):
        array[:] = 50
    np.testing.assert_array_equal(session.run(None, {"x": x}), before)
    np.testing.assert_array_equal(x, 1)


def test_a_result_that_is_an_input_is_another_array() -> None:
    x = np.ones(2, np.float32)
    (y,) = InferenceSession(parsed("g (float[2] x) => (float[2] y) { y = Identity(x) }")).run(None, {"x": x})
    assert not np.shares_memory(x, y)


@pytest.mark.parametrize("given", [np.array([b"a", b"bc"]), np.array([b"a", "bc"], object), np.array(["a", "bc"])])
def test_bytes_are_text_in_utf8(given: Any) -> None:
    session = InferenceSession(parsed("g (string[2] x) => (string[2] y) { y = Identity(x) }"))
    assert session.run(None, {"x": given})[0].tolist() == ["a", "bc"]
    with pytest.raises(UsageError, match="UTF-8") as caught:
        session.run(None, {"x": np.array([b"a", b"\xff"])})
    assert caught.value.code == "E2503"
