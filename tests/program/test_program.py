"""Inputs and outputs of a model in parts, through the file format."""

from onnxhw.ir.parts import HostPart, Value
from onnxhw.program.container import dumps, loads
from onnxhw.program.parts import Program


def test_inputs_and_outputs_come_back() -> None:
    tensors = Value("a", (1, "N", None), "float32"), Value("b", None, "", True), Value("c", (), "int64")
    inputs = (*tensors, Value("d", None, "", False, ("N", 3, None)), Value("e", None, "", False, ()))
    program = Program("m", inputs, inputs[:2], [HostPart(("a",), ("b",), b"model", ("n",))])
    assert loads(dumps(program)) == program
