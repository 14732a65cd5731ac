"""TreeEnsembleClassifier where both of two classes have votes: onnxruntime answers with the second whenever its votes
are positive, with 0 and 1 for labels that are integers, and not with the base values of both.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference.ops.aionnxml.op_tree_ensemble_classifier import TreeEnsembleClassifier

from .adapter import Array, HostOp

COMPARES: dict[str, Callable[[Any, Any], Any]] = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}


def _reals(attributes: Mapping[str, Any], name: str) -> Array:
    """An attribute or its tensor, empty if neither is given."""
    tensor = attributes.get(f"{name}_as_tensor")
    return np.asarray(attributes.get(name, ()) if tensor is None else tensor, np.float64).reshape(-1)


def _leaves(attributes: Mapping[str, Any], x: Array, tree: int) -> list[tuple[int, int]]:
    """For each row of features the leaf of a tree: tree and node id. `ValueError` for a walk that does not end."""
    names = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"], strict=True))
    place = {name: index for index, name in enumerate(names)}
    features, values = attributes["nodes_featureids"], _reals(attributes, "nodes_values")
    missing = attributes.get("nodes_missing_value_tracks_true") or [0] * len(names)
    root = next(node for owner, node in names if owner == tree)
    found = []
    for row in x:
        node = root
        for _ in names:
            at = place[tree, node]
            mode = str(attributes["nodes_modes"][at])
            if mode == "LEAF":
                break
            value = row[features[at]]
            yes = missing[at] if np.isnan(value) and missing[at] else COMPARES[mode](value, values[at])
            node = attributes["nodes_truenodeids" if yes else "nodes_falsenodeids"][at]
        else:
            raise ValueError(f"tree {tree} has a path without a leaf")
        found.append((tree, node))
    return found


def _probit(scores: Array) -> Array:
    """The inverse of the normal distribution function, by Winitzki's approximation (a = 0.147) as in the kernel."""
    x = 2 * scores - 1
    log = np.log((1 - x) * (1 + x))
    half = 2 / (np.pi * 0.147) + log / 2
    return np.asarray(np.sqrt(2) * np.sign(x) * np.sqrt(np.sqrt(half * half - log / 0.147) - half))


def transformed(scores: Array, post_transform: str) -> Array:
    """The post transform of rows of scores. SOFTMAX_ZERO leaves zeros as they are, out of the sum too."""
    if post_transform == "LOGISTIC":
        return np.asarray(1 / (1 + np.exp(-scores)))
    if post_transform == "PROBIT":
        return _probit(scores)
    if post_transform in ("SOFTMAX", "SOFTMAX_ZERO") and scores.size:
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        if post_transform == "SOFTMAX_ZERO":
            powers = np.where(scores == 0, 0, powers)
        total = powers.sum(axis=1, keepdims=True)
        return np.asarray(powers / np.where(total == 0, 1, total))
    return scores


def ml_node(op_type: str, attributes: Mapping[str, Any], outputs: int) -> onnx.NodeProto:
    """A node of ai.onnx.ml with one input and these attributes; None for one that is left out."""
    given = {name: numpy_helper.from_array(value, name) if isinstance(value, np.ndarray) else value
             for name, value in attributes.items() if value is not None}  # fmt: skip
    names = [f"y{index}" for index in range(outputs)]
    return helper.make_node(op_type, ["x"], names, domain="ai.onnx.ml", **given)


def _one_score(x: Array, attributes: Mapping[str, Any]) -> tuple[Array, Array]:
    made: Any = TreeEnsembleClassifier
    node = ml_node("TreeEnsembleClassifier", attributes, 2)
    labels, scores = made(node, {"log": lambda *_: None, "opsets": {}, "new_ops": None}).run(x)
    return labels, scores


def tree_classifier(x: Array, **attributes: Any) -> tuple[Array, Array]:
    """TreeEnsembleClassifier, versions 1 and 3: the top class of each row, the first of equal ones, and the scores.

    Leaves vote for classes; base values are added to the sums, in double precision. A vector is a matrix of one row.
    One score for two classes is left to onnx's reference: its text says nothing of them.
    """
    names: Any = attributes.get("classlabels_int64s") or attributes.get("classlabels_strings") or ()
    if len(names) == 2 and len(set(attributes["class_ids"])) == 1:
        return _one_score(x, attributes)
    rows = np.atleast_2d(x)
    rows = rows if rows.dtype == np.float64 else rows.astype(np.float32)
    votes: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for tree, node, target, weight in zip(
        attributes["class_treeids"], attributes["class_nodeids"], attributes["class_ids"],
        _reals(attributes, "class_weights").tolist(), strict=True,
    ):  # fmt: skip
        votes.setdefault((tree, node), []).append((target, weight))
    base = _reals(attributes, "base_values")
    scores = np.zeros((len(rows), len(names))) + (base if base.size else 0.0)
    for tree in dict.fromkeys(attributes["nodes_treeids"]):
        for row, leaf in enumerate(_leaves(attributes, rows, tree)):
            for target, weight in votes.get(leaf, ()):
                scores[row, target] += weight
    kind: Any = np.int64 if isinstance(names[0], int) else object
    labels = np.array([names[i] for i in scores.argmax(axis=1)] if len(rows) else [], kind)
    with np.errstate(all="ignore"):
        return labels, transformed(scores, str(attributes.get("post_transform", "NONE"))).astype(np.float32)


OPERATORS = (HostOp("ai.onnx.ml", "TreeEnsembleClassifier", tree_classifier, until=4),)
