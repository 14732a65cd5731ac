"""The host's engine: what each operator's text says, what contradicts the model, and what is known before a run."""

import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from math import erf
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw import InferenceSession
from onnxhw.errors import OnnxhwError
from onnxhw.hostrun import native, single
from onnxhw.hostrun.evaluator import evaluate
from onnxhw.hostrun.operators import deviations
from onnxhw.partition import read

F = np.float32


def _model(
    op_type: str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any] = {"y": None},
    opset: int = 21,
    domain: str = "",
    names: Sequence[str] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    """One node; outputs by name with their declared (type, shape), None for no declaration."""
    node = helper.make_node(op_type, list(names or inputs), list(outputs), "it", domain=domain, **attributes)
    given = [
        helper.make_tensor_value_info(
            name,
            TensorProto.STRING if x.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(x.dtype),
            x.shape,
        )
        for name, x in inputs.items()
    ]
    ends = [
        onnx.ValueInfoProto(name=name) if kind is None else helper.make_tensor_value_info(name, *kind)
        for name, kind in outputs.items()
    ]
    imports = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(helper.make_graph([node], "m", given, ends), opset_imports=imports, ir_version=10)


def _run(op_type: str, inputs: Mapping[str, Any], count: int = 1, **more: Any) -> list[Any]:
    names = {f"y{i}": None for i in range(count)}
    return list(evaluate(_model(op_type, inputs, names, **more), inputs).values())


def _code(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> str:
    with pytest.raises(OnnxhwError) as caught:
        evaluate(model, feeds)
    return caught.value.code


# -- what the operators' texts say ---------------------------------------------------------------------


@pytest.mark.parametrize("opset", [18, 22])
def test_the_last_window_of_a_p_norm_pool_has_only_what_it_covers(opset: int) -> None:
    x = np.arange(1, 6, dtype=F).reshape(1, 1, 5)
    (y,) = _run("LpPool", {"x": x}, opset=opset, kernel_shape=[2], strides=[2], ceil_mode=1)
    np.testing.assert_allclose(y.ravel(), [np.hypot(1, 2), np.hypot(3, 4), 5], rtol=1e-6)


def test_unique_values_in_the_order_of_their_first_occurrence() -> None:
    x = np.array([3, 1, 3, 0], F)
    values, first, inverse, counts = _run("Unique", {"x": x}, 4, sorted=0)
    assert [values.tolist(), first.tolist(), inverse.tolist(), counts.tolist()] == [
        [3, 1, 0], [0, 1, 3], [0, 1, 0, 2], [2, 1, 1]
    ]  # fmt: skip


def test_unique_slices_along_an_axis() -> None:
    x = np.array([[2, 1], [0, 0], [2, 1]], F)
    values, first, inverse, counts = _run("Unique", {"x": x}, 4, axis=0)
    wanted = np.unique(x, True, True, True, axis=0)
    for found, one in zip((values, first, inverse.ravel(), counts), wanted, strict=True):
        np.testing.assert_array_equal(found, one.ravel() if one.ndim == 1 else one)


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "uint64", "float32", "float64"])
def test_reductions_give_the_type_they_are_given(kind: str) -> None:
    x = np.array([[3, 1], [4, 2]], kind)
    feeds = {"x": x, "axes": np.array([1])}
    for name, wanted in {
        "ReduceSumSquare": (x * x).sum(1),
        "ReduceLogSum": np.log(x.sum(1)),
        "ReduceLogSumExp": np.log(np.exp(x.astype(float)).sum(1)),
    }.items():
        (y,) = _run(name, feeds, keepdims=0)
        assert y.dtype == kind, name
        np.testing.assert_allclose(y, wanted.astype(kind), rtol=1e-5)


@pytest.mark.parametrize("kind", ["float32", "int16", "bfloat16"])  # there is no kernel of the last two
def test_a_negative_pad_takes_away(kind: str) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16) if kind == "bfloat16" else np.dtype(kind)
    x = np.arange(20).reshape(4, 5).astype(dtype)
    pads = np.array([-1, 2, 0, -3])
    (y,) = _run("Pad", {"x": x, "pads": pads})
    np.testing.assert_array_equal(y, np.pad(x[1:, :2], [(0, 0), (2, 0)]))


