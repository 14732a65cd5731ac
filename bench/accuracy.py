"""How the golden model compares with onnxruntime: layer by layer, in top-1, and in rates per operator.

    python bench/accuracy.py layers MODEL.onnx [--data DATA.npz] [--images 20]
    python bench/accuracy.py top1 MODEL.onnx --data DATA.npz [--images 1000]
    python bench/accuracy.py rates [--elements 200000]

`layers` feeds each operation with onnxruntime's own int8 operands and compares all elements of the result, twice:
with what the whole model gives in onnxruntime (on CPUs without VNNI its convolutions then run in float32), and for
convolution and gemm with onnxruntime's integer kernel, QLinearConv or QGemm, on the same operands.
`top1` compares the classes of whole runs. `rates` compares Conv, Gemm, Add, Mul and pooling on random data with
random and with power-of-two scales. Everything is printed on standard output; `--json` prints it as JSON.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from onnxhw import golden
from onnxhw.frontend import load
from onnxhw.ir.graph import Conv, Graph

Array = npt.NDArray[Any]


def session(model: onnx.ModelProto, optimise: bool, saved: Path | None = None) -> ort.InferenceSession:
    """An onnxruntime CPU session of one thread; `saved` gets the optimised graph.

    ``x64quantprecision`` keeps integer kernels from saturating on CPUs without VNNI.
    """
    options = ort.SessionOptions()
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimise else level.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")
    if saved is not None:
        options.optimized_model_filepath = str(saved)
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def exposed(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """The model with the given tensors as further outputs."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    have = {value.name for value in out.graph.output}
    out.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in have)
    return out


