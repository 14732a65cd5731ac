"""Programs as messages of the container (`schema`), and back."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import ml_dtypes  # noqa: F401  # numpy knows bfloat16 and its like by it
import numpy as np

from ..batch import Batch
from ..config import HwConfig
from ..errors import InternalError, UsageError, short
from ..ir.boxes import Box
from ..ir.graph import Port
from ..ir.parts import Dim, GoldenPart, HostPart, ValueInfo
from ..ir.states import State
from ..ir.text import parse, text
from ..ir.verify import verify
from ..isa.external_instructions import kinds
from ..isa.instructions import Ordered
from ..isa.units import Unit
from .layout import Place
from .model import DeviceProgram, Entry, ExternalPiece, Layer, TensorPart
from .parts import Program, ProgramPart, gives, reads
from .schema import message
from .storage import ElidedChannels, PackedInput, Shape, StorageFormat

# -- Program -> message ----------------------------------------------------------------------------


def pack(program: Program) -> Any:
    """The message of a program."""
    packed = message("Program")
    packed.name = _text(program.name)
    for values, target in ((program.inputs, packed.inputs), (program.outputs, packed.outputs)):
        for value in values:
            elements = "" if value.elements is None else json.dumps(value.elements)
            target.add(name=value.name, shape=json.dumps(value.shape), dtype=value.dtype, optional=value.optional,
                       elements=elements)  # fmt: skip
    for part in program.parts:
        if isinstance(part, HostPart):
            packed.parts.add(host=part.model, inputs=part.inputs, outputs=part.outputs, nodes=part.nodes)
        elif isinstance(part, GoldenPart):
            packed.parts.add(golden=text(part.graph, constants=True))
        else:
            _device(part, packed.parts.add().device)
    if (batch := program.batch) is not None:
        packed.batch.size, packed.batch.mixing = batch.size, batch.mixing
        packed.batch.inputs.extend(sorted(batch.inputs))
        packed.batch.outputs.extend(sorted(batch.outputs))
    return packed


def _text(name: str) -> str:
    return name.encode("utf-8", "replace").decode()  # a path may hold what is no text


def _device(program: DeviceProgram, record: Any) -> None:
    """Fill a record in place: an image of external memory may have tens of megabytes."""
    record.config, record.fingerprint = program.config.to_json(), program.config.fingerprint
    record.model = _text(program.model)
    record.cycles, record.macs, record.nominal = program.cycles, program.macs, program.nominal
    record.free_array, record.free_vector = program.input_free
    for unit in kinds(program.config):
        instructions = program.code.get(unit, [])
        words = [word for instruction in instructions for word in instruction.encode()]
        record.code.add(unit=unit.value, count=len(instructions), words=np.array(words, "<u4").tobytes())
    record.weights = np.ascontiguousarray(program.weights, np.uint8).tobytes()
    record.params = program.params.astype("<u8").tobytes()
    record.tables = np.ascontiguousarray(program.tables, np.int8).tobytes()
    record.external, record.segments = program.external.astype("<u4", copy=False).tobytes(), program.segments
    for state in program.states:
        record.states.add(
            output=state.output, input=state.input, made=state.made, read=state.read,
            initial=np.ascontiguousarray(state.initial, np.int8).tobytes(),
        )  # fmt: skip
    for entry in program.tensors.values():
        place, storage = entry.place, entry.storage
        added = record.tensors.add(
            name=entry.name, base=place.base, plane=place.plane, row=place.row, shape=place.shape, lane=place.lane,
            scale=float(entry.scale), zero_point=entry.zero_point, ready=entry.ready, last=entry.last,
            op=entry.op, golden=entry.golden, model=entry.model or (),
        )  # fmt: skip
        if storage is not None:
            if isinstance(storage, PackedInput):
                _packed(storage, added.packed)
            else:
                for field in fields(storage):
                    getattr(added.constants, field.name).extend(getattr(storage, field.name))
        for piece in entry.external:
            place = piece.place
            target = added.external.add(base=place.base, plane=place.plane, row=place.row, **_box(piece.box))
            if piece.storage is not None:
                _packed(piece.storage, target.packed)
        if entry.part is not None:
            added.part.tensor = entry.part.tensor
            for name, values in _box(entry.part.box).items():
                getattr(added.part, name).extend(values)
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


def _packed(storage: PackedInput, record: Any) -> None:
    for field in fields(storage):
        setattr(record, field.name, getattr(storage, field.name))


def _box(box: Box) -> dict[str, list[int]]:
    return {"box": [low for low, _ in box.spans], "size": [high - low for low, high in box.spans]}


def _json(step: dict[str, Any], where: str) -> str:
    try:
        return json.dumps(step, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise InternalError("E1125", f"a host step must be JSON values: {error}", where=where) from error


# -- message -> Program ----------------------------------------------------------------------------


def unpack(packed: Any, where: str = "") -> Program:
    """The inverse of `pack`.

    `UsageError` E2123 for a configuration that means something else here; `ValueError` for a part that is not of one
    kind, or reads what is not there; errors of `ir.text.parse` and `ir.verify`.
    """
    batch = Batch(
        packed.batch.size, frozenset(packed.batch.inputs), frozenset(packed.batch.outputs), packed.batch.mixing
    ) if packed.HasField("batch") else None  # fmt: skip
    program = Program(packed.name, _values(packed.inputs), _values(packed.outputs), [], batch)
    known = {value.name for value in program.inputs}
    for record in packed.parts:
        part = _part(record, where)
        if not known.issuperset(reads(part)):
            raise ValueError(f"a part reads {min({*reads(part)} - known)!r}, which no earlier part gives")
        known.update(gives(part))
        program.parts.append(part)
    return program


def _part(record: Any, where: str) -> ProgramPart:
    if record.HasField("device") + bool(record.host) + bool(record.golden) != 1:
        raise ValueError("a part must be one of a device program, a host part and a golden part")
    if record.host:
        return HostPart(tuple(record.inputs), tuple(record.outputs), record.host, tuple(record.nodes))
    if record.golden:
        part = GoldenPart(parse(record.golden))
        verify(part.graph)
        return part
    return _program(record.device, where)


def _values(records: Any) -> tuple[ValueInfo, ...]:
    found = []
    for record in records:
        try:
            np.dtype(record.dtype or "int8")
        except TypeError as error:
            raise ValueError(f"value {record.name!r} has the type {record.dtype!r}") from error
        dims = _dims(record.shape), _dims(record.elements or "null")
        found.append(ValueInfo(record.name, dims[0], record.dtype, record.optional, dims[1]))
    return tuple(found)


def _dims(text: str) -> tuple[Dim, ...] | None:
    shape = json.loads(text)
    if shape is None:
        return None
    sizes = isinstance(shape, list) and all(
        one is None or isinstance(one, str) or (type(one) is int and one >= 0) for one in shape
    )
    if not sizes:
        raise ValueError(f"{short(text)} is no shape")
    return tuple(shape)


def _program(record: Any, where: str) -> DeviceProgram:
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
    program = DeviceProgram(
        config=config,
        model=record.model,
        code=_code(record.code, config),
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
        external=np.frombuffer(record.external, "<u4"),
        segments=record.segments,
    )
    program.states = tuple(_state(each, program.tensors) for each in record.states)
    for port in program.inputs + program.outputs:
        if port.tensor not in program.tensors:
            raise ValueError(f"port {port.name!r} names no tensor")
    return program


def _state(state: Any, tensors: Mapping[str, Entry]) -> State:
    for name in (state.made, state.read):
        if name not in tensors:
            raise ValueError(f"state {state.input!r} names no tensor")
    initial = np.frombuffer(state.initial, np.int8).reshape(tensors[state.read].shape)
    return State(state.output, state.input, state.made, state.read, initial)


def _code(codes: Any, config: HwConfig) -> dict[Unit, list[Ordered]]:
    out: dict[Unit, list[Ordered]] = {unit: [] for unit in kinds(config)}
    for code in codes:
        unit = Unit(code.unit)
        if unit not in kinds(config):
            raise ValueError(f"{config.name} has no unit {unit}")
        kind = kinds(config)[unit]
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
    storage, model = _storage(entry)
    if storage is not None and (model is None or storage.stored_shape(model) != place.shape):
        raise ValueError(f"tensor {entry.name!r} of shape {model} is not stored as one of shape {place.shape}")
    part = TensorPart(entry.part.tensor, _span_box(entry.part)) if entry.HasField("part") else None
    if part is not None and part.box.shape != place.shape:
        raise ValueError(f"tensor {entry.name!r} of shape {place.shape} is no part of shape {part.box.shape}")
    return Entry(
        entry.name, place, entry.scale, entry.zero_point, entry.ready, entry.last, entry.op, entry.golden,
        storage, model, tuple(map(_piece, entry.external)), part,
    )  # fmt: skip


def _span_box(record: Any) -> Box:
    spans = [(low, low + size) for low, size in zip(record.box, record.size, strict=True)]
    channels, rows, cols = spans
    return Box(channels, rows, cols)


def _piece(record: Any) -> ExternalPiece:
    box, storage, shape = _span_box(record), None, None
    if record.HasField("packed"):
        found = record.packed
        storage = PackedInput(found.word, found.words, found.first, found.row, found.column)
        shape = storage.stored_shape(box.shape)
    return ExternalPiece(box, Place(record.base, record.plane, record.row, shape or box.shape), storage)


def _storage(entry: Any) -> tuple[StorageFormat | None, Shape | None]:
    """How a tensor is stored, and the shape of the model's."""
    if not entry.model:
        return None, None
    _, channels, height, width = entry.model
    shape = 1, channels, height, width
    if entry.HasField("constants") + entry.HasField("packed") != 1:
        raise ValueError(f"tensor {entry.name!r} must be stored either packed, or without its constants")
    if entry.HasField("packed"):
        found = entry.packed
        return PackedInput(found.word, found.words, found.first, found.row, found.column), shape
    values = tuple(entry.constants.values)
    if values and not -128 <= min(values) <= max(values) <= 127:
        raise ValueError(f"tensor {entry.name!r} has constants beyond int8")
    return ElidedChannels(tuple(entry.constants.channels), values), shape


def _layer(layer: Any) -> Layer:
    runs: dict[Unit, list[tuple[int, int]]] = {}
    for run in layer.instructions:
        runs.setdefault(Unit(run.unit), []).append((run.first, run.last))
    return Layer(layer.name, layer.kind, layer.macs, runs, layer.nominal)


def _port(port: Any) -> Port:
    steps = tuple(json.loads(step) for step in port.steps)
    return Port(port.name, tuple(port.shape), port.dtype, port.tensor, steps)
