"""`Mutator`: mutants of small models, by number; see fuzz_models.py."""

import hashlib
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent))
import hostile_base

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
    """Models of a few nodes each, so that a change meets most of them and a mutant is read quickly: QDQ forms of a
    convolution, a sum and a head, the operator forms, QONNX, movements, control flow, functions, sparse and external
    tensors."""
    quantized = [_convolution(), _sum(), _head(), _operator_form()]
    found = [*quantized, _qonnx(), _movements(), _contrib(), _function(), _loop(), hostile_base.base(), _external()]
    return [model.SerializeToString() for model in found]


GRID = Grid(np.float32(0.25), 3)


def _convolution() -> onnx.ModelProto:
    """A padded 3x3 convolution with bias and Relu, quantized."""
    qdq, weight = QdqBuilder("conv"), np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 2, 2)
    x = qdq.input("x", (1, 3, 3, 3), GRID)
    y = qdq.conv("conv", x, weight, np.zeros(2, np.float32), GRID, pads=(1, 1, 0, 0))
    qdq.output(y.name, "out", y.shape)
    return qdq.model()


def _sum() -> onnx.ModelProto:
    """A maximum pool of a sum, quantized."""
    qdq = QdqBuilder("sum")
    x = qdq.input("x", (1, 2, 4, 4), GRID)
    y = qdq.max_pool("pool", qdq.add("sum", x, x, GRID, relu=True), 2)
    qdq.output(y.name, "out", y.shape)
    return qdq.model()


def _head() -> onnx.ModelProto:
    """A matrix behind an average, quantized."""
    qdq, weight = QdqBuilder("head"), np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    x = qdq.input("x", (1, 3, 2, 2), GRID)
    y = qdq.flatten("flat", qdq.global_average_pool("mean", x, GRID))
    y = qdq.gemm("head", y, weight, np.zeros(2, np.float32), GRID)
    qdq.output(y.name, "out", (1, 2))
    return qdq.model()


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


def _typed(**values: Any) -> list[onnx.TensorProto]:
    """Constants in typed fields, where a changed element is another number."""
    arrays = {name: np.asarray(value) for name, value in values.items()}
    return [
        helper.make_tensor(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, array.ravel().tolist())
        for name, array in arrays.items()
    ]


def _qonnx() -> onnx.ModelProto:
    """Every operator of QONNX, on weights, on the input, behind a convolution and as tables."""
    f, node, domain = np.float32, helper.make_node, "qonnx.custom_op.general"
    constants = _typed(
        s=f(0.25), z=f(0), bits=f(8), four=f(4), half=f(0.5), w=np.linspace(-1, 1, 6, dtype=f).reshape(2, 3, 1, 1),
        ws=np.full((2, 1, 1, 1), 0.125, f), rows=np.array([[-1, 0, 1]], f),
    )  # fmt: skip
    nodes = [
        node("Quant", ["x", "s", "z", "bits"], ["a"], domain=domain, signed=1, narrow=0, rounding_mode="ROUND"),
        node("Quant", ["w", "ws", "z", "four"], ["v"], domain=domain, signed=1, narrow=1, rounding_mode="ROUND"),
        node("Conv", ["a", "v"], ["b"]),
        node("IntQuant", ["b", "s", "z", "bits"], ["c"], domain=domain, signed=0, narrow=0, rounding_mode="ROUND"),
        node("Trunc", ["c", "s", "z", "bits", "half", "four"], ["d"], domain=domain, rounding_mode="FLOOR", signed=0),
        node("MultiThreshold", ["d", "rows"], ["e"], domain=domain, out_dtype="UINT2", out_scale=0.5, out_bias=-1.0),
        node("BipolarQuant", ["e", "s"], ["out"], domain=domain),
    ]
    model = _model(nodes, [1, 3, 2, 2], [1, 2, 2, 2], constants)
    model.opset_import.add(domain=domain, version=2)
    return model


