"""Operators that look elements up, scatter, sort or compress them."""

from typing import Any

import numpy as np

from ..draw import Draw
from .movement import axis_of


def indices(d: Draw, size: int, shape: tuple[int, ...], variable: str = "Tind") -> None:
    """Indices of an axis: negative ones and duplicates too, of operator sets that have them."""
    negative = d.operator.opset >= 11 and d.maybe("negative index")
    element = d.type(variable) if variable in d.operator.types else "int64"
    d.x(d.rng.integers(-size if negative else 0, max(size, 1), shape).astype(element))


def gather(d: Draw) -> None:
    shape = d.shape(1)
    d.x(d.array("T", shape))
    axis = axis_of(d, len(shape))
    size = shape[axis]
    indices(d, size, d.choose("indices", [(), (3,), (2, 2), (0,)]) if size else (0,))


def gather_elements(d: Draw) -> None:
    shape = d.shape(1)
    d.x(d.array("T", shape))
    axis = axis_of(d, len(shape))
    own = [d.integer(0, n) for n in shape] if d.maybe("smaller") else [*shape]
    own[axis] = d.integer(0, 5) if shape[axis] else 0
    indices(d, shape[axis], tuple(own))


def gather_nd(d: Draw) -> None:
    shape = d.shape(1, empty=False)
    rank = len(shape)
    batch = d.attr("batch_dims", [n for n in (0, 1, 2) if n < rank]) or 0
    last = d.integer(1, rank - batch)
    outer = (*shape[:batch], *(d.integer(1, 3) for _ in range(d.integer(0, 2))))
    own = [d.rng.integers(-n if d.since >= 11 else 0, n, outer) for n in shape[batch : batch + last]]
    d.x(d.array("T", shape))
    d.ints(np.stack(own, -1))


def _reduction(d: Draw) -> Any:
    """The attribute, of element types that can be reduced."""
    if d.has("reduction") and d.type("T") in ("string", "bool"):
        return d.attr("reduction", ["none"])
    return d.attr("reduction", ["none", "add", "mul"] + (["max", "min"] if d.since >= 18 else []))


def scatter_elements(d: Draw) -> None:
    shape = d.shape(1, empty=False)
    axis = axis_of(d, len(shape))
    mode = _reduction(d)
    unique = mode in (None, b"none", "none")
    d.x(d.array("T", shape, "plain"))
    own = [d.integer(1, n) for n in shape]
    element = d.type("Tind")
    if unique:
        ranks = d.rng.permuted(
            np.broadcast_to(
                np.arange(shape[axis]).reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))]), shape
            ),
            axis=axis,
        )
        at = ranks[tuple(slice(n) for n in own)]
    else:
        at = d.rng.integers(0, shape[axis], own)
    if d.operator.opset >= 11 and d.maybe("negative index"):
        at = np.where(d.rng.random(at.shape) < 0.5, at - shape[axis], at)
    d.x(at.astype(element))
    d.x(d.array("T", own, "plain"))


def scatter_nd(d: Draw) -> None:
    shape = d.shape(1, empty=False)
    mode = _reduction(d)
    last = d.integer(1, len(shape))
    whole = int(np.prod(shape[:last]))
    count = d.integer(1, whole)
    unique = mode in (None, b"none", "none")
    flat = d.rng.permutation(whole)[:count] if unique else d.rng.integers(0, whole, count)
    at = np.stack(np.unravel_index(flat, shape[:last]), -1)
    if d.maybe("negative index"):
        at = np.where(d.rng.random(at.shape) < 0.5, at - np.array(shape[:last]), at)
    d.x(d.array("T", shape, "plain"))
    d.ints(at)
    d.x(d.array("T", (count, *shape[last:]), "plain"))


def cut(d: Draw) -> None:
    shape = d.shape(1, largest=6)
    rank = len(shape)
    count = d.integer(1, rank)
    axes = [int(i) for i in d.rng.permutation(rank)[:count]]
    steps = [1] * count
    new = d.since >= 10
    if new and d.maybe("steps"):
        steps = [d.pick([1, 2, 3, -1, -2, 99, -99]) for _ in axes]
    where = d.choose("bounds", ["inside", "negative", "outside", "extreme"])
    bound = {"inside": (0, 5), "negative": (-6, 6), "outside": (-9, 99), "extreme": (0, 0)}[where]
    extremes = [2**31 - 1, -(2**31) + 1, 2**31 - 1] if where == "extreme" else []
    starts = [d.pick([0, 1, -1, *extremes]) if extremes else d.integer(*bound) for _ in axes]
    ends = [d.pick([0, 3, *extremes]) if extremes else d.integer(*bound) for _ in axes]
    if not d.maybe("axes"):
        axes = list(range(count))
        given = False
    else:
        given = True
    d.x(d.array("T", shape))
    if not new:
        d.attributes.update(starts=starts, ends=ends)
        if given:
            d.attributes["axes"] = axes
        return
    if d.since >= 11 and given and d.maybe("negative axis"):
        axes = [a - rank for a in axes]
    element = d.type("Tind")
    d.ints(starts, element)
    d.ints(ends, element)
    if given:
        d.ints(axes, element)
    elif steps != [1] * count:
        d.skip()
    if steps != [1] * count:
        d.ints(steps, element)


