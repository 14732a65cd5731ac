"""Reductions, matrix products, normalizations, losses."""

import numpy as np

from ..draw import Draw
from .movement import axis_of

SMALL = ["plain", "ties"]
"""Styles for sums: moderate, so that the order of additions costs little."""


def reduction(d: Draw) -> None:
    """Axes as an attribute or an operand, none of them, negative ones."""
    exact = d.operator.name in ("ReduceMax", "ReduceMin")
    shape = d.shape()
    d.attr("keepdims", [0, 1])
    rank = len(shape)
    kind = d.choose("axes", [*["none"], *(["some", "all", "negative", "empty"] if rank else [])])
    axes = [int(i) for i in d.rng.permutation(rank)[: d.integer(1, max(rank, 1))]]
    axes = {"none": None, "some": axes, "all": list(range(rank)), "negative": [a - rank for a in axes], "empty": []}[
        kind
    ]
    d.x(d.array("T", shape, d.choose("values", ["plain", "ties", "edges", "special"] if exact else SMALL)))
    if d.has("axes"):
        if axes:
            d.attributes["axes"] = axes
        return
    d.attr("noop_with_empty_axes", [0, 1])
    if axes is not None:
        d.ints(axes)


def softmax(d: Draw) -> None:
    shape = d.shape(1)
    axis_of(d, len(shape), needed=len(shape) == 1 and d.since < 13)
    d.x(d.array("T", shape, d.choose("values", ["plain", "ties", "edges"])))


def matmul(d: Draw) -> None:
    left, right, k = d.integer(1, 4), d.integer(1, 4), d.choose("inner size", [1, 3, 17, 0])
    case = d.choose("rank", ["2-D x 2-D", "1-D x 1-D", "1-D x 2-D", "2-D x 1-D", "3-D x 3-D", "4-D x 2-D", "broadcast"])
    shapes = {
        "2-D x 2-D": ((left, k), (k, right)),
        "1-D x 1-D": ((k,), (k,)),
        "1-D x 2-D": ((k,), (k, right)),
        "2-D x 1-D": ((left, k), (k,)),
        "3-D x 3-D": ((2, left, k), (2, k, right)),
        "4-D x 2-D": ((2, 1, left, k), (k, right)),
        "broadcast": ((3, 1, left, k), (2, k, right)),
    }[case]
    for shape in shapes:
        d.x(d.array("T", shape, d.choose("values", SMALL)))


def gemm(d: Draw) -> None:
    m, n, k = d.integer(1, 4), d.integer(1, 4), d.choose("inner size", [1, 3, 17])
    a, b = d.attr("transA", [0, 1]), d.attr("transB", [0, 1])
    d.attr("alpha", [0.0, 1.0, 0.5, -2.0])
    d.attr("beta", [0.0, 1.0, 0.25])
    d.x(d.array("T", (k, m) if a else (m, k), "plain"))
    d.x(d.array("T", (n, k) if b else (k, n), "plain"))
    shape = d.choose("C", ["none", "full", "row", "column", "scalar", "vector"])
    shapes = {"full": (m, n), "row": (1, n), "column": (m, 1), "scalar": (), "vector": (n,)}
    if shape != "none" or d.since < 11:
        d.x(d.array("T", shapes.get(shape, (m, n)), "plain"))


def einsum(d: Draw) -> None:
    cases = {
        "ij,jk->ik": 2,
        "ij,jk": 2,
        "ij->ji": 1,
        "ij->": 1,
        "ii->i": 1,
        "ii": 1,
        "bij,bjk->bik": 2,
        "...ij,...jk->...ik": 2,
        "i,i->": 2,
        "i,j->ij": 2,
        "ij,ij->j": 2,
        "ij,jk,kl->il": 3,
        "...->...": 1,
        "bhwc,hkc->bhwk": 2,
        "ij -> ij": 1,
    }
    equation = d.choose("equation", list(cases))
    d.attributes["equation"] = equation
    sizes = {letter: d.integer(1, 4) for letter in "ijklbhwc"}
    for term in equation.split("->")[0].strip().split(","):
        shape = [2] if "..." in term else []
        d.x(d.array("T", (*shape, *(sizes[letter] for letter in term.strip() if letter in sizes)), "plain"))


def channels(d: Draw, low: int = 2) -> tuple[int, ...]:
    """A shape of samples, channels and the rest."""
    shape = d.shape(low, 5, empty=False)
    return shape