def _movements() -> onnx.ModelProto:
    """Operators that move, with the numbers that say where to, between quantizers."""
    f, node = np.float32, helper.make_node
    constants = _typed(
        s=f(0.25), z=np.int8(3), starts=[1, 0], ends=[4, 3], axes=[2, 3], steps=[1, 1], pads=[0, 0, 1, 0, 0, 0, 0, 1],
        zero=f(0), scales=np.array([1, 1, 2, 2], f), parts=[1, 3], order=[2, 0, 1], shape=[1, 4, -1], one=[1],
    )  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["a"]),
        node("Slice", ["a", "starts", "ends", "axes", "steps"], ["b"]),
        node("Pad", ["b", "pads", "zero"], ["c"], mode="constant"),
        node("Resize", ["c", "", "scales"], ["d"], mode="nearest", nearest_mode="floor",
             coordinate_transformation_mode="asymmetric"),
        node("SpaceToDepth", ["d"], ["d1"], blocksize=2),
        node("DepthToSpace", ["d1"], ["d2"], blocksize=2),
        node("Split", ["d2", "parts"], ["e", "f"], axis=1),
        node("Gather", ["f", "order"], ["g"], axis=1),
        node("Concat", ["g", "e"], ["h"], axis=1),
        node("AveragePool", ["h"], ["p"], kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 0, 0], ceil_mode=0),
        node("QuantizeLinear", ["p", "s", "z"], ["pq"]),
        node("DequantizeLinear", ["pq", "s", "z"], ["pd"]),
        node("Reshape", ["pd", "shape"], ["r"], allowzero=0),
        node("Unsqueeze", ["r", "one"], ["u"]),
        node("Transpose", ["u"], ["t"], perm=[0, 2, 1, 3]),
        node("LeakyRelu", ["t"], ["l"], alpha=0.1),
        node("QuantizeLinear", ["l", "s", "z"], ["lq"]),
        node("DequantizeLinear", ["lq", "s", "z"], ["ld"]),
        node("ReduceMean", ["ld"], ["out"], axes=[3], keepdims=1),
    ]  # fmt: skip
    return _model(nodes, [1, 4, 4, 4], [1, 4, 1, 1], constants)


def _contrib() -> onnx.ModelProto:
    """Operators on integers of onnxruntime's domain."""
    f, node, domain = np.float32, helper.make_node, "com.microsoft"
    constants = _typed(
        s=f(0.25), z=np.uint8(128), t=f(0.5), w=np.arange(16, dtype=np.int8).reshape(2, 8), ws=f(0.1), wz=np.int8(0),
        bias=np.arange(2, dtype=np.int32),
    )  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("QLinearAdd", ["q", "s", "z", "q", "s", "z", "t", "z"], ["a"], domain=domain),
        node("QLinearMul", ["a", "t", "z", "q", "s", "z", "t", "z"], ["m"], domain=domain),
        node("QLinearLeakyRelu", ["m", "t", "z", "t", "z"], ["l"], domain=domain, alpha=0.25),
        node("QLinearConcat", ["t", "z", "a", "t", "z", "l", "t", "z"], ["c"], domain=domain, axis=1),
        node("QLinearAveragePool", ["c", "t", "z", "t", "z"], ["v"], domain=domain, kernel_shape=[2, 2]),
        node("QLinearGlobalAveragePool", ["v", "t", "z", "s", "z"], ["g"], domain=domain, channels_last=0),
        node("Flatten", ["g"], ["h"], axis=1),
        node("QGemm", ["h", "s", "z", "w", "ws", "wz", "bias", "t", "z"], ["y"], domain=domain, transB=1, alpha=1.0),
        node("QLinearSoftmax", ["y", "t", "z", "s", "z"], ["p"], domain=domain, axis=1, opset=13),
        node("DequantizeLinear", ["p", "s", "z"], ["out"]),
    ]
    model = _model(nodes, [1, 4, 3, 3], [1, 2], constants)
    model.opset_import.add(domain=domain, version=1)
    return model


def _external() -> onnx.ModelProto:
    """A weight in a file beside the model."""
    model = hostile_base.base()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", DATA_FILE), ("offset", "0"), ("length", "24"), ("checksum", CHECKSUM)):
        tensor.external_data.add(key=key, value=value)
    return model


def _function() -> onnx.ModelProto:
    """A local function with an attribute, called twice."""
    body = [helper.make_node("LeakyRelu", ["a"], ["b"])]
    body[0].attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope")
    opsets = [helper.make_opsetid("", 17)]
    function = helper.make_function("local", "Leak", ["a"], ["b"], body, opsets, attributes=["slope"])
    nodes = [
        helper.make_node("Leak", ["x"], ["y"], domain="local", slope=0.5),
        helper.make_node("Leak", ["y"], ["out"], domain="local", slope=2.0),
    ]
    model = _model(nodes, [2, 3], [2, 3], [])
    model.functions.append(function)
    model.opset_import.add(domain="local", version=1)
    return model


