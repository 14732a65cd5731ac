"""`later_features`: what a model uses that came with a later version of the IR than it says it has.

Every edition says which fields and element types are new in it. A file that has them all the same is clear, so they are
used, with one warning (W3309) for each. Kinds of types, functions and training information have warnings of their own.
"""

from collections.abc import Iterable

import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, TensorProto

from .findings import Findings

ELEMENTS: dict[int, int] = {
    TensorProto.BFLOAT16: 4,
    TensorProto.FLOAT8E4M3FN: 9,
    TensorProto.FLOAT8E4M3FNUZ: 9,
    TensorProto.FLOAT8E5M2: 9,
    TensorProto.FLOAT8E5M2FNUZ: 9,
    TensorProto.UINT4: 10,
    TensorProto.INT4: 10,
    TensorProto.FLOAT4E2M1: 11,
    TensorProto.FLOAT8E8M0: 12,
    TensorProto.UINT2: 13,
    TensorProto.INT2: 13,
    TensorProto.FLOAT6E2M3: 14,
    TensorProto.FLOAT6E3M2: 14,
}
"""The IR version that introduced an element type; the others have always been there."""
FIELDS = {
    "quantization_annotation": 5, "sparse_initializer": 6, "sparse_tensor": 6, "sparse_tensors": 6,
    "attribute_proto": 9, "overload": 10, "metadata_props": 10, "device_configurations": 11, "configuration": 11,
}  # fmt: skip
"""The IR version that introduced a field; `metadata_props` of the model itself are older."""
OF_GRAPHS = ("quantization_annotation", "sparse_initializer", "metadata_props")
OF_FUNCTIONS = ("attribute_proto", "overload", "metadata_props")


def later_features(model: onnx.ModelProto, findings: Findings) -> None:
    """One W3309 for each field and element type that is newer than the model's IR version."""
    version, elements, fields = model.ir_version, set[int](), set[str]()
    if version >= max(ELEMENTS.values()):
        return
    if model.configuration:
        fields.add("configuration")
    left: list[GraphProto | FunctionProto] = [model.graph, *model.functions]
    while left:
        body = left.pop()
        tensors: list[TensorProto] = []
        _present(body, OF_GRAPHS if isinstance(body, GraphProto) else OF_FUNCTIONS, fields)
        values = list(body.value_info)
        attributes = [attribute for node in body.node if node.attribute for attribute in node.attribute]
        if isinstance(body, GraphProto):
            values += [*body.input, *body.output]
            tensors += [*body.initializer, *(sparse.values for sparse in body.sparse_initializer)]
        else:
            attributes += body.attribute_proto
        for node in body.node:
            if node.overload or node.metadata_props or node.device_configurations:
                _present(node, ("overload", "metadata_props", "device_configurations"), fields)
        for attribute in attributes:
            if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
                left += [attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs
            elif attribute.type == AttributeProto.TENSOR:
                tensors.append(attribute.t)
            elif attribute.type == AttributeProto.TENSORS:
                tensors += attribute.tensors
            elif attribute.type in (AttributeProto.SPARSE_TENSOR, AttributeProto.SPARSE_TENSORS):
                _present(attribute, ("sparse_tensor", "sparse_tensors"), fields)
        for value in values:
            kind = value.type.WhichOneof("value")
            if kind in ("tensor_type", "sparse_tensor_type"):
                elements.add(getattr(value.type, kind).elem_type)
        elements.update(tensor.data_type for tensor in tensors)
        if any(described.metadata_props for described in (*values, *tensors)):
            fields.add("metadata_props")
    found = {f"the field {name}": FIELDS[name] for name in fields}
    found |= {f"element type {TensorProto.DataType.Name(one)}": ELEMENTS[one] for one in elements & ELEMENTS.keys()}
    for what, since in sorted(found.items()):
        if since > version:
            findings.warning(
                "W3309", "ir_version", f"{what} came with IR version {since}, the model is {version}; it is used"
            )


def _present(message: object, names: Iterable[str], found: set[str]) -> None:
    """Note which of these fields a message has: lists, texts and messages."""
    for name in names:
        value = getattr(message, name)
        if value.ByteSize() if isinstance(value, onnx.SparseTensorProto) else value:
            found.add(name)
