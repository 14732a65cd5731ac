"""`alone`: one node for onnx's reference evaluator, in its own operator set."""

import onnx


def alone(node: onnx.NodeProto, opset: int) -> onnx.ModelProto:
    """A model of the node only. (The evaluator takes a bare node for one of the newest operator set.)"""
    made = onnx.ModelProto()
    made.opset_import.add(domain="", version=opset)
    made.graph.node.add().CopyFrom(node)
    made.graph.node[0].domain = ""
    made.graph.input.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(node.input) if name)
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
    return made
