"""`read_model`: from a file or bytes to a checked `onnx.ModelProto`."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
from google.protobuf.message import DecodeError
from onnx import checker, external_data_helper

from ..errors import InvalidModelError, UnsupportedError

if TYPE_CHECKING:
    Source = str | os.PathLike[str] | bytes

MAX_BYTES = (1 << 31) - 1
"""Largest model file: protobuf's own limit."""
OLDEST_OPSET = 7
"""Older operator sets have other meanings for the same names."""
ELSEWHERE = "onnxhw.unknown"
"""A domain of which the checker knows nothing."""


def read_model(source: "Source") -> onnx.ModelProto:
    """The checked model, external data loaded.

    Raises `InvalidModelError`: E3001 cannot be read, E3002 a directory, E3003 not a regular file, E3004 larger
    than 2 GiB, E3005 empty, E3006 not ONNX or truncated, E3007 no graph, E3008 external data, E3009 checker;
    `UnsupportedError` E4004 for an operator set that this release does not know. Operators that ONNX does not know
    are no fault here: `convert` lists them among all that it cannot map.
    """
    if isinstance(source, bytes):
        where, data, folder = "model", source, None
    else:
        path = Path(source)
        where, data, folder = str(path), _read(path), str(path.parent)
    model = _parse(data, where)
    _external(model, folder, where)
    _opset(model, where)
    try:
        checker.check_model(_without_unknown(model))
    except (checker.ValidationError, ValueError, RuntimeError) as error:
        raise InvalidModelError(
            "E3009", f"onnx.checker: {_first_lines(error)}", where=where, hint="export the model again"
        ) from error
    return model


def _read(path: Path) -> bytes:
    where = str(path)
    try:
        if path.is_dir():
            raise InvalidModelError(
                "E3002", "is a directory, not a model file", where=where, hint="give the .onnx file inside it"
            )
        if path.exists() and not path.is_file():
            raise InvalidModelError("E3003", "is not a regular file", where=where)
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise InvalidModelError(
                "E3004", f"is larger than 2 GiB ({size} bytes)", where=where, hint="save the weights as external data"
            )
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidModelError("E3001", f"cannot be read: {reason}", where=where) from error


def _parse(data: bytes, where: str) -> onnx.ModelProto:
    if not data:
        raise InvalidModelError("E3005", "is empty", where=where)
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except (DecodeError, ValueError) as error:
        raise InvalidModelError(
            "E3006",
            "is not an ONNX model, or is truncated",
            where=where,
            hint="check that the file was copied or downloaded completely",
        ) from error
    if not model.HasField("graph") or not model.graph.node or not model.graph.output:
        raise InvalidModelError("E3007", "is not an ONNX model: it has no graph with nodes and outputs", where=where)
    return model


def _external(model: onnx.ModelProto, folder: str | None, where: str) -> None:
    tensors = [tensor for tensor in model.graph.initializer if external_data_helper.uses_external_data(tensor)]
    if not tensors:
        return
    if folder is None:
        raise InvalidModelError(
            "E3008",
            f"tensor {tensors[0].name!r} is in an external file, but the model is given as bytes",
            where=where,
            hint="give the path of the model",
        )
    try:
        external_data_helper.load_external_data_for_model(model, folder)
    except (checker.ValidationError, OSError, ValueError, RuntimeError) as error:
        raise InvalidModelError(
            "E3008",
            f"external data cannot be loaded: {_first_lines(error)}",
            where=where,
            hint="keep the data files beside the model",
        ) from error


def _opset(model: onnx.ModelProto, where: str) -> None:
    newest = onnx.defs.onnx_opset_version()
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx") and not OLDEST_OPSET <= entry.version <= newest:
            raise UnsupportedError(
                "E4004",
                f"operator set {entry.version} is not between {OLDEST_OPSET} and {newest}",
                where=where,
                hint="convert it with onnx.version_converter",
            )


def unknown_operators(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The nodes, those of subgraphs too, in ONNX's domains whose operator neither ONNX nor the model itself defines."""
    own = {(function.domain, function.name) for function in model.functions}
    domains = {schema.domain for schema in onnx.defs.get_all_schemas()}
    return [
        node
        for node in _nodes(model.graph)
        if isinstance(node.op_type, str)  # bytes where it is not UTF-8
        and _domain(node) in domains
        and (node.domain, node.op_type) not in own
        and not onnx.defs.has(node.op_type, _domain(node))
    ]


def _without_unknown(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model for the checker, which refuses unknown operators of ONNX's own domains: moved to another one."""
    if not unknown_operators(model):
        return model  # as it is: a large one is not copied
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.opset_import.append(onnx.helper.make_opsetid(ELSEWHERE, 1))
    for node in unknown_operators(copy):
        node.domain = ELSEWHERE
    return copy


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)


def _domain(node: onnx.NodeProto) -> str:
    return "" if node.domain == "ai.onnx" else node.domain


def _first_lines(error: Exception) -> str:
    """The message of a library's exception, in one line of bearable length."""
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else text[:297] + "..."
