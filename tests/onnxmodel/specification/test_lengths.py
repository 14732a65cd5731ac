"""Attributes whose lengths others determine: a right node of each operator, and each list too short or too long."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw import InferenceSession
from onnxhw.onnxmodel.specification import diagnose
from onnxhw.onnxmodel.specification.lengths import RULES

ML = "ai.onnx.ml"
NODES = {
    "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.5, 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0], "nodes_hitrates": [1.0, 1.0, 1.0], "nodes_missing_value_tracks_true": [0, 0, 0],
}  # fmt: skip


def tensor(values, kind):
    return numpy_helper.from_array(np.array(values, kind))


RIGHT = {
    ("", "TfIdfVectorizer"): {
        "ngram_counts": [0, 3], "ngram_indexes": [0, 1, 2, 3, 4], "pool_int64s": [1, 2, 3, 1, 2, 3, 1], "mode": "TF",
        "weights": [1.0] * 5, "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0,
    },
    (ML, "CategoryMapper"): {"cats_int64s": [1, 2], "cats_strings": ["a", "b"]},
    (ML, "FeatureVectorizer"): {"inputdimensions": [2]},
    (ML, "LabelEncoder"): {"keys_int64s": [1, 2], "values_strings": ["a", "b"]},
    (ML, "LinearClassifier"): {"coefficients": [1.0] * 6, "intercepts": [0.0] * 3, "classlabels_ints": [0, 1, 2]},
    (ML, "LinearRegressor"): {"coefficients": [1.0] * 4, "intercepts": [1.0] * 2, "targets": 2},
    (ML, "SVMClassifier"): {
        "classlabels_ints": [0, 1, 2], "vectors_per_class": [1, 2, 1], "support_vectors": [1.0] * 8,
        "coefficients": [1.0] * 8, "rho": [0.0] * 3, "prob_a": [1.0] * 3, "prob_b": [1.0] * 3,
        "kernel_params": [1.0, 0.0, 3.0],
    },
    (ML, "SVMRegressor"): {
        "n_supports": 3, "support_vectors": [1.0] * 6, "coefficients": [1.0] * 3, "rho": [0.0],
        "kernel_params": [1.0, 0.0, 3.0],
    },
    (ML, "Scaler"): {"offset": [1.0, 2.0], "scale": [1.0, 2.0]},
    (ML, "TreeEnsemble"): {
        "nodes_featureids": [0], "nodes_splits": tensor([0.5], np.float32), "nodes_modes": tensor([0], np.uint8),
        "nodes_truenodeids": [0], "nodes_trueleafs": [1], "nodes_falsenodeids": [1], "nodes_falseleafs": [1],
        "leaf_targetids": [0, 0], "leaf_weights": tensor([1, 2], np.float32), "tree_roots": [0],
    },
    (ML, "TreeEnsembleClassifier"): {
        **NODES, "class_treeids": [0, 0], "class_nodeids": [1, 2], "class_ids": [0, 2], "class_weights": [1.0, 1.0],
        "classlabels_int64s": [0, 1, 2], "base_values": [0.0] * 3,
    },
    (ML, "TreeEnsembleRegressor"): {
        **NODES, "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 1],
        "target_weights": [1.0, 1.0], "n_targets": 2, "base_values": [0.0] * 2,
    },
}  # fmt: skip


ALLOWED = [
    ("LinearClassifier", "intercepts", -1), ("LinearClassifier", "classlabels_ints", 1), ("SVMRegressor", "rho", 1),
]  # fmt: skip
"""What the text does not exclude: labels that no row gives, and more than the first of a regressor's rho."""


def codes(domain, op_type, attributes, inputs=1):
    names = [f"x{index}" for index in range(inputs)]
    node = helper.make_node(op_type, names, ["y"], domain=domain, **attributes)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    graph = helper.make_graph([node], "g", values, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    sets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, 5)]
    return {one.code for one in diagnose(helper.make_model(graph, opset_imports=sets)) if one.severity == "error"}


def lists():
    return [(*key, name) for key, given in RIGHT.items() for name, value in given.items()
            if isinstance(value, list | onnx.TensorProto) and name != "tree_roots"]  # fmt: skip


def changed(value, by):
    array = numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
    other = [*array[:-1]] if by < 0 else [*array, array[-1]]
    return tensor(other, array.dtype) if isinstance(value, onnx.TensorProto) else other