def batch_norm(d: Draw) -> None:
    shape = channels(d)
    d.attr("epsilon", [1e-5, 1e-3, 0.5])
    d.attr("momentum", [0.9, 0.5])
    training = d.attr("training_mode", [0, 1]) if d.has("training_mode") else 0
    if d.has("spatial"):
        d.attr("spatial", [1])
    d.x(d.array("T", shape, "plain"))
    variable = [*["T1", "T2"]] if "T2" in d.operator.types else ["T1", "T1"] if "T1" in d.operator.types else ["T", "T"]
    if "U" in d.operator.types:
        variable = ["T", "U"]
    c = shape[1]
    for kind in (variable[0], variable[0], variable[1]):
        d.x(d.array(kind, (c,), "plain"))
    d.x(d.array(variable[1], (c,), "positive"))
    d.outputs = 3 if training else 1


def instance_norm(d: Draw) -> None:
    shape = channels(d, 3)
    d.attr("epsilon", [1e-5, 1e-3, 0.5])
    d.x(d.array("T", shape, "plain"))
    d.x(d.array("T", shape[1:2], "plain"))
    d.x(d.array("T", shape[1:2], "plain"))


def group_norm(d: Draw) -> None:
    groups = d.choose("num_groups", [1, 2, 3])
    d.attributes["num_groups"] = groups
    d.attr("epsilon", [1e-5, 1e-3])
    d.attr("stash_type", [1])
    shape = (
        d.integer(1, 2),
        groups * d.integer(1, 2),
        *(d.integer(1, 3) for _ in range(d.choose("spatial", [1, 2, 3]))),
    )
    d.x(d.array("T", shape, "plain"))
    size = groups if d.since < 21 else shape[1]
    d.x(d.array("T", (size,), "plain"))
    d.x(d.array("T", (size,), "plain"))


def layer_norm(d: Draw) -> None:
    shape = d.shape(1, empty=False)
    axis = axis_of(d, len(shape))
    d.attr("epsilon", [1e-5, 1e-3])
    d.attr("stash_type", [1])
    d.x(d.array("T", shape, "plain"))
    rms = d.operator.name == "RMSNormalization"
    scale = d.array("V" if rms else "T", shape[axis:], "plain", [d.type("T")] if rms and d.maybe("one type") else [])
    d.x(scale)
    if not rms and d.maybe("B"):
        d.x(d.array("T", shape[axis:], "plain"))
    d.outputs = 1 if rms else d.choose("outputs", [1, 2, 3])


def lp_norm(d: Draw) -> None:
    shape = d.shape(1)
    axis_of(d, len(shape))
    d.attr("p", [1, 2])
    d.x(d.array("T", shape, d.choose("values", SMALL)))


def lrn(d: Draw) -> None:
    d.attributes["size"] = d.choose("size", [1, 2, 3, 5])
    d.attr("alpha", [1e-4, 0.5])
    d.attr("beta", [0.75, 0.5, 1.0])
    d.attr("bias", [1.0, 2.0])
    d.x(d.array("T", d.shape(4, 4, empty=False), "plain"))


def mean_variance(d: Draw) -> None:
    d.attr("axes", [[0, 2, 3], [2, 3], [0, 1, 2, 3], [1], [-1]])
    d.x(d.array("T", d.shape(4, 4, empty=False), "plain"))


def det(d: Draw) -> None:
    n = d.choose("size", [1, 2, 3, 5])
    d.x(d.array("T", (*d.shape(0, 2, empty=False), n, n), "plain"))


def loss(d: Draw) -> None:
    shape = d.shape(2, 4, empty=False)
    d.attr("reduction", ["none", "mean", "sum"])
    d.x(d.array("T", shape, "plain"))
    at = d.rng.integers(0, shape[1], (shape[0], *shape[2:])).astype(d.type("Tind"))
    ignored = d.attr("ignore_index", [0, 1, -1, 255])
    if ignored in (-1, 255):
        at = np.where(d.rng.random(at.shape) < 0.2, ignored, at).astype(at.dtype)
    d.x(at)
    if d.maybe("weights"):
        d.x(d.array("T", (shape[1],), "positive"))
    if d.operator.name.startswith("Softmax"):
        d.outputs = d.choose("outputs", [1, 2])


REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
GENERATORS = {
    **{f"Reduce{name}": reduction for name in REDUCTIONS.split()},
    **dict.fromkeys(["Softmax", "LogSoftmax", "Hardmax"], softmax),
    **dict.fromkeys(["LayerNormalization", "RMSNormalization"], layer_norm),
    **dict.fromkeys(["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"], loss),
    "MatMul": matmul,
    "Gemm": gemm,
    "Einsum": einsum,
    "BatchNormalization": batch_norm,
    "InstanceNormalization": instance_norm,
    "GroupNormalization": group_norm,
    "LpNormalization": lp_norm,
    "LRN": lrn,
    "MeanVarianceNormalization": mean_variance,
    "Det": det,
}