def test_gathered_elements_of_a_smaller_index() -> None:
    x = np.arange(6, dtype=F).reshape(2, 3)
    (y,) = _run("GatherElements", {"x": x, "i": np.array([[2, 0]])}, axis=1)
    assert y.tolist() == [[2, 0]]


def test_text_of_numbers_is_the_shortest_that_reads_back() -> None:
    """As onnxruntime writes it: plain, without a point where there is nothing behind it; a boolean is 0 or 1."""
    (y,) = _run("Cast", {"x": np.array([-3, 1.5, 0.1], F)}, to=TensorProto.STRING)
    assert y.tolist() == ["-3", "1.5", "0.1"]
    (y,) = _run("Cast", {"x": np.array([True, False])}, to=TensorProto.STRING)
    assert y.tolist() == ["1", "0"]


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8"])
def test_a_quotient_of_integers_is_cut_off(kind: str) -> None:
    info = np.iinfo(kind)
    a = np.array([7, info.max, info.min, info.min, 5, 1], kind)
    b = np.array([2, 3, 2, -1 if info.min else 1, info.max, info.max], kind)
    (y,) = _run("Div", {"a": a, "b": b})
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    wanted = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in pairs]
    wrapped = [(one - info.min) % (1 << info.bits) + info.min for one in wanted]
    np.testing.assert_array_equal(y, np.array(wrapped, kind))
    assert _code(_model("Div", {"a": a, "b": b}), {"a": a, "b": 0 * b}) == "E4752"


def test_normalization_that_is_not_spatial() -> None:
    rng = np.random.default_rng(1)
    feeds = {name: rng.uniform(0.5, 2, (2, 3)).astype(F) for name in "sbmv"}
    x = rng.normal(size=(4, 2, 3)).astype(F)
    (y,) = _run("BatchNormalization", {"x": x, **feeds}, opset=7, spatial=0)
    wanted = feeds["s"] * (x - feeds["m"]) / np.sqrt(feeds["v"] + 1e-5) + feeds["b"]
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


def test_what_ends_a_kernel_is_refused_before() -> None:
    data, indices = np.ones((3, 3), F), np.array([[1]])
    assert _code(_model("GatherND", {"x": data, "i": indices}, batch_dims=-3), {"x": data, "i": indices}) == "E4752"
    grams = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0]}
    text = {"x": np.ones(3, np.int64)}
    model = _model("TfIdfVectorizer", text, ngram_indexes=[1 << 40], pool_int64s=[1], **grams)
    assert _code(model, text) == "E4752"
    for name in ("Max", "Sum", "Concat"):
        more = {"axis": 0} if name == "Concat" else {}
        assert _code(_model(name, {"x": data}, names=["x", "", "x"], **more), {"x": data}) == "E4752"


# -- kernels, and what is there instead ------------------------------------------------------------------


def test_nodes_share_a_session_by_what_they_are() -> None:
    native._sessions.clear()
    x = {"x": np.ones(3, F)}
    for opset in (14, 17, 21):
        evaluate(_model("Relu", x, opset=opset), x)
    assert len(native._sessions) == 1
    evaluate(_model("Relu", {"x": np.ones(3)}), {"x": np.ones(3)})
    assert len(native._sessions) == 2


def test_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    native._sessions.clear()
    monkeypatch.setattr(native, "CACHED", 3)
    for axis in range(6):
        x = {"x": np.ones((1,) * 6, F)}
        evaluate(_model("Softmax", x, axis=axis), x)
    assert len(native._sessions) == 3


def test_every_deviation_is_of_an_operator_and_says_why() -> None:
    known = {(one.domain, one.name) for one in onnx.defs.get_all_schemas()}
    for row in deviations.DEVIATIONS:
        assert (row.domain, row.op_type) in known
        assert row.remark


