"""Handlers of ONNX operators, by family. Each takes the context and a node and returns its value."""
