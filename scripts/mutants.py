"""`Mutator`: mutants of small models, by number; see fuzz_models.py."""

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent))
import hostile_models

from onnxhw.qdq import Grid, QdqBuilder

DATA_FILE = "weights.bin"
"""The file of external data; it holds 24 zeros."""
CHECKSUM = hashlib.sha1(bytes(24)).hexdigest()
INTEGERS = (0, 1, -1, 2, 3, 4, 7, 13, 17, 28, 127, 128, 255, 1 << 16, 1 << 31, -(1 << 31), (1 << 31) - 1, 1 << 40)
WIDE = (*INTEGERS, (1 << 63) - 1, -(1 << 63), 1 << 62)
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e-38, 3e38, float("nan"), float("inf"), float("-inf"), 1e308)
TEXTS = (
    "",
    "x",
    "y",
    "w",
    "out",
    "axis",
    "Conv",
    "If",
    "Loop",
    "ai.onnx",
    "com.microsoft",
    "\0",
    "\x1b[0m",
    "a" * 2000,
    "../w",
    "/w",
    "-1",
    "9" * 25,
)
BYTES = (b"", b"\0", b"\xff", b"\xff" * 8, bytes(100), b"NOTSET", b"SAME_UPPER", b"constant")


def seeds() -> list[bytes]:
    """Small models: convolutions and a head in QDQ form, its uint8 form, control flow, functions, odd tensors."""
    grid = Grid(np.float32(0.25), 3)
    rng = np.random.default_rng(0)
    qdq = QdqBuilder("seed")
    x = qdq.input("x", (1, 2, 4, 4), grid)
    y = qdq.conv(
        "conv", x, rng.normal(size=(3, 2, 3, 3)).astype(np.float32), np.zeros(3, np.float32), grid, pads=(1,) * 4
    )
    z = qdq.conv("mix", y, rng.normal(size=(3, 3, 1, 1)).astype(np.float32), np.ones(3, np.float32), grid, relu=False)
    z = qdq.max_pool("pool", qdq.add("sum", y, z, grid, relu=True), 2)
    z = qdq.flatten("flat", qdq.global_average_pool("mean", z, grid))
    z = qdq.gemm("head", z, rng.normal(size=(2, 3)).astype(np.float32), np.zeros(2, np.float32), grid)
    qdq.output(z.name, "out", (1, 2))
    found = [qdq.model(), hostile_models.base(), _operator_form(), _function(), _external()]
    return [model.SerializeToString() for model in found]


def _operator_form() -> onnx.ModelProto:
    """QLinearConv, shape arithmetic and typed fields."""
    q = [("s", np.float32(0.5)), ("z", np.uint8(128)), ("ws", np.float32(0.25)), ("wz", np.uint8(3))]
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in q]
    constants += [
        helper.make_tensor("w", TensorProto.UINT8, [2, 1, 2, 2], list(range(8))),
        helper.make_tensor("shape", TensorProto.INT64, [2], [1, -1]),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("QLinearConv", ["xq", "s", "z", "w", "ws", "wz", "s", "z"], ["yq"], strides=[2, 2]),
        helper.make_node("Reshape", ["yq", "shape"], ["flat"]),
        helper.make_node("DequantizeLinear", ["flat", "s", "z"], ["out"]),
    ]
    return _model(nodes, [1, 1, 4, 4], [1, "N"], constants)


def _external() -> onnx.ModelProto:
    """A weight in a file beside the model."""
    model = hostile_models.base()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", DATA_FILE), ("offset", "0"), ("length", "24"), ("checksum", CHECKSUM)):
        tensor.external_data.add(key=key, value=value)
    return model


