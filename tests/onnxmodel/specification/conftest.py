"""Models written as text, and their findings by code."""

from collections.abc import Callable

import onnx
import pytest
from onnx import parser

from onnxhw.onnxmodel import specification

Codes = Callable[[onnx.ModelProto], set[str]]
HEADER = '<ir_version: {ir}, opset_import: ["" : {opset}{more}], domain: "org.example">'
USUAL = {"W3310"}


def text_model(body: str, ir: int = 10, opset: int = 21, more: str = "", functions: str = "") -> onnx.ModelProto:
    """A model from ONNX's text form; names the parser has no word for are set by the test."""
    return parser.parse_model(f"{HEADER.format(ir=ir, opset=opset, more=more)}\n{body}\n{functions}")


def found(model: onnx.ModelProto) -> set[str]:
    """Codes of all findings but the remark about names."""
    return {diagnostic.code for diagnostic in specification.diagnose(model)} - USUAL


@pytest.fixture
def plain() -> onnx.ModelProto:
    """A model of which there is nothing to say."""
    return text_model("g (float[1,3] x) => (float[1,3] z) { [a] y = Relu(x)  [b] z = LeakyRelu<alpha=0.5>(y) }")
