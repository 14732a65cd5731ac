"""Hostile and damaged model files, one or more for every code of reading: ``python scripts/hostile_models.py FOLDER``.

Each case is a function that changes a small valid model, or makes a file, and the code that reading it must give.
The tests read every case; the fuzzer takes the models as seeds.
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).resolve().parent))
import hostile_external  # noqa: F401 - adds its cases
from hostile_base import CASES, Build, Model, add, data_of, model_of, subgraph_tensor, weight_of

# -- container ---------------------------------------------------------------------------------------------


def nested(depth: int) -> bytes:
    """A graph in a graph in a graph: messages by hand, since the library would refuse to write some."""

    def message(number: int, content: bytes) -> bytes:
        size, length = len(content), b""
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + content

    graph = message(2, b"inner")
    for _ in range(depth):
        attribute = message(1, b"body") + message(6, graph)
        graph = message(2, b"outer") + message(1, message(4, b"If") + message(5, attribute))
    return b"\x08\x08" + message(7, graph)


def pipe(folder: Path) -> Path:
    """A named pipe, which would block."""
    os.mkfifo(folder / "pipe.onnx")
    return folder / "pipe.onnx"


def large(folder: Path) -> Path:
    """A file of 2 GiB, none of it on disk."""
    with (folder / "large.onnx").open("wb") as file:
        file.truncate(1 << 31)
    return folder / "large.onnx"


add("E3001", "missing", lambda folder: folder / "none.onnx")
add("E3002", "directory", lambda folder: folder)
add("E3003", "pipe", pipe)
add("E3003", "device", lambda folder: Path("/dev/zero"))
add("E3004", "2-gib", large)
add("E3005", "empty", data_of(lambda data: b""))
add("E3006", "text", data_of(lambda data: b"This is a text file and no model at all."))
add("E3006", "image", data_of(lambda data: b"\x89PNG\r\n\x1a\n" + bytes(100)))
add("E3006", "truncated", data_of(lambda data: data[: len(data) // 2]))
add("E3006", "field-0", data_of(lambda data: data + b"\0\0"))
add("E3006", "endless-varint", data_of(lambda data: data + b"\x08" + b"\xff" * 20))
add("E3007", "no-graph", model_of(lambda model: model.ClearField("graph")))
add("E3007", "empty-graph", model_of(lambda model: (model.ClearField("graph"), model.graph.SetInParent())))
add("E3100", "two-models", data_of(lambda data: data + data))
add("E3101", "too-deep-to-parse", lambda folder: nested(40))
add("E3102", "appended-field", data_of(lambda data: data + b"\xfa\x3f\x03abc"))
for place in ("node", "op_type", "graph", "input"):

    def name_not_utf8(data: bytes, place: str = place) -> bytes:
        old = {"node": b"choice", "op_type": b"Sum", "graph": b"hostile", "input": b"out"}[place]
        return data.replace(old, b"\xff" * len(old))

    add("E3103", f"not-utf8-{place}", data_of(name_not_utf8))
for control, character in (("nul", "\0"), ("newline", "\n"), ("escape", "\x1b[2J"), ("c1", "\x9b")):

    def control_name(model: Model, character: str = character) -> None:
        model.graph.node[0].name = f"a{character}b"

    add("E3104", f"control-{control}", model_of(control_name))
add("E3104", "control-tensor", weight_of(lambda w: setattr(w, "name", "w\t")))
add("E3104", "control-attribute", model_of(lambda m: setattr(m.graph.node[1].attribute[0], "name", "value\r")))
add("E3104", "control-dim", model_of(lambda m: setattr(dim_of(m), "dim_param", "N\n")))
add("E3104", "control-opset", model_of(lambda m: m.opset_import.add(domain="a\0b", version=1)))
add("E3105", "long-name", weight_of(lambda w: setattr(w, "name", "w" * 1025)))
add("E3105", "long-name-in-bytes", weight_of(lambda w: setattr(w, "name", "\u20ac" * 400)))
add("E3106", "nodes", model_of(lambda m: None), "nodes=5")
add("E3107", "subgraphs", model_of(lambda m: None), "subgraph_depth=0")
add("E3107", "subgraphs-by-default", lambda folder: nested(20))
add("E3108", "fields", data_of(lambda data: data + b"\x72\x00" * 1000), "fields=500")
add("E3110", "file", model_of(lambda m: None), "file_bytes=100")
add("E3111", "values", model_of(lambda m: None), "values=10")
add("E3114", "functions", model_of(lambda m: [m.functions.add(name=str(i)) for i in range(3)]), "functions=2")


def dim_of(model: Model) -> Any:
    """A dimension of the first input."""
    return model.graph.input[0].type.tensor_type.shape.dim[0]


# -- tensors -----------------------------------------------------------------------------------------------


def typed(kind: int, dims: list[int], **fields: Any) -> Callable[[TensorProto], None]:
    """Replace the weight by one with these fields."""

    def change(tensor: TensorProto) -> None:
        tensor.CopyFrom(TensorProto(name="w", data_type=kind, dims=dims, **fields))

    return change


T = TensorProto
add("E3112", "elements", weight_of(typed(T.FLOAT, [1 << 20, 1 << 20])))
add("E3113", "rank", weight_of(typed(T.FLOAT, [1] * 40, float_data=[0.0])))
add("E3115", "total", model_of(lambda m: None), "total_bytes=30")
add("E3150", "undefined", weight_of(typed(0, [2], float_data=[0, 0])))
add("E3150", "unknown-type", weight_of(typed(77, [2], float_data=[0, 0])))
add("E3151", "negative", weight_of(typed(T.FLOAT, [-2, 3], raw_data=bytes(24))))
add("E3151", "two-negative", weight_of(typed(T.FLOAT, [-2, -3], raw_data=bytes(24))))
add("E3152", "overflow", weight_of(typed(T.FLOAT, [1 << 32, 1 << 32], raw_data=b"")))
add("E3152", "overflow-but-empty", weight_of(typed(T.FLOAT, [1 << 62, 1 << 62, 0], raw_data=b"")))
add("E3152", "overflow-but-empty-in-bytes", weight_of(typed(T.FLOAT, [0, 1 << 62], raw_data=b"")))
for name, kind, count in (("float", T.FLOAT, 24), ("int4", T.INT4, 3), ("uint2", T.UINT2, 2), ("bool", T.BOOL, 6)):
    add("E3153", f"raw-short-{name}", weight_of(typed(kind, [2, 3], raw_data=bytes(count - 1))))
    add("E3154", f"raw-long-{name}", weight_of(typed(kind, [2, 3], raw_data=bytes(count + 1))))
add("E3153", "none", weight_of(typed(T.FLOAT, [2, 3])))
add("E3153", "floats", weight_of(typed(T.FLOAT, [2], float_data=[1])))
add("E3154", "floats", weight_of(typed(T.FLOAT, [2], float_data=[1, 2, 3])))
add("E3153", "complex", weight_of(typed(T.COMPLEX64, [2], float_data=[1, 2, 3])))
add("E3153", "strings", weight_of(typed(T.STRING, [2], string_data=[b"a"])))
add("E3154", "packed-entries", weight_of(typed(T.INT4, [3], int32_data=[1, 2, 3])))
add("E3155", "raw-and-float", weight_of(lambda w: w.float_data.extend([1.0] * 6)))
add("E3155", "two-fields", weight_of(typed(T.FLOAT, [1], float_data=[1], int64_data=[1])))
add("E3156", "int64-in-float", weight_of(typed(T.FLOAT, [1], int64_data=[1])))
add("E3156", "uint32-in-int32", weight_of(typed(T.UINT32, [1], int32_data=[1])))
add("E3156", "raw-string", weight_of(typed(T.STRING, [1], raw_data=b"abc")))
for name, kind, value in (
    ("int8", T.INT8, 128),
    ("uint8", T.UINT8, -1),
    ("int16", T.INT16, 40000),
    ("uint16", T.UINT16, 65536),
    ("bool", T.BOOL, 2),
    ("float16", T.FLOAT16, 65536),
    ("bfloat16", T.BFLOAT16, -1),
    ("float8", T.FLOAT8E4M3FN, 256),
    ("int4", T.INT4, 256),
):
    add("E3157", name, weight_of(typed(kind, [1], int32_data=[value])))
add("E3157", "uint32", weight_of(typed(T.UINT32, [1], uint64_data=[1 << 32])))
add("E3157", "raw-bool", weight_of(typed(T.BOOL, [2], raw_data=b"\1\2")))
add("E3158", "segment", weight_of(lambda w: setattr(w.segment, "end", 3)))
add("E3159", "string", weight_of(typed(T.STRING, [1], string_data=[b"\xff\xfe"])))
add("E3153", "in-attribute", model_of(lambda m: setattr(m.graph.node[1].attribute[0].t, "raw_data", b"")))


def function_with(tensor: TensorProto) -> Callable[[Model], None]:
    """A local function whose body holds the tensor."""
    node = helper.make_node("Constant", [], ["y"])
    node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t.CopyFrom(tensor)
    function = helper.make_function("local", "F", [], ["y"], [node], [helper.make_opsetid("", 17)])
    return lambda model: model.functions.append(function)


SHORT = TensorProto(name="short", data_type=T.FLOAT, dims=[4], raw_data=bytes(3))
add("E3153", "in-subgraph", model_of(lambda m: setattr(subgraph_tensor(m), "raw_data", b"")))
add("E3153", "in-function", model_of(function_with(SHORT)))
add(
    "E3153",
    "hidden-payload",
    model_of(lambda m: m.graph.node[0].attribute.add(name="i", type=2, i=1).t.CopyFrom(SHORT)),
)
add("E3153", "in-list", model_of(lambda m: m.graph.node[0].attribute.add(name="ts", type=9).tensors.append(SHORT)))


def sparse(
    indices: list[int],
    shape: list[int] | None = None,
    *,
    dims: list[int] | None = None,
    values: list[float] | None = None,
    value_dims: list[int] | None = None,
    kind: int = T.INT64,
) -> Build:
    """The valid model with a sparse initializer."""

    def change(model: Model) -> None:
        numbers = values if values is not None else [1.0] * 3
        one = model.graph.sparse_initializer.add(dims=[2, 3] if dims is None else dims)
        one.values.CopyFrom(helper.make_tensor("s", T.FLOAT, value_dims or [len(numbers)], numbers))
        one.indices.CopyFrom(helper.make_tensor("i", kind, shape or [len(indices)], indices))

    return model_of(change)


add("E3160", "values-2d", sparse([0, 1, 2], value_dims=[1, 3]))
add("E3161", "indices-int32", sparse([0, 1, 2], kind=T.INT32))
add("E3162", "count", sparse([0, 1]))
add("E3162", "rank", sparse([0, 0, 0, 1, 1, 1, 1, 1, 1], [3, 3]))
add("E3163", "beyond", sparse([0, 1, 6]))
add("E3163", "negative", sparse([-1, 1, 2]))
add("E3163", "axis", sparse([0, 0, 0, 3, 1, 0], [3, 2]))
add("E3164", "order", sparse([0, 2, 1]))
add("E3164", "order-by-axis", sparse([0, 1, 1, 0, 0, 2], [3, 2]))
add("E3165", "twice", sparse([0, 1, 1]))
add("E3112", "dense-bomb", sparse([0, 1, 2], dims=[1 << 40]))
add("E3151", "sparse-negative", sparse([0, 1, 2], dims=[-6]))


def main(folder: Path) -> int:
    """Write every case to a folder of its own, with an index of codes."""
    rows = []
    for case in CASES:
        place = folder / f"{case.code}-{case.name}"
        place.mkdir(parents=True)
        made = case.build(place)
        if isinstance(made, bytes):
            (place / "model.onnx").write_bytes(made)
            made = place / "model.onnx"
        rows.append(f"{case.code}\t{made}\t{' '.join(f'--limit {flag}' for flag in case.flags)}")
    (folder / "index.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    print(f"{len(rows)} files for {len({case.code for case in CASES})} codes in {folder}")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    sys.exit(main(parser.parse_args().folder))
