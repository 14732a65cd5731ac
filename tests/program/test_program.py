"""Inputs and outputs of a model in parts, through the file format."""

from onnxhw.ir.parts import HostPart, ValueInfo
from onnxhw.program.container import dumps, loads
from onnxhw.program.parts import Program


def test_inputs_and_outputs_come_back() -> None:
    tensors = ValueInfo("a", (1, "N", None), "float32"), ValueInfo("b", None, "", True), ValueInfo("c", (), "int64")
    inputs = (*tensors, ValueInfo("d", None, "", False, ("N", 3, None)), ValueInfo("e", None, "", False, ()))
    program = Program("m", inputs, inputs[:2], [HostPart(("a",), ("b",), b"model", ("n",))])
    assert loads(dumps(program)) == program
