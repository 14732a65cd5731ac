"""Rules of what describes a model and decides nothing: value_info, quantization annotations, device configurations."""

import onnx

from .findings import Findings, label
from .functions import every_node
from .types import stated


def described(graph: onnx.GraphProto, defined: set[str], findings: Findings) -> None:
    """Entries of `value_info` and annotations that name values twice, or none of the graph's.

    W3336 (a note) for value_info of values that there are not, W3337 for a value that has two of the same type, E3338
    for two that contradict each other; W3335 for an annotation of a tensor that there is not, or by one.
    """
    where = f"graph {graph.name!r}"
    known: dict[str, onnx.ValueInfoProto] = {}
    for value in graph.value_info:
        first = known.setdefault(value.name, value)
        if first is value:
            continue
        if agree(first.type, value.type):
            findings.warning("W3337", f"value {value.name!r}", "is there twice in value_info", "names must be distinct")
        else:
            findings.error("E3338", f"value {value.name!r}", "has two types in value_info that contradict each other")
    if absent := sorted(set(known) - defined - {""}):
        others = f" and {len(absent) - 1} others" if len(absent) > 1 else ""
        findings.info("W3336", where, f"value_info is about {absent[0]!r}{others}, which the graph does not have")
    for annotation in graph.quantization_annotation:
        names = [annotation.tensor_name, *(entry.value for entry in annotation.quant_parameter_tensor_names)]
        missing = [name for name in names if name not in defined]
        if missing:
            what = f"a quantization annotation names {missing[0]!r}, which the graph does not have; it is ignored"
            findings.warning("W3335", where, what)


def agree(one: onnx.TypeProto, other: onnx.TypeProto) -> bool:
    """May a value be of both types? What either leaves open agrees."""
    kind = one.WhichOneof("value")
    if kind != other.WhichOneof("value"):
        return kind is None or other.WhichOneof("value") is None
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return bool(one.SerializeToString() == other.SerializeToString())
    first, second = getattr(one, kind), getattr(other, kind)
    if first.elem_type != second.elem_type:
        return False
    if not first.HasField("shape") or not second.HasField("shape"):
        return True
    if len(first.shape.dim) != len(second.shape.dim):
        return False
    for a, b in zip(first.shape.dim, second.shape.dim, strict=True):
        if stated(a) and stated(b) and a.dim_value != b.dim_value:
            return False
    return True


def devices(model: onnx.ModelProto, findings: Findings) -> None:
    """E3337: device configurations have a name of their own and as many devices as they say; nodes name one of them."""
    names: set[str] = set()
    for one in model.configuration:
        where = f"device configuration {one.name!r}"
        if not one.name or one.name in names:
            findings.error("E3337", where, "needs a name of its own")
        if one.device and len(one.device) != one.num_devices:
            findings.error("E3337", where, f"names {len(one.device)} devices of {one.num_devices}")
        names.add(one.name)
    for owner in (model.graph, *model.functions):
        for node in every_node(owner.node):
            for chosen in node.device_configurations:
                if chosen.configuration_id not in names:
                    what = f"is for device configuration {chosen.configuration_id!r}, which the model does not have"
                    findings.error("E3337", label(node), what)
