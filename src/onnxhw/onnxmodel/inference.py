"""`infer`: types and shapes of all values by onnx's inference, without what it would allocate for a hostile model.

onnx propagates the *values* of shape arithmetic through every vector it meets, and takes some hundred bytes per element
for that: a sum of two vectors of 2^31 elements never ends. So shapes are inferred without that first; where some
stay open, values are propagated too, but not through nodes with a vector that is long, or may be.
"""

import itertools
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np
import onnx
from onnx import defs, numpy_helper, shape_inference

from ..errors import InvalidModelError
from .declared_shapes import Contradiction, merged, take_declared
from .in_worker import infer_shapes
from .miscounted_windows import Sizes, miscounted, whole_windows
from .nodes import reads
from .specification.functions import every_node
from .specification.signatures import canonical, nowhere
from .subgraph_copy import nested

Shape = tuple[int, ...]
Check = Callable[[dict[str, Shape]], None]
"""Raises for shapes that are too large to go on with."""

KEPT = 1024
"""Elements of an initializer up to which shape inference gets to see its values."""
LONGEST = 1024
"""Elements of a vector through which values are propagated."""
ROUNDS = 8
"""Most rounds of propagation; each needs the one before to have found shapes."""
FAILURES = (shape_inference.InferenceError, ValueError, RuntimeError)
BROADCASTING = ("Add", "Sub", "Mul")
UNSEEN = "onnxhw.unseen"
"""A domain of which inference knows nothing."""
AXES = 3
"""Which input of Pad has its axes."""
LENGTHS_SINCE = 20
"""The version of DFT from which on inference looks at its length."""
FORGOTTEN = {"STFT": ("onesided", 1)}
"""Attributes whose default onnx's inference does not know; the operators' schemas do."""


@cache
def propagating() -> frozenset[str]:
    """The operators through which onnx propagates values, in any version."""
    return frozenset(
        schema.name for schema in defs.get_all_schemas_with_history() if schema.has_data_propagation_function
    )


@dataclass(frozen=True)
class Inferred:
    """What inference finds.

    graph : with types of values and outputs; shapes : those of its values that are static.
    counted : shapes that onnx would infer instead, and models may declare; empty where there is no difference.
    contradictions : outputs that are declared with another shape; marks : of outputs whose shape is only declared
    (`declared.merged`); sure : static shapes to which no declaration of an output has contributed.
    """

    graph: onnx.GraphProto
    shapes: dict[str, Shape]
    counted: Mapping[str, Shape]
    contradictions: list[Contradiction]
    marks: dict[str, str]
    sure: Mapping[str, Shape]


def infer(model: onnx.ModelProto, where: str, check: Check, bound: Mapping[str, Collection[int]]) -> Inferred:
    """The types of all values; what `model` declares of its outputs is replaced by what is inferred, in place.

    `bound`: axes of outputs whose size is a dimension variable's. `InvalidModelError` E3010 for shapes or types that
    contradict each other, outputs excepted; `check` sees the shapes of every round.
    """
    check(static_shapes(model.graph))
    names = {name for node in model.graph.node for name in node.output if name}
    declared = take_declared(model.graph)
    amended, counted = _amended(model)
    inferred = _first(amended, where)
    sure = static_shapes(inferred)
    contradictions, marks, changed = merged(declared, inferred, bound, counted)
    for graph in (model.graph, amended.graph):
        types = {value.name: value.type for value in inferred.output}
        for value in graph.output:
            if value.name in types:
                value.type.CopyFrom(types[value.name])
    if changed and any(not changed.isdisjoint(reads(node)) for node in amended.graph.node):
        inferred = _first(amended, where)
    found = static_shapes(inferred)
    check(found)
    for _ in range(ROUNDS if not names <= found.keys() and _carries(amended.graph) else 0):
        if names <= found.keys():
            break
        more = propagated(amended, inferred)
        added = {name: shape for name, shape in static_shapes(more).items() if name not in found}
        if not added:
            break
        _add(inferred, more, added)
        found |= added
        check(found)
    return Inferred(inferred, found, counted, contradictions, marks, sure)


def _carries(graph: onnx.GraphProto) -> bool:
    """May a value be propagated to the result of any node: of shapes, or of constants? Else there is nothing that
    inference could learn from values."""
    operators = propagating()
    known = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        op_type = node.op_type
        if op_type in operators and (op_type not in BROADCASTING or known.issuperset(node.input)):
            return True
        if op_type == "Constant":
            known.update(node.output)
    return False


