"""Attributes that are parallel lists, or whose lengths others determine: kernels read as far as one of them says."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import onnx

from .attributes import PAYLOADS
from .findings import Findings, label
from .signatures import canonical

ML = "ai.onnx.ml"
LONGEST_SKIP = 1 << 20
"""Elements that TfIdfVectorizer may leave out between two: it tries every number up to it."""
MOST_NGRAMS = 1 << 29
"""Elements of a row of TfIdfVectorizer's result: as many as a tensor may have by default."""
Attributes = Mapping[str, Any]
Rule = Callable[[Attributes, int], Iterator[str]]
"""What is wrong with attributes by name, of a node with so many inputs."""


def size(attributes: Attributes, *names: str) -> int:
    """How many elements the first of these attributes that is given has, whether a list or a tensor; 0 for none."""
    value = next((attributes[name] for name in names if attributes.get(name) is not None), ())
    return prod(value.dims if isinstance(value, onnx.TensorProto) else getattr(value, "shape", (len(value),)))


def _same(attributes: Attributes, names: Sequence[str], optional: Sequence[str] = ()) -> Iterator[str]:
    """Lists, or their tensors, are of one length; optional ones may be empty."""
    found = {name: size(attributes, name, f"{name}_as_tensor") for name in (*names, *optional)}
    given = {name: count for name, count in found.items() if name in names or count}
    if len(set(given.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in given.items())
        yield f"attributes that must be of one length have different ones: {listed}"


def _labels(attributes: Attributes) -> int:
    return max(size(attributes, f"classlabels_{kind}") for kind in ("ints", "int64s", "strings"))


def _scaler(attributes: Attributes, inputs: int) -> Iterator[str]:
    yield from _same(attributes, [name for name in ("offset", "scale") if name in attributes])


def _categories(attributes: Attributes, inputs: int) -> Iterator[str]:
    yield from _same(attributes, ("cats_int64s", "cats_strings"))


def _encoder(attributes: Attributes, inputs: int) -> Iterator[str]:
    kinds = ("tensor", "int64s", "floats", "strings")
    keys, values = (next((f"{of}_{kind}" for kind in kinds if f"{of}_{kind}" in attributes), "")
                    for of in ("keys", "values"))  # fmt: skip
    if keys and values:
        yield from _same(attributes, (keys, values))


def _features(attributes: Attributes, inputs: int) -> Iterator[str]:
    """FeatureVectorizer: the kernel copies as many columns as each input is said to have."""
    lengths = attributes.get("inputdimensions")
    if lengths is None:
        return
    if len(lengths) != inputs:
        yield f"inputdimensions has {len(lengths)} elements for {inputs} inputs"
    elif not all(0 <= length <= MOST_NGRAMS for length in lengths):
        yield f"inputdimensions are {list(lengths)[:8]}: each is the length of an input, 0 to {MOST_NGRAMS}"


def _regressor(attributes: Attributes, inputs: int) -> Iterator[str]:
    """LinearRegressor: a row of coefficients and an intercept for each target. Exporters of models without intercepts
    write a single 0, which the kernel leaves out, as it does others of another number.
    """
    targets = attributes.get("targets", 1)
    intercepts, coefficients = size(attributes, "intercepts"), size(attributes, "coefficients")
    if targets < 1:
        yield f"targets is {targets}, the least is 1"
    elif intercepts not in (0, targets) and any(attributes["intercepts"]):
        yield f"{intercepts} intercepts for {targets} targets"
    elif coefficients % targets:
        yield f"{coefficients} coefficients are no {targets} rows, one for each target"


def _classifier(attributes: Attributes, inputs: int) -> Iterator[str]:
    """LinearClassifier: a row of coefficients and an intercept for each class, or one of each for two classes. Labels
    without a row, of which the text says nothing, are never given.
    """
    labels, coefficients = _labels(attributes), size(attributes, "coefficients")
    rows = size(attributes, "intercepts")
    if labels == 1:
        yield "one class label: a classifier has two or more"
    elif rows > labels > 2:
        yield f"{rows} intercepts for {labels} class labels"
    elif rows > 2 and labels == 2:
        yield f"{rows} intercepts for two class labels"
    elif coefficients % (rows or (labels if labels > 2 else 1)):
        yield f"{coefficients} coefficients are no {rows or labels} rows, one for each class"


def _kernel(attributes: Attributes) -> Iterator[str]:
    if size(attributes, "kernel_params") not in (0, 3):
        yield f"kernel_params has {size(attributes, 'kernel_params')} elements: gamma, coef0 and degree"


def _svm_classifier(attributes: Attributes, inputs: int) -> Iterator[str]:
    """Support vectors of each class; of them coefficients in the decision of a class against each other one."""
    yield from _kernel(attributes)
    yield from _same(attributes, ("prob_a", "prob_b"))
    vectors, classes = attributes.get("vectors_per_class") or (), _labels(attributes)
    coefficients, total = size(attributes, "coefficients"), sum(vectors)
    if any(count < 0 for count in vectors):
        yield f"vectors_per_class are {list(vectors)[:8]}: none may be negative"
    elif total:
        pairs = classes * (classes - 1) // 2
        if len(vectors) != classes:
            yield f"vectors_per_class has {len(vectors)} elements for {classes} class labels"
        if not size(attributes, "support_vectors") or size(attributes, "support_vectors") % total:
            yield f"support_vectors has {size(attributes, 'support_vectors')} elements, no {total} rows"
        if coefficients != (classes - 1) * total:
            yield f"{coefficients} coefficients for {total} support vectors of {classes} classes: {classes - 1} each"
        for name, need in (("rho", True), ("prob_a", False)):
            if (count := size(attributes, name)) != pairs and (need or count):
                yield f"{name} has {count} elements, one for each of {pairs} pairs of classes"
    elif classes and coefficients % classes:
        yield f"{coefficients} coefficients are no {classes} rows, one for each class"


def _svm_regressor(attributes: Attributes, inputs: int) -> Iterator[str]:
    yield from _kernel(attributes)
    count, vectors = attributes.get("n_supports", 0), size(attributes, "support_vectors")
    if count < 0 or (count and (not vectors or vectors % count)):
        yield f"support_vectors has {vectors} elements, no {count} rows"
    elif count and size(attributes, "coefficients") != count:
        yield f"{size(attributes, 'coefficients')} coefficients for {count} support vectors"
    if not size(attributes, "rho"):
        yield "rho is not there: its first element is what is added"


NODES = tuple(f"nodes_{name}" for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                                           "falsenodeids"))  # fmt: skip
OPTIONAL = ("nodes_hitrates", "nodes_missing_value_tracks_true")