def test_there_is_a_right_node_of_each_rule():
    assert RIGHT.keys() == RULES.keys()
    for (domain, op_type), attributes in RIGHT.items():
        assert "E3460" not in codes(domain, op_type, attributes), op_type


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize(("domain", "op_type", "name"), lists(), ids=lambda part: str(part))
def test_an_attribute_of_another_length_is_refused(domain, op_type, name, by):
    right = RIGHT[domain, op_type]
    wrong = {**right, name: changed(right[name], by)}
    if wrong[name] == []:
        wrong = {key: value for key, value in wrong.items() if key != name}
        if name != "rho":
            wrong[name] = [0, 0]
    assert ("E3460" in codes(domain, op_type, wrong)) != ((op_type, name, by) in ALLOWED)


@pytest.mark.parametrize(("op_type", "name", "by"), ALLOWED)
def test_what_the_text_does_not_exclude_runs_as_in_onnxruntime(op_type, name, by):
    right = RIGHT[ML, op_type]
    outputs = ["y"] if op_type == "SVMRegressor" else ["y", "z"]
    node = helper.make_node(op_type, ["x"], outputs, domain=ML, **{**right, name: changed(right[name], by)})
    columns = 3 if name == "intercepts" else 2
    x = np.arange(2 * columns, dtype=np.float32).reshape(2, columns) - 1
    kinds = {"y": TensorProto.INT64 if len(outputs) > 1 else TensorProto.FLOAT, "z": TensorProto.FLOAT}
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info(name, kinds[name], None) for name in outputs],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(ML, 1)], ir_version=8)
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    for found, one in zip(InferenceSession(model).run(None, {"x": x}), wanted, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-6)


@pytest.mark.parametrize(
    ("op_type", "more"),
    [
        ("TfIdfVectorizer", {"ngram_counts": [1, 3]}),
        ("TfIdfVectorizer", {"ngram_counts": [0, -1]}),
        ("TfIdfVectorizer", {"ngram_counts": [0, 9]}),
        ("TfIdfVectorizer", {"ngram_counts": [3, 0]}),
        ("TfIdfVectorizer", {"ngram_counts": [0, 2]}),  # half a 2-gram
        ("TfIdfVectorizer", {"ngram_indexes": [0, 1, 2, 3, -1]}),
        ("TfIdfVectorizer", {"max_gram_length": 3}),
        ("TfIdfVectorizer", {"min_gram_length": 0}),
        ("TfIdfVectorizer", {"pool_strings": ["a"]}),
        ("FeatureVectorizer", {"inputdimensions": [-1]}),
        ("FeatureVectorizer", {"inputdimensions": [1 << 40]}),
        ("LinearRegressor", {"targets": 0}),
        ("SVMClassifier", {"vectors_per_class": [-1, 4, 1]}),
        ("SVMRegressor", {"n_supports": -1}),
        ("TreeEnsemble", {"tree_roots": [1]}),
        ("TreeEnsemble", {"nodes_truenodeids": [2]}),
        ("TreeEnsembleClassifier", {"class_ids": [0, 3]}),
        ("TreeEnsembleRegressor", {"target_ids": [-1, 0]}),
    ],
)
def test_numbers_out_of_range_are_refused(op_type, more):
    domain = "" if op_type == "TfIdfVectorizer" else ML
    assert "E3460" in codes(domain, op_type, {**RIGHT[domain, op_type], **more})


def test_dimensions_are_as_many_as_inputs():
    assert "E3460" in codes(ML, "FeatureVectorizer", {"inputdimensions": [2]}, inputs=2)
    assert "E3460" not in codes(ML, "FeatureVectorizer", {"inputdimensions": [2, 3]}, inputs=2)


def test_a_node_that_reaches_a_run_is_refused_there_too():
    """A program may have host parts that no model had."""
    from onnxhw.hostops.nodes import HostNode

    node = helper.make_node("FeatureVectorizer", ["x"], ["y"], domain=ML, inputdimensions=[4, -1])
    with pytest.raises(ValueError, match="2 elements for 1 inputs"):
        HostNode(node, 1, lambda: None).run(np.ones((2, 4), np.float32))


def test_a_regressor_without_intercepts_may_have_a_single_zero() -> None:
    """So scikit-learn's are exported that fit none; the kernel leaves it out."""
    attributes = {"coefficients": [1.0, 2.0, 3.0, 4.0], "intercepts": [0.0], "targets": 2}
    node = helper.make_node("LinearRegressor", ["x"], ["y"], domain=ML, **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])
    graph = helper.make_graph([node], "g", [x], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(ML, 1)], ir_version=8)
    with InferenceSession(model) as session:
        (y,) = session.run(None, {"x": np.array([[1.0, 10.0]], np.float32)})
    np.testing.assert_array_equal(y, [[21.0, 43.0]])
