"""The graph as text, and back: one line per port, tensor and operation.

    graph "digits"
    input "x" float32 [1, 64] "x_q" [{"op": "QuantizeLinear", ...}]
    tensor "x_q" [1, 64, 1, 1] scale 0.125 zero_point -3
    Conv "fc" ["x_q"] -> "y_q" {"weight": {"int8": [10, 64, 1, 1], "digest": "0f3c..."}, "lo": -128, ...}
    output "y" float32 [1, 10] "y_q" [{"op": "DequantizeLinear", ...}]

Names and attributes are JSON. Constants are shown by a digest, for people; with ``constants=True`` they are
written out and `parse` reads the graph back.
"""

import base64
import dataclasses
import hashlib
import json
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from .graph import Graph, Op, Piece, Port, Tensor
from .operation import Operation

KINDS: dict[str, type[Op]] = {kind.__name__: kind for kind in get_args(Op)}
_COMMON = {field.name for field in dataclasses.fields(Operation)} - {"nodes"}


def text(graph: Graph, constants: bool = False) -> str:
    """The text of a graph; equal graphs give equal text."""
    lines = [f"graph {json.dumps(graph.name)}"]
    lines += [_port("input", port) for port in graph.inputs]
    lines += [
        f"tensor {json.dumps(tensor.name)} {list(tensor.shape)} scale {tensor.scale!r} zero_point {tensor.zero_point}"
        for tensor in graph.tensors.values()
    ]
    lines += [_op(op, constants) for op in graph.ops]
    lines += [_port("output", port) for port in graph.outputs]
    return "\n".join(lines) + "\n"


def parse(source: str) -> Graph:
    """Inverse of ``text(graph, constants=True)``; `UsageError` E2210 names the line that is not a graph's."""
    graph = Graph("", {}, [], [], [])
    for number, line in enumerate(source.splitlines(), 1):
        try:
            _parse_line(graph, line)
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise UsageError("E2210", f"not a line of a graph: {error}", where=f"line {number}") from error
    return graph


def _port(kind: str, port: Port) -> str:
    shape, steps = list(port.shape), json.dumps(list(port.steps))
    return f"{kind} {json.dumps(port.name)} {port.dtype} {shape} {json.dumps(port.tensor)} {steps}"


def _op(op: Op, constants: bool) -> str:
    fields = {field.name: getattr(op, field.name) for field in dataclasses.fields(op) if field.name not in _COMMON}
    record = {name: _record(value, constants) for name, value in fields.items()}
    head = f"{type(op).__name__} {json.dumps(op.name)} {json.dumps(list(op.inputs))} -> {json.dumps(op.output)}"
    return f"{head} {json.dumps(record)}"


def _record(value: Any, constants: bool) -> Any:
    """A field as JSON has it; pieces are lists of their numbers."""
    if isinstance(value, np.ndarray):
        return _array(value, constants)
    if isinstance(value, tuple) and value and isinstance(value[0], Piece):
        return [dataclasses.astuple(piece) for piece in value]
    return value


def _array(values: npt.NDArray[Any], constants: bool) -> dict[str, Any]:
    data = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
    shape = {str(values.dtype): list(values.shape)}
    if constants:
        return {**shape, "base64": base64.b64encode(data).decode()}
    return {**shape, "digest": hashlib.blake2b(data, digest_size=8).hexdigest()}


def _parse_line(graph: Graph, line: str) -> None:
    kind, _, rest = line.partition(" ")
    if kind == "graph":
        graph.name = json.loads(rest)
    elif kind in ("input", "output"):
        name, rest = _json(rest)
        dtype, _, rest = rest.partition(" ")
        shape, rest = _json(rest)
        tensor, rest = _json(rest)
        steps, _ = _json(rest)
        port = Port(name, tuple(shape), dtype, tensor, tuple(steps))
        (graph.inputs if kind == "input" else graph.outputs).append(port)
    elif kind == "tensor":
        name, rest = _json(rest)
        shape, rest = _json(rest)
        words = rest.split()
        if words[0::2] != ["scale", "zero_point"]:
            raise ValueError("a tensor has a scale and a zero_point")
        graph.tensors[name] = Tensor(name, tuple(shape), float(words[1]), int(words[3]))
    else:
        name, rest = _json(rest)
        inputs, rest = _json(rest)
        output, rest = _json(rest.removeprefix("-> "))
        record, _ = _json(rest)
        fields = {key: _value(value) for key, value in record.items()}
        graph.ops.append(KINDS[kind](name=name, inputs=tuple(inputs), output=output, **fields))


def _json(source: str) -> tuple[Any, str]:
    """The JSON value at the start, and what follows it."""
    value, end = json.JSONDecoder().raw_decode(source)
    return value, source[end:].lstrip(" ")


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(Piece(*item) if isinstance(item, list) else item for item in value)
    if isinstance(value, dict):
        (dtype, shape), (form, data) = value.items()
        if form != "base64":
            raise ValueError("constants are shown by a digest only")
        kind = np.dtype(dtype)
        return np.frombuffer(base64.b64decode(data), kind.newbyteorder("<")).astype(kind).reshape(shape)
    return value
