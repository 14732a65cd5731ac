"""Rules of types: element types, shapes, sequences, maps, optionals."""

from collections.abc import Iterator

import onnx

from .findings import Findings
from .functions import every_node

ELEMENTS = frozenset(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}
KEYS = frozenset(
    getattr(onnx.TensorProto, name)
    for name in ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "STRING")
)
"""What a map may be indexed by."""
OPEN = -1
"""The size by which converters mean one that is not known, though the specification has none below 0."""
SINCE = {"sequence_type": 6, "map_type": 6, "optional_type": 8}
"""The IR version that introduced a kind of type."""


def value_type(value: onnx.ValueInfoProto, main: bool, ir_version: int, findings: Findings, what: str) -> None:
    """Rules of one input, output or value_info; `main`: the main graph's, which must have a type and should a rank."""
    where = f"{what} {value.name!r}"
    kind = value.type.WhichOneof("value") if value.HasField("type") else None
    if kind is None:
        if main:
            findings.error("E3350", where, "has no type", "inputs and outputs of the main graph must have one")
        return
    if kind in SINCE and SINCE[kind] > ir_version:
        findings.warning(
            "W3354", where, f"{kind[:-5]} types came with IR version {SINCE[kind]}, the model is {ir_version}"
        )
    if main and kind in ("tensor_type", "sparse_tensor_type") and not getattr(value.type, kind).HasField("shape"):
        findings.warning("W3352", where, "has no shape, not even a rank; nodes that need it run on the host")
    _proto(value.type, where, findings)


def stated(dim: onnx.TensorShapeProto.Dimension) -> bool:
    """Does a dimension say its size?"""
    return dim.HasField("dim_value") and dim.dim_value != OPEN


def _proto(kind: onnx.TypeProto, where: str, findings: Findings) -> None:
    """Rules of a type, and of what sequences, maps and optionals hold, however deep."""
    while (name := kind.WhichOneof("value")) in ("sequence_type", "optional_type", "map_type"):
        if name == "map_type":
            if kind.map_type.key_type not in KEYS:
                findings.error(
                    "E3352", where, f"a map is indexed by integers or strings, not by type {kind.map_type.key_type}"
                )
            kind = kind.map_type.value_type
        else:
            kind = getattr(kind, name).elem_type
    if name is None:
        findings.error("E3354", where, "contains a type without content")
    elif name == "opaque_type":
        findings.warning("W3353", where, "is opaque: only nodes of its own domain can use it")
    else:
        tensor = getattr(kind, name)
        if tensor.elem_type not in ELEMENTS:
            findings.error("E3351", where, f"element type {tensor.elem_type} is not one of ONNX")
        for axis, dim in enumerate(tensor.shape.dim):
            if dim.dim_value < OPEN:
                findings.error(
                    "E3353",
                    where,
                    f"axis {axis} has size {dim.dim_value}",
                    "a size that is not known is left out, or a name",
                )


def initializer(tensor: onnx.TensorProto, value: onnx.ValueInfoProto, findings: Findings) -> None:
    """A default value must be of its input's type (E3355)."""
    if value.type.WhichOneof("value") != "tensor_type":
        return
    kind, where = value.type.tensor_type, f"initializer {tensor.name!r}"
    if kind.elem_type != tensor.data_type:
        findings.error("E3355", where, f"has element type {tensor.data_type}, the input of its name {kind.elem_type}")
    if kind.HasField("shape"):
        declared = [dim.dim_value if stated(dim) else None for dim in kind.shape.dim]
        fits = len(declared) == len(tensor.dims) and all(
            one is None or one == size for one, size in zip(declared, tensor.dims, strict=True)
        )
        if not fits:
            findings.error("E3355", where, f"has shape {list(tensor.dims)}, the input of its name {declared}")


def graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The main graph and all that are nested in it, in functions, and in the defaults of functions' attributes."""
    yield model.graph
    left = list(every_node(model.graph.node))
    for function in model.functions:
        left += every_node(function.node)
        defaults = [attribute.g for attribute in function.attribute_proto]
        yield from defaults
        left += [node for graph in defaults for node in every_node(graph.node)]
    for node in left:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield attribute.g
            yield from attribute.graphs


def dims(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorShapeProto.Dimension]]:
    """Every dimension that a model declares, with the name of its value."""
    for owner in (*graphs(model), *model.functions):
        ends = (*owner.input, *owner.output) if isinstance(owner, onnx.GraphProto) else ()
        for value in (*ends, *owner.value_info):
            kind = value.type
            while (name := kind.WhichOneof("value")) in ("sequence_type", "optional_type", "map_type"):
                kind = kind.map_type.value_type if name == "map_type" else getattr(kind, name).elem_type
            if name in ("tensor_type", "sparse_tensor_type"):
                for dim in getattr(kind, name).shape.dim:
                    yield value.name, dim


def open_sizes(model: onnx.ModelProto, findings: Findings) -> None:
    """One W3333 for all sizes of -1."""
    names = dict.fromkeys(name for name, dim in dims(model) if dim.dim_value == OPEN)
    if names:
        others = f" and of {len(names) - 1} other values" if len(names) > 1 else ""
        what = f"a size of {OPEN}{others} is taken as open"
        hint = "the specification leaves out a size that is not known, or gives it a name"
        findings.warning("W3333", f"value {next(iter(names))!r}", what, hint)
