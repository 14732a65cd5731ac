"""`evaluate`: what the host runs, and how it refuses."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw.errors import OnnxhwError
from onnxhw.hostops import evaluator
from onnxhw.hostops.evaluator import evaluate
from onnxhw.hostops.single_node import implemented


def _model(
    *nodes: onnx.NodeProto, opset: int = 17, domains: tuple[str, ...] = (), **inputs: list[int]
) -> onnx.ModelProto:
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in nodes[-1].output]
    graph = helper.make_graph(list(nodes), "model", given, outputs)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


RELU = helper.make_node("Relu", ["x"], ["y"], name="rectifier")
X = {"x": np.array([-1, 1], np.float32)}


def _code(model: onnx.ModelProto, feeds: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(OnnxhwError) as caught:
        evaluate(model, feeds)
    return caught.value.code, caught.value.text()


def test_outputs_by_name() -> None:
    assert np.array_equal(evaluate(_model(RELU, x=[2]), X)["y"], [0, 1])


@pytest.mark.parametrize("feeds", [{}, {**X, "other": X["x"]}])
def test_inputs_that_do_not_fit(feeds: dict[str, Any]) -> None:
    assert _code(_model(RELU, x=[2]), feeds)[0] == "E2701"


def test_an_operator_that_nobody_has() -> None:
    model = _model(helper.make_node("Unheard", ["x"], ["y"], "odd", domain="nowhere"), domains=("nowhere",), x=[2])
    code, text = _code(model, X)
    assert code == "E4750"
    assert "Unheard" in text
    assert "nowhere" in text
    assert "'odd'" in text


def test_an_attribute_that_is_missing() -> None:
    assert _code(_model(helper.make_node("Unsqueeze", ["x"], ["y"]), opset=11, x=[2]), X)[0] in ("E4751", "E4752")


def test_operands_that_do_not_fit_name_the_node() -> None:
    model = _model(helper.make_node("Add", ["x", "z"], ["y"], "sum"), x=[2], z=[3])
    code, text = _code(model, {**X, "z": np.ones(3, np.float32)})
    assert code == "E4752"
    assert "'sum'" in text
    assert "float32[2], float32[3]" in text


def test_a_loop_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxhw.hostops.operators.control.MAX_ITERATIONS", 100)
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["on"]), helper.make_node("Add", ["v", "v"], ["w"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [2]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [2]),
        ],
    )
    code, text = _code(_model(helper.make_node("Loop", ["", "", "x"], ["y"], body=body), x=[2]), X)
    assert code == "E4753"
    assert "100" in text


def test_outputs_that_our_operator_does_not_compute_are_refused() -> None:
    names = {name: np.ones(2, np.float32) for name in "sbmv"}
    node = helper.make_node("BatchNormalization", ["x", *names], ["y", "m2", "v2"])
    model = _model(node, opset=14, x=[1, 2], s=[2], b=[2], m=[2], v=[2])
    assert _code(model, {"x": np.ones((1, 2), np.float32), **names})[0] == "E4752"


ONE = np.ones(1, np.float32)
IMAGE = {"x": np.ones((1, 1, 2, 2), np.float32)}
BYTES = {"x": np.ones((1, 1, 2, 2), np.uint8), "s": np.float32(1), "z": np.uint8(0)}
BEYOND: list[tuple[str, str, int, dict[str, Any], dict[str, Any]]] = [
    ("qonnx.custom_op.general", "Quant", 17,
     {**IMAGE, "s": ONE, "z": 0 * ONE, "b": np.array([2.5], np.float32)}, {"signed": 1, "narrow": 0}),
    ("qonnx.custom_op.general", "MultiThreshold", 17,
     {**IMAGE, "t": np.ones((1, 1), np.float32)}, {"out_dtype": "INT8", "data_layout": "CNHW"}),
    ("", "BatchNormalization", 6, {**IMAGE, **dict.fromkeys("sbmv", ONE)}, {"is_test": 0}),
    ("", "Upsample", 9, {**IMAGE, "scales": np.array([1, 1, 0.5, 0.5], np.float32)}, {"mode": "nearest"}),
]  # fmt: skip
"""What our operators do not compute: domain, operator, operator set, operands and attributes."""


@pytest.mark.parametrize(("domain", "op_type", "opset", "feeds", "attributes"), BEYOND)
def test_what_our_operators_do_not_compute_is_refused(
    domain: str, op_type: str, opset: int, feeds: dict[str, Any], attributes: dict[str, Any]
) -> None:
    node = helper.make_node(op_type, list(feeds), ["out"], "this one", domain=domain, **attributes)
    model = _model(node, opset=opset, domains=(domain,) if domain else ())
    model.graph.input.extend(
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
    )
    code, text = _code(model, feeds)
    assert code == "E4752"
    assert "'this one'" in text


def test_the_long_name_of_the_default_domain() -> None:
    model = _model(helper.make_node("Relu", ["x"], ["y"], domain="ai.onnx"), x=[2])
    model.opset_import[0].domain = "ai.onnx"
    assert np.array_equal(evaluate(model, X)["y"], [0, 1])
    assert model.graph.node[0].domain == "ai.onnx"


def test_prepared_models_are_kept_but_not_all() -> None:
    for size in range(evaluator.CACHED + 5):
        evaluate(_model(RELU, x=[2 + size]), {"x": np.zeros(2 + size, np.float32)})
    assert len(evaluator._prepared) == evaluator.CACHED
    kept = next(reversed(evaluator._prepared.values()))
    evaluate(_model(RELU, x=[2 + size]), {"x": np.zeros(2 + size, np.float32)})
    assert next(reversed(evaluator._prepared.values())) is kept


@pytest.mark.parametrize(
    ("domain", "op", "version", "there"),
    [
        ("", "Conv", 13, True),
        ("ai.onnx", "Loop", 13, True),
        ("", "Gelu", 20, True),
        ("", "Gelu", 19, False),
        ("", "SequenceMap", 17, True),
        ("", "Scatter", 10, True),
        ("", "Scatter", 11, False),
        ("", "MaxRoiPool", 13, True),
        ("com.microsoft", "QLinearAdd", 1, True),
        ("com.microsoft", "Unheard", 1, False),
        ("ai.onnx.ml", "ZipMap", 1, True),
        ("qonnx.custom_op.general", "Quant", 1, True),
        ("ai.onnx.preview.training", "Gradient", 1, False),
    ],
)
def test_implemented(domain: str, op: str, version: int, there: bool) -> None:
    assert implemented(domain, op, version) == there


@pytest.mark.parametrize("shape", [(1, 3, 4), (2, 3, 4, 5), (1, 2, 3, 4, 5)])
def test_global_max_pool_of_any_rank(shape: tuple[int, ...]) -> None:
    """onnx's reference is wrong for other ranks than 4."""
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("GlobalMaxPool", ["x"], ["y"])], "g", [value("x", 1, shape)], [value("y", 1, None)]
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    wanted = x.reshape(*shape[:2], -1).max(-1).reshape(*shape[:2], *[1] * (len(shape) - 2))
    np.testing.assert_array_equal(evaluate(model, {"x": x})["y"], wanted)


