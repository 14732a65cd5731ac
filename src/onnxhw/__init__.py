"""onnxhw: from an ONNX file to a running FPGA accelerator, with open tools."""

__version__ = "0.1.0"
