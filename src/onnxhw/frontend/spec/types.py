"""Rules of types: element types, shapes, sequences, maps, optionals."""

import onnx

from .findings import Findings

ELEMENTS = frozenset(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}
KEYS = frozenset(
    getattr(onnx.TensorProto, name)
    for name in ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "STRING")
)
"""What a map may be indexed by."""
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
            if dim.dim_value < 0:
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
        declared = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
        fits = len(declared) == len(tensor.dims) and all(
            one is None or one == size for one, size in zip(declared, tensor.dims, strict=True)
        )
        if not fits:
            findings.error("E3355", where, f"has shape {list(tensor.dims)}, the input of its name {declared}")
