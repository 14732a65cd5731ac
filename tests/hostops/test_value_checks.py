"""The host: no value that the model contradicts, and `check` knows what `run` refuses."""

from math import erf
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw import InferenceSession
from onnxhw.errors import OnnxhwError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.partition import read

from .node_models import code_of, one_node, run_node

F = np.float32


# -- what the model says of its values --------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "code"),
    [((TensorProto.FLOAT, [2, 3]), ""), ((TensorProto.FLOAT, [2, "N"]), ""), ((TensorProto.FLOAT, None), ""),
     ((TensorProto.DOUBLE, [2, 3]), "E4756"), ((TensorProto.FLOAT, [2, 4]), "E4756"),
     ((TensorProto.FLOAT, [6]), "E4756"), ((TensorProto.FLOAT, ["N", "N"]), "E4756"),
     ((TensorProto.STRING, [2, 3]), "E4756")],
)  # fmt: skip
def test_a_value_is_what_the_model_says(declared: tuple[int, Any], code: str) -> None:
    x = {"x": np.ones((2, 3), F)}
    model = one_node("Relu", x, {"y": declared})
    if code:
        assert code_of(model, x) == code
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
    assert code_of(model, feeds) == "E4756"


# -- `check` knows what `run` refuses -----------------------------------------------------------------


def test_variadic_operands_must_not_be_left_out() -> None:
    x = {"x": np.ones(3, F)}
    for name in ("Max", "Sum"):
        with pytest.raises(OnnxhwError, match="E3334"):
            read(one_node(name, x, {"y": (1, [3])}, names=["x", "", "x"]))


def test_nodes_of_com_microsoft_have_the_inputs_of_their_definition() -> None:
    x = {"x": np.ones((1, 2, 3), F)}
    with pytest.raises(OnnxhwError, match="E3332"):
        read(one_node("SkipLayerNormalization", x, {"y": (1, [1, 2, 3])}, domain="com.microsoft"))


def test_types_that_nothing_computes_are_refused_before_a_run() -> None:
    x = {"x": np.ones((1, 2, 3)), "b": np.ones(3)}
    mixed = read(one_node("BiasGelu", x, {"y": (TensorProto.DOUBLE, [1, 2, 3])}, domain="com.microsoft"))
    (row,) = mixed.placement
    assert (row.where, row.code) == ("refused", "E4401")
    assert "float64" in row.reason
    x = {name: value.astype(F) for name, value in x.items()}
    with InferenceSession(one_node("BiasGelu", x, {"y": (1, [1, 2, 3])}, domain="com.microsoft")) as session:
        (y,) = session.run(None, x)
    np.testing.assert_allclose(y, 1 + erf(2**0.5), rtol=1e-5)  # 2 * (1 + erf(2 / sqrt(2))) / 2


@pytest.mark.parametrize(
    ("op_type", "attributes", "reason"),
    [("LinearClassifier", {"classlabels_ints": [1, 2, 3], "coefficients": [1.0] * 8}, "8 coefficients are no 3 rows"),
     ("LinearClassifier", {"classlabels_ints": [1], "coefficients": [1.0]}, "one class label"),
     ("LinearClassifier", {"classlabels_ints": [1, 2], "coefficients": [1.0] * 9, "intercepts": [0.0] * 3}, "two cl"),
     ("LinearRegressor", {"targets": 2, "coefficients": [1.0] * 6, "intercepts": [1.0]}, "1 intercepts for 2 targets")],
)  # fmt: skip
def test_attributes_that_no_run_takes_are_refused_before_it(op_type: str, attributes: Any, reason: str) -> None:
    """The kernels read behind their attributes, or are not made of them, and onnx's reference computes something."""
    x = {"x": np.ones((2, 3), F)}
    outputs = {"y": (TensorProto.INT64, None), "z": (1, None)} if op_type == "LinearClassifier" else {"y": (1, None)}
    model = one_node(op_type, x, outputs, domain="ai.onnx.ml", **attributes)
    with pytest.raises(OnnxhwError, match=reason) as caught:
        read(model)
    assert caught.value.code == "E3460"


def test_what_a_kernel_refuses_and_the_text_allows_is_computed() -> None:
    """onnxruntime makes no kernel of these attributes."""
    x = np.array([[[[1.0]], [[2.0]], [[3.0]]]], F)
    (y,) = run_node("LRN", {"x": x}, size=2, alpha=2.0, beta=1.0, bias=1.0)
    np.testing.assert_allclose(y.ravel(), [1 / 6, 2 / 14, 3 / 10], rtol=1e-6)  # of itself and the next
    model = one_node("Cast", {"x": x}, {"y": (TensorProto.INT32, None)}, to=TensorProto.INT32, saturate=0)
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
        evaluate(one_node("TfIdfVectorizer", x, {"y": None}, **{**usual, **attributes}), x)


def test_a_linear_classifier_reads_no_coefficients_that_are_not_there() -> None:
    x = {"x": np.ones((2, 3), F)}
    more = {"classlabels_ints": [1, 2], "coefficients": [1.0] * 4, "intercepts": [0.0] * 2}
    with pytest.raises(OnnxhwError, match=r"E4752.*4 coefficients are fewer than 2 rows of 3"):
        evaluate(one_node("LinearClassifier", x, {"y": None, "z": None}, domain="ai.onnx.ml", **more), x)


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
    model = one_node(op_type, x, {"y": (1, None)}, opset=opset, ceil_mode=1, **attributes)
    with InferenceSession(model) as session:
        (y,) = session.run(None, x)
        assert session.get_outputs()[0].shape == list(y.shape)
