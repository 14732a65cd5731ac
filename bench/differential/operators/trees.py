"""Tree ensembles."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import numpy_helper

from ..draw import Draw
from .ml import POST, matrix

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


@dataclass
class Forest:
    """Nodes as the attributes of operator sets 1 to 4 list them."""

    trees: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)
    features: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    true: list[int] = field(default_factory=list)
    false: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    leaves: list[tuple[int, int]] = field(default_factory=list)


def forest(d: Draw, columns: int, modes: list[str]) -> Forest:
    """One to three random trees; thresholds are halves, so that features lie on them."""
    made = Forest()
    for tree in range(d.choose("trees", [1, 2, 3])):
        _grow(d, made, tree, columns, modes, d.integer(0, 3))
    return made


def _grow(d: Draw, made: Forest, tree: int, columns: int, modes: list[str], depth: int) -> int:
    own = sum(t == tree for t in made.trees)
    place = len(made.trees)
    leaf = depth == 0 or (own > 0 and d.rng.random() < 0.2)
    made.trees.append(tree)
    made.ids.append(own)
    made.modes.append("LEAF" if leaf else d.pick(modes))
    made.features.append(0 if leaf else d.integer(0, columns - 1))
    made.values.append(0.0 if leaf else d.integer(-4, 4) / 2)
    made.missing.append(d.integer(0, 1))
    made.true.append(0)
    made.false.append(0)
    if leaf:
        made.leaves.append((tree, own))
    else:
        made.true[place] = _grow(d, made, tree, columns, modes, depth - 1)
        made.false[place] = _grow(d, made, tree, columns, modes, depth - 1)
    return own


def _nodes(d: Draw, made: Forest, double: bool) -> None:
    d.attributes.update(
        nodes_treeids=made.trees,
        nodes_nodeids=made.ids,
        nodes_modes=made.modes,
        nodes_featureids=made.features,
        nodes_truenodeids=made.true,
        nodes_falsenodeids=made.false,
    )
    _real(d, "nodes_values", made.values, double)
    if d.maybe("missing tracks"):
        d.attributes["nodes_missing_value_tracks_true"] = made.missing


def _real(d: Draw, name: str, values: list[float], double: bool) -> None:
    if double:
        d.attributes[f"{name}_as_tensor"] = numpy_helper.from_array(np.array(values, np.float64), name)
    else:
        d.attributes[name] = values


def _modes(d: Draw) -> list[str]:
    """One mode for all nodes, as exporters write, or a mixture."""
    kind = d.choose("nodes_modes", [*MODES, "mixed"])
    return MODES if kind == "mixed" else [kind]


def _weights(d: Draw, count: int) -> list[float]:
    return [d.integer(-8, 8) / 4 for _ in range(count)]


def _operand(d: Draw, variable: str, columns: int) -> bool:
    x = matrix(d, variable, columns, d.choose("values", ["ties", "plain", "special"]), row=False)
    return bool(x.dtype == np.float64 and d.since >= 3)


def classifier(d: Draw) -> None:
    columns, count = d.integer(1, 3), d.choose("classes", [2, 3, 5])
    double = _operand(d, "T1", columns)
    if d.choose("labels", ["integers", "strings"]) == "integers":
        d.attributes["classlabels_int64s"] = [5, -1, 7, 2, 0][:count]
        d.fix("T2", "int64")
    else:
        d.fix("T2", "string")
        d.attributes["classlabels_strings"] = ["b", "a", "né", "", "z"][:count]
    made = forest(d, columns, _modes(d))
    _nodes(d, made, double)
    binary = count == 2 and d.maybe("one score for two classes")
    rows = [(t, n, c) for t, n in made.leaves for c in ([d.attributes.get("", 0)] if binary else range(count))]
    d.attributes.update(
        class_treeids=[r[0] for r in rows], class_nodeids=[r[1] for r in rows], class_ids=[r[2] for r in rows]
    )
    _real(d, "class_weights", _weights(d, len(rows)), double)
    d.attr("post_transform", POST)
    if d.maybe("base_values"):
        _real(d, "base_values", _weights(d, 1 if binary else count), double)
    d.outputs = 2


def regressor(d: Draw) -> None:
    columns, count = d.integer(1, 3), d.choose("targets", [1, 2, 3])
    double = _operand(d, "T", columns)
    d.attributes["n_targets"] = count
    made = forest(d, columns, _modes(d))
    _nodes(d, made, double)
    rows = [(t, n, c) for t, n in made.leaves for c in range(count)]
    d.attributes.update(
        target_treeids=[r[0] for r in rows], target_nodeids=[r[1] for r in rows], target_ids=[r[2] for r in rows]
    )
    _real(d, "target_weights", _weights(d, len(rows)), double)
    d.attr("aggregate_function", ["SUM", "AVERAGE", "MIN", "MAX"])
    d.attr("post_transform", POST)
    if d.maybe("base_values"):
        _real(d, "base_values", _weights(d, count), double)


def ensemble(d: Draw) -> None:
    columns, count = d.integer(1, 3), d.choose("targets", [1, 2, 3])
    x = matrix(d, "T", columns, d.choose("values", ["ties", "plain", "special"]), row=False)
    modes = _modes(d)
    made = forest(d, columns, modes)
    inner = [i for i, mode in enumerate(made.modes) if mode != "LEAF"]
    if not inner:
        made = Forest(
            [0, 0, 0],
            [0, 1, 2],
            [modes[0], "LEAF", "LEAF"],
            [0, 0, 0],
            [0.5, 0, 0],
            [1, 0, 0],
            [2, 0, 0],
            [0, 0, 0],
            [(0, 1), (0, 2)],
        )
        inner = [0]
    place = {(made.trees[i], made.ids[i]): n for n, i in enumerate(inner)}
    leaf = {key: n for n, key in enumerate(made.leaves)}
    inner_trees = {made.trees[i] for i in inner}
    both: dict[str, list[Any]] = {"true": [], "trueleafs": [], "false": [], "falseleafs": []}
    for i in inner:
        for side, child in (("true", made.true[i]), ("false", made.false[i])):
            key = (made.trees[i], child)
            both[f"{side}leafs"].append(int(key in leaf))
            both[side].append(leaf[key] if key in leaf else place[key])
    numbers = {
        mode: n
        for n, mode in enumerate(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"])
    }
    d.attributes.update(
        tree_roots=[place[t, 0] for t in sorted(inner_trees)],
        nodes_featureids=[made.features[i] for i in inner],
        nodes_modes=numpy_helper.from_array(np.array([numbers[made.modes[i]] for i in inner], np.uint8), "modes"),
        nodes_splits=numpy_helper.from_array(np.array([made.values[i] for i in inner], x.dtype), "splits"),
        nodes_truenodeids=both["true"],
        nodes_trueleafs=both["trueleafs"],
        nodes_falsenodeids=both["false"],
        nodes_falseleafs=both["falseleafs"],
        leaf_targetids=[d.integer(0, count - 1) for _ in made.leaves],
        leaf_weights=numpy_helper.from_array(np.array(_weights(d, len(made.leaves)), x.dtype), "weights"),
        n_targets=count,
    )
    if d.maybe("missing tracks"):
        d.attributes["nodes_missing_value_tracks_true"] = [made.missing[i] for i in inner]
    d.attr("aggregate_function", [0, 1, 2, 3])
    d.attr("post_transform", [0, 1, 2, 3, 4])


GENERATORS = {"TreeEnsembleClassifier": classifier, "TreeEnsembleRegressor": regressor, "TreeEnsemble": ensemble}
