"""Digests of what a device is loaded with, in a plain form: numbers, names, and arrays as type, shape and bytes.

Only `image` and `compiled` name things of the package; the form and the recorded file do not change when those do.
"""

import dataclasses
import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from onnxhw.compiler import compile
from onnxhw.config import HwConfig
from onnxhw.errors import OnnxhwError
from onnxhw.isa.instructions import UNITS
from onnxhw.isa.microcode import pack
from onnxhw.program import DeviceProgram

SHORT = 12
"""Hex digits of a digest in the recorded file: a part that changes has the same ones once in 10**14 times."""


def plain(value: Any) -> Iterator[bytes]:
    """The bytes of numbers, names, arrays and sequences of them, each behind its kind and length."""
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        array = array.astype(array.dtype.newbyteorder("<"))
        yield from plain((f"array {array.dtype.kind}{array.dtype.itemsize}", *array.shape))
        yield array.tobytes()
    elif isinstance(value, tuple | list):
        yield f"sequence {len(value)} ".encode()
        for element in value:
            yield from plain(element)
    else:
        text = value.hex() if isinstance(value, float) else int(value) if isinstance(value, int) else value
        kind = {int: "integer", str: "name", float: "real", type(None): "nothing"}
        found = next(word for each, word in kind.items() if isinstance(value, each))
        raw = str(text).encode()
        yield f"{found} {len(raw)} ".encode() + raw


def digest(value: Any) -> str:
    """Of such values."""
    return hashlib.sha256(b"".join(plain(value))).hexdigest()[:SHORT]


def image(program: DeviceProgram) -> str:
    """A program in one line: cycles, counts, and the digests of what goes into each memory and of what lies where."""
    word = program.config.word
    code = [program.code.get(unit, []) for unit in UNITS]
    places = []
    for name, entry in sorted(program.tensors.items()):
        place, stored = entry.place, [] if entry.storage is None else dataclasses.astuple(entry.storage)
        lies = [place.addresses(word).reshape(-1), place.lane, place.shape, entry.shape, stored]
        places.append([name, lies, entry.scale, entry.zero_point, entry.ready, entry.last])
    ports = [[[port.name, port.tensor] for port in ends] for ends in (program.inputs, program.outputs)]
    digests = {
        "code": [np.array(pack(part), np.uint32) for part in code],
        "weights": program.weights,
        "params": program.params,
        "tables": program.tables,
        "tensors": [places, ports],
    }
    counts = "/".join(str(len(part)) for part in code)
    free = "/".join(map(str, program.input_free))
    words = " ".join(f"{name} {digest(value)}" for name, value in digests.items())
    return f"{program.cycles} cycles, {counts} instructions, inputs free {free}, {words}"


def compiled(model: bytes, config: HwConfig) -> list[str]:
    """The parts of a model in order: `image` of the hardware's, "host" for others; or the code of what refuses it."""
    try:
        program = compile(model, config)
    except OnnxhwError as error:
        return [f"refused: {error.code}"]
    return [image(part) if isinstance(part, DeviceProgram) else "host" for part in program.parts]


def cycles(lines: list[str]) -> list[str]:
    """The cycles of each part that has some, or why there is none."""
    return [line.split(" cycles")[0] for line in lines if line != "host"]
