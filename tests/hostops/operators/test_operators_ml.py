"""Operators of ai.onnx.ml against their formulas."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw import InferenceSession

X = np.array([[-2.0, -1.0, 0.5], [1.0, 4.0, -2.0]], np.float32)


def run(op_type: str, operands: list[Any], types: list[Any], version: int = 1, **attributes: Any) -> list[Any]:
    """The results of a session with one node; `types` are the element types of its outputs."""
    names = [f"x{i}" for i in range(len(operands))]
    outputs = [helper.make_tensor_value_info(f"y{i}", kind, None) for i, kind in enumerate(types)]
    node = helper.make_node(op_type, names, [value.name for value in outputs], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([node], "g", [_value(name, x) for name, x in zip(names, operands, strict=True)], outputs)
    imports = [helper.make_opsetid("ai.onnx.ml", version), helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    with InferenceSession(model.SerializeToString()) as session:
        return session.run(None, dict(zip(names, operands, strict=True)))


def _value(name: str, x: Any) -> onnx.ValueInfoProto:
    if isinstance(x, dict):
        kind = onnx.TypeProto()
        kind.map_type.key_type = TensorProto.STRING
        element = TensorProto.STRING if isinstance(next(iter(x.values())), str) else TensorProto.FLOAT
        kind.map_type.value_type.CopyFrom(helper.make_tensor_type_proto(element, None))
        return helper.make_value_info(name, kind)
    element = TensorProto.STRING if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype)
    return helper.make_tensor_value_info(name, element, x.shape)


def test_dict_vectorizer_gives_one_row_of_the_values_type() -> None:
    (y,) = run("DictVectorizer", [{"a": 1.5, "c": 3.0}], [TensorProto.FLOAT], string_vocabulary=["a", "b", "c"])
    assert (y.dtype, y.tolist()) == (np.float32, [[1.5, 0, 3]])


def test_feature_vectorizer_joins_vectors_into_one_row_of_floats() -> None:
    parts = [np.array([1, 2, 3]), np.array([4, 5, 6])]
    (y,) = run("FeatureVectorizer", parts, [TensorProto.FLOAT], inputdimensions=[3, 3])
    assert (y.dtype, y.tolist()) == (np.float32, [[1, 2, 3, 4, 5, 6]])


@pytest.mark.parametrize(
    ("norm", "wanted"),
    [("MAX", X / X.max(1, keepdims=True)), ("L1", X / np.abs(X).sum(1, keepdims=True)),
     ("L2", X / np.sqrt((X * X).sum(1, keepdims=True)))],
)  # fmt: skip
def test_normalizer(norm: str, wanted: Any) -> None:
    np.testing.assert_allclose(run("Normalizer", [X], [TensorProto.FLOAT], norm=norm)[0], wanted, 1e-6)
    np.testing.assert_allclose(
        run("Normalizer", [X[0]], [TensorProto.FLOAT], norm=norm)[0].reshape(-1), wanted[0], 1e-6
    )


@pytest.mark.parametrize(
    ("post", "function"),
    [("NONE", lambda z: z), ("LOGISTIC", lambda z: 1 / (1 + np.exp(-z))),
     ("SOFTMAX", lambda z: np.exp(z) / np.exp(z).sum(1, keepdims=True))],
)  # fmt: skip
def test_linear_regressor_with_a_post_transform(post: str, function: Any) -> None:
    weights = np.array([[1.0, 0.5, -0.25], [0.0, -1.0, 2.0]], np.float32)
    (y,) = run("LinearRegressor", [X], [TensorProto.FLOAT], coefficients=weights.reshape(-1).tolist(),
               intercepts=[0.5, -0.5], targets=2, post_transform=post)  # fmt: skip
    np.testing.assert_allclose(y, function(X @ weights.T + [0.5, -0.5]), 1e-5, 1e-6)


def test_label_encoder_of_its_first_version() -> None:
    more = {"classes_strings": ["a", "b"], "default_int64": 9, "default_string": "?"}
    (numbers,) = run("LabelEncoder", [np.array(["b", "a", "x"], object)], [TensorProto.INT64], **more)
    (names,) = run("LabelEncoder", [np.array([1, 0, 5])], [TensorProto.STRING], **more)
    assert (numbers.tolist(), names.tolist()) == ([1, 0, 9], ["b", "a", "?"])


def test_label_encoder_finds_nan_and_defaults() -> None:
    keys = onnx.numpy_helper.from_array(np.array([1.0, np.nan]), "k")
    values = onnx.numpy_helper.from_array(np.array([5.0, 6.0]), "v")
    x = np.array([np.nan, 1.0, 2.0])
    (y,) = run("LabelEncoder", [x], [TensorProto.DOUBLE], 4, keys_tensor=keys, values_tensor=values,
               default_tensor=onnx.numpy_helper.from_array(np.array([7.0]), "d"))  # fmt: skip
    assert y.tolist() == [6, 5, 7]


def test_string_normalizer_leaves_text_alone() -> None:
    words = np.array(["né", "Straße", "THE"], object)
    value = helper.make_tensor_value_info("x", TensorProto.STRING, [3])
    node = helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="NONE")
    graph = helper.make_graph([node], "g", [value], [helper.make_tensor_value_info("y", TensorProto.STRING, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    with InferenceSession(model.SerializeToString()) as session:
        assert session.run(None, {"x": words})[0].tolist() == words.tolist()


def test_tree_of_two_labels_with_one_score() -> None:
    """A tree with one class id: the second label where its score is above one half."""
    tree = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
            "nodes_featureids": [0, 0, 0], "nodes_values": [0.0, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0],
            "nodes_falsenodeids": [2, 0, 0], "class_treeids": [0, 0], "class_nodeids": [1, 2], "class_ids": [0, 0],
            "class_weights": [0.2, 0.9], "classlabels_int64s": [10, 20]}  # fmt: skip
    labels, scores = run("TreeEnsembleClassifier", [X], [TensorProto.INT64, TensorProto.FLOAT], **tree)
    assert labels.tolist() == [10, 20]
    np.testing.assert_allclose(scores, [[0.8, 0.2], [0.1, 0.9]], 1e-6)


def test_a_session_of_a_linear_classifier_without_intercepts_has_a_score_for_each_class() -> None:
    """onnx's inference counts intercepts, and finds no scores."""
    more = {"classlabels_ints": [4, 5, 6], "coefficients": [1.0, 0, 0, 0, 1, 0, 0, 0, 1]}
    y, z = run("LinearClassifier", [X], [TensorProto.INT64, TensorProto.FLOAT], **more)
    np.testing.assert_array_equal(z, X)
    assert y.tolist() == [6, 5]
