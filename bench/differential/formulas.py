"""`formula`: operators of ai.onnx.ml worked out in numpy in double precision, a third side that shares no code.

Where the text is silent: a vector is a matrix of one row; of equal scores the first class is the answer; one score for
two classes is that of the second; PROBIT is the inverse of the normal distribution function, SOFTMAX_ZERO leaves zeros
out; L1 and L2 of Normalizer take magnitudes and leave the sign, where the text has X / sum(X) and a root.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

from .draw import Draw

Attributes = Mapping[str, Any]


def _listed(attributes: Attributes, name: str, default: Any = ()) -> Any:
    """An attribute as doubles, of its tensor if it has one."""
    tensor = attributes.get(f"{name}_as_tensor")
    value = attributes.get(name, default) if tensor is None else onnx.numpy_helper.to_array(tensor)
    return np.asarray(onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value, np.float64)


def _rows(x: Any) -> Any:
    return np.atleast_2d(np.asarray(x, np.float64))


def transformed(scores: Any, name: Any) -> Any:
    """The post transform of rows of scores."""
    name = (name.decode() if isinstance(name, bytes) else name) or "NONE"
    if name == "LOGISTIC":
        return 1 / (1 + np.exp(-scores))
    if name == "PROBIT":
        return np.vectorize(_probit, otypes=[float])(scores)
    if name.startswith("SOFTMAX") and scores.size:
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        powers = np.where(scores == 0, 0, powers) if name == "SOFTMAX_ZERO" else powers
        with np.errstate(all="ignore"):
            return powers / powers.sum(axis=1, keepdims=True)
    return scores


def _probit(p: float) -> float:
    """By the approximation that both others take (Winitzki, a = 0.147), within 0.2 % of the true one; of 0 -inf."""
    if not 0 < p < 1:
        return {0.0: -np.inf, 1.0: np.inf}.get(p, np.nan)
    x = 2 * p - 1
    log = np.log(1 - x * x)
    half = 2 / (np.pi * 0.147) + log / 2
    return float(np.sqrt(2) * np.sign(x) * np.sqrt(np.sqrt(half * half - log / 0.147) - half))


def _labelled(attributes: Attributes, scores: Any) -> tuple[Any, Any]:
    """The label of the greatest score in each row, and the transformed scores."""
    names = next(attributes[one] for one in ("classlabels_ints", "classlabels_int64s", "classlabels_strings")
                 if one in attributes)  # fmt: skip
    kind: Any = np.int64 if isinstance(names[0], int) else object
    labels = np.array([names[i] for i in scores.argmax(axis=1)] if len(scores) else [], kind)
    return labels, transformed(scores, attributes.get("post_transform"))


def _linear(attributes: Attributes, x: Any, count: int) -> Any:
    x = _rows(x)
    weights = _listed(attributes, "coefficients").reshape(count, -1)
    return x @ weights.T + _listed(attributes, "intercepts", np.zeros(count))


def linear_classifier(attributes: Attributes, x: Any) -> tuple[Any, ...] | None:
    """Each class has a row of coefficients; None where two classes have one, of which the text says nothing."""
    names = attributes.get("classlabels_ints", attributes.get("classlabels_strings", ()))
    if len(attributes["coefficients"]) == np.shape(x)[-1] and len(names) == 2:
        return None
    return _labelled(attributes, _linear(attributes, x, len(names)))


def linear_regressor(attributes: Attributes, x: Any) -> tuple[Any, ...]:
    """Each target has a row of coefficients."""
    return (transformed(_linear(attributes, x, attributes.get("targets", 1)), attributes.get("post_transform")),)


def normalizer(attributes: Attributes, x: Any) -> tuple[Any, ...]:
    """'In all modes, if the divisor is zero, Y == X.'"""
    shape, x = np.shape(x), _rows(x)
    norm = attributes.get("norm", "MAX")
    if not x.size:
        return (x.reshape(shape),)
    divisor = {"MAX": x.max(axis=1), "L1": np.abs(x).sum(axis=1), "L2": np.sqrt((x * x).sum(axis=1))}[norm]
    divisor = np.where(divisor == 0, 1, divisor)
    return ((x / divisor[:, None]).reshape(shape),)


def scaler(attributes: Attributes, x: Any) -> tuple[Any, ...]:
    """First the offset, then the scale."""
    return ((np.asarray(x, np.float64) - _listed(attributes, "offset")) * _listed(attributes, "scale"),)


def _kernel(attributes: Attributes, x: Any, vectors: Any) -> Any:
    gamma, coef0, degree = attributes["kernel_params"]
    products = x @ vectors.T
    distances = ((x[:, None] - vectors[None]) ** 2).sum(axis=2)
    return {
        "LINEAR": lambda: products,
        "POLY": lambda: (gamma * products + coef0) ** degree,
        "SIGMOID": lambda: np.tanh(gamma * products + coef0),
        "RBF": lambda: np.exp(-gamma * distances),
    }[attributes.get("kernel_type", "LINEAR")]()


def svm_regressor(attributes: Attributes, x: Any) -> tuple[Any, ...]:
    """A sum over support vectors; of one class 1 or -1."""
    x = _rows(x)
    vectors = _listed(attributes, "support_vectors").reshape(attributes["n_supports"], -1)
    y = _kernel(attributes, x, vectors) @ _listed(attributes, "coefficients") + attributes["rho"][0]
    return ((np.where(y > 0, 1.0, -1.0) if attributes.get("one_class") else y)[:, None],)


COMPARES: dict[str, Callable[[Any, Any], Any]] = {
    "BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less, "BRANCH_GTE": np.greater_equal, "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal, "BRANCH_NEQ": np.not_equal,
}  # fmt: skip


def _leaf(attributes: Attributes, tree: int, x: Any) -> tuple[int, int]:
    """Tree and node of the leaf that a row of features reaches."""
    names = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"], strict=True))
    values, missing = _listed(attributes, "nodes_values"), attributes.get("nodes_missing_value_tracks_true")
    node = 0
    while (mode := attributes["nodes_modes"][i := names.index((tree, node))]) != "LEAF":
        feature = x[attributes["nodes_featureids"][i]]
        yes = COMPARES[mode](feature, values[i]) or (missing and missing[i] and np.isnan(feature))
        node = attributes["nodes_truenodeids" if yes else "nodes_falsenodeids"][i]
    return tree, node


def _votes(attributes: Attributes, x: Any, kind: str, count: int) -> Any:
    """By row: the votes of each target, summed, of the aggregate function, with the base values."""
    places = list(zip(attributes[f"{kind}_treeids"], attributes[f"{kind}_nodeids"], strict=True))
    weights, targets = _listed(attributes, f"{kind}_weights"), attributes[f"{kind}_ids"]
    trees = sorted(set(attributes["nodes_treeids"]))
    how = attributes.get("aggregate_function", "SUM")
    scores = np.zeros((len(x), count))
    for row, features in enumerate(x):
        votes: list[list[float]] = [[] for _ in range(count)]
        for leaf in (_leaf(attributes, tree, features) for tree in trees):
            for place, target, weight in zip(places, targets, weights, strict=True):
                if place == leaf:
                    votes[target].append(float(weight))
        reduce = {"SUM": sum, "AVERAGE": lambda v: sum(v) / len(trees), "MIN": min, "MAX": max}[how]
        scores[row] = [reduce(one) if one else 0.0 for one in votes]
    base = _listed(attributes, "base_values")
    return scores + (base if base.size else 0.0)


def tree_regressor(attributes: Attributes, x: Any) -> tuple[Any, ...]:
    """Leaves vote for targets."""
    scores = _votes(attributes, _rows(x), "target", attributes["n_targets"])
    return (transformed(scores, attributes.get("post_transform")),)


def tree_classifier(attributes: Attributes, x: Any) -> tuple[Any, ...] | None:
    """Leaves vote for classes; None where all votes are for one of two classes, of which the text says nothing."""
    names = attributes.get("classlabels_int64s", attributes.get("classlabels_strings", ()))
    if len(names) == 2 and len(set(attributes["class_ids"])) == 1:
        return None
    return _labelled(attributes, _votes(attributes, _rows(x), "class", len(names)))


def tree_ensemble(attributes: Attributes, x: Any) -> tuple[Any, ...]:
    """Operator set 5: inner nodes and leaves are listed apart; a target without a vote has 0."""
    count, roots = attributes["n_targets"], attributes["tree_roots"]
    modes, splits = (onnx.numpy_helper.to_array(attributes[f"nodes_{one}"]) for one in ("modes", "splits"))
    weights, missing = _listed(attributes, "leaf_weights"), attributes.get("nodes_missing_value_tracks_true")
    how, post = attributes.get("aggregate_function", 1), attributes.get("post_transform", 0)
    x = np.atleast_2d(x)
    scores = np.zeros((len(x), count))
    for row, features in enumerate(x):
        votes: list[list[float]] = [[] for _ in range(count)]
        for node in roots:
            leaf = False
            while not leaf:
                feature = features[attributes["nodes_featureids"][node]]
                yes = list(COMPARES.values())[modes[node]](feature, splits[node])
                side = "true" if yes or (missing and missing[node] and np.isnan(feature)) else "false"
                leaf, node = bool(attributes[f"nodes_{side}leafs"][node]), attributes[f"nodes_{side}nodeids"][node]
            votes[attributes["leaf_targetids"][node]].append(float(weights[node]))
        reduce = (lambda v: sum(v) / len(roots), sum, min, max)[how]
        scores[row] = [reduce(one) if one else 0.0 for one in votes]
    names = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    return (transformed(scores, names[post]).astype(np.float32).astype(x.dtype),)


FORMULAS: dict[str, Callable[[Attributes, Any], tuple[Any, ...] | None]] = {
    "LinearClassifier": linear_classifier,
    "LinearRegressor": linear_regressor,
    "Normalizer": normalizer,
    "Scaler": scaler,
    "SVMRegressor": svm_regressor,
    "TreeEnsemble": tree_ensemble,
    "TreeEnsembleClassifier": tree_classifier,
    "TreeEnsembleRegressor": tree_regressor,
}


def formula(draw: Draw) -> tuple[Any, ...] | None:
    """What the operator's definition gives for the drawn node; None where there is no formula here."""
    compute = FORMULAS.get(draw.operator.name)
    if compute is None:
        return None
    values = {**{one.name: onnx.numpy_helper.to_array(one) for one in draw.constants}, **draw.feeds}
    with np.errstate(all="ignore"):
        found = compute(draw.attributes, values[draw.inputs[0]])
    if found is None:
        return None
    typed = draw.operator.name == "TreeEnsemble"
    return tuple(one if typed or one.dtype.kind in "iO" else one.astype(np.float32) for one in found)
