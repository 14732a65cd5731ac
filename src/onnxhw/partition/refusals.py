"""`refusal`: operators that nothing here runs, with the reason, where more can be said than that."""

from ..onnxmodel.nodes import Node
from ..onnxmodel.specification.functions import every_node
from ..onnxmodel.specification.signatures import canonical
from ..onnxmodel.subgraph_copy import nested

TRAINING = ("it is a step of training, and this is inference", "export the model for inference")
DOMAINS = {
    "com.microsoft.nchwc": (
        "its data and weights are laid out for the processor on which onnxruntime saved the file",
        "save the model with graph_optimization_level ORT_ENABLE_EXTENDED or lower",
    ),
    "ai.onnx.training": TRAINING,
    "ai.onnx.preview.training": TRAINING,
}
"""By domain: why, and what to do."""
RUN = frozenset(["Adagrad", "Adam", "Momentum"])
"""Operators of training that onnx's reference implementation runs all the same."""


def refusal(node: Node) -> tuple[str, str] | None:
    """Why a node, or one in a graph of it, is refused by name, and what to do; None if it is not."""
    protos = every_node([node.proto]) if nested(node.proto) else [node.proto]
    for proto in protos:
        found = DOMAINS.get(canonical(proto.domain))
        if found is not None and proto.op_type not in RUN:
            inside = "" if proto is protos[0] else f"operator {proto.op_type!r} in it cannot: "
            return inside + found[0], found[1]
    return None