def test_types_without_a_kernel_are_computed_by_others() -> None:
    """onnxruntime has no uint32 for this one; complex and bfloat16 do not pass to it at all."""
    (y,) = _run("ReduceLogSum", {"x": np.array([3, 4], np.uint32)})
    assert (y.dtype, y.item()) == (np.uint32, 1)
    bfloat = helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)
    (y,) = _run("Cast", {"x": np.array([1.5, -2], F)}, to=TensorProto.BFLOAT16)
    assert (y.dtype, y.astype(F).tolist()) == (bfloat, [1.5, -2])
    (y,) = _run("Cast", {"x": np.array([1.5, -2.25], bfloat)}, to=TensorProto.STRING)
    assert [float(text) for text in y] == [1.5, -2.25]


def test_errors_have_onnxruntimes_reason_without_its_paths() -> None:
    feeds = {"x": np.ones((2, 3), F), "w": np.ones((4, 5), F)}
    model = _model("MatMul", feeds)
    with pytest.raises(OnnxhwError) as caught:
        evaluate(model, feeds)
    text = caught.value.text()
    assert caught.value.code == "E4752"
    assert "node 'it'" in text
    assert "ONNXRuntimeError" not in text
    assert ".cc" not in text


# -- wall: what the model says of its values --------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "code"),
    [((TensorProto.FLOAT, [2, 3]), ""), ((TensorProto.FLOAT, [2, "N"]), ""), ((TensorProto.FLOAT, None), ""),
     ((TensorProto.DOUBLE, [2, 3]), "E4756"), ((TensorProto.FLOAT, [2, 4]), "E4756"),
     ((TensorProto.FLOAT, [6]), "E4756"), ((TensorProto.FLOAT, ["N", "N"]), "E4756"),
     ((TensorProto.STRING, [2, 3]), "E4756")],
)  # fmt: skip
def test_a_value_is_what_the_model_says(declared: tuple[int, Any], code: str) -> None:
    x = {"x": np.ones((2, 3), F)}
    model = _model("Relu", x, {"y": declared})
    if code:
        assert _code(model, x) == code
    else:
        assert evaluate(model, x)["y"].shape == (2, 3)


