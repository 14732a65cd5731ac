"""Rows of `hostops.deviations` of ai.onnx.ml, worked out by hand."""

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from .one_node import NAN, floats, run


@pytest.mark.parametrize("version", [2, 4])
def test_nan_is_a_key_of_label_encoder(version: int) -> None:
    """The kernel of onnxruntime 1.32 gives the default in version 2, where keys are compared bit by bit."""
    more = {"keys_floats": [1.0, NAN], "values_int64s": [5, 7], "default_int64": -1}
    (y,) = run("LabelEncoder", [floats(1, NAN, 3)], version, domain="ai.onnx.ml", **more)
    assert y.tolist() == [5, 7, -1]


@pytest.mark.parametrize("labels", [[3, 4], ["a", "b"]])
@pytest.mark.parametrize("base", [[], [0.0, 1.0]])
def test_two_classes_of_trees_are_told_by_their_scores(labels: list[Any], base: list[float]) -> None:
    """A stump: up to 0.5 the votes are 0.75 and 0.25, behind it -1 and 0.5."""
    more = {"classlabels_int64s" if labels == [3, 4] else "classlabels_strings": labels}
    if base:
        more["base_values"] = base
    y, z = run(
        "TreeEnsembleClassifier", [floats(0, 1).reshape(2, 1)], 3, 2, domain="ai.onnx.ml", nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_featureids=[0, 0, 0],
        nodes_values=[0.5, 0.0, 0.0], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
        class_treeids=[0, 0, 0, 0], class_nodeids=[1, 1, 2, 2], class_ids=[0, 1, 0, 1],
        class_weights=[0.75, 0.25, -1.0, 0.5], **more,
    )  # fmt: skip
    wanted = np.array([[0.75, 0.25], [-1.0, 0.5]]) + (base or 0)
    np.testing.assert_array_equal(z, wanted)
    assert y.tolist() == [labels[i] for i in wanted.argmax(axis=1)]


def test_a_linear_classifier_without_intercepts_has_zeros() -> None:
    x, weights = floats(1, 2, 3, -1, 0.5, 0).reshape(2, 3), floats(0.5, -1, 2, 1, 0, 3, -2, 1, 0)
    for kind in (np.float32, np.float64, np.int64):
        y, z = run("LinearClassifier", [x.astype(kind)], 1, 2, "ai.onnx.ml", classlabels_ints=[5, -1, 7],
                   coefficients=weights.tolist())  # fmt: skip
        wanted = x.astype(kind) @ weights.reshape(3, 3).T
        np.testing.assert_allclose(z, wanted, 1e-6)
        assert (y.tolist(), z.dtype) == ([[5, -1, 7][i] for i in wanted.argmax(1)], np.float32)


def test_one_row_of_a_linear_classifier_tells_two_classes() -> None:
    more = {"classlabels_strings": ["no", "yes"], "coefficients": [1.0, -1.0]}
    x = floats(1, 3, 3, 1).reshape(2, 2)
    found = run("LinearClassifier", [x], 1, 2, "ai.onnx.ml", **more)
    wanted = run("LinearClassifier", [x], 1, 2, "ai.onnx.ml", **more, intercepts=[0.0])
    assert found[0].tolist() == wanted[0].tolist() == ["no", "yes"]
    np.testing.assert_array_equal(found[1], wanted[1])


def softmax(x: Any) -> Any:
    return np.exp(x) / np.exp(x).sum(1, keepdims=True)


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize(("number", "transform"), [(0, lambda x: x), (1, softmax), (2, logistic)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_tree_ensembles_transform_as_their_numbers_say(targets: int, number: int, transform: Any, kind: Any) -> None:
    """A stump with votes of 0.75 and -1.5 for the first and the last target."""
    tensor = lambda values, name, type_=kind: numpy_helper.from_array(np.array(values, type_), name)  # noqa: E731
    (y,) = run(
        "TreeEnsemble", [np.array([[0], [1]], kind)], 5, 1, "ai.onnx.ml", tree_roots=[0], nodes_featureids=[0],
        nodes_modes=tensor([0], "m", np.uint8), nodes_splits=tensor([0.5], "s"), nodes_truenodeids=[0],
        nodes_trueleafs=[1], nodes_falsenodeids=[1], nodes_falseleafs=[1], leaf_targetids=[0, targets - 1],
        leaf_weights=tensor([0.75, -1.5], "w"), n_targets=targets, post_transform=number,
    )  # fmt: skip
    scores = np.array([[0.75], [-1.5]]) if targets == 1 else np.array([[0.75, 0], [0, -1.5]])
    np.testing.assert_allclose(y, transform(scores), 1e-6)
    assert y.dtype == kind


@pytest.mark.parametrize(("name", "transform"), [("NONE", lambda x: x), ("LOGISTIC", logistic), ("SOFTMAX", softmax)])
@pytest.mark.parametrize("targets", [1, 2])
def test_linear_regressors_transform_one_target_too(name: str, transform: Any, targets: int) -> None:
    x, weights = floats(1, -2).reshape(2, 1), floats(0.5, 3)[:targets]
    (y,) = run("LinearRegressor", [x], 1, 1, "ai.onnx.ml", coefficients=weights.tolist(), targets=targets,
               post_transform=name)  # fmt: skip
    np.testing.assert_allclose(y, transform(x * weights), 1e-5)
