"""`verify_program`: the device program of a file is verified before it runs (`runtime.loading` has each part verified).

A program file may come from anywhere, and its checksum is no signature. So what was read goes through all that a
program goes through when it is made: `onnxhw.sched.checker` (no access out of range, nothing read before it was written
or after it was overwritten, no deadlock, no bank conflict, the predicted cycles); and what the host does with it is
tried: ports, steps, tensor table and layers fit each other. `UsageError` E2460 says what is wrong.

Not to be told from a program alone, without the graph: that it computes what the model means. Weights, parameters and
tables are whatever they are; words that an operation reads hold the tensor that was written there last; accumulators
beyond `acc_bits` wrap, on every engine alike. Such a program is another valid one.
"""

from collections.abc import Iterable
from math import isfinite, prod
from typing import Any

import numpy as np

from .errors import InternalError, OnnxhwError, UsageError, short
from .golden import host
from .ir.boxes import Box
from .ir.graph import Graph, Port, Tensor
from .ir.steps import STEPS, apply, result_shape, sampled
from .isa.memory import host_stride
from .isa.units import Unit
from .program.model import DeviceProgram, Layer
from .program.storage import ElidedChannels

ELEMENTS = 1 << 24
"""Most elements of a model's tensor that a program keeps or transfers: 4 times the largest activation memory."""
LISTS = ("shape", "perm", "axes", "inputs", "values", "weights")
"""Attributes of host steps that are lists of numbers; `value` may be one."""
SAMPLES = np.arange(-128, 128, dtype=np.int8).reshape(-1, 1, 1, 1)
"""Values of an int8."""


def verify_program(program: DeviceProgram, where: str = "") -> DeviceProgram:
    """The program itself, if it is one that our compiler could have made; else `UsageError` E2460."""
    from .sched.checker import check  # only here: it takes long to import

    try:
        _table(program)
        _states(program)
        _external(program)
        check(program)
        _layers(program.layers, program)
        tensors = {e.name: Tensor(e.name, e.shape, e.scale, e.zero_point) for e in program.tensors.values()}
        try_ports(Graph("", tensors, [], program.inputs, program.outputs), ELEMENTS)
    except InternalError as error:
        what = f"{error.where}: {error.what}" if error.where else error.what
        raise _refused(where, f"{what} ({error.code})") from error
    except MemoryError as error:
        raise _refused(where, "it takes more memory than there is") from error
    except ValueError as error:
        raise _refused(where, str(error)) from error
    return program


def _refused(where: str, why: str) -> UsageError:
    hint = "compile the model again"
    return UsageError("E2460", f"no valid program: {why}", where=where, hint=hint)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


# -- the tensor table ------------------------------------------------------------------------------


def _table(program: DeviceProgram) -> None:
    """What `check` does not ask of the table: quantization, and the model's tensors."""
    for entry in program.tensors.values():
        name = f"tensor {entry.name!r}"
        _require(isfinite(entry.scale) and entry.scale > 0, f"{name} has the scale {entry.scale}")
        _require(-128 <= entry.zero_point <= 127, f"{name} has the zero point {entry.zero_point}")
        _require(0 < prod(entry.shape) <= ELEMENTS, f"{name} has {prod(entry.shape)} elements")
    inputs = [port.tensor for port in program.inputs]
    _require(len(set(inputs)) == len(inputs), "two inputs are one tensor")
    for name in inputs:
        entry = program.tensors[name]
        _require(not isinstance(entry.storage, ElidedChannels), f"input {name!r} has constants")
        _require(entry.ready == 0, f"input {name!r} is not ready at the start")


def _external(program: DeviceProgram) -> None:
    """The image fits external memory; what lies there alone is an input, an output or a state, in boxes of it that are
    whole words there; an output begins with all of it."""
    memory, word = program.config.external, program.config.word
    room = memory.host_words if memory is not None else 0
    _require(len(program.external) <= room, f"an image of {len(program.external)} external words, of {room}")
    outputs = {port.tensor for port in program.outputs}
    ports = outputs | {port.tensor for port in program.inputs}
    ports |= {name for state in program.states for name in (state.made, state.read)}
    for entry in program.tensors.values():
        name = f"tensor {entry.name!r}"
        _require(not entry.external or entry.name in ports, f"{name} lies in external memory and is no port")
        for piece in entry.external:
            box, place = piece.box, piece.place
            inside = box.inside(Box.whole(entry.shape)) and min(box.shape) > 0
            _require(inside, f"{name} has a piece {box} that is no box of {entry.shape}")
            plain = place.row == place.shape[3] and place.plane == place.shape[2] * place.row and not place.lane
            last = (place.base + place.blocks(word) * place.plane) * host_stride(word)
            _require(plain and last <= room, f"{name} has a piece up to external word {last} of {room}")
        if entry.external and entry.name in outputs:
            first = entry.external[0]
            whole = first.box == Box.whole(entry.shape) and first.storage is None
            _require(whole, f"output {entry.name!r} is not whole in external memory")


