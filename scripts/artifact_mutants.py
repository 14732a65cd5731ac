"""Mutants of what ``compile`` writes and people edit: programs, arrays, board files, manifests; made by number."""

import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from onnxhw.config import HwConfig
from onnxhw.isa.instructions import UNITS
from onnxhw.isa.timing import timeline
from onnxhw.program import container, records
from onnxhw.program.parts import Program
from onnxhw.program.schema import message

EDGES = (0, 1, 2, 3, 127, 128, 255, 256, 4095, 65535, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
"""Numbers at which something changes."""
TEXTS = ("", "a", "\0", "../x", "é\n", "x" * 5000, "[" * 3000, "NaN", "1e999", "-1", "null", "{}", "int64", "float16")


@dataclass(frozen=True)
class Base:
    """What mutants are made of: programs by name, a board file, a manifest and its simulations, arrays."""

    programs: tuple[bytes, ...]
    board: str
    manifest: str
    simulations: str
    arrays: tuple[bytes, ...]


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, cut, repeated or put in."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(out):
            out[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        elif kind == 2:
            del out[at : at + rng.randint(1, 16)]
        elif kind == 3:
            out[at:at] = out[at : at + rng.randint(1, 64)]
        else:
            out[at:at] = rng.randbytes(rng.randint(1, 8))
    return bytes(out)


def number(value: int, bits: int, rng: random.Random) -> int:
    """Another number of so many bits."""
    others = value + 1, value - 1, value * 2, value ^ 1 << rng.randrange(bits), rng.choice(EDGES)
    return rng.choice(others) % (1 << bits)


# -- programs --------------------------------------------------------------------------------------


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
            with suppress(ValueError, TypeError, LookupError):  # an earlier change left nothing to change
                rng.choice(CHANGES)(rng.choice(found), rng)
    return container._wrap(bytes(record.SerializeToString(deterministic=True)))


def _code(record: Any, rng: random.Random) -> None:
    """Some fields of one instruction; mostly with the cycles that this takes."""
    code = rng.choice([code for code in record.code if code.count])
    kind = UNITS[code.unit]
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
    code = records._code(record.code)
    tiles = sum(i.tiles * i.nt_n for i in code["load"])  # type: ignore[attr-defined]
    if tiles < 100_000:
        try:
            record.cycles = timeline(HwConfig.from_json(record.config), code).cycles
        except Exception:  # a deadlock, or numbers that make no time
            return


def _instructions(record: Any, rng: random.Random) -> None:
    """Instructions dropped, repeated or swapped."""
    code = rng.choice([code for code in record.code if code.count])
    size = UNITS[code.unit].words() * 4
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
        port.steps[at] = rng.choice((_json(port.steps[at], rng), _json(port.steps[at], rng), rng.choice(TEXTS)))
    else:
        _field(port, rng)


def _config(record: Any, rng: random.Random) -> None:
    """The configuration, with the fingerprint made right if there is one."""
    record.config = _json(record.config, rng)
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


# -- texts -----------------------------------------------------------------------------------------


def _json(text: str, rng: random.Random) -> str:
    """A JSON text with one value changed; or damaged."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    if rng.random() < 0.15:
        return damaged(text.encode(), rng).decode("utf-8", "replace")
    return json.dumps(_changed(found, rng))


def _changed(value: Any, rng: random.Random) -> Any:
    """A value like it, with something changed at any depth."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(sorted(value))
        kind = rng.randrange(10)
        if kind == 0:
            return {name: item for name, item in value.items() if name != key}
        if kind == 1:
            return {**value, rng.choice(TEXTS): value[key]}
        return {**value, key: _changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        return [*value[:at], _changed(value[at], rng), *value[at + 1 :]]
    others: list[Any] = [None, True, False, [], {}, [1], {"a": 1}, -1, 0, 1, 1 << 31, 1 << 70, 0.5, -1e308,
                         float("nan"), float("inf"), rng.choice(TEXTS), "x", "\ud800", [[]]]  # fmt: skip
    if type(value) is int:
        others += [value + 1, value - 1, value * 2, -value] * 3
    if type(value) is str:
        others += [value + "x", value[:-1], value.upper()] * 3
    return rng.choice(others)


def manifest(base: Base, rng: random.Random) -> bytes:
    """A manifest."""
    return _json(base.manifest, rng).encode("utf-8", "replace")


def simulations(base: Base, rng: random.Random) -> bytes:
    """A list of simulations."""
    return _json(base.simulations, rng).encode("utf-8", "replace")


def board(base: Base, rng: random.Random) -> bytes:
    """A board file: lines dropped, repeated, with other values; or damaged."""
    if rng.random() < 0.2:
        return damaged(base.board.encode(), rng)
    lines = base.board.splitlines()
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        name, equals, _ = lines[at].partition("=")
        kind = rng.randrange(8)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(rng.randrange(len(lines)), lines[at])
        elif equals:
            values = ("0", "-1", "1", '"mini"', '"x"', "[]", "[1]", '["x"]', '["ulx3s-85f"]', "true", "nan", "inf",
                      "{}", "1979-05-27", "9" * 30, "0x41113043", '""', "[" * 2000, '"""', "'\\u0000'",
                      "[[1], {a = 1}]", "1e400", "9" * 5000, '"\\u0007"', "25_000_000")  # fmt: skip
            lines[at] = f"{name}= {rng.choice(values)}"
        else:
            lines[at] = rng.choice(("[device]", "[[device]]", "[x]", "[", "a.b.c = 1", f"{'[' * 500}", "# \x07"))
        lines = lines or ["x = 1"]
    return ("\n".join(lines) + "\n").encode()


# -- arrays ----------------------------------------------------------------------------------------


def arrays(base: Base, rng: random.Random) -> bytes:
    """An .npy or .npz: its bytes, the header of an array, or what an archive says of its members."""
    data = rng.choice(base.arrays)
    kind = rng.randrange(4)
    if kind == 0:
        return damaged(data, rng)
    if kind == 1 and data.startswith(b"PK"):
        at = data.rfind(b"PK\1\2")
        start = at if rng.random() < 0.5 else 0
        return data[:start] + damaged(data[start : start + 60], rng) + data[start + 60 :]
    header = rng.choice(HEADERS)
    shape = rng.choice(("()", "(1,)", "(0,)", "(-1, 3)", "(1, 3, 8, 8)", "(2, 3, 8, 8)", "(10**9,)", "'x'",
                        "(1099511627776,)", "(4611686018427387904, 4)", "(True,)", "(1.0,)", "(" + "1," * 70 + ")",
                        "(" * 3000))  # fmt: skip
    kinds = ("<f4", "|i1", "|O", "<f8", ">i2", "|b1", "<U3", "|V8", "[('a', '<f4')]", "M8[s]", "x", "<f" + "9" * 30,
             "<c8")  # fmt: skip
    text = header % (rng.choice(kinds), rng.choice(("True", "False", "2", "None")), shape)
    version = rng.choice((b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\7\0"))
    size = struct.pack("<H" if version == b"\1\0" else "<I", min(len(text) + 1, 65535))
    made = b"\x93NUMPY" + version + size + text.encode() + b"\n" + bytes(rng.choice((0, 10, 768, 6144)))
    if kind == 2:
        return made
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name in rng.choice((("x.npy",), ("y.npy", "x.npy"), ("x",), (" ", "../x.npy"), ("labels.npy", "x.npy"))):
            archive.writestr(name, made)
    return buffer.getvalue()


HEADERS = (
    "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }",
    "{'descr': '%s', 'fortran_order': %s, 'shape': %s, 'more': 1}",
    "{'descr': %s, 'fortran_order': %s, 'shape': %s}",
    "['%s', %s, %s]",
)
KINDS: dict[str, Callable[[Base, random.Random], bytes]] = {
    "program": program, "arrays": arrays, "board": board, "manifest": manifest, "simulations": simulations,
}  # fmt: skip


def mutant(base: Base, kind: str, seed: int, index: int) -> bytes:
    """The mutant of a number."""
    return KINDS[kind](base, random.Random(f"{kind} {seed} {index}"))


@cache
def bases() -> Base:
    """Programs for the preset `mini`: the network of every instruction, with steps at its ports, and whatever of the
    models of `mutants` has a part for the hardware; and the rest."""
    import mutants

    from onnxhw.build.manifest import Manifest
    from onnxhw.cli.selftest_network import network
    from onnxhw.compiler import compile
    from onnxhw.compiler import compile_graph as compiled
    from onnxhw.config import preset
    from onnxhw.errors import OnnxhwError

    graph, config = network(), preset("mini")
    steps = ({"op": "QuantizeLinear", "name": "q", "scale": 0.05, "zero_point": 3, "dtype": "int8"},)
    graph.inputs[0] = replace(graph.inputs[0], dtype="float32", steps=steps)
    ends: tuple[dict[str, Any], ...] = (
        {"op": "DequantizeLinear", "name": "d", "scale": 0.1, "zero_point": -1},
        {"op": "Reshape", "name": "r", "shape": [1, 10]},
        {"op": "Softmax", "name": "s", "axes": [1]},
    )
    graph.outputs[1] = replace(graph.outputs[1], shape=(1, 10), dtype="float32", steps=ends)
    whole = compiled(graph, config)
    programs = [container.dumps(Program.of(whole))] * 3
    for model in mutants.seeds():
        try:
            made = compile(model, config)
        except OnnxhwError:
            continue
        if made.programs:
            programs.append(container.dumps(made))
    noted = Manifest("ulx3s-85f", "LFE5U-85F", "mini", config.fingerprint, "0" * 64, "0" * 40, 25_000_000, 1, 31.5,
                     True, "a to b", tools={"onnx": "1.21"}, resources={"LUT4": {"used": 1, "available": 2}},
                     clocks={"clk": {"achieved": 31.5, "wanted": 25.0}}, shapes=["N=1"], limits=["nodes=1000"],
                     preprocess={"scale": 1.0, "mean": [0.0], "std": [1.0], "layout": "nchw"})  # fmt: skip
    noted.add_file("program.ohw", programs[0])
    record = {"engine": "cxxrtl", "inferences": 1, "cycles": whole.cycles, "predicted_cycles": whole.cycles,
              "reference": "emulator", "equal": True, "program_sha256": noted.files["program.ohw"]}  # fmt: skip
    text = (Path(__file__).resolve().parent.parent / "boards" / "ulx3s-85f.toml").read_text(encoding="utf-8")
    samples = np.random.default_rng(0).normal(size=(2, 3, 12, 12)).astype(np.float32)
    found = []
    for save in (lambda file: np.save(file, samples), lambda file: np.savez(file, x=samples, labels=np.arange(2)),
                 lambda file: np.savez_compressed(file, x=samples)):  # fmt: skip
        buffer = io.BytesIO()
        save(buffer)
        found.append(buffer.getvalue())
    simulated = json.dumps([record, {**record, "engine": "emulator", "part_cycles": [1, None]}])
    return Base(tuple(programs), text, noted.to_json(), simulated, tuple(found))
