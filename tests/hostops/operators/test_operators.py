"""The host's engine: what each operator's text says, and when onnxruntime is asked."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw.errors import OnnxhwError
from onnxhw.hostops import onnxruntime_node, single_node
from onnxhw.hostops.evaluator import evaluate
from onnxhw.hostops.operators import deviations

from ..node_models import code_of, one_node, run_node

F = np.float32


# -- what the operators' texts say ---------------------------------------------------------------------


@pytest.mark.parametrize("opset", [18, 22])
def test_the_last_window_of_a_p_norm_pool_has_only_what_it_covers(opset: int) -> None:
    x = np.arange(1, 6, dtype=F).reshape(1, 1, 5)
    (y,) = run_node("LpPool", {"x": x}, opset=opset, kernel_shape=[2], strides=[2], ceil_mode=1)
    np.testing.assert_allclose(y.ravel(), [np.hypot(1, 2), np.hypot(3, 4), 5], rtol=1e-6)


def test_unique_values_in_the_order_of_their_first_occurrence() -> None:
    x = np.array([3, 1, 3, 0], F)
    values, first, inverse, counts = run_node("Unique", {"x": x}, 4, sorted=0)
    assert [values.tolist(), first.tolist(), inverse.tolist(), counts.tolist()] == [
        [3, 1, 0], [0, 1, 3], [0, 1, 0, 2], [2, 1, 1]
    ]  # fmt: skip


def test_unique_slices_along_an_axis() -> None:
    x = np.array([[2, 1], [0, 0], [2, 1]], F)
    values, first, inverse, counts = run_node("Unique", {"x": x}, 4, axis=0)
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
        (y,) = run_node(name, feeds, keepdims=0)
        assert y.dtype == kind, name
        np.testing.assert_allclose(y, wanted.astype(kind), rtol=1e-5)


@pytest.mark.parametrize("kind", ["float32", "int16", "bfloat16"])  # there is no kernel of the last two
def test_a_negative_pad_takes_away(kind: str) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16) if kind == "bfloat16" else np.dtype(kind)
    x = np.arange(20).reshape(4, 5).astype(dtype)
    pads = np.array([-1, 2, 0, -3])
    (y,) = run_node("Pad", {"x": x, "pads": pads})
    np.testing.assert_array_equal(y, np.pad(x[1:, :2], [(0, 0), (2, 0)]))


def test_gathered_elements_of_a_smaller_index() -> None:
    x = np.arange(6, dtype=F).reshape(2, 3)
    (y,) = run_node("GatherElements", {"x": x, "i": np.array([[2, 0]])}, axis=1)
    assert y.tolist() == [[2, 0]]


def test_text_of_numbers_is_the_shortest_that_reads_back() -> None:
    """As onnxruntime writes it: plain, without a point where there is nothing behind it; a boolean is 0 or 1."""
    (y,) = run_node("Cast", {"x": np.array([-3, 1.5, 0.1], F)}, to=TensorProto.STRING)
    assert y.tolist() == ["-3", "1.5", "0.1"]
    (y,) = run_node("Cast", {"x": np.array([True, False])}, to=TensorProto.STRING)
    assert y.tolist() == ["1", "0"]


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8"])
def test_a_quotient_of_integers_is_cut_off(kind: str) -> None:
    info = np.iinfo(kind)
    a = np.array([7, info.max, info.min, info.min, 5, 1], kind)
    b = np.array([2, 3, 2, -1 if info.min else 1, info.max, info.max], kind)
    (y,) = run_node("Div", {"a": a, "b": b})
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    wanted = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in pairs]
    wrapped = [(one - info.min) % (1 << info.bits) + info.min for one in wanted]
    np.testing.assert_array_equal(y, np.array(wrapped, kind))
    assert code_of(one_node("Div", {"a": a, "b": b}), {"a": a, "b": 0 * b}) == "E4752"


def test_normalization_that_is_not_spatial() -> None:
    rng = np.random.default_rng(1)
    feeds = {name: rng.uniform(0.5, 2, (2, 3)).astype(F) for name in "sbmv"}
    x = rng.normal(size=(4, 2, 3)).astype(F)
    (y,) = run_node("BatchNormalization", {"x": x, **feeds}, opset=7, spatial=0)
    wanted = feeds["s"] * (x - feeds["m"]) / np.sqrt(feeds["v"] + 1e-5) + feeds["b"]
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


def test_what_ends_a_kernel_is_refused_before() -> None:
    data, indices = np.ones((3, 3), F), np.array([[1]])
    assert code_of(one_node("GatherND", {"x": data, "i": indices}, batch_dims=-3), {"x": data, "i": indices}) == "E4752"
    grams = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0]}
    text = {"x": np.ones(3, np.int64)}
    model = one_node("TfIdfVectorizer", text, ngram_indexes=[1 << 40], pool_int64s=[1], **grams)
    assert code_of(model, text) == "E4752"
    for name in ("Max", "Sum", "Concat"):
        more = {"axis": 0} if name == "Concat" else {}
        assert code_of(one_node(name, {"x": data}, names=["x", "", "x"], **more), {"x": data}) == "E4752"


# -- kernels, and what is there instead ------------------------------------------------------------------


def test_nodes_share_a_session_by_what_they_are() -> None:
    onnxruntime_node._sessions.clear()
    x = {"x": np.ones(3, F)}
    for opset in (14, 17, 21):
        evaluate(one_node("Relu", x, opset=opset), x)
    assert len(onnxruntime_node._sessions) == 1
    evaluate(one_node("Relu", {"x": np.ones(3)}), {"x": np.ones(3)})
    assert len(onnxruntime_node._sessions) == 2


def test_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    onnxruntime_node._sessions.clear()
    monkeypatch.setattr(onnxruntime_node, "CACHED", 3)
    for axis in range(6):
        x = {"x": np.ones((1,) * 6, F)}
        evaluate(one_node("Softmax", x, axis=axis), x)
    assert len(onnxruntime_node._sessions) == 3


def test_every_deviation_is_of_an_operator_and_says_why() -> None:
    known = {(one.domain, one.name) for one in onnx.defs.get_all_schemas()}
    for row in deviations.DEVIATIONS:
        assert (row.domain, row.op_type) in known
        assert row.remark


def test_types_without_a_kernel_are_computed_by_others() -> None:
    """onnxruntime has no uint32 for this one; complex and bfloat16 do not pass to it at all."""
    (y,) = run_node("ReduceLogSum", {"x": np.array([3, 4], np.uint32)})
    assert (y.dtype, y.item()) == (np.uint32, 1)
    bfloat = helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)
    (y,) = run_node("Cast", {"x": np.array([1.5, -2], F)}, to=TensorProto.BFLOAT16)
    assert (y.dtype, y.astype(F).tolist()) == (bfloat, [1.5, -2])
    (y,) = run_node("Cast", {"x": np.array([1.5, -2.25], bfloat)}, to=TensorProto.STRING)
    assert [float(text) for text in y] == [1.5, -2.25]


def _sessions_that_fail(monkeypatch: pytest.MonkeyPatch, kind: str, text: str) -> None:
    """Every session fails to be made with an exception of onnxruntime's, or of Python's."""
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as states

    def fails(*_: Any, **__: Any) -> None:
        raise (MemoryError if kind == "MemoryError" else getattr(states, kind))(text)

    onnxruntime_node._sessions.clear()
    monkeypatch.setattr(onnxruntime, "InferenceSession", fails)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("NotImplemented", "Could not find an implementation for Abs(13)"),
        ("InvalidGraph", "Type 'tensor(float)' of input parameter (x0) of operator (Abs) is invalid."),
        ("InvalidArgument", "Invalid tensor data type 0."),
        ("Fail", "Exception during initialization: x.cc:23 size_ % 2 == 1 was false."),
        ("RuntimeException", "Exception during initialization: x.cc:23 size_ % 2 == 1 was false."),
    ],
)
def test_a_node_that_onnxruntime_refuses_is_computed_by_others(
    monkeypatch: pytest.MonkeyPatch, kind: str, text: str
) -> None:
    _sessions_that_fail(monkeypatch, kind, text)
    (y,) = run_node("Abs", {"x": np.array([-2, 3], F)})
    assert y.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("RuntimeException", "Exception during initialization: std::bad_alloc"),
        ("Fail", "Failed to allocate memory for requested buffer of size 1"),
        ("EPFail", "CPUExecutionProvider: no such provider"),
        ("NoSuchFile", "a library is missing"),
        ("MemoryError", ""),
    ],
)
def test_a_session_that_fails_for_another_reason_is_no_lack_of_a_kernel(
    monkeypatch: pytest.MonkeyPatch, kind: str, text: str
) -> None:
    """Nothing else computes the node in its stead, `check` says so, and it is not remembered."""
    x = {"x": np.array([-2, 3], F)}
    model = one_node("Abs", x)
    with monkeypatch.context() as broken:
        _sessions_that_fail(broken, kind, text)
        with pytest.raises(OnnxhwError, match="E4752") as caught:
            evaluate(model, x)
        assert text.split(":")[-1] in caught.value.text()
        assert single_node.missing_kernel(model.graph.node[0], 21, ["float32"])
    assert evaluate(model, x)["y"].tolist() == [2, 3]
    assert single_node.missing_kernel(model.graph.node[0], 21, ["float32"]) == ""


def test_errors_have_onnxruntimes_reason_without_its_paths() -> None:
    feeds = {"x": np.ones((2, 3), F), "w": np.ones((4, 5), F)}
    model = one_node("MatMul", feeds)
    with pytest.raises(OnnxhwError) as caught:
        evaluate(model, feeds)
    text = caught.value.text()
    assert caught.value.code == "E4752"
    assert "node 'it'" in text
    assert "ONNXRuntimeError" not in text
    assert ".cc" not in text


def test_folding_gives_what_a_run_would() -> None:
    for op_type, dtype in (("Div", np.int64), ("Add", F), ("Gather", np.int64)):
        a, b = np.array([7, 5, 2], dtype), np.array([2, 2, 1], dtype)
        node = helper.make_node(op_type, ["a", "b"], ["y"])
        (folded,) = single_node.computed(node, 17, [a, b])
        (ran,) = run_node(op_type, {"a": a, "b": b}, opset=17)
        np.testing.assert_array_equal(folded, ran)
        assert folded.dtype == ran.dtype
    (squeezed,) = single_node.computed(helper.make_node("Unsqueeze", ["a"], ["y"], axes=[0]), 11, [a])
    assert squeezed.shape == (1, 3)  # as its operator set has it, not the newest
