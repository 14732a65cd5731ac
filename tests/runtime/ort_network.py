"""A model with all that onnxruntime's classes tell of one."""

import onnx
from onnx import helper
from session_net import Net


def network() -> onnx.ModelProto:
    """A quantized convolution, an open dimension, and metadata."""
    net = Net(["N", 4, 4, 4])
    model = net.model(net.conv(net.grid("x")))
    model.producer_name, model.domain, model.doc_string, model.model_version = "a tool", "a.b", "words", 7
    model.graph.doc_string = "words of the graph"
    helper.set_model_props(model, {"author": "somebody"})
    return model