def test_a_variable_has_one_value_in_a_run() -> None:
    """[1, 6] for [1, N] with N = 3: the size of an input counts for an output, and for every value between."""
    nodes = [helper.make_node("Concat", ["x", "x"], ["y"], axis=1)]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "m", [value("x", 1, [1, "N"])], [value("y", 1, [1, "N"])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with InferenceSession(model) as session, pytest.raises(OnnxhwError, match="E4756"):
        session.run(None, {"x": np.ones((1, 3), F)})


def test_a_variable_of_two_inferred_sizes_is_refused_before_a_run() -> None:
    nodes = [helper.make_node("Slice", ["x", "a", "b"], ["u"]), helper.make_node("Relu", ["x"], ["v"])]
    value = helper.make_tensor_value_info
    constants = [numpy_helper.from_array(np.array([start]), name) for name, start in (("a", 0), ("b", 2))]
    ends = [value("u", 1, ["N"]), value("v", 1, ["N"])]
    graph = helper.make_graph(nodes, "m", [value("x", 1, [3])], ends, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with pytest.raises(OnnxhwError, match=r"E3400.*'N' has one value"):
        read(model)


def test_a_variable_of_a_nested_graph_is_its_own_in_each_run() -> None:
    """The outer one counts inside; one that only the body has may differ from iteration to iteration."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Concat", ["v", "x"], ["w"], axis=0), helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("v", 1, ["K"])],
        [value("d", TensorProto.BOOL, []), value("w", 1, ["L"])],
    )
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)]
    graph = helper.make_graph(
        nodes, "m", [value("n", TensorProto.INT64, []), value("x", 1, ["M"])], [onnx.ValueInfoProto(name="y")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    feeds = {"n": np.array(3), "x": np.ones(2, F)}
    assert evaluate(model, feeds)["y"].shape == (8,)
    body.output[1].type.tensor_type.shape.dim[0].dim_param = "M"
    nodes[0].attribute[0].g.CopyFrom(body)
    graph.node[0].CopyFrom(nodes[0])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    assert _code(model, feeds) == "E4756"


# -- wall: `check` knows what `run` refuses -----------------------------------------------------------------


def test_variadic_operands_must_not_be_left_out() -> None:
    x = {"x": np.ones(3, F)}
    for name in ("Max", "Sum"):
        with pytest.raises(OnnxhwError, match="E3334"):
            read(_model(name, x, {"y": (1, [3])}, names=["x", "", "x"]))


def test_nodes_of_com_microsoft_have_the_inputs_of_their_definition() -> None:
    x = {"x": np.ones((1, 2, 3), F)}
    with pytest.raises(OnnxhwError, match="E3332"):
        read(_model("SkipLayerNormalization", x, {"y": (1, [1, 2, 3])}, domain="com.microsoft"))


def test_types_that_nothing_computes_are_refused_before_a_run() -> None:
    x = {"x": np.ones((1, 2, 3)), "b": np.ones(3)}
    mixed = read(_model("BiasGelu", x, {"y": (TensorProto.DOUBLE, [1, 2, 3])}, domain="com.microsoft"))
    (row,) = mixed.placement
    assert (row.where, row.code) == ("refused", "E4401")
    assert "float64" in row.reason
    x = {name: value.astype(F) for name, value in x.items()}
    with InferenceSession(_model("BiasGelu", x, {"y": (1, [1, 2, 3])}, domain="com.microsoft")) as session:
        (y,) = session.run(None, x)
    np.testing.assert_allclose(y, 1 + erf(2**0.5), rtol=1e-5)  # 2 * (1 + erf(2 / sqrt(2))) / 2


@pytest.mark.parametrize(
    ("op_type", "attributes", "reason"),
    [("LinearClassifier", {"classlabels_ints": [1, 2, 3], "coefficients": [1.0] * 8}, "8 coefficients are no 3 rows"),
     ("LinearClassifier", {"classlabels_ints": [1], "coefficients": [1.0]}, "one class label"),
     ("LinearClassifier", {"classlabels_ints": [1, 2], "coefficients": [1.0] * 9, "intercepts": [0.0] * 3}, "2 el"),
     ("LinearRegressor", {"targets": 2, "coefficients": [1.0] * 6, "intercepts": [0.0]}, "1 intercepts for 2 targets")],
)  # fmt: skip
def test_attributes_that_no_run_takes_are_refused_before_it(op_type: str, attributes: Any, reason: str) -> None:
    """The kernels read behind their attributes, or are not made of them, and onnx's reference computes something."""
    x = {"x": np.ones((2, 3), F)}
    outputs = {"y": (TensorProto.INT64, None), "z": (1, None)} if op_type == "LinearClassifier" else {"y": (1, None)}
    model = _model(op_type, x, outputs, domain="ai.onnx.ml", **attributes)
    (row,) = read(model).placement
    assert (row.where, row.code) == ("refused", "E4401")
    assert reason in row.reason
    assert _code(model, x) == "E4752"


def test_what_a_kernel_refuses_and_the_text_allows_is_computed() -> None:
    """onnxruntime makes no kernel of these attributes."""
    x = np.array([[[[1.0]], [[2.0]], [[3.0]]]], F)
    (y,) = _run("LRN", {"x": x}, size=2, alpha=2.0, beta=1.0, bias=1.0)
    np.testing.assert_allclose(y.ravel(), [1 / 6, 2 / 14, 3 / 10], rtol=1e-6)  # of itself and the next
    model = _model("Cast", {"x": x}, {"y": (TensorProto.INT32, None)}, to=TensorProto.INT32, saturate=0)
    assert [row.where for row in read(model).placement] == ["host"]
    with InferenceSession(model) as session:
        assert session.run(None, {"x": x})[0].ravel().tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [({"ngram_indexes": [1 << 40]}, "ngram_indexes are not"), ({"ngram_indexes": [-1]}, "ngram_indexes are not"),
     ({"max_skip_count": 1 << 40}, "max_skip_count 1099511627776 is above")],
)  # fmt: skip
def test_ngrams_that_do_not_end_are_refused_with_the_reason(attributes: Any, reason: str) -> None:
    x = {"x": np.ones(3, np.int64)}
    usual = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0],
             "ngram_indexes": [0], "pool_int64s": [1]}  # fmt: skip
    with pytest.raises(OnnxhwError, match=rf"E4752.*{reason}"):
        evaluate(_model("TfIdfVectorizer", x, {"y": None}, **{**usual, **attributes}), x)


