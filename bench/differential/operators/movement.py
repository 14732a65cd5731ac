"""Operators that move elements: shapes, joins, splits, padding, diagonals."""

from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from ..draw import UNSET, Draw
from .elementwise import code


def axis_of(d: Draw, rank: int, last: bool = False, name: str = "axis", needed: bool = False) -> Any:
    """An axis: the first, the last, one between, negative ones; with `last` also the rank itself."""
    kinds = ["first", "last", "inner", "-1", "-rank"] + (["rank"] if last else [])
    if d.operator.domain == "" and d.operator.opset < 11 and d.operator.name != "Split":
        kinds = [one for one in kinds if not one.startswith("-")]
    schema = d.operator.schema.attributes[name]
    if not rank and not last:
        kinds = ["first"]
    kind = d.choose(name, kinds if schema.required or needed else [UNSET, *kinds])
    if kind == UNSET:
        return helper.get_attribute_value(schema.default_value) if schema.default_value.name else None
    value = {"first": 0, "last": max(rank - 1, 0), "inner": rank // 2, "-1": -1, "-rank": -rank, "rank": rank}[kind]
    d.attributes[name] = value
    return value


def concat(d: Draw) -> None:
    shape = list(d.shape(1))
    axis = axis_of(d, len(shape), needed=True)
    for _ in range(d.choose("operands", [1, 2, 4])):
        one = [*shape]
        one[axis] = d.integer(0, 3)
        d.x(d.array("T", one))


def split(d: Draw) -> None:
    shape = list(d.shape(1))
    axis = axis_of(d, len(shape))
    count = d.integer(1, 4)
    given = d.maybe("split")
    sizes = [d.integer(0, 3) for _ in range(count)]
    if not given:
        sizes = [d.integer(1, 2)] * count
        if d.has("num_outputs") and d.rng.random() < 0.4 and sizes[0] > 1:
            sizes[-1] -= 1
    shape[axis] = sum(sizes)
    d.x(d.array("T", shape))
    d.outputs = count
    if d.has("split"):
        if given:
            d.attributes["split"] = sizes
    elif given:
        d.ints(sizes)
    elif d.has("num_outputs"):
        d.attributes["num_outputs"] = count
        d.options["num_outputs"] = str(count)


def transpose(d: Draw) -> None:
    shape = d.shape()
    d.x(d.array("T", shape))
    if d.maybe("perm"):
        d.attributes["perm"] = [int(i) for i in d.rng.permutation(len(shape))]


def reshape(d: Draw) -> None:
    shape = d.shape()
    count = int(np.prod(shape))
    kind = d.choose("target", ["flat", "-1", "0 copies", "factors", "more ones"])
    zero = d.attr("allowzero", [0, 1])
    target = {
        "flat": [count],
        "-1": [-1],
        "0 copies": [0] * min(len(shape), 1) + [-1],
        "factors": [*shape][::-1],
        "more ones": [1, *shape, 1],
    }[kind]
    if 0 in target and (zero or count == 0) and -1 in target:
        target = [*shape]
    if count == 0:
        target = [*shape]
    d.x(d.array("T", shape))
    if d.has("shape"):
        d.attributes["shape"] = target
    else:
        d.ints(target)


def flatten(d: Draw) -> None:
    shape = d.shape()
    d.x(d.array("T", shape))
    if shape:
        axis_of(d, len(shape), last=True)
    else:
        d.attributes["axis"] = 0


def squeeze(d: Draw) -> None:
    shape = [*d.shape()]
    ones = [d.integer(0, len(shape)) for _ in range(d.integer(0, 2))]
    for place in ones:
        shape.insert(place, 1)
    axes = [i for i, n in enumerate(shape) if n == 1 and d.rng.random() < 0.7]
    if axes and d.maybe("negative axis") and d.since >= 11:
        axes[0] -= len(shape)
    d.x(d.array("T", shape))
    if d.maybe("axes") and axes:
        _axes(d, axes)


def unsqueeze(d: Draw) -> None:
    shape = d.shape()
    d.x(d.array("T", shape))
    count = d.choose("axes", [1, 2, 3])
    axes = [int(i) for i in d.rng.permutation(len(shape) + count)[:count]]
    if d.since >= 11 and d.maybe("negative axis"):
        axes[0] -= len(shape) + count
    _axes(d, axes)


def _axes(d: Draw, axes: list[int]) -> None:
    if d.has("axes"):
        d.attributes["axes"] = axes
    else:
        d.ints(axes)


def expand(d: Draw) -> None:
    shape = d.shape()
    target = [n if n != 1 or d.rng.random() < 0.5 else d.integer(0, 3) for n in shape]
    target = [1 if d.rng.random() < 0.3 else n for n in target]
    if d.maybe("more dimensions"):
        target = [2, *target]
    d.x(d.array("T", shape))
    d.ints(target)


def tile(d: Draw) -> None:
    shape = d.shape()
    d.x(d.array("T", shape))
    d.ints([d.integer(0, 3) for _ in shape])


def pad(d: Draw) -> None:
    modes = ["constant", "reflect", "edge"] + (["wrap"] if d.since >= 19 else [])
    mode = d.attr("mode", modes)
    mode = mode.decode() if isinstance(mode, bytes) else mode
    shape = d.shape(1, largest=5, empty=mode == "constant")
    rank = len(shape)
    sign = d.choose("pads", ["positive", "zero", "negative", "mixed"])
    axes = None
    if d.since >= 18 and d.maybe("axes"):
        axes = [int(i) for i in d.rng.permutation(rank)[: d.integer(1, rank)]]
    places = axes or range(rank)
    low = {"positive": 0, "zero": 0, "negative": -1, "mixed": -1}[sign]
    high = {"positive": 3, "zero": 0, "negative": 0, "mixed": 3}[sign]
    limit = [shape[p] - 1 if mode == "reflect" else shape[p] if mode in ("wrap", "edge") else 9 for p in places]
    pads = [
        max(min(d.integer(low, high), n), 0 if shape[p] < 3 else low)
        for _ in range(2)
        for p, n in zip(places, limit, strict=True)
    ]
    pads = [max(n, 0) if mode != "constant" and min(shape) == 0 else n for n in pads]
    d.x(d.array("T", shape))
    if axes and d.maybe("negative axis"):
        axes = [a - rank for a in axes]
    if d.has("pads"):
        d.attr("value", [0.0, 1.5, -2.0])
        d.attributes["pads"] = pads
        return
    d.ints(pads)
    if d.maybe("constant_value"):
        d.x(d.of(d.type("T"), (), "plain"))
    else:
        d.skip()
    if axes:
        d.ints(axes, d.type("Tind"))


def trilu(d: Draw) -> None:
    shape = d.shape(2)
    d.attr("upper", [0, 1])
    d.x(d.array("T", shape))
    if d.maybe("k"):
        d.ints(d.choose("diagonal", [0, 1, -1, 5, -5]))


def eye(d: Draw) -> None:
    d.attr("k", [0, 1, -1, 7])
    d.x(d.array("T1", d.shape(2, 2)))
    if d.maybe("dtype"):
        d.attributes["dtype"] = code(d.type("T2"))


def depth(d: Draw) -> None:
    block = d.choose("blocksize", [1, 2, 3])
    d.attributes["blocksize"] = block
    if d.operator.name == "DepthToSpace":
        shape = (d.integer(1, 2), d.integer(1, 2) * block * block, d.integer(1, 3), d.integer(1, 3))
    else:
        shape = (d.integer(1, 2), d.integer(1, 3), d.integer(1, 3) * block, d.integer(1, 3) * block)
    if d.has("mode"):
        d.attr("mode", ["DCR", "CRD"])
    d.x(d.array("T", shape))


def shape_of(d: Draw) -> None:
    shape = d.shape()
    for name in ("start", "end"):
        if d.has(name):
            d.attr(name, [0, 1, -1, 9, -9, len(shape)])
    d.x(d.array("T", shape))


def fill(d: Draw) -> None:
    if d.maybe("value"):
        value = d.of(d.type("T2"), (1,))
        d.attributes["value"] = numpy_helper.from_array(value, "value")
    d.ints(d.shape())


def constant(d: Draw) -> None:
    kinds = [name for name in d.operator.schema.attributes if name != "sparse_value"]
    kind = d.choose("attribute", kinds)
    values: dict[str, Any] = {
        "value_int": -3,
        "value_ints": [1, -2, 2**40],
        "value_float": -0.5,
        "value_floats": [1.5, 0.0],
        "value_string": "é",
        "value_strings": ["a", ""],
    }
    if kind == "value":
        d.attributes[kind] = numpy_helper.from_array(d.array("T", d.shape()), "value")
    else:
        d.attributes[kind] = values[kind]


def count(d: Draw) -> None:
    element = d.type("T")
    if element in ("float16", "bfloat16"):
        d.attr("stash_type", [1])
    start, limit = sorted(d.integer(-9, 9) for _ in range(2))
    sign = d.choose("delta", ["up", "down", "none"])
    delta = {"up": d.integer(1, 3), "down": -d.integer(1, 3), "none": 1}[sign]
    start, limit = (limit, start) if sign in ("down", "none") else (start, limit)
    whole = element.startswith(("int", "uint"))
    for value in (start, limit, delta):
        d.x(
            d.of(element, (), "plain") * 0
            + np.asarray(value if whole else value + (0.0 if value == delta else 0.25)).astype(
                d.of(element, (), "plain").dtype
            )
        )


def crop(d: Draw) -> None:
    shape = d.shape(1, empty=False)
    d.x(d.array("T", shape))
    if d.maybe("axes"):
        axes = [int(i) for i in d.rng.permutation(len(shape))[: d.integer(1, len(shape))]]
        d.attributes["axes"] = axes
        d.ints([d.integer(1, 6) for _ in axes], d.type("Tind"))
    else:
        d.ints([d.integer(1, 6) for _ in shape], d.type("Tind"))


GENERATORS = {
    "Concat": concat,
    "Split": split,
    "Transpose": transpose,
    "Reshape": reshape,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Expand": expand,
    "Tile": tile,
    "Pad": pad,
    "Trilu": trilu,
    "EyeLike": eye,
    "DepthToSpace": depth,
    "SpaceToDepth": depth,
    "Shape": shape_of,
    "ConstantOfShape": fill,
    "Constant": constant,
    "Range": count,
    "CenterCropPad": crop,
}