def fused_operators(model: onnx.ModelProto) -> list[str]:
    """The operators of onnxruntime's optimised graph: shows whether its integer kernels run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "optimised.onnx"
        session(model, True, path)
        return [node.op_type for node in onnx.load(path).graph.node]


@dataclass(frozen=True)
class Layer:
    """Elements of one operation's results that differ from onnxruntime's, given onnxruntime's operands.

    `differ`, `largest` (the largest difference): from the whole model; `kernel_differ`: from the integer kernel, None
    where there is none.
    """

    name: str
    kind: str
    elements: int
    differ: int
    largest: int
    kernel: str
    kernel_differ: int | None


def compare_layers(model: onnx.ModelProto, feeds: Sequence[Mapping[str, Array]], optimise: bool = True) -> list[Layer]:
    """One record per IR operation whose tensors onnxruntime has too, over all feeds."""
    graph = load(model.SerializeToString())
    made = {name for node in model.graph.node for name in node.output}
    names = [name for name in graph.tensors if name in made]
    runtime = session(exposed(model, names), optimise)
    kernels = {op.name: Kernel.of(model, op.nodes[0]) for op in graph.ops if isinstance(op, Conv)}
    found: dict[str, Layer] = {}
    for feed in feeds:
        theirs = dict(zip(names, runtime.run(names, dict(feed)), strict=True))
        tensors = {name: as_tensor(graph, name, value) for name, value in theirs.items()}
        for op in graph.ops:
            if op.output not in tensors or any(name not in tensors for name in op.inputs):
                continue
            ours = golden.evaluate(graph, op, tensors)
            gap = np.abs(ours.astype(int) - tensors[op.output])
            old = found.get(op.name, Layer(op.name, type(op).__name__, 0, 0, 0, "", None))
            kernel = kernels.get(op.name)
            wrong = old.kernel_differ
            if kernel is not None:
                wrong = (wrong or 0) + int((kernel.run(theirs[op.inputs[0]]).ravel() != ours.ravel()).sum())
            found[op.name] = Layer(
                op.name,
                old.kind,
                old.elements + gap.size,
                old.differ + int((gap > 0).sum()),
                max(old.largest, int(gap.max())),
                kernel.op_type if kernel else "",
                wrong,
            )
    return list(found.values())


@dataclass(frozen=True)
class Kernel:
    """One Conv or Gemm of a QDQ model as onnxruntime's integer kernel in a model of its own.

    Operands are moved to uint8 (values and zero points + 128): uint8 times uint8 is the pair that no x86 kernel
    saturates, with or without VNNI.
    """

    op_type: str
    runtime: ort.InferenceSession

    @classmethod
    def of(cls, model: onnx.ModelProto, name: str) -> "Kernel | None":
        """The node of that name with its DequantizeLinear inputs and the QuantizeLinear behind it (and its Relu)."""
        arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        makers = {output: node for node in model.graph.node for output in node.output}
        node = next(node for node in model.graph.node if node.name == name)
        after = _consumers(model, node.output[0])
        if len(after) == 1 and after[0].op_type == "Relu":
            after = _consumers(model, after[0].output[0])
        if len(after) != 1 or after[0].op_type != "QuantizeLinear":
            return None
        scale, zero = (arrays[name] for name in after[0].input[1:3])
        if zero.dtype != np.int8 or (int(zero) != -128 and _consumers(model, node.output[0])[0].op_type == "Relu"):
            return None
        x, w, bias = (makers[name] for name in node.input[:3])
        lift = lambda q: (q.astype(np.int16) + 128).astype(np.uint8)  # noqa: E731
        values = {
            "xs": arrays[x.input[1]],
            "xz": lift(arrays[x.input[2]]),
            "w": lift(arrays[w.input[0]]),
            "ws": arrays[w.input[1]],
            "wz": lift(arrays[w.input[2]]),
            "ys": scale,
            "yz": lift(zero),
            "b": arrays[bias.input[0]],
        }
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Conv":
            made = helper.make_node(
                "QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], **attributes
            )
        else:
            made = helper.make_node(
                "QGemm",
                ["x", "xs", "xz", "w", "ws", "wz", "b", "ys", "yz"],
                ["y"],
                domain="com.microsoft",
                transB=attributes.get("transB", 0),
            )
        graph = helper.make_graph(
            [made],
            name,
            [helper.make_tensor_value_info("x", TensorProto.UINT8, None)],
            [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
            [numpy_helper.from_array(np.ascontiguousarray(value), key) for key, value in values.items()],
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return cls(made.op_type, session(helper.make_model(graph, opset_imports=opsets, ir_version=8), True))

    def run(self, x: Array) -> Array:
        """The int8 result for an int8 operand."""
        lifted = (x.astype(np.int16) + 128).astype(np.uint8)
        y = self.runtime.run(["y"], {"x": lifted.reshape(1, -1) if self.op_type == "QGemm" else lifted})[0]
        return np.asarray((y.astype(np.int16) - 128).astype(np.int8))


def _consumers(model: onnx.ModelProto, name: str) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if name in node.input]


def as_tensor(graph: Graph, name: str, value: Array) -> npt.NDArray[np.int8]:
    """An onnxruntime tensor, int8 or uint8, in the IR's form."""
    signed = value if value.dtype == np.int8 else (value.astype(np.int16) - 128).astype(np.int8)
    return signed.reshape(graph.tensors[name].shape)


def run_golden(graph: Graph, x: Array, batch: int = 50) -> Iterator[dict[str, Array]]:
    """Outputs of the golden model, batch by batch, for a model of one input."""
    name = graph.inputs[0].name
    for start in range(0, len(x), batch):
        tensors = golden.run(graph, golden.host.prepare(graph, {name: x[start : start + batch]}))
        yield golden.host.finish(graph, tensors)


@dataclass(frozen=True)
class Top1:
    """Classes of golden and onnxruntime (optimisation off and on) on the same images; ties to the lower index."""

    images: int
    golden_correct: int
    ort_correct: int
    agree: int
    agree_optimised: int
    ort_agrees_with_itself: int


