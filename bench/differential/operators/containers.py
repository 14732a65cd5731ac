"""Sequences, optionals, control flow, random generators."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from ..draw import Draw
from .elementwise import code
from .movement import axis_of

TENSORS = ("float", "double", "int32", "int64", "uint8", "bool", "string", "float16", "int8")


def _tensor(element: str, shape: Any = None) -> onnx.TypeProto:
    return helper.make_tensor_type_proto(code(element), shape)


def _sequence(d: Draw, same: bool = False, rank: int | None = None) -> tuple[str, list[Any]]:
    """A sequence of tensors as an operand; its element type and the tensors."""
    element = d.choose("S", TENSORS)
    shape = d.shape() if rank is None else tuple(d.integer(1, 3) for _ in range(rank))
    values = [
        d.of(element, shape if same else (*shape[:-1], d.integer(0, 3)) if shape else ())
        for _ in range(d.integer(1, 4))
    ]
    d.feed(helper.make_sequence_type_proto(_tensor(element)), values)
    return element, values


def at(d: Draw) -> None:
    _, values = _sequence(d)
    d.x(np.asarray(d.integer(-len(values), len(values) - 1), d.type("I")))


def construct(d: Draw) -> None:
    element = d.choose("T", TENSORS)
    for _ in range(d.choose("operands", [1, 2, 4])):
        d.x(d.of(element, d.shape()))


def empty(d: Draw) -> None:
    kind = d.choose("dtype", [0, *TENSORS])
    if kind:
        d.attributes["dtype"] = code(kind)
    d.before = []


def erase(d: Draw) -> None:
    _, values = _sequence(d)
    if d.maybe("position"):
        d.x(np.asarray(d.integer(-len(values), len(values) - 1), d.type("I")))


def insert(d: Draw) -> None:
    element, values = _sequence(d)
    d.x(d.of(element, d.shape()))
    if d.maybe("position"):
        d.x(np.asarray(d.integer(-len(values), len(values)), d.type("I")))


def length(d: Draw) -> None:
    _sequence(d)


def join(d: Draw) -> None:
    rank = d.integer(1, 3)
    d.attr("new_axis", [0, 1])
    _sequence(d, same=True, rank=rank)
    d.attributes["axis"] = d.pick([0, -1, rank - 1])
    d.options["axis"] = "negative" if d.attributes["axis"] < 0 else "positive"


def split(d: Draw) -> None:
    shape = list(d.shape(1, empty=False))
    axis = axis_of(d, len(shape))
    kind = d.choose("split", ["none", "scalar", "vector"])
    d.attr("keepdims", [0, 1])
    d.x(d.array("T", shape))
    size = shape[axis]
    if kind == "scalar":
        d.x(np.asarray(d.integer(1, size), d.type("I")))
    elif kind == "vector":
        first = d.integer(0, size)
        d.ints([first, size - first], d.type("I"))


def optional(d: Draw) -> None:
    element = d.choose("V", TENSORS)
    if d.maybe("operand"):
        d.x(d.of(element, d.shape()))
    else:
        d.attributes["type"] = _tensor(element, [])


def held(d: Draw) -> None:
    """OptionalGetElement and OptionalHasElement of an optional, a tensor or a sequence."""
    element = d.choose("O", TENSORS)
    kinds = ["optional tensor", *(["tensor", "sequence"] if d.since >= 18 else [])]
    if d.operator.name == "OptionalHasElement":
        kinds += ["empty optional", *(["nothing"] if d.since >= 18 else [])]
    kind = d.choose("operand", kinds)
    value = d.of(element, d.shape())
    if kind == "tensor":
        d.x(value)
    elif kind == "sequence":
        d.feed(helper.make_sequence_type_proto(_tensor(element)), [value])
    elif kind != "nothing":
        d.feed(helper.make_optional_type_proto(_tensor(element)), value if kind == "optional tensor" else None)


def _graph(nodes: list[onnx.NodeProto], inputs: list[Any], outputs: list[str], kind: int, name: str) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, inputs, [helper.make_tensor_value_info(o, kind, None) for o in outputs])


def branch(d: Draw) -> None:
    element = d.choose("V", ("float", "int64", "double"))
    shape = d.shape()
    d.x(np.asarray(d.choose("condition", [True, False])), False)
    outer = d.of(element, shape)
    d.x(outer, False)
    outer_name = d.inputs.pop()
    kind = code(element)
    then = _graph([helper.make_node("Add", [outer_name, outer_name], ["t"])], [], ["t"], kind, "then")
    other = _graph([helper.make_node("Mul", [outer_name, outer_name], ["e"])], [], ["e"], kind, "else")
    d.attributes.update(then_branch=then, else_branch=other)


def loop(d: Draw) -> None:
    """A running sum, each of whose states is a scan output."""
    element = d.choose("V", ("float", "int64", "double"))
    shape = d.shape(empty=False)
    count, limited = d.maybe("trip count"), d.maybe("condition")
    if count or not limited or d.since < 11:
        d.x(np.asarray(d.integer(0, 4), np.int64))
    else:
        d.skip()
    if limited:
        d.x(np.asarray(d.choose("condition value", [True, False])))
    else:
        d.skip()
    d.x(d.of(element, shape, "plain"), False)
    kind = code(element)
    one = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Add", ["v", "v"], ["w"]),
        helper.make_node("Identity", ["w"], ["s"]),
        helper.make_node("Constant", [], ["three"], value=helper.make_tensor("three", TensorProto.INT64, [], [3])),
        helper.make_node("Less", ["i", "three"], ["again"]),
    ]
    if d.since < 11:  # before operator set 9 neither are there constants of integers, nor does Less take them
        nodes[2:] = [helper.make_node("Not", ["c"], ["n"]), helper.make_node("Not", ["n"], ["again"])]
    inputs = [one("i", TensorProto.INT64, []), one("c", TensorProto.BOOL, []), one("v", kind, shape)]
    outputs = [one("again", TensorProto.BOOL, []), one("w", kind, shape), one("s", kind, shape)]
    d.attributes["body"] = helper.make_graph(nodes, "body", inputs, outputs)
    d.outputs = 2


def scan(d: Draw) -> None:
    element = d.choose("V", ("float", "int64", "double"))
    kind = code(element)
    shape = (d.integer(1, 4), d.integer(1, 3))
    batched = d.since == 8
    if batched:
        d.skip()
    d.x(d.of(element, (1, shape[1]) if batched else shape[1:], "plain"))
    d.x(d.of(element, (1, *shape) if batched else shape, "plain"))
    d.attributes["num_scan_inputs"] = 1
    if d.maybe("direction"):
        name = "directions" if batched else "scan_input_directions"
        d.attributes[name] = [1]
    if not batched and d.maybe("output direction"):
        d.attributes["scan_output_directions"] = [1]
    if not batched and d.maybe("output axis"):
        d.attributes["scan_output_axes"] = [d.pick([1, -1] if d.since >= 11 else [1])]
    one = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["v", "x"], ["w"]), helper.make_node("Mul", ["w", "x"], ["s"])]
    inputs = [one("v", kind, shape[1:]), one("x", kind, shape[1:])]
    d.attributes["body"] = helper.make_graph(
        nodes, "body", inputs, [one("w", kind, shape[1:]), one("s", kind, shape[1:])]
    )
    d.outputs = 2


def each(d: Draw) -> None:
    element = d.choose("V", ("float", "int64", "double"))
    kind = code(element)
    shape = (d.integer(1, 3),)
    d.feed(
        helper.make_sequence_type_proto(_tensor(element)),
        [d.of(element, shape, "plain") for _ in range(d.integer(1, 3))],
    )
    one = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "a"], ["b"])], "body", [one("a", kind, None)], [one("b", kind, None)]
    )
    d.attributes["body"] = body


def generator(d: Draw) -> None:
    """Type and shape only: what the numbers are is left to chance."""
    name = d.operator.name
    if not name.endswith("Like") and name not in ("Bernoulli", "Multinomial"):
        d.attributes["shape"] = [*d.shape(1)]
        element = d.type("T")
    elif name == "Multinomial":
        element = d.type("T2")
        d.x(d.array("T1", (d.integer(1, 3), d.integer(1, 4)), "plain"))
        d.attr("sample_size", [1, 5])
    else:
        x = d.array("T1", d.shape(), "plain")
        d.x(np.clip(x.astype(np.float32), 0, 1).astype(x.dtype) if name == "Bernoulli" else x)
        element = d.type("T2") if name == "Bernoulli" else d.choose("T2", ["float", "double"])
    if d.has("dtype"):
        d.attributes["dtype"] = code(element)
    d.attr("seed", [0.0, 3.0])
    for attribute, values in (("mean", [0.5, 2.0]), ("scale", [0.5, 2.0]), ("low", [-0.5, 0.0]), ("high", [1.0, 2.0])):
        if d.has(attribute):
            d.attr(attribute, values)


def dropout(d: Draw) -> None:
    d.x(d.array("T", d.shape()))
    if d.has("ratio"):
        d.attr("ratio", [0.0, 0.5, 0.9])
    else:
        d.attr("seed", [1])
        if d.maybe("ratio"):
            d.x(np.asarray(d.pick([0.0, 0.5]), d.of(d.type("T1"), (), "plain").dtype))
            if d.maybe("training_mode"):
                d.x(np.asarray(False))
    d.outputs = d.choose("outputs", [1, 2])


RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
GENERATORS = {
    "SequenceAt": at,
    "SequenceConstruct": construct,
    "SequenceEmpty": empty,
    "SequenceErase": erase,
    "SequenceInsert": insert,
    "SequenceLength": length,
    "ConcatFromSequence": join,
    "SplitToSequence": split,
    "SequenceMap": each,
    "Optional": optional,
    "OptionalGetElement": held,
    "OptionalHasElement": held,
    "If": branch,
    "Loop": loop,
    "Scan": scan,
    "Dropout": dropout,
    **dict.fromkeys(RANDOM, generator),
}