def propagated(model: onnx.ModelProto, known: onnx.GraphProto) -> onnx.GraphProto:
    """One round with values, leaving out what is dangerous as far as is `known`; its types are not to be trusted."""
    skeleton = skeleton_of(model)
    ranks, operators = _lengths(known), propagating()
    for node in skeleton.graph.node:
        if nested(node):
            node.domain = UNSEEN
        elif node.op_type in operators and any(_long(name, ranks) for name in (*node.input, *node.output)):
            if node.op_type in BROADCASTING:
                node.op_type = "Div"  # of the same shapes, and without values
            elif node.op_type not in ("Shape", "Size"):  # they look at shapes alone
                node.domain = UNSEEN
    try:
        return infer_shapes(skeleton, data_prop=True).graph
    except FAILURES:
        return onnx.GraphProto()


def plain(model: onnx.ModelProto) -> onnx.GraphProto:
    """Inference without checks and without values; an empty graph if it fails."""
    try:
        return infer_shapes(model).graph
    except FAILURES:
        return onnx.GraphProto()


def undeclared(model: onnx.ModelProto) -> dict[str, Sizes]:
    """The shapes that follow from inputs and constants alone, whatever the model says of other values."""
    skeleton = skeleton_of(model)
    del skeleton.graph.value_info[:]
    for value in skeleton.graph.output:
        value.ClearField("type")
    return sizes(plain(skeleton))


def sizes(graph: onnx.GraphProto) -> dict[str, Sizes]:
    """The shapes of known rank by name, with None for a size that is open."""
    found: dict[str, Sizes] = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in itertools.chain(graph.input, graph.value_info, graph.output):
        kind = value.type.tensor_type
        if kind.HasField("shape"):
            found[value.name] = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim)
    return found


def _first(model: onnx.ModelProto, where: str) -> onnx.GraphProto:
    """Inference with all checks; weights are not shown to it unless it asks for them."""
    try:
        return infer_shapes(skeleton_of(model), check_type=True, strict_mode=True).graph
    except FAILURES:
        pass  # some operator looks at a large constant, or the model is wrong: the whole model tells
    try:
        return infer_shapes(model, check_type=True, strict_mode=True).graph
    except FAILURES as error:
        if str(error).count("Inference error(s)") > 1:  # in the body that onnx itself gives an operator
            return plain(skeleton_of(model))
        text = " ".join(str(error).split())[:300]
        raise InvalidModelError("E3010", f"shapes or types contradict each other: {text}", where=where) from error


def _amended(model: onnx.ModelProto) -> tuple[onnx.ModelProto, Mapping[str, Shape]]:
    """The model for inference to see: operators that no version of their set has, which would end it, in an unknown
    domain, defaults that inference forgets written out, axes as it reads them, windows that it would miscount.
    The same object if nothing is to do. With it, the result of `whole_windows`."""
    if not any(
        _stranger(node)
        or _forgotten(node)
        or _without_intercepts(node)
        or miscounted(node)
        or _padded_by_axes(node)
        or _of_some_length(node)
        for node in every_node(model.graph.node)
    ):
        return model, {}
    amended = deepcopy(model)
    for node in every_node(amended.graph.node):
        if _stranger(node):
            node.domain = UNSEEN
        elif _forgotten(node):
            node.attribute.append(onnx.helper.make_attribute(*FORGOTTEN[node.op_type]))
        elif _without_intercepts(node):
            node.attribute.append(onnx.helper.make_attribute("intercepts", [0.0] * _classes(node)))
    _widen_axes(amended.graph)
    _unknown_lengths(amended)
    amended.opset_import.add(domain=UNSEEN, version=1)
    return amended, whole_windows(amended, undeclared)


def _stranger(node: onnx.NodeProto) -> bool:
    return nowhere(node.op_type, node.domain)


def _without_intercepts(node: onnx.NodeProto) -> bool:
    """Is this a LinearClassifier of which inference counts no scores, because it counts intercepts?"""
    return (
        (canonical(node.domain), node.op_type) == ("ai.onnx.ml", "LinearClassifier")
        and all(attribute.name != "intercepts" or not attribute.floats for attribute in node.attribute)
    )  # fmt: skip


def _classes(node: onnx.NodeProto) -> int:
    """The scores of LinearClassifier: one for each label, or one."""
    labels = (one for one in node.attribute if one.name in ("classlabels_ints", "classlabels_strings"))
    return max([1, *(len(one.ints) + len(one.strings) for one in labels)])


def _forgotten(node: onnx.NodeProto) -> bool:
    """Is this a node without an attribute of `FORGOTTEN`?"""
    return (
        node.op_type in FORGOTTEN
        and canonical(node.domain) == ""
        and FORGOTTEN[node.op_type][0] not in [attribute.name for attribute in node.attribute]
    )


def _padded_by_axes(node: onnx.NodeProto) -> bool:
    return node.op_type == "Pad" and len(node.input) > AXES and canonical(node.domain) == ""


