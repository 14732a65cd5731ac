"""``program.ohw``: a compiled model as a file.

The same program gives the same bytes. A file appears under its name only when it is complete. What is
not exactly what `save` wrote is refused by name: not a program file (E2120), damaged (E2121), another format
version (E2122), a configuration that means something else here or is not the one asked for (E2123), a model in
parts where a single program is wanted (E2510). The messages are declared in `schema`.
"""

import contextlib
import hashlib
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from ..config import HwConfig
from ..errors import InternalError, UsageError
from ..files import open_regular, read_regular, reason
from ..ir.graph import Port
from ..isa.instructions import UNITS, Ordered
from ..isa.units import Unit
from ..wire import TooManyFieldsError, WireError, table, varint, walk
from .kept import Constants, Patches, Shape
from .layout import Place
from .mixed import MixedProgram
from .model import Entry, Layer, Program
from .parts import pack, unpack
from .schema import message

FORMAT, MIXED = 3, 5
"""Versions of the container and of the instruction encoding, of a program and of a model in parts; a file of
another version is refused."""
MAGIC = "onnxhw program"
BYTES = (1 << 31) - 1
"""Largest file that is read: what protobuf reads."""
FIELDS = 1 << 20
"""Most protobuf fields of a file: each takes two bytes there and a hundred in memory. Ours have some thousands."""
_PAYLOAD = b"\x22"
"""The tag of the payload, protobuf field 4."""
_TABLES = {name: table(message(name).DESCRIPTOR) for name in ("File", "Program", "Mixed")}
_HEAD = bytes((0x0A, len(MAGIC))) + MAGIC.encode()
"""How every program file begins: the magic as protobuf field 1."""


# -- bytes -----------------------------------------------------------------------------------------


def dumps(program: Program | MixedProgram) -> bytes:
    """The bytes of a program file. A model of one program is that program."""
    if isinstance(program, MixedProgram):
        return dumps(program.whole) if program.whole else _wrap(pack(program, _record), MIXED)
    return _wrap(_payload(program))


def _wrap(payload: bytes, version: int = FORMAT) -> bytes:
    file = message("File")
    file.magic, file.format = MAGIC, version
    file.sha256, file.payload = hashlib.sha256(payload).digest(), payload
    return bytes(file.SerializeToString(deterministic=True))


def _exact(data: bytes, file: Any) -> bool:
    """Whether the bytes are what `_wrap` makes of the payload; without a further copy of it."""
    head, payload = message("File"), file.payload
    head.magic, head.format, head.sha256 = MAGIC, file.format, hashlib.sha256(payload).digest()
    before = head.SerializeToString(deterministic=True) + (_PAYLOAD + varint(len(payload)) if payload else b"")
    return len(data) == len(before) + len(payload) and data.startswith(before)


def loads(data: bytes, where: str = "") -> Program:
    """The program of a file's bytes; `where` names the file in errors."""
    found = loads_any(data, where)
    if isinstance(found, MixedProgram):
        raise UsageError(
            "E2510",
            f"holds a model in {len(found.parts)} parts, {len(found.parts) - len(found.programs)} of them for the host",
            where=where,
            hint="onnxhw run, simulate and InferenceSession take such a program; --standalone needs one all hardware",
        )
    return found


def loads_any(data: bytes, where: str = "") -> Program | MixedProgram:
    """A program or a model in parts."""
    if not data.startswith(_HEAD):
        raise UsageError("E2120", "not an onnxhw program file", where=where, hint="onnxhw compile writes program.ohw")
    file = message("File")
    try:
        walk(data, _TABLES["File"], FIELDS, deep=True)
        file.ParseFromString(data)
    except (DecodeError, WireError, TooManyFieldsError):
        raise _damaged(where, "it is truncated or its fields cannot be read") from None
    if file.format not in (FORMAT, MIXED):
        raise UsageError(
            "E2122",
            f"program format {file.format}; this release reads formats {FORMAT} and {MIXED}",
            where=where,
            hint="compile the model again",
        )
    if not _exact(data, file):  # stricter than the checksum: fields that protobuf would skip count
        raise _damaged(where, "its checksum differs or it has bytes that do not belong to it")
    kind = "Program" if file.format == FORMAT else "Mixed"
    record = message(kind)
    try:
        walk(file.payload, _TABLES[kind], FIELDS, deep=True)
        record.ParseFromString(file.payload)
        return _program(record, where) if file.format == FORMAT else unpack(record, lambda part: _program(part, where))
    except TooManyFieldsError as error:
        raise _damaged(where, f"it has more than {FIELDS:,} fields") from error
    except Exception as error:  # the right checksum around anything: every kind of exception
        if isinstance(error, UsageError) and error.code == "E2123":
            raise
        raise _damaged(where, f"its contents cannot be read ({' '.join(str(error).split())[:300]})") from error


