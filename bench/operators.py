"""How often quantized operators differ from onnxruntime, and QONNX models from their float formulas.

    python bench/operators.py rates [--cases 200] [--operator NAME] [--json]
    python bench/operators.py qonnx MODEL.onnx --data DATA.npz [--images 20] [--json]

`rates` runs each operator of the QOperator dialect in the golden model and in onnxruntime: random shapes, int8 and
uint8, with scales that are powers of two (where results lie on ties) and with random ones. `qonnx` feeds every
operation of a QONNX model with the golden model's own operands and compares its result with that of the model's float32
operators and the formula of Quant. Both print a table, or JSON.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from onnxhw import golden
from onnxhw.hostops.evaluator import evaluate
from onnxhw.partition import load

Array = npt.NDArray[Any]
MICROSOFT = "com.microsoft"


@dataclass
class Rate:
    """Elements that differ among all that were compared, and by how much at most."""

    operator: str
    kind: str
    scales: str
    cases: int = 0
    elements: int = 0
    differ: int = 0
    largest: int = 0

    def note(self, ours: Array, theirs: Array) -> None:
        """Count one more case."""
        difference = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
        self.cases += 1
        self.elements += difference.size
        self.differ += int((difference != 0).sum())
        self.largest = max(self.largest, int(difference.max(initial=0)))


class Case:
    """One node and its operands: names of inputs with their values, and constants."""

    def __init__(self, rng: np.random.Generator, kind: type[Any], powers: bool) -> None:
        self.rng, self.kind, self.powers = rng, kind, powers
        self.feeds: dict[str, Array] = {}
        self.constants: list[onnx.TensorProto] = []

    def scale(self, around: float) -> np.float32:
        """Near a size: a power of two, or any float32."""
        value = around * self.rng.uniform(0.5, 2)
        return np.float32(2.0 ** np.rint(np.log2(value)) if self.powers else value)

    def integers(self, kind: Any, *shape: int) -> Array:
        """Uniform integers of a type, one in eight at an end of its range."""
        info = np.iinfo(kind)
        ends = self.rng.choice([info.min, info.max], shape)
        inner = self.rng.integers(info.min, info.max + 1, shape)
        return np.where(self.rng.random(shape) < 0.125, ends, inner).astype(kind)

    def constant(self, array: Any) -> str:
        """A constant operand."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def grid(self, around: float) -> list[str]:
        """Scale and zero point."""
        return [self.constant(self.scale(around)), self.constant(self.integers(self.kind, 1)[0])]

    def input(self, *shape: int) -> str:
        """An input of the model."""
        name = f"x{len(self.feeds)}"
        self.feeds[name] = self.integers(self.kind, *shape)
        return name

    def model(self, op_type: str, operands: list[str], **attributes: Any) -> onnx.ModelProto:
        """The model of one node."""
        domain = "" if op_type in ("QLinearConv", "QLinearMatMul") else MICROSOFT
        node = helper.make_node(op_type, operands, ["y"], "node", domain=domain, **attributes)
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.kind))
        inputs = [helper.make_tensor_value_info(name, kind, list(x.shape)) for name, x in self.feeds.items()]
        outputs = [helper.make_tensor_value_info("y", kind, None)]
        graph = helper.make_graph([node], "case", inputs, outputs, self.constants)
        imports = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


def build(op_type: str, case: Case) -> onnx.ModelProto:
    """A random model of one operator."""
    rng = case.rng
    channels, height, width = (int(n) for n in rng.integers(1, 13, 3))
    spatial = (1, channels, height, width)
    if op_type in ("QLinearAdd", "QLinearMul"):
        a, b = case.input(1, 16, 16, 16), case.input(1, 16, 16, 16)
        wide = 0.05 if op_type == "QLinearAdd" else 0.1
        return case.model(op_type, [a, *case.grid(0.05), b, *case.grid(0.05), *case.grid(wide)])
    if op_type == "QLinearAveragePool":
        kernel = [int(rng.integers(1, min(size, 4) + 1)) for size in (height, width)]
        more = {"kernel_shape": kernel, "strides": [1, 1], "count_include_pad": int(rng.integers(0, 2))}
        return case.model(op_type, [case.input(*spatial), *case.grid(0.05), *case.grid(0.05)], **more)
    if op_type == "QLinearGlobalAveragePool":
        return case.model(op_type, [case.input(*spatial), *case.grid(0.05), *case.grid(0.03)], channels_last=0)
    if op_type == "QLinearReduceMean":
        return case.model(op_type, [case.input(*spatial), *case.grid(0.05), *case.grid(0.03)], axes=[2, 3], keepdims=1)
    if op_type == "QLinearConcat":
        parts = [word for _ in range(2) for word in (case.input(*spatial), *case.grid(0.05))]
        return case.model(op_type, [*case.grid(0.05), *parts], axis=1)
    if op_type in ("QLinearSigmoid", "QLinearLeakyRelu"):
        more = {"alpha": float(rng.uniform(0.01, 0.5))} if op_type == "QLinearLeakyRelu" else {}
        return case.model(op_type, [case.input(1, 256), *case.grid(0.05), *case.grid(0.01)], **more)
    weight = case.kind  # uint8 by int8 products saturate in onnxruntime on processors without VNNI
    depth, outputs = int(rng.integers(1, 60)), int(rng.integers(1, 20))
    scales = np.array([case.scale(0.01) for _ in range(outputs)], np.float32)
    zeros = np.full(outputs, case.integers(weight, 1)[0])
    result = case.grid(0.03 * float(np.sqrt(depth)))
    if op_type == "QLinearConv":
        x, w = case.input(1, depth, 6, 6), case.integers(weight, outputs, depth, 3, 3)
        bias = case.constant(rng.integers(-20000, 20000, outputs).astype(np.int32))
        constants = [case.constant(w), case.constant(scales), case.constant(zeros)]
        return case.model(op_type, [x, *case.grid(0.02), *constants, *result, bias])
    x, w = case.input(1, depth), case.integers(weight, depth, outputs)
    constants = [case.constant(w), case.constant(scales), case.constant(zeros)]
    if op_type == "QLinearMatMul":
        return case.model(op_type, [x, *case.grid(0.05), *constants, *result])
    return case.model("QGemm", [x, *case.grid(0.05), *constants, "", *result])