def _trees(votes: str) -> Rule:
    """Nodes, and votes of leaves for a class or a target; base values for each of them, or one for two classes."""

    def rule(attributes: Attributes, inputs: int) -> Iterator[str]:
        yield from _same(attributes, NODES, OPTIONAL)
        yield from _same(attributes, [f"{votes}_{name}" for name in ("treeids", "nodeids", "ids", "weights")])
        count = _labels(attributes) if votes == "class" else attributes.get("n_targets", 0)
        base = size(attributes, "base_values", "base_values_as_tensor")
        if count and base not in ((0, 1, 2) if votes == "class" and count == 2 else (0, count)):
            yield f"{base} base values for {count} {'classes' if votes == 'class' else 'targets'}"
        if any(not 0 <= one < count for one in attributes.get(f"{votes}_ids") or () if count):
            yield f"{votes}_ids are not all between 0 and {count - 1}"

    return rule


def _ensemble(attributes: Attributes, inputs: int) -> Iterator[str]:
    names = ("featureids", "splits", "modes", "truenodeids", "trueleafs", "falsenodeids", "falseleafs")
    yield from _same(attributes, [f"nodes_{name}" for name in names], OPTIONAL)
    yield from _same(attributes, ("leaf_targetids", "leaf_weights"))
    nodes, leaves = size(attributes, "nodes_featureids"), size(attributes, "leaf_targetids")
    if any(not 0 <= root < nodes for root in attributes.get("tree_roots") or ()):
        yield f"tree_roots are not all between 0 and {nodes - 1}"
    for way in ("true", "false"):
        ends = attributes.get(f"nodes_{way}leafs") or (), attributes.get(f"nodes_{way}nodeids") or ()
        if any(not 0 <= index < (leaves if leaf else nodes) for leaf, index in zip(*ends, strict=False)):
            yield f"nodes_{way}nodeids are not all those of {nodes} nodes or {leaves} leaves"