def compare_top1(model: onnx.ModelProto, x: Array, labels: Array) -> Top1:
    """Whole runs of a classifier of one input and one output."""
    graph = load(model.SerializeToString())
    output = graph.outputs[0].name
    ours = np.concatenate([found[output].reshape(len(found[output]), -1).argmax(1) for found in run_golden(graph, x)])
    theirs = []
    for optimise in (False, True):
        runtime, name = session(model, optimise), graph.inputs[0].name
        theirs.append(np.array([int(runtime.run([output], {name: x[i : i + 1]})[0].argmax()) for i in range(len(x))]))
    off, on = theirs
    return Top1(
        len(x),
        int((ours == labels).sum()),
        int((off == labels).sum()),
        int((ours == off).sum()),
        int((ours == on).sum()),
        int((off == on).sum()),
    )


def load_data(path: Path, model: onnx.ModelProto) -> tuple[Array, Array]:
    """Float inputs ``[N, ...]`` in the model's layout and labels, from an .npz with x and y."""
    data = np.load(path)
    value = model.graph.input[0].type.tensor_type.shape.dim
    shape = tuple(dim.dim_value for dim in value)[1:]
    x: Array = data["x"]
    if x.ndim == 3:
        x = np.repeat(x[..., None], shape[0], -1)
    if x.shape[1:] != shape and x.ndim == 4:
        x = x.transpose(0, 3, 1, 2)
    real = x.astype(np.float32)
    if "scale" in data:
        real = (real - np.float32(data["zero_point"])) * np.float32(data["scale"])
    elif shape[1:] == (96, 96):
        real = real / np.float32(255)
    labels = data["y"].astype(int) if "y" in data else np.zeros(len(x), int)
    return np.ascontiguousarray(real), labels


def inputs(model: onnx.ModelProto, data: Path | None, count: int, seed: int = 1) -> list[dict[str, Array]]:
    """Real inputs, or without data random ones that fill the first quantizer's range."""
    name = model.graph.input[0].name
    if data is not None:
        x, _ = load_data(data, model)
        return [{name: x[i : i + 1]} for i in range(min(count, len(x)))]
    graph = load(model.SerializeToString())
    rng, port = np.random.default_rng(seed), graph.inputs[0]
    tensor = graph.tensors[port.tensor]
    q = rng.integers(-128, 128, (count, *port.shape[1:]))
    return [{name: ((q[i : i + 1] - tensor.zero_point) * tensor.scale).astype(np.float32)} for i in range(count)]


# -- rates per operator ------------------------------------------------------------------------------