OPERATORS = (
    "QLinearConv",
    "QLinearMatMul",
    "QGemm",
    "QLinearSigmoid",
    "QLinearLeakyRelu",
    "QLinearAdd",
    "QLinearMul",
    "QLinearAveragePool",
    "QLinearGlobalAveragePool",
    "QLinearReduceMean",
    "QLinearConcat",
)


def rates(operators: tuple[str, ...], cases: int) -> Iterator[Rate]:
    """A row for each operator, type and kind of scales."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    for op_type in operators:
        for kind in (np.int8, np.uint8):
            for powers in (True, False):
                rate = Rate(op_type, np.dtype(kind).name, "powers of two" if powers else "random")
                rng = np.random.default_rng(1)
                for _ in range(cases):
                    case = Case(rng, kind, powers)
                    model = build(op_type, case).SerializeToString()
                    try:
                        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
                    except Exception as error:  # of its own class, if it has no kernel for this type
                        print(f"onnxruntime does not run {op_type} of {rate.kind}: {str(error)[:80]}", file=sys.stderr)
                        break
                    graph = load(model)
                    ours = golden.host.finish(graph, golden.run(graph, golden.host.prepare(graph, case.feeds)))["y"]
                    rate.note(ours, session.run(["y"], case.feeds)[0])
                if rate.cases:
                    yield rate


def qonnx(path: Path, images: Array) -> Iterator[Rate]:
    """A row for each Quant that follows other operators of a QONNX model."""
    model, graph = onnx.load(path), load(path)
    name = graph.inputs[0].name
    tensors = golden.run(graph, golden.host.prepare(graph, {name: images}))
    values: dict[str, Array] = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    values[name] = images
    for node in model.graph.node:
        single = helper.make_model(
            helper.make_graph(
                [node],
                "node",
                [helper.make_tensor_value_info(x, onnx.TensorProto.FLOAT, None) for x in node.input],
                [helper.make_tensor_value_info(y, onnx.TensorProto.FLOAT, None) for y in node.output],
            ),
            opset_imports=list(model.opset_import),
            ir_version=8,
        )
        values |= evaluate(single, {x: values[x] for x in node.input})
        result = node.output[0]
        if result in graph.tensors:
            tensor = graph.tensors[result]
            exact = np.rint(values[result].astype(np.float64) / tensor.scale).astype(np.int64) + tensor.zero_point
            rate = Rate(node.name, "zero point", str(int(values[node.input[2]])))
            rate.note(tensors[result].reshape(exact.shape), exact)
            values[result] = ((tensors[result] - np.float32(tensor.zero_point)) * np.float32(tensor.scale)).reshape(
                exact.shape
            )
            yield rate


def main() -> None:
    """Print the table that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("rates")
    command.add_argument("--cases", type=int, default=200)
    command.add_argument("--operator", choices=OPERATORS)
    command.add_argument("--json", action="store_true")
    command = commands.add_parser("qonnx")
    command.add_argument("model", type=Path)
    command.add_argument("--data", type=Path, required=True)
    command.add_argument("--images", type=int, default=20)
    command.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.command == "rates":
        rows = list(rates((asked.operator,) if asked.operator else OPERATORS, asked.cases))
    else:
        data = np.load(asked.data)["x"][: asked.images]
        rows = list(qonnx(asked.model, data.transpose(0, 3, 1, 2).astype(np.float32)))
    if asked.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    print("| operator | | scales | cases | elements | differ | rate | largest |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    for row in rows:
        share = f"{row.differ / row.elements:.2e}" if row.differ else "0"
        print(
            f"| {row.operator} | {row.kind} | {row.scales} | {row.cases} | {row.elements} | {row.differ} | {share} "
            f"| {row.largest} |"
        )


if __name__ == "__main__":
    main()