def top(d: Draw) -> None:
    shape = d.shape(1, empty=False)
    axis = axis_of(d, len(shape))
    k = d.integer(1, shape[axis])
    if d.since >= 11:
        d.attr("largest", [0, 1])
        d.attr("sorted", [1])
    d.x(d.array("T", shape, d.choose("values", ["plain", "ties", "edges"])))
    if d.has("k"):
        d.attributes["k"] = k
    else:
        d.ints([k])
    d.outputs = 2


def extreme(d: Draw) -> None:
    shape = d.shape(1, empty=False)
    axis_of(d, len(shape))
    d.attr("keepdims", [0, 1])
    if d.has("select_last_index"):
        d.attr("select_last_index", [0, 1])
    d.x(d.array("T", shape, d.choose("values", ["plain", "ties", "edges"])))


def one_hot(d: Draw) -> None:
    shape = d.shape(1, 3)
    axis_of(d, len(shape), last=True)
    depth = d.integer(1, 5)
    element = d.type("T1")
    at = d.rng.integers(-depth - 1 if d.since >= 11 else 0, depth + 2, shape)
    d.x((np.abs(at) if element.startswith("uint") else at).astype(d.of(element, ()).dtype))
    d.x(
        np.asarray([depth] if d.since < 11 or d.maybe("depth of rank 1") else depth).astype(
            d.of(d.type("T2"), ()).dtype
        )
    )
    d.x(d.array("T3", (2,), "plain"))


def compress(d: Draw) -> None:
    shape = d.shape(1)
    d.x(d.array("T", shape))
    axis = axis_of(d, len(shape))
    size = int(np.prod(shape)) if axis is None else shape[axis]
    d.x(d.of("bool", (d.integer(0 if size == 0 else 1, size),)))


def unique(d: Draw) -> None:
    shape = d.shape(0)
    axis_of(d, len(shape)) if shape else None
    d.attr("sorted", [0, 1])
    d.x(d.array("T", shape, d.choose("values", ["ties", "plain", "edges", "special"])))
    d.outputs = d.choose("outputs", [1, 2, 3, 4])


def running(d: Draw) -> None:
    shape = d.shape(1)
    d.attr("exclusive", [0, 1])
    d.attr("reverse", [0, 1])
    d.x(d.array("T" if "T" in d.operator.types else "T1", shape, d.choose("values", ["plain", "ties"])))
    d.ints(d.pick([0, -1, len(shape) - 1, -len(shape)]), d.type("T2"))


def reverse(d: Draw) -> None:
    shape = d.shape(2, empty=False)
    time = d.attr("time_axis", [0, 1])
    d.attributes["batch_axis"] = 1 - time
    d.attributes["time_axis"] = time
    d.options["batch_axis"] = str(1 - time)
    d.x(d.array("T", shape))
    d.ints([d.integer(0, shape[time]) for _ in range(shape[1 - time])])


def tensor_scatter(d: Draw) -> None:
    shape = [d.integer(1, 3), d.integer(1, 3), d.integer(3, 5), d.integer(1, 3)]
    mode = d.attr("mode", ["linear", "circular"])
    axis = d.attr("axis", [-2, 2, 1, 3, -1]) % 4
    new = [*shape]
    new[axis] = d.integer(1, shape[axis])
    d.x(d.array("T", shape))
    d.x(d.array("T", new))
    if d.maybe("write_indices"):
        last = shape[axis] - (0 if mode in ("circular", b"circular") else new[axis])
        d.ints([d.integer(0, max(0, last - (mode in ("circular", b"circular")))) for _ in range(shape[0])])


GENERATORS = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Slice": cut,
    "TopK": top,
    "ArgMax": extreme,
    "ArgMin": extreme,
    "OneHot": one_hot,
    "Compress": compress,
    "Unique": unique,
    "CumSum": running,
    "CumProd": running,
    "ReverseSequence": reverse,
    "TensorScatter": tensor_scatter,
}