def _ngrams(attributes: Attributes, inputs: int) -> Iterator[str]:
    """TfIdfVectorizer: the pool has collections of n-grams; each n-gram has an index, and a weight."""
    starts, indexes = attributes.get("ngram_counts") or (), attributes.get("ngram_indexes") or ()
    pool = max(size(attributes, "pool_int64s"), size(attributes, "pool_strings"))
    least, most = attributes.get("min_gram_length", 1), attributes.get("max_gram_length", 1)
    if attributes.get("max_skip_count", 0) > LONGEST_SKIP:
        yield f"max_skip_count {attributes['max_skip_count']} is above {LONGEST_SKIP}"
    if not all(0 <= index < MOST_NGRAMS for index in indexes):
        yield f"ngram_indexes are not all between 0 and {MOST_NGRAMS - 1}"
    if size(attributes, "pool_int64s") and size(attributes, "pool_strings"):
        yield "there are both pool_int64s and pool_strings"
    if not 1 <= least <= most or most > len(starts):
        yield f"min_gram_length {least}, max_gram_length {most}: 1 to {len(starts)}, of so many the pool has a start"
    ends = [*starts, pool]
    if starts and (starts[0] != 0 or any(b < a for a, b in pairwise(ends))):
        yield f"ngram_counts {list(starts)[:8]} do not begin with 0 and go up within the pool of {pool} elements"
        return
    lengths = [b - a for a, b in pairwise(ends)]
    if any(length % n for n, length in enumerate(lengths, 1)):
        yield f"ngram_counts {list(starts)[:8]} divide the pool of {pool} elements within an n-gram"
        return
    count = sum(length // n for n, length in enumerate(lengths, 1))
    if len(indexes) != count:
        yield f"ngram_indexes has {len(indexes)} elements for {count} n-grams"
    if size(attributes, "weights") not in (0, count):
        yield f"weights has {size(attributes, 'weights')} elements for {count} n-grams"


RULES: dict[tuple[str, str], Rule] = {
    ("", "TfIdfVectorizer"): _ngrams,
    (ML, "CategoryMapper"): _categories,
    (ML, "FeatureVectorizer"): _features,
    (ML, "LabelEncoder"): _encoder,
    (ML, "LinearClassifier"): _classifier,
    (ML, "LinearRegressor"): _regressor,
    (ML, "SVMClassifier"): _svm_classifier,
    (ML, "SVMRegressor"): _svm_regressor,
    (ML, "Scaler"): _scaler,
    (ML, "TreeEnsemble"): _ensemble,
    (ML, "TreeEnsembleClassifier"): _trees("class"),
    (ML, "TreeEnsembleRegressor"): _trees("target"),
}
"""By domain and operator."""


def fault(domain: str, op_type: str, attributes: Attributes, inputs: int) -> str:
    """The first thing that is wrong with the attributes of a node of so many inputs, empty if nothing is."""
    rule = RULES.get((domain, op_type))
    return next(rule(attributes, inputs), "") if rule is not None else ""


def length_rules(node: onnx.NodeProto, findings: Findings) -> None:
    """E3460 for each thing that is wrong. A node with attributes of a function's is seen when that is inlined."""
    rule = RULES.get((canonical(node.domain), node.op_type))
    if rule is None or any(one.ref_attr_name or one.type not in PAYLOADS for one in node.attribute):
        return
    given = {one.name: getattr(one, PAYLOADS[one.type]) for one in node.attribute}
    try:
        wrong = list(rule(given, len(node.input)))
    except TypeError:  # an attribute of another type, which is said elsewhere
        return
    for what in wrong:
        findings.error("E3460", label(node), what)