def _loop() -> onnx.ModelProto:
    """A Loop over a sparse initializer."""
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
    constants = [numpy_helper.from_array(np.int64(2), "trips"), numpy_helper.from_array(np.bool_(True), "yes")]
    model = _model([helper.make_node("Loop", ["trips", "yes", "x"], ["out"], body=inner)], [2, 3], [2, 3], constants)
    values = helper.make_tensor("s", TensorProto.FLOAT, [2], [1.0, 2.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [2], [1, 4])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
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
        """Damaged bytes in half of the cases, else a model with one to four fields changed."""
        rng = Random(self.seed << 64 | index)
        data = rng.choice(self.models)
        if rng.random() < 0.5:
            return self._bytes(data, rng)
        model = onnx.ModelProto.FromString(data)
        for _ in range(1 + rng.randrange(4)):
            self._field(model, rng)
        return model.SerializeToString()

    def _bytes(self, data: bytes, rng: Random) -> bytes:
        """Flipped bits, exchanged bytes, a piece cut out, doubled or put elsewhere."""
        kind, changed = rng.randrange(5), bytearray(data)
        a, b = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
        if kind < 2:
            for _ in range(1 + rng.randrange(4)):
                place = rng.randrange(len(data))
                changed[place] = rng.randrange(256) if kind else changed[place] ^ 1 << rng.randrange(8)
        elif kind == 2:
            del changed[a : min(b, a + rng.randrange(1, 64))]
        elif kind == 3:
            changed[a:a] = data[b : b + rng.randrange(1, 64)]
        else:
            del changed[b:]
        return bytes(changed)

    def _field(self, model: onnx.ModelProto, rng: Random) -> None:
        """Walk to a random message, and change a random field of it."""
        message: Any = model
        while True:
            set_fields = message.ListFields()
            inner = [(entry, value) for entry, value in set_fields if entry.message_type is not None]
            if not inner or rng.random() < 0.12:
                break
            entry, value = rng.choice(inner)
            message = rng.choice(value) if entry.is_repeated else value
        entries = message.DESCRIPTOR.fields
        if set_fields and rng.random() < 0.75:
            entry = rng.choice(set_fields)[0]
        else:
            entry = rng.choice(entries)
        if entry.is_repeated:
            self._repeated(message, entry, model, rng)
        elif rng.random() < 0.15:
            message.ClearField(entry.name)
        elif entry.message_type is not None:
            self._replace(getattr(message, entry.name), model, rng)
        else:
            setattr(message, entry.name, self._scalar(entry, model, rng))

    def _repeated(self, message: Any, entry: Any, model: onnx.ModelProto, rng: Random) -> None:
        items, kind = getattr(message, entry.name), rng.randrange(5)
        place = rng.randrange(len(items)) if len(items) else 0
        if kind == 0 and len(items):
            del items[place]
        elif kind == 1 and len(items):
            copies = list(items)
            moved = copies.pop(place)
            copies.insert(rng.randrange(len(copies) + 1), moved)
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

    def _replace(self, message: Any, model: onnx.ModelProto, rng: Random) -> None:
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
            other = rng.choice(pool).SerializeToString()
            if len(other) < 20_000:
                message.MergeFromString(other)

    def _scalar(self, entry: Any, model: onnx.ModelProto, rng: Random) -> Any:
        """A hostile value of the field's type, or a name that the model has."""
        kind = entry.cpp_type
        if kind == entry.CPPTYPE_STRING:
            if entry.type == entry.TYPE_BYTES:
                return rng.choice(BYTES)
            names = [name for node in model.graph.node for name in (*node.input, *node.output, node.op_type)]
            pool = names if names and rng.random() < 0.7 else TEXTS
            return rng.choice(pool)
        if kind in (entry.CPPTYPE_FLOAT, entry.CPPTYPE_DOUBLE):
            return rng.choice(FLOATS)
        if kind == entry.CPPTYPE_ENUM:
            values = entry.enum_type.values
            return rng.choice(values).number
        if rng.random() < 0.4:
            return rng.randrange(30)
        pool = INTEGERS if kind == entry.CPPTYPE_INT32 else WIDE
        value = rng.choice(pool)
        if kind == entry.CPPTYPE_UINT64:
            return abs(value)
        return max(-(1 << 31), min(value, (1 << 31) - 1)) if kind == entry.CPPTYPE_INT32 else value