def test_a_linear_classifier_reads_no_coefficients_that_are_not_there() -> None:
    x = {"x": np.ones((2, 3), F)}
    more = {"classlabels_ints": [1, 2], "coefficients": [1.0] * 4, "intercepts": [0.0] * 2}
    with pytest.raises(OnnxhwError, match=r"E4752.*4 coefficients are fewer than 2 rows of 3"):
        evaluate(_model("LinearClassifier", x, {"y": None, "z": None}, domain="ai.onnx.ml", **more), x)


@pytest.mark.parametrize(
    ("op_type", "opset", "attributes", "shape"),
    [("LpPool", 18, {"auto_pad": "VALID", "strides": [3, 3], "kernel_shape": [1, 2], "dilations": [2, 1]}, (3, 6)),
     ("MaxPool", 11, {"auto_pad": "SAME_LOWER", "strides": [3, 1], "kernel_shape": [1, 2]}, (5, 4)),
     ("AveragePool", 19, {"auto_pad": "SAME_UPPER", "strides": [3, 3], "kernel_shape": [2, 1]}, (4, 4))],
)  # fmt: skip
def test_what_inference_counts_of_windows_does_not_refuse_a_run(
    op_type: str, opset: int, attributes: Any, shape: Any
) -> None:
    """Before operator set 22 it counts windows in ceil mode that start behind the padded input."""
    x = {"x": np.arange(2 * np.prod(shape), dtype=F).reshape(1, 2, *shape)}
    model = _model(op_type, x, {"y": (1, None)}, opset=opset, ceil_mode=1, **attributes)
    with InferenceSession(model) as session:
        (y,) = session.run(None, x)
        assert session.get_outputs()[0].shape == list(y.shape)


def test_folding_gives_what_a_run_would() -> None:
    for op_type, dtype in (("Div", np.int64), ("Add", F), ("Gather", np.int64)):
        a, b = np.array([7, 5, 2], dtype), np.array([2, 2, 1], dtype)
        node = helper.make_node(op_type, ["a", "b"], ["y"])
        (folded,) = single.computed(node, 17, [a, b])
        (ran,) = _run(op_type, {"a": a, "b": b}, opset=17)
        np.testing.assert_array_equal(folded, ran)
        assert folded.dtype == ran.dtype
    (squeezed,) = single.computed(helper.make_node("Unsqueeze", ["a"], ["y"], axes=[0]), 11, [a])
    assert squeezed.shape == (1, 3)  # as its operator set has it, not the newest


# -- loops --------------------------------------------------------------------------------------------------


def _loop(trips: int) -> onnx.ModelProto:
    """``y = trips iterations of v + 1``, and each iteration's number."""
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["v", "one"], ["w"]), helper.make_node("Identity", ["c"], ["d"]),
             helper.make_node("Identity", ["i"], ["j"])]  # fmt: skip
    body = helper.make_graph(
        nodes,
        "body",
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("v", 1, [1])],
        [value("d", TensorProto.BOOL, []), value("w", 1, [1]), value("j", TensorProto.INT64, [])],
    )
    node = helper.make_node("Loop", ["trips", "", "x"], ["y", "numbers"], body=body)
    constants = [numpy_helper.from_array(np.array(trips), "trips"), numpy_helper.from_array(np.ones(1, F), "one")]
    ends = [value("y", 1, [1]), value("numbers", TensorProto.INT64, None)]
    graph = helper.make_graph([node], "m", [value("x", 1, [1])], ends, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_values_of_many_iterations_are_stacked_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (3, 7, 100):
        monkeypatch.setattr("onnxhw.hostrun.operators.control.STACKED", size)
        found = evaluate(_loop(14), {"x": np.zeros(1, F)})
        assert found["y"].tolist() == [14]
        assert found["numbers"].tolist() == list(range(14))


def test_a_long_loop_is_not_run_by_check_and_ends_when_interrupted() -> None:
    model = _loop(10_000_000)
    assert [row.where for row in read(model).placement] == ["host"]
    started = time.monotonic()
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        evaluate(model, {"x": np.zeros(1, F)})
    assert time.monotonic() - started < 60  # it would take minutes; the margin is for a loaded machine
