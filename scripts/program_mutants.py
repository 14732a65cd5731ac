"""Mutants of ``program.ohw``: damaged bytes, or another program whose checksum is right."""

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from mutation import TEXTS, Base, damaged, json_text, number

from onnxhw.config import HwConfig
from onnxhw.errors import OnnxhwError
from onnxhw.isa.external_instructions import kinds
from onnxhw.isa.instructions import Load
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.program import container, records
from onnxhw.program.schema import message


def program(base: Base, rng: random.Random) -> bytes:
    """A program file with a right checksum, and something changed within."""
    data = rng.choice(base.programs)
    file = message("File")
    file.ParseFromString(data)
    if rng.random() < 0.1:
        return container._wrap(damaged(file.payload, rng))
    record = message("Program")
    record.ParseFromString(file.payload)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if len(record.parts) != 1 and rng.random() < 0.5:
            _part(rng.choice(record.parts or [record.parts.add()]), rng)
        else:
            found = [part.device for part in record.parts if part.HasField("device")]
            with suppress(ValueError, TypeError, LookupError, OnnxhwError):  # an earlier change left nothing
                rng.choice(CHANGES)(rng.choice(found), rng)
    return container._wrap(bytes(record.SerializeToString(deterministic=True)))


def _code(record: Any, rng: random.Random) -> None:
    """Some fields of one instruction; mostly with the cycles that this takes."""
    code = rng.choice([code for code in record.code if code.count])
    kind = kinds(HwConfig.from_json(record.config))[Unit(code.unit)]
    size, index = kind.words(), rng.randrange(code.count)
    words = np.frombuffer(code.words, "<u4").tolist()
    place = slice(index * size, (index + 1) * size)
    instruction = kind.decode(words[place])
    for spec in rng.sample(kind.specs(), rng.choice((1, 1, 2))):
        value = getattr(instruction, spec.name)
        low = -(1 << (spec.bits - 1)) if spec.signed else 0
        other = (number(value - low, spec.bits, rng)) + low
        instruction = instruction.but(**{spec.name: other})
    words[place] = instruction.encode()
    code.words = np.array(words, "<u4").tobytes()
    if rng.random() < 0.8:
        _right_cycles(record)


def _right_cycles(record: Any) -> None:
    """The cycles of the code, if it ends and is not too long to tell."""
    config = HwConfig.from_json(record.config)
    code = records._code(record.code, config)
    tiles = sum(i.tiles * i.nt_n for i in code["load"] if isinstance(i, Load))
    if tiles < 100_000:
        try:
            record.cycles = timeline(config, code).cycles
        except Exception:  # a deadlock, or numbers that make no time
            return


def _instructions(record: Any, rng: random.Random) -> None:
    """Instructions dropped, repeated or swapped."""
    code = rng.choice([code for code in record.code if code.count])
    size = kinds(HwConfig.from_json(record.config))[Unit(code.unit)].words() * 4
    items = [code.words[at : at + size] for at in range(0, len(code.words), size)]
    index, kind = rng.randrange(len(items)), rng.randrange(3)
    if kind == 0:
        del items[index]
    elif kind == 1:
        items.insert(index, items[index])
    else:
        other = rng.randrange(len(items))
        items[index], items[other] = items[other], items[index]
    code.count, code.words = len(items), b"".join(items)
    if rng.random() < 0.8:
        _right_cycles(record)


def _memory(record: Any, rng: random.Random) -> None:
    """Weights, parameters or tables: values, or their number."""
    name = rng.choice(("weights", "params", "tables"))
    data = bytearray(getattr(record, name))
    if not data or rng.random() < 0.15:
        setattr(record, name, damaged(bytes(data), rng))
        return
    for _ in range(rng.choice((1, 1, 4, 64))):
        data[rng.randrange(len(data))] = rng.choice((0, 127, 128, 255, rng.randrange(256)))
    setattr(record, name, bytes(data))


def _table(record: Any, rng: random.Random) -> None:
    if record.tensors:
        _field(rng.choice(record.tensors), rng)