def _widen_axes(graph: onnx.GraphProto) -> None:
    """Constant axes of Pad in int64: the operator takes int32 too, and onnx's inference does not."""
    known = {tensor.name: tensor for tensor in graph.initializer}
    pads = []
    for node in every_node(graph.node):
        if node.op_type == "Constant":
            known.update((name, one.t) for name in node.output for one in node.attribute if one.name == "value")
        elif _padded_by_axes(node):
            pads.append(node)
    for number, node in enumerate(pads):
        axes = known.get(node.input[AXES])
        if axes is not None and axes.data_type == onnx.TensorProto.INT32:
            name = f"{UNSEEN}.axes{number}"
            values = numpy_helper.to_array(axes).astype(np.int64)
            graph.initializer.append(numpy_helper.from_array(values, name))
            node.input[AXES] = name


def _of_some_length(node: onnx.NodeProto) -> bool:
    return node.op_type == "DFT" and len(node.input) > 1 and bool(node.input[1]) and canonical(node.domain) == ""


def _unknown_lengths(model: onnx.ModelProto) -> None:
    """A DFT whose length a run decides: onnx's inference leaves the input's dimension variable in its place, unless
    the axis is not known either, which it is then made."""
    sets = {canonical(entry.domain): entry.version for entry in model.opset_import}
    if sets.get("", 0) < LENGTHS_SINCE:
        return  # nothing is inferred
    known, some, name = {tensor.name for tensor in model.graph.initializer}, False, f"{UNSEEN}.axis"
    for node in every_node(model.graph.node):
        if node.op_type == "Constant":
            known.update(node.output)
        elif _of_some_length(node) and node.input[1] not in known:
            node.input[:], some = [node.input[0], node.input[1], name], True
    if some:  # of its own type, whatever that of the length is
        model.graph.node.insert(0, onnx.helper.make_node("Axis", [], [name], domain=UNSEEN))


def skeleton_of(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without the values of its large initializers."""
    made = onnx.ModelProto(ir_version=model.ir_version)
    made.opset_import.extend(model.opset_import)
    graph = model.graph
    made.graph.name = graph.name
    made.graph.node.extend(graph.node)
    made.graph.input.extend(graph.input)
    made.graph.output.extend(graph.output)
    made.graph.value_info.extend(graph.value_info)
    made.graph.sparse_initializer.extend(graph.sparse_initializer)
    for tensor in graph.initializer:
        if prod(tensor.dims) <= KEPT:
            made.graph.initializer.add().CopyFrom(tensor)
        else:
            made.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    return made


def static_shapes(graph: onnx.GraphProto) -> dict[str, Shape]:
    """The shapes that have a size for every dimension, by name."""
    found: dict[str, Shape] = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    known: dict[bytes, Shape | None] = {}  # most values have one of a few types
    for value in itertools.chain(graph.input, graph.value_info, graph.output):
        text = value.type.SerializeToString()
        if text not in known:
            known[text] = _static(value.type)
        shape = known[text]
        if shape is not None:
            found[value.name] = shape
    return found


def _static(kind: onnx.TypeProto) -> Shape | None:
    """The shape that a type states, if it has a size for every dimension."""
    dims = kind.tensor_type.shape.dim
    if kind.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in dims):
        return tuple(dim.dim_value for dim in dims)
    return None


def _lengths(graph: onnx.GraphProto) -> dict[str, int]:
    """Of every value of known rank: its length if it is a vector (-1 if that is open), 0 if it is none."""
    found = {tensor.name: tensor.dims[0] if len(tensor.dims) == 1 else 0 for tensor in graph.initializer}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        kind = value.type.tensor_type
        if kind.HasField("shape"):
            dims = kind.shape.dim
            vector = dims[0].dim_value if len(dims) == 1 and dims[0].HasField("dim_value") else -1
            found[value.name] = vector if len(dims) == 1 else 0
    return found


def _long(name: str, lengths: dict[str, int]) -> bool:
    """Is this a long vector, or may it be one?"""
    return bool(name) and not 0 <= lengths.get(name, -1) <= LONGEST


def _add(graph: onnx.GraphProto, more: onnx.GraphProto, added: dict[str, Shape]) -> None:
    """Put the shapes that a round found into the graph; types that are known already stay."""
    places = {value.name: value for value in [*graph.value_info, *graph.output]}
    others = {value.name: value for value in [*more.value_info, *more.output]}
    for name, shape in added.items():
        if name not in places:
            graph.value_info.add().CopyFrom(others[name])
        else:
            dims = places[name].type.tensor_type.shape
            dims.SetInParent()
            del dims.dim[:]
            dims.dim.extend(onnx.TensorShapeProto.Dimension(dim_value=size) for size in shape)