def _states(program: DeviceProgram) -> None:
    """A state is made and read as tensors of one shape and quantization, each read once, and none is an input too."""
    _require(not program.states or program.in_segments, "states are without external memory")
    names = [state.read for state in program.states] + [port.tensor for port in program.inputs]
    _require(len(set(names)) == len(names), "a tensor is read for two states, or is an input, too")
    inputs = [port.name for port in program.inputs], [state.input for state in program.states]
    outputs = [port.name for port in program.outputs], [state.output for state in program.states]
    for ports, mine in (inputs, outputs):
        alone = len(set(mine)) == len(mine) and not {*mine} & {*ports}
        _require(alone, "a state has the name of an input or output, or of another state")
    for state in program.states:
        made, read = program.tensors[state.made], program.tensors[state.read]
        alike = (made.shape, made.scale, made.zero_point) == (read.shape, read.scale, read.zero_point)
        _require(alike, f"state {state.input!r} is made otherwise than it is read")
        _require(read.ready == 0, f"state {state.input!r} is not ready at the start")


def _layers(layers: Iterable[Layer], program: DeviceProgram) -> None:
    """An instruction belongs to one layer at most, and runs are in order."""
    used = {unit: np.zeros(len(program.code.get(unit, ())), bool) for unit in Unit}
    for layer in layers:
        for unit, runs in layer.instructions.items():
            _require(unit in used, f"layer {layer.name!r} names the unit {unit!r}")
            before = 0
            for first, last in runs:
                fits = before <= first < last <= len(used[unit]) and not used[unit][first:last].any()
                _require(fits, f"layer {layer.name!r} has {unit} instructions {first}..{last}")
                used[unit][first:last] = True
                before = last


# -- ports -----------------------------------------------------------------------------------------


def try_ports(whole: Graph, elements: int) -> None:
    """Each port's steps lead from the model's type and shape to the tensor's, or back: shapes step by step, values for
    every int8 of an output, and for some of an input. `ValueError` if not, or for more than so many elements. It takes
    no longer for large tensors."""
    for port in whole.inputs:
        _steps(port, elements)
        tensor = whole.tensors[port.tensor]
        found, _ = _run(port, port.shape, _examples(port))
        same = prod(found) == prod(tensor.shape)
        _require(same, f"the steps of port {port.name!r} make {list(found)}, not {list(tensor.shape)}")
    for port in whole.outputs:
        _steps(port, elements)
        found, dtype = _run(port, whole.tensors[port.tensor].shape, SAMPLES)
        wanted = port.dtype, tuple(port.shape)
        made = port.dtype if port.dtype in host.SHORT else str(dtype), found
        _require(made == wanted, f"the steps of port {port.name!r} make {made[0]} {list(found)}, not {wanted[0]} "
                                 f"{list(port.shape)}")  # fmt: skip


def _run(port: Port, shape: tuple[int, ...], values: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the type that a port's steps make of a tensor, and of values along the first of four axes."""
    try:
        with np.errstate(all="ignore"):
            for step in port.steps:
                shape = result_shape(step, shape)
                values = values if (small := sampled(step)) is None else apply([small], values)
    except (OnnxhwError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"the steps of port {port.name!r} fail: {error}") from error
    return shape, values.dtype


def _steps(port: Port, elements: int) -> None:
    """Type, shape and steps of a port, as far as they can be told without running them."""
    name = f"port {port.name!r}"
    _require(prod(port.shape) <= elements and min(port.shape, default=1) > 0, f"{name} has the shape {port.shape}")
    known = port.dtype in host.SHORT or (port.dtype in np.sctypeDict and np.dtype(port.dtype).kind in "fiub")
    _require(known, f"{name} has the type {port.dtype!r}")
    for step in port.steps:
        _require(isinstance(step, dict), f"{name} has a step that is no object")
        kind = step.get("op")
        _require(isinstance(kind, str) and kind in STEPS, f"{name} has a step {short(kind)}")
        _require(isinstance(step.get("name"), str), f"{name} has a step without a name")
        _require(_is_grid(step.get("scale", 1.0), step.get("zero_point", 0)), f"{name} has a step of no grid")
        for key, value in step.items():
            numbers = isinstance(value, list) and all(type(item) in (int, float) for item in value)
            scalar = value is None or isinstance(value, (bool, int, float, str))
            right = numbers if key in LISTS else scalar or (numbers and key == "value")
            _require(right, f"{name} has a step whose {key} is {short(value)}")


def _is_grid(scale: Any, zero_point: Any) -> bool:
    """Is it a scale in float32, and a zero point of 32 bits? (Of another type they fail in the steps.)"""
    if type(scale) not in (int, float) or type(zero_point) is not int:
        return False
    with np.errstate(over="ignore"):
        return bool(0 < np.float32(scale) < np.inf) and abs(zero_point) < 1 << 31


def _examples(port: Port) -> Any:
    """Values of an input: zero, its least and its greatest."""
    dtype, limits = np.dtype(port.dtype), []
    if dtype.kind in "fiu":
        info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        limits = [info.min, info.max]
    return np.array([0, *limits], dtype).reshape(-1, 1, 1, 1)
