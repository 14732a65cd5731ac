"""The wire walker agrees with the protobuf library on what is a message, and counts what is in it."""

import subprocess
import sys

import onnx
import pytest
from google.protobuf.message import DecodeError
from hostile_base import base
from hostile_models import nested
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxhw.errors import InvalidModelError
from onnxhw.onnxfile import container
from onnxhw.onnxfile.container import MODEL
from onnxhw.onnxmodel.read import read
from onnxhw.protobuf_wire import TooManyFieldsError, WireError, walk

DATA = base().SerializeToString()


def test_outline() -> None:
    outline = walk(DATA, MODEL, 10_000, deep=True)
    assert outline.top == [1, 7, 8, 14]
    # model, graph, node, attribute, graph, output, type, tensor type, shape, dimension
    assert outline.depth == 10
    assert walk(DATA, MODEL, 10_000, deep=False).fields == 4


@pytest.mark.parametrize("depth", [0, 1, 5, 30])
def test_depth_of_nested_graphs(depth: int) -> None:
    assert walk(nested(depth), MODEL, 10_000, deep=True).depth == 2 + 3 * depth


@pytest.mark.parametrize("most", [1, 3, 50])
def test_the_count_stops(most: int) -> None:
    with pytest.raises(TooManyFieldsError):
        walk(DATA, MODEL, most, deep=most > 4)


@settings(max_examples=500)
@given(st.integers(0, len(DATA) - 1), st.integers(0, 255))
def test_what_the_walker_refuses_the_library_refuses(place: int, byte: int) -> None:
    """But for groups, which no ONNX file has."""
    data = DATA[:place] + bytes([byte]) + DATA[place + 1 :]
    try:
        walk(data, MODEL, 10_000, deep=True)
    except WireError as error:
        if "wire type" not in str(error):
            with pytest.raises(DecodeError):
                onnx.ModelProto.FromString(data)


@pytest.mark.parametrize("size", range(1, len(DATA), 7))
def test_what_is_cut_is_refused_by_the_walker_as_by_the_library(size: int) -> None:
    refused = False
    try:
        onnx.ModelProto.FromString(DATA[:size])
    except DecodeError:
        refused = True
    if refused:
        with pytest.raises(WireError):
            walk(DATA[:size], MODEL, 10_000, deep=True)
    else:
        walk(DATA[:size], MODEL, 10_000, deep=True)


def test_large_files_are_counted_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph of a million empty nodes takes 2 MB in a file, and a hundred times that in the library."""
    graph = b"\x0a\x00" * 1_000_000
    size = len(graph)
    data = b"\x3a" + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) + graph
    monkeypatch.setattr(container, "SMALL", 1 << 20)
    monkeypatch.setattr(onnx, "ModelProto", None)  # never reached
    with pytest.raises(InvalidModelError, match="E3108"):
        read(data, container.Limits(fields=100_000))


@pytest.mark.parametrize("field", ["attribute", "node"])
def test_small_files_take_less_than_512_mib(field: str) -> None:
    """The library's appetite for empty messages, at the size up to which they are not counted before."""
    numbers = {"attribute": (b"\x0a", b"\x2a\0"), "node": (b"", b"\x0a\0")}
    outer, item = numbers[field]
    script = MEASURE.format(outer=outer, item=item, size=container.SMALL)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 10 << 20 < int(done.stdout) < 512 << 20


MEASURE = """
import onnx
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
def message(tag, content):
    size, length = len(content), b""
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return tag + length + bytes([size]) + content
items = {item!r} * ({size} // 2 - 16)
data = message(b"\\x3a", message({outer!r}, items) if {outer!r} else items)
assert len(data) <= {size}
before = resident()
model = onnx.ModelProto.FromString(data)
print(resident() - before)
"""
"""Prints the bytes that a model of empty messages takes."""
