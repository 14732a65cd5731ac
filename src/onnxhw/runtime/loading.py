"""`load`: the program that ``compile`` wrote, verified before anything runs it."""

import os
from collections import Counter
from math import prod

import onnx

from ..errors import OnnxhwError, UsageError
from ..ir.parts import GoldenPart, HostPart
from ..onnxmodel.read import read_model
from ..program import container
from ..program.parts import Program, gives, reads
from ..program_verifier import try_ports, verify_program

ELEMENTS = 1 << 29
"""Most elements of a tensor that the host computes in integers; of models it is the limit tensor_elements."""


def load(path: str | os.PathLike[str]) -> Program:
    """The program of a file, verified: each part for the hardware by `onnxhw.program_verifier`, each ONNX model for the
    host read as any model is, from its bytes alone.

    Errors of `onnxhw.program.container.load`; `UsageError` E2460 of a part for the hardware, E2461 of one for the host,
    E2462 if the parts make no model.
    """
    found, where = container.load(path), str(path)
    for number, part in enumerate(found.parts):
        if isinstance(part, HostPart):
            _host(part, where, number)
        elif isinstance(part, GoldenPart):
            _golden(part, where, number)
        else:
            verify_program(part, f"{where}, part {number}" if len(found.parts) > 1 else where)
    _whole(found, where)
    return found


def _refused(where: str, number: int, why: str) -> UsageError:
    return UsageError("E2461", f"part {number}, for the host: {why}", where=where, hint="compile the model again")


def _host(part: HostPart, where: str, number: int) -> None:
    """A model without data in files, which has the inputs and outputs that the part names."""
    try:
        graph = read_model(part.model).graph
    except OnnxhwError as error:
        raise _refused(where, number, f"{error.what} ({error.code})") from error
    outputs, wanted = {value.name for value in graph.output}, _inputs(graph)
    if not {*part.outputs} <= outputs or wanted != {*part.inputs}:
        raise _refused(where, number, "its model has other inputs or outputs than it names")


def _inputs(graph: onnx.GraphProto) -> set[str]:
    defaults = {tensor.name for tensor in graph.initializer}
    return {value.name for value in graph.input} - defaults


def _golden(part: GoldenPart, where: str, number: int) -> None:
    """Operations of tensors that memory holds, whose ports' steps fit them."""
    for tensor in part.graph.tensors.values():
        if prod(tensor.shape) > ELEMENTS:
            raise _refused(where, number, f"tensor {tensor.name!r} has {prod(tensor.shape)} elements")
    try:
        try_ports(part.graph, ELEMENTS)
    except (ValueError, MemoryError) as error:
        raise _refused(where, number, str(error) or "it takes more memory than there is") from error


def _whole(program: Program, where: str) -> None:
    """The parts are for one configuration, and make every output once; the batch is of its inputs and outputs."""
    configs = {part.config.fingerprint for part in program.programs}
    names = Counter(value.name for value in program.inputs)
    for part in program.parts:
        names.update(gives(part))
    wrong = [f"{name!r} is made twice" for name, count in names.items() if count > 1]
    wrong += [f"nothing makes {value.name!r}" for value in program.outputs if value.name not in names]
    wrong += [] if program.outputs else ["it gives nothing"]
    optional = {value.name for value in program.inputs if value.optional}
    computed = [part for part in program.parts if not isinstance(part, HostPart)]
    wrong += [f"{name!r} is optional, and no model for the host has a default" for part in computed
              for name in optional & {*reads(part)}]  # fmt: skip
    wrong += ["its parts are for several configurations"] if len(configs) > 1 else []
    if (batch := program.batch) is not None:
        for given, values in ((batch.inputs, program.inputs), (batch.outputs, program.outputs)):
            wrong += [f"{name!r} has a batch and is not there" for name in given - {value.name for value in values}]
    if wrong:
        what, hint = f"its parts make no model: {wrong[0]}", "compile the model again"
        raise UsageError("E2462", what, where=where, hint=hint)
