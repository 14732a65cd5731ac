"""Dialects of quantized ONNX, one per file."""
