"""A model in parts as the message `Mixed`, and back."""

import json
from collections.abc import Callable
from typing import Any

from ..ir.parts import Dim, GoldenPart, HostPart, Value
from ..ir.text import parse, text
from ..ir.verify import verify
from .mixed import MixedProgram
from .model import DeviceProgram
from .schema import message


def pack(mixed: MixedProgram, record: Callable[[DeviceProgram], Any]) -> bytes:
    """The bytes of the message; `record` makes the message of a program."""
    packed = message("Mixed")
    packed.model = mixed.model
    for values, target in ((mixed.inputs, packed.inputs), (mixed.outputs, packed.outputs)):
        for value in values:
            elements = "" if value.elements is None else json.dumps(value.elements)
            target.add(name=value.name, shape=json.dumps(value.shape), dtype=value.dtype, optional=value.optional,
                       elements=elements)  # fmt: skip
    for part in mixed.parts:
        if isinstance(part, HostPart):
            packed.parts.add(host=part.model, inputs=part.inputs, outputs=part.outputs, nodes=part.nodes)
        elif isinstance(part, GoldenPart):
            packed.parts.add(golden=text(part.graph, constants=True))
        else:
            packed.parts.add().program.CopyFrom(record(part))
    return bytes(packed.SerializeToString(deterministic=True))


def unpack(packed: Any, program: Callable[[Any], DeviceProgram]) -> MixedProgram:
    """The inverse of `pack`. `ValueError` for a part that is not of one kind, or reads what is not there; errors of
    `ir.text.parse` and `ir.verify`."""
    mixed = MixedProgram(packed.model, _values(packed.inputs), _values(packed.outputs), [])
    known = {value.name for value in mixed.inputs}
    for part in packed.parts:
        if part.HasField("program") + bool(part.host) + bool(part.golden) != 1:
            raise ValueError("a part must be one of a program, a host part and a golden part")
        made: HostPart | GoldenPart | DeviceProgram
        if part.host:
            made = HostPart(tuple(part.inputs), tuple(part.outputs), part.host, tuple(part.nodes))
            reads, gives = set(part.inputs), set(part.outputs)
        elif part.golden:
            made = GoldenPart(parse(part.golden))
            verify(made.graph)
            reads, gives = set(made.inputs), set(made.outputs)
        else:
            made = program(part.program)
            reads, gives = {port.name for port in made.inputs}, {port.name for port in made.outputs}
        if not reads <= known:
            raise ValueError(f"a part reads {min(reads - known)!r}, which no earlier part gives")
        known |= gives
        mixed.parts.append(made)
    return mixed


def _values(records: Any) -> tuple[Value, ...]:
    return tuple(
        Value(record.name, _shape(record.shape), record.dtype, record.optional, _shape(record.elements or "null"))
        for record in records
    )


def _shape(text: str) -> tuple[Dim, ...] | None:
    shape = json.loads(text)
    return None if shape is None else tuple(shape)