def _damaged(where: str, why: str) -> UsageError:
    return UsageError("E2121", f"damaged program file: {why}", where=where, hint="copy it or compile the model again")


# -- files -----------------------------------------------------------------------------------------


def save(program: Program | MixedProgram, path: str | os.PathLike[str]) -> None:
    """Write a program file: completely or not at all. `UsageError` E2125 if it cannot be written."""
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        raise UsageError("E2125", "cannot write: not a regular file", where=str(path))
    data = dumps(program)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
    except OSError as error:
        raise UsageError("E2125", f"cannot write: {error.strerror or error}", where=str(path)) from error


def load(path: str | os.PathLike[str], config: HwConfig | None = None) -> Program:
    """Read a program file; with `config`, only one compiled for that configuration.

    `UsageError` E2124 if it cannot be read, else those of the module.
    """
    program = loads(_read(path), str(path))
    if config is not None and config.fingerprint != program.config.fingerprint:
        raise UsageError(
            "E2123",
            f"compiled for {program.config.name!r} ({program.config.fingerprint}), "
            f"not for {config.name!r} ({config.fingerprint})",
            where=str(path),
            hint="compile the model for this configuration",
        )
    return program


def load_any(path: str | os.PathLike[str]) -> Program | MixedProgram:
    """Read a program file, also of a model in parts."""
    return loads_any(_read(path), str(path))


