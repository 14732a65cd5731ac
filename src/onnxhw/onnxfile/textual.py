"""`binary`: a model file that is protobuf's text format or JSON, as the bytes that all other checks are made of."""

from pathlib import Path
from typing import Any

import onnx
from google.protobuf import json_format, text_format
from google.protobuf.message import EncodeError

from ..errors import InvalidModelError
from .limits import Limits

TEXT, JSON = "protobuf's text format", "JSON"
FORMATS = {
    **dict.fromkeys([".textproto", ".prototxt", ".pbtxt", ".txtpb"], TEXT),
    **dict.fromkeys([".json", ".onnxjson"], JSON),
}
"""By the end of the file's name, as `onnx.load` decides."""
REFUSED = (".onnxtxt", ".onnxtext")
"""ONNX's own text form: onnx's parser of it follows nested text without a limit."""


def binary(data: bytes, path: Path, limits: Limits) -> bytes:
    """The file's content as binary protobuf; `data` itself if its name does not say that it is text.

    E3035 beyond the limit text_bytes, E3033 for what is not a model in that format, E3034 for ONNX's own text form.
    Both parsers end nesting that is too deep themselves, and what they make is checked like any other file.
    """
    suffix, where = path.suffix.lower(), str(path)
    if suffix in REFUSED:
        convert = f"onnx.save(onnx.load({path.name!r}), {path.with_suffix('.onnx').name!r})"
        hint = f'python -c "import onnx; {convert}"'
        raise InvalidModelError("E3034", "is ONNX's own text form, which is not read", where=where, hint=hint)
    form = FORMATS.get(suffix)
    if form is None or not data:
        return data
    limits.check("E3035", "text_bytes", len(data), f"bytes of {form}:", where)
    parse: Any = text_format.Parse if form == TEXT else json_format.Parse
    try:
        made: bytes = parse(data.decode(), onnx.ModelProto()).SerializeToString()
    except (text_format.ParseError, json_format.ParseError, EncodeError, ValueError, RecursionError) as error:
        text = " ".join(str(error).split())[:200]
        raise InvalidModelError("E3033", f"is not a model in {form}: {text}", where=where) from error
    return made