def test_results_do_not_depend_on_strides() -> None:
    """Float sums depend on their order, and numpy's order on the layout: the same values give the same bits."""
    x = np.random.default_rng(1).normal(size=(1, 8, 10, 10)).astype(np.float32)
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("ReduceMean", ["x"], ["y"], axes=[2, 3])], "g", [value("x", 1, x.shape)],
        [value("y", 1, None)],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    turned = np.ascontiguousarray(x.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
    assert not np.array_equal(x.mean((2, 3)), turned.mean((2, 3)))
    np.testing.assert_array_equal(evaluate(model, {"x": x})["y"], evaluate(model, {"x": turned})["y"])


def _matches(pattern: str, texts: Any) -> Any:
    value = np.array(texts, object)
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    given = [helper.make_tensor_value_info("x", TensorProto.STRING, list(value.shape))]
    graph = helper.make_graph([node], "m", given, [onnx.ValueInfoProto(name="y")])
    return evaluate(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), {"x": value})["y"]


def test_a_pattern_takes_time_linear_in_the_text() -> None:
    """One that Python's `re` would not have done in a lifetime; also where text has no dimension or no elements."""
    found = _matches("(a+)+b", [["a" * 100_000, "a" * 100_000 + "b"], ["", "ab\n"]])
    assert (found.dtype, found.tolist()) == (np.bool_, [[False, True], [False, False]])
    assert _matches(".", "ä").tolist() is True
    assert _matches("a", []).shape == (0,)


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "(((a{1000}){1000}){1000})"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(OnnxhwError, match=r"E4752 .*no pattern of RE2"):
        _matches(pattern, ["a"])