def _read(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file; of one that is no program file only the beginning."""
    try:
        with open_regular(path) as file:
            begins = file.read(len(_HEAD))
        return read_regular(path, BYTES) if begins == _HEAD else begins
    except (OSError, MemoryError) as error:
        raise UsageError("E2124", f"cannot read: {reason(error) or 'not enough memory'}", where=str(path)) from error


# -- Program -> message ----------------------------------------------------------------------------


def _payload(program: Program) -> bytes:
    return bytes(_record(program).SerializeToString(deterministic=True))


def _record(program: Program) -> Any:
    record = message("Program")
    record.config, record.fingerprint = program.config.to_json(), program.config.fingerprint
    record.model = program.model.encode("utf-8", "replace").decode()  # a path may hold what is no text
    record.cycles, record.macs, record.nominal = program.cycles, program.macs, program.nominal
    record.free_array, record.free_vector = program.input_free
    for unit in Unit:
        instructions = program.code.get(unit, [])
        words = [word for instruction in instructions for word in instruction.encode()]
        record.code.add(unit=unit.value, count=len(instructions), words=np.array(words, "<u4").tobytes())
    record.weights = np.ascontiguousarray(program.weights, np.uint8).tobytes()
    record.params = program.params.astype("<u8").tobytes()
    record.tables = np.ascontiguousarray(program.tables, np.int8).tobytes()
    for entry in program.tensors.values():
        place, kept = entry.place, entry.kept
        added = record.tensors.add(
            name=entry.name, base=place.base, plane=place.plane, row=place.row, shape=place.shape, lane=place.lane,
            scale=float(entry.scale), zero_point=entry.zero_point, ready=entry.ready, last=entry.last,
            op=entry.op, golden=entry.golden, model=entry.model or (),
        )  # fmt: skip
        if kept is not None:
            target = added.patches if isinstance(kept, Patches) else added.constants
            for field in fields(kept):
                getattr(target, field.name).extend(getattr(kept, field.name))
    for ports, target in ((program.inputs, record.inputs), (program.outputs, record.outputs)):
        for port in ports:
            target.add(
                name=port.name, shape=port.shape, dtype=port.dtype, tensor=port.tensor,
                steps=[_json(step, port.name) for step in port.steps],
            )  # fmt: skip
    for layer in program.layers:
        target = record.layers.add(name=layer.name, kind=layer.kind, macs=layer.macs, nominal=layer.nominal)
        for unit in Unit:
            for first, last in layer.instructions.get(unit, ()):
                target.instructions.add(unit=unit.value, first=first, last=last)
    return record


def _json(step: dict[str, Any], where: str) -> str:
    try:
        return json.dumps(step, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise InternalError("E1125", f"a host step must be JSON values: {error}", where=where) from error


# -- message -> Program ----------------------------------------------------------------------------


def _program(record: Any, where: str) -> Program:
    try:
        config = HwConfig.from_json(record.config)
        known = config.fingerprint
    except UsageError as error:
        raise UsageError("E2123", f"its configuration is not one of this release: {error.what}", where=where) from error
    if known != record.fingerprint:
        raise UsageError(
            "E2123",
            f"its configuration has the fingerprint {record.fingerprint}, in this release {known}",
            where=where,
            hint="compile the model again",
        )
    tensors = [_entry(entry) for entry in record.tensors]
    if len({entry.name for entry in tensors}) < len(tensors):
        raise ValueError("two tensors have one name")
    program = Program(
        config=config,
        model=record.model,
        code=_code(record.code),
        weights=np.frombuffer(record.weights, np.uint8).reshape(-1, config.weight_word).copy(),
        params=np.frombuffer(record.params, "<u8").astype(np.uint64).reshape(-1, config.lanes),
        tables=np.frombuffer(record.tables, np.int8).reshape(-1, 256).copy(),
        tensors={entry.name: entry for entry in tensors},
        inputs=[_port(port) for port in record.inputs],
        outputs=[_port(port) for port in record.outputs],
        layers=[_layer(layer) for layer in record.layers],
        cycles=record.cycles,
        macs=record.macs,
        input_free=(record.free_array, record.free_vector),
        nominal=record.nominal,
    )
    for port in program.inputs + program.outputs:
        if port.tensor not in program.tensors:
            raise ValueError(f"port {port.name!r} names no tensor")
    return program


def _code(codes: Any) -> dict[Unit, list[Ordered]]:
    out: dict[Unit, list[Ordered]] = {unit: [] for unit in Unit}
    for code in codes:
        unit = Unit.named(code.unit)
        kind = UNITS[unit]
        if out[unit]:
            raise ValueError(f"{unit} has two lists of instructions")
        size = kind.words()
        words = np.frombuffer(code.words, "<u4").tolist()
        if len(words) != code.count * size:
            raise ValueError(f"{unit} has {len(words)} words for {code.count} instructions")
        out[unit] = [kind.decode(words[n * size : (n + 1) * size]) for n in range(code.count)]
    return out


def _entry(entry: Any) -> Entry:
    _, channels, height, width = entry.shape
    place = Place(entry.base, entry.plane, entry.row, (1, channels, height, width), entry.lane)
    kept, model = _kept(entry)
    if kept is not None and (model is None or kept.kept(model) != place.shape):
        raise ValueError(f"tensor {entry.name!r} of shape {model} is not kept as one of shape {place.shape}")
    return Entry(
        entry.name, place, entry.scale, entry.zero_point, entry.ready, entry.last, entry.op, entry.golden, kept, model
    )  # fmt: skip


def _kept(entry: Any) -> tuple[Patches | Constants | None, Shape | None]:
    """How a tensor is kept, and the shape of the model's."""
    if not entry.model:
        return None, None
    _, channels, height, width = entry.model
    shape = 1, channels, height, width
    if entry.HasField("patches") == entry.HasField("constants"):
        raise ValueError(f"tensor {entry.name!r} must be kept either as patches or without its constants")
    if entry.HasField("constants"):
        values = tuple(entry.constants.values)
        if values and not -128 <= min(values) <= max(values) <= 127:
            raise ValueError(f"tensor {entry.name!r} has constants beyond int8")
        return Constants(tuple(entry.constants.channels), values), shape
    found = entry.patches
    (kh, kw), (sh, sw), (dh, dw) = found.kernel, found.strides, found.dilations
    top, left, bottom, right = found.pads
    return Patches((kh, kw), (sh, sw), (dh, dw), (top, left, bottom, right)), shape


def _layer(layer: Any) -> Layer:
    runs: dict[Unit, list[tuple[int, int]]] = {}
    for run in layer.instructions:
        runs.setdefault(Unit.named(run.unit), []).append((run.first, run.last))
    return Layer(layer.name, layer.kind, layer.macs, runs, layer.nominal)


def _port(port: Any) -> Port:
    steps = tuple(json.loads(step) for step in port.steps)
    return Port(port.name, tuple(port.shape), port.dtype, port.tensor, steps)