def qdq_model(
    op: onnx.NodeProto,
    shapes: Sequence[Sequence[int]],
    scales: Sequence[float],
    zeros: Sequence[int],
    out: tuple[float, int],
    extra: Sequence[onnx.NodeProto] = (),
    constants: Sequence[onnx.TensorProto] = (),
    unsigned: bool = False,
) -> onnx.ModelProto:
    """``int8 inputs -> DQ -> op -> Q -> int8 output``; inputs a, b, ... feed the node's inputs of these names."""
    dtype, kind = (np.uint8, TensorProto.UINT8) if unsigned else (np.int8, TensorProto.INT8)
    nodes, initial, values = [], list(constants), []
    for name, shape, scale, zero in zip("ab", shapes, scales, zeros, strict=False):
        values.append(helper.make_tensor_value_info(name + "_q", kind, list(shape)))
        initial += [
            numpy_helper.from_array(np.array(scale, np.float32), name + "_s"),
            numpy_helper.from_array(np.array(zero, dtype), name + "_z"),
        ]
        nodes.append(helper.make_node("DequantizeLinear", [name + "_q", name + "_s", name + "_z"], [name]))
    initial += [
        numpy_helper.from_array(np.array(out[0], np.float32), "y_s"),
        numpy_helper.from_array(np.array(out[1], dtype), "y_z"),
    ]
    nodes += [*extra, op, helper.make_node("QuantizeLinear", ["y", "y_s", "y_z"], ["y_q"])]
    graph = helper.make_graph(
        nodes, op.op_type, values, [helper.make_tensor_value_info("y_q", kind, [None] * len(shapes[0]))], initial
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@dataclass(frozen=True)
class Rate:
    """Results of one operator that differ from onnxruntime's, over several models with random constants."""

    operator: str
    scales: str
    elements: int
    differ: int
    largest: int


def _scale(rng: np.random.Generator, powers: bool, low: int = -7, high: int = -3) -> float:
    return float(2.0 ** rng.integers(low, high)) if powers else float(np.float32(2.0 ** rng.uniform(low, high)))


def _binary(op_type: str, rng: np.random.Generator, powers: bool) -> onnx.ModelProto:
    shape = [1, 16, 16, 16]
    scales = [_scale(rng, powers), _scale(rng, powers)]
    out = (_scale(rng, powers), int(rng.integers(-20, 20)))
    if op_type == "Mul":
        out = (_scale(rng, powers, -8, -4), out[1])
    node = helper.make_node(op_type, ["a", "b"], ["y"], name=op_type)
    return qdq_model(node, [shape, shape], scales, [int(z) for z in rng.integers(-100, 100, 2)], out)


def _pool(op_type: str, rng: np.random.Generator, powers: bool, equal: bool = False) -> onnx.ModelProto:
    scale = _scale(rng, powers)
    attributes: dict[str, Any] = {} if op_type.startswith("Global") else {"kernel_shape": [2, 2], "strides": [2, 2]}
    size = int(rng.integers(5, 9)) if op_type.startswith("Global") else 32
    node = helper.make_node(op_type, ["a"], ["y"], name=op_type, **attributes)
    zero = int(rng.integers(-100, 100))
    out = (scale, zero) if equal else (_scale(rng, powers), int(rng.integers(-20, 20)))
    channels = 256 if op_type.startswith("Global") else 16
    return qdq_model(node, [[1, channels, size, size]], [scale], [zero], out)


def _weights(
    q: Array, scale: Array, bias: Array, x_scale: float
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    bias_scale = (np.float32(x_scale) * scale).astype(np.float32)
    constants = [
        numpy_helper.from_array(array, name)
        for name, array in (
            ("w_q", q.astype(np.int8)),
            ("w_s", scale),
            ("w_z", np.zeros(scale.shape, np.int8)),
            ("c_q", bias.astype(np.int32)),
            ("c_s", bias_scale),
            ("c_z", np.zeros(scale.shape, np.int32)),
        )
    ]
    nodes = [helper.make_node("DequantizeLinear", [f"{n}_q", f"{n}_s", f"{n}_z"], [n], axis=0) for n in "wc"]
    return nodes, constants


def _conv(rng: np.random.Generator, powers: bool, groups: int = 1) -> onnx.ModelProto:
    channels = 16
    q = rng.integers(-128, 128, (channels, channels // groups, 3, 3))
    x_scale = _scale(rng, powers)
    scale = np.array([_scale(rng, powers, -9, -5) for _ in range(channels)], np.float32)
    extra, constants = _weights(q, scale, rng.integers(-2000, 2000, channels), x_scale)
    node = helper.make_node(
        "Conv", ["a", "w", "c"], ["y"], name="Conv", pads=[1, 0, 1, 2], strides=[1, 2], group=groups
    )
    return qdq_model(
        node,
        [[1, channels, 24, 24]],
        [x_scale],
        [int(rng.integers(0, 256))],
        (_scale(rng, powers, -1, 3), int(rng.integers(0, 256))),
        extra,
        constants,
        unsigned=True,
    )


def _gemm(rng: np.random.Generator, powers: bool) -> onnx.ModelProto:
    q, x_scale = rng.integers(-128, 128, (512, 64)), _scale(rng, powers)
    scale = np.array(_scale(rng, powers, -9, -5), np.float32)
    extra, constants = _weights(q, scale, rng.integers(-2000, 2000, 512), x_scale)
    for node in extra:
        del node.attribute[:]
    constants = [tensor for tensor in constants if tensor.name != "c_s"]
    constants.append(numpy_helper.from_array(np.array(np.float32(x_scale) * scale, np.float32), "c_s"))
    node = helper.make_node("Gemm", ["a", "w", "c"], ["y"], name="Gemm", transB=1)
    return qdq_model(
        node,
        [[1, 64]],
        [x_scale],
        [int(rng.integers(0, 256))],
        (_scale(rng, powers, -1, 3), int(rng.integers(0, 256))),
        extra,
        constants,
        unsigned=True,
    )


CASES = {
    "Conv": _conv,
    "Conv, depthwise": lambda rng, powers: _conv(rng, powers, 16),
    "Gemm": _gemm,
    "Add": lambda rng, powers: _binary("Add", rng, powers),
    "Mul": lambda rng, powers: _binary("Mul", rng, powers),
    "AveragePool 2x2": lambda rng, powers: _pool("AveragePool", rng, powers),
    "AveragePool 2x2, equal scales": lambda rng, powers: _pool("AveragePool", rng, powers, True),
    "GlobalAveragePool": lambda rng, powers: _pool("GlobalAveragePool", rng, powers),
    "GlobalAveragePool, equal scales": lambda rng, powers: _pool("GlobalAveragePool", rng, powers, True),
}
"""Operators of `rates`: each makes a model with random constants."""


def rate(operator: str, powers: bool, elements: int, seed: int = 1) -> Rate:
    """The rate of one operator over at least `elements` results."""
    rng = np.random.default_rng(seed)
    total = differ = largest = 0
    while total < elements:
        model = CASES[operator](rng, powers)
        graph, runtime = load(model.SerializeToString()), session(model, True)
        feeds = {port.name: rng.integers(0, 256, port.shape).astype(np.uint8).view(port.dtype) for port in graph.inputs}
        ours = golden.host.finish(graph, golden.run(graph, golden.host.prepare(graph, feeds)))["y_q"]
        gap = np.abs(ours.astype(int) - runtime.run(["y_q"], feeds)[0])
        total, differ, largest = total + gap.size, differ + int((gap > 0).sum()), max(largest, int(gap.max()))
    return Rate(operator, "powers of two" if powers else "random", total, differ, largest)


# -- command line ------------------------------------------------------------------------------------


def _table(rows: Sequence[Any]) -> str:
    records = [asdict(row) for row in rows]
    heads = list(records[0])
    cells = [heads] + [[str(record[head]) for head in heads] for record in records]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def main() -> int:
    """The command line; exit status 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("layers", "top1", "rates"))
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--images", type=int, default=0, help="20 for layers, all for top1")
    parser.add_argument("--elements", type=int, default=200_000)
    parser.add_argument("--unoptimised", action="store_true", help="layers: onnxruntime without graph optimisation")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.what != "rates" and arguments.model is None:
        parser.error(f"{arguments.what} needs a model")
    rows: list[Any]
    if arguments.what == "rates":
        rows = [rate(operator, powers, arguments.elements) for operator in CASES for powers in (False, True)]
    elif arguments.what == "layers":
        model = onnx.load(arguments.model)
        feeds = inputs(model, arguments.data, arguments.images or 20)
        rows = list(compare_layers(model, feeds, not arguments.unoptimised))
    else:
        if arguments.data is None:
            parser.error("top1 needs --data")
        model = onnx.load(arguments.model)
        x, labels = load_data(arguments.data, model)
        count = arguments.images or len(x)
        rows = [compare_top1(model, x[:count], labels[:count])]
    print(json.dumps([asdict(row) for row in rows], indent=1) if arguments.json else _table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