def _function() -> onnx.ModelProto:
    """A local function with an attribute, a Loop and a sparse initializer."""
    body = [helper.make_node("LeakyRelu", ["a"], ["b"])]
    body[0].attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope")
    opsets = [helper.make_opsetid("", 17)]
    function = helper.make_function("local", "Leak", ["a"], ["b"], body, opsets, attributes=["slope"])
    inner = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["again"]), helper.make_node("Add", ["v", "s"], ["v2"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [2, 3]),
        ],
        [
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v2", TensorProto.FLOAT, [2, 3]),
        ],
    )
    nodes = [
        helper.make_node("Leak", ["x"], ["y"], domain="local", slope=0.5),
        helper.make_node("Loop", ["trips", "yes", "y"], ["out"], body=inner),
    ]
    constants = [numpy_helper.from_array(np.int64(3), "trips"), numpy_helper.from_array(np.bool_(True), "yes")]
    model = _model(nodes, [2, 3], [2, 3], constants)
    values = helper.make_tensor("s", TensorProto.FLOAT, [2], [1.0, 2.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [2], [1, 4])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
    model.functions.append(function)
    model.opset_import.add(domain="local", version=1)
    return model


def _model(nodes: list[Any], x: list[Any], out: list[Any], constants: list[Any]) -> onnx.ModelProto:
    info = helper.make_tensor_value_info
    inputs, outputs = [info("x", TensorProto.FLOAT, x)], [info("out", TensorProto.FLOAT, out)]
    graph = helper.make_graph(nodes, "seed", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Mutator:
    """Makes mutant number `index` of a seed."""

    def __init__(self, seed: int) -> None:
        self.seed, self.models = seed, seeds()

    def mutant(self, index: int) -> bytes:
        """Damaged bytes in three of ten cases, else a model with one to four fields changed."""
        rng = np.random.default_rng([self.seed, index])
        data = self.models[int(rng.integers(len(self.models)))]
        if rng.random() < 0.3:
            return self._bytes(data, rng)
        model = onnx.ModelProto.FromString(data)
        for _ in range(1 + int(rng.integers(4))):
            self._field(model, rng)
        return model.SerializeToString()

    def _bytes(self, data: bytes, rng: np.random.Generator) -> bytes:
        """Flipped bits, exchanged bytes, a piece cut out, doubled or put elsewhere."""
        kind, changed = rng.integers(5), bytearray(data)
        a, b = sorted(int(place) for place in rng.integers(0, len(data) + 1, 2))
        if kind == 0:
            for place in rng.integers(0, len(data), 1 + int(rng.integers(4))):
                changed[int(place)] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            for place in rng.integers(0, len(data), 1 + int(rng.integers(4))):
                changed[int(place)] = int(rng.integers(256))
        elif kind == 2:
            del changed[a : min(b, a + int(rng.integers(1, 64)))]
        elif kind == 3:
            changed[a:a] = data[b : b + int(rng.integers(1, 64))]
        else:
            del changed[b:]
        return bytes(changed)

    def _field(self, model: onnx.ModelProto, rng: np.random.Generator) -> None:
        """Walk to a random message, and change a random field of it."""
        message: Any = model
        while True:
            set_fields = message.ListFields()
            inner = [(entry, value) for entry, value in set_fields if entry.message_type is not None]
            if not inner or rng.random() < 0.12:
                break
            entry, value = inner[int(rng.integers(len(inner)))]
            message = value[int(rng.integers(len(value)))] if entry.is_repeated else value
        entries = message.DESCRIPTOR.fields
        if set_fields and rng.random() < 0.75:
            entry = set_fields[int(rng.integers(len(set_fields)))][0]
        else:
            entry = entries[int(rng.integers(len(entries)))]
        if entry.is_repeated:
            self._repeated(message, entry, model, rng)
        elif rng.random() < 0.15:
            message.ClearField(entry.name)
        elif entry.message_type is not None:
            self._replace(getattr(message, entry.name), model, rng)
        else:
            setattr(message, entry.name, self._scalar(entry, model, rng))

    def _repeated(self, message: Any, entry: Any, model: onnx.ModelProto, rng: np.random.Generator) -> None:
        items, kind = getattr(message, entry.name), rng.integers(5)
        place = int(rng.integers(len(items))) if len(items) else 0
        if kind == 0 and len(items):
            del items[place]
        elif kind == 1 and len(items):
            copies = list(items)
            moved = copies.pop(place)
            copies.insert(int(rng.integers(len(copies) + 1)), moved)
            if entry.message_type is not None:
                copies = [type(item).FromString(item.SerializeToString()) for item in copies]
            del items[:]
            items.extend(copies)
        elif entry.message_type is not None:
            if len(items) and kind > 2:
                items.add().CopyFrom(items[place])
            else:
                self._replace(items.add(), model, rng)
        elif len(items) and kind > 2:
            items[place] = self._scalar(entry, model, rng)
        else:
            items.append(self._scalar(entry, model, rng))

    def _replace(self, message: Any, model: onnx.ModelProto, rng: np.random.Generator) -> None:
        """Another message of the same type from the model, or an empty one."""
        message.SetInParent()
        graph = model.graph
        pools: dict[str, Any] = {
            "NodeProto": graph.node,
            "TensorProto": graph.initializer,
            "ValueInfoProto": [*graph.input, *graph.output],
            "GraphProto": [graph],
            "AttributeProto": [attribute for node in graph.node for attribute in node.attribute],
            "SparseTensorProto": graph.sparse_initializer,
        }
        pool = pools.get(message.DESCRIPTOR.name, ())
        if len(pool) and rng.random() < 0.8:
            other = pool[int(rng.integers(len(pool)))].SerializeToString()
            if len(other) < 20_000:
                message.MergeFromString(other)

    def _scalar(self, entry: Any, model: onnx.ModelProto, rng: np.random.Generator) -> Any:
        """A hostile value of the field's type, or a name that the model has."""
        kind = entry.cpp_type
        if kind == entry.CPPTYPE_STRING:
            if entry.type == entry.TYPE_BYTES:
                return BYTES[int(rng.integers(len(BYTES)))]
            names = [name for node in model.graph.node for name in (*node.input, *node.output, node.op_type)]
            pool = names if names and rng.random() < 0.7 else TEXTS
            return pool[int(rng.integers(len(pool)))]
        if kind in (entry.CPPTYPE_FLOAT, entry.CPPTYPE_DOUBLE):
            return FLOATS[int(rng.integers(len(FLOATS)))]
        if kind == entry.CPPTYPE_ENUM:
            values = entry.enum_type.values
            return values[int(rng.integers(len(values)))].number
        if rng.random() < 0.4:
            return int(rng.integers(30))
        pool = INTEGERS if kind == entry.CPPTYPE_INT32 else WIDE
        value = pool[int(rng.integers(len(pool)))]
        if kind == entry.CPPTYPE_UINT64:
            return abs(value)
        return max(-(1 << 31), min(value, (1 << 31) - 1)) if kind == entry.CPPTYPE_INT32 else value
