"""Rules of attributes: one payload, of the declared type, known to the operator."""

import math
from typing import Any

import onnx

from .findings import Findings, label
from .signatures import Signature, first_with

A = onnx.AttributeProto
PAYLOADS = {
    A.FLOAT: "f",
    A.INT: "i",
    A.STRING: "s",
    A.TENSOR: "t",
    A.GRAPH: "g",
    A.SPARSE_TENSOR: "sparse_tensor",
    A.TYPE_PROTO: "tp",
    A.FLOATS: "floats",
    A.INTS: "ints",
    A.STRINGS: "strings",
    A.TENSORS: "tensors",
    A.GRAPHS: "graphs",
    A.SPARSE_TENSORS: "sparse_tensors",
    A.TYPE_PROTOS: "type_protos",
}
"""The field that holds an attribute's value, by its type."""
FIELDS = frozenset(PAYLOADS.values())
READ = {
    **dict.fromkeys(["allowzero", "axis", "ceil_mode", "channels_last", "group", "layout", "transA", "transB"], A.INT),
    **dict.fromkeys(["axes", "dilations", "kernel_shape", "output_padding", "output_shape", "pads", "perm", "shape",
                     "split", "strides"], A.INTS),
    **dict.fromkeys(["auto_pad", "direction"], A.STRING),
}  # fmt: skip
"""The attributes that rules of single operators read, by name; those of another type are refused elsewhere."""
TYPE_NAMES = {value: name for name, value in A.AttributeType.items()}


def attributes(node: onnx.NodeProto, known: Signature | None, in_function: bool, findings: Findings) -> None:
    """All rules of a node's attributes; `known`: the operator's signature, if it has one."""
    seen: set[str] = set()
    for attribute in node.attribute:
        name = attribute.name
        if not name:
            findings.error("E3341", label(node), "has an attribute without a name")
        elif name in seen:
            findings.error("E3340", label(node), f"has attribute {name!r} twice")
        seen.add(name)
        if _payload(attribute, node, in_function, findings) and known is not None:
            _against(attribute, known, node, findings)
    if known is not None:
        for name in known.required:
            if name not in seen:
                findings.error("E3345", label(node), f"attribute {name!r} is required")


def plain_values(node: onnx.NodeProto) -> dict[str, Any]:
    """The values of the attributes in `READ`, by name, that have the type that they have there; strings decoded."""
    found: dict[str, Any] = {}
    for attribute in node.attribute:
        if READ.get(attribute.name) == attribute.type and not attribute.ref_attr_name:
            value = getattr(attribute, PAYLOADS[attribute.type])
            found[attribute.name] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return found


def _payload(attribute: onnx.AttributeProto, node: onnx.NodeProto, in_function: bool, findings: Findings) -> bool:
    """Is the attribute itself in order?"""
    fields = [entry.name for entry, _ in attribute.ListFields()]
    if len(fields) == 3 and fields[1] == PAYLOADS.get(attribute.type):  # a name, that value and a type: the usual case
        _values(attribute, node, findings)
        return True
    present = [name for name in fields if name in FIELDS]
    if attribute.type not in PAYLOADS:
        findings.error(
            "E3342", label(node), f"{_what(attribute)} has no type", "the type is required since IR version 2"
        )
        return False
    if attribute.ref_attr_name:
        if not in_function:
            findings.error(
                "E3347",
                label(node),
                f"{_what(attribute)} refers to attribute {attribute.ref_attr_name!r} but is in no function",
            )
        elif present:
            findings.error(
                "E3343", label(node), f"{_what(attribute)} refers to another attribute and has a value of its own"
            )
        return in_function and not present
    wanted = PAYLOADS[attribute.type]
    if len(present) > 1 or (present and present[0] != wanted):
        kind = TYPE_NAMES[attribute.type]
        findings.error(
            "E3343", label(node), f"{_what(attribute)} of type {kind} must have its value in {wanted!r}, not {present}"
        )
        return False
    if not present and wanted in ("t", "g", "sparse_tensor", "tp"):
        findings.error("E3343", label(node), f"{_what(attribute)} of type {TYPE_NAMES[attribute.type]} has no value")
        return False
    _values(attribute, node, findings)
    return True


def _what(attribute: onnx.AttributeProto) -> str:
    return f"attribute {attribute.name!r}"


def _values(attribute: onnx.AttributeProto, node: onnx.NodeProto, findings: Findings) -> None:
    if attribute.type in (A.INT, A.INTS):
        return
    if attribute.type == A.FLOAT and math.isnan(attribute.f):
        findings.warning("W3340", label(node), f"{_what(attribute)} is NaN")
    elif attribute.type == A.FLOATS and any(map(math.isnan, attribute.floats)):
        findings.warning("W3340", label(node), f"{_what(attribute)} contains NaN")
    elif attribute.type in (A.STRING, A.STRINGS):
        for text in [attribute.s] if attribute.type == A.STRING else attribute.strings:
            try:
                text.decode()
            except UnicodeDecodeError:
                findings.warning("W3341", label(node), f"{_what(attribute)} is not UTF-8 text")
                return


def _against(attribute: onnx.AttributeProto, known: Signature, node: onnx.NodeProto, findings: Findings) -> None:
    entry = known.attributes.get(attribute.name)
    if entry is None:
        if attribute.name and not attribute.name.startswith("__"):  # such names are an implementation's own
            hint = f"it has {', '.join(sorted(known.attributes)) or 'none'}"
            later = first_with(node.op_type, node.domain, attribute.name)
            if later and later > known.since:
                hint += f"; operator set {later} has it: convert the model to that one before what adds the attribute"
            what = f"has no attribute {attribute.name!r} in operator set version {known.since}"
            findings.error("E3344", label(node), what, hint)
    elif entry != attribute.type:
        findings.error(
            "E3346",
            label(node),
            f"attribute {attribute.name!r} must have type {TYPE_NAMES[entry]}, not {TYPE_NAMES[attribute.type]}",
        )