def _port(record: Any, rng: random.Random) -> None:
    port = rng.choice([*record.inputs, *record.outputs])
    if port.steps and rng.random() < 0.6:
        at = rng.randrange(len(port.steps))
        port.steps[at] = rng.choice((json_text(port.steps[at], rng), json_text(port.steps[at], rng), rng.choice(TEXTS)))
    else:
        _field(port, rng)


def _config(record: Any, rng: random.Random) -> None:
    """The configuration, with the fingerprint made right if there is one."""
    record.config = json_text(record.config, rng)
    try:
        record.fingerprint = HwConfig.from_json(record.config).fingerprint
    except Exception:  # then it is not read at all
        return


def _any(record: Any, rng: random.Random) -> None:
    """Any field, at any depth."""
    here = record
    while rng.random() < 0.6:
        inner = [
            item for field, value in here.ListFields() if field.type == FieldDescriptor.TYPE_MESSAGE
            for item in (value if field.is_repeated else [value])
        ]  # fmt: skip
        if not inner:
            break
        here = rng.choice(inner)
    _field(here, rng)


def _field(here: Any, rng: random.Random) -> None:
    """One field of a message."""
    field = rng.choice(here.DESCRIPTOR.fields)
    if field.is_repeated:
        values = getattr(here, field.name)
        kind = rng.randrange(3)
        if not len(values) or kind == 0:
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                values.add()
            else:
                values.append(_value(field, 0 if field.cpp_type != FieldDescriptor.CPPTYPE_STRING else "", rng))
        elif kind == 1:
            del values[rng.randrange(len(values))]
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            _field(rng.choice(values), rng)
        else:
            at = rng.randrange(len(values))
            values[at] = _value(field, values[at], rng)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        if rng.random() < 0.3:
            here.ClearField(field.name)
        else:
            _field(getattr(here, field.name), rng)
    else:
        setattr(here, field.name, _value(field, getattr(here, field.name), rng))


def _value(field: Any, value: Any, rng: random.Random) -> Any:
    kind = field.type
    if kind == FieldDescriptor.TYPE_BYTES:
        return damaged(value or b"", rng)
    if kind == FieldDescriptor.TYPE_STRING:
        return rng.choice((rng.choice(TEXTS), value + "x", value[:-1]))
    if kind in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        return rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e-320, value * 2))
    if kind == FieldDescriptor.TYPE_BOOL:
        return not value
    if kind in (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_INT64):
        return number(int(value), 63, rng)
    if kind == FieldDescriptor.TYPE_SINT32:
        return number(int(value) & 0xFF, 31, rng) * rng.choice((1, -1))
    return number(int(value), 31 if kind in (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_ENUM) else 32, rng)


def _part(part: Any, rng: random.Random) -> None:
    """A part for the host: its model, the golden text, or the names."""
    if part.host and rng.random() < 0.8:
        if rng.random() < 0.2:
            part.host = damaged(part.host, rng)
            return
        try:
            model = onnx.ModelProto.FromString(part.host)
        except DecodeError:  # an earlier change
            return
        if rng.random() < 0.25:
            _external(model, rng)
        else:
            try:
                _any(model, rng)
            except (ValueError, TypeError, IndexError):  # a field that cannot have the value
                return
        part.host = model.SerializeToString()
    elif part.golden and rng.random() < 0.8:
        lines = part.golden.splitlines()
        at = rng.randrange(len(lines))
        lines[at] = damaged(lines[at].encode(), rng).decode("utf-8", "replace")
        part.golden = "\n".join(lines) + "\n"
    else:
        _field(part, rng)


def _external(model: onnx.ModelProto, rng: random.Random) -> None:
    """A tensor whose data lies in a file: of an initializer, or of an attribute."""
    tensor = onnx.TensorProto(name="secret", data_type=2, dims=[4], data_location=1)
    tensor.external_data.add(key="location", value=rng.choice(("secret.bin", "/etc/hostname", "../secret.bin")))
    if rng.random() < 0.5:
        model.graph.initializer.append(tensor)
    else:
        node = model.graph.node.add(op_type="Constant", output=["secret"])
        node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t.CopyFrom(tensor)


CHANGES: tuple[Callable[[Any, random.Random], None], ...] = (
    _code, _code, _code, _code, _instructions, _memory, _memory, _table, _table, _port, _config, _any, _any,
)  # fmt: skip
