"""How often operators in QDQ form differ from onnxruntime: golden = onnxruntime, without graph optimisation.

    python bench/qdq_operators.py [--cases 40] [--operator NAME] [--json]

Each case is a model of one operator between DequantizeLinear and QuantizeLinear with random scales, zero points,
constants and shapes; every row has as many with scales that are powers of two and as many with any float32. A model
that does not run on the hardware as a whole is counted as refused and not compared.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from onnxhw import golden
from onnxhw.convert.operators.unary import UNARY
from onnxhw.errors import UnsupportedError
from onnxhw.partition import load

Array = npt.NDArray[Any]


@dataclass
class Rate:
    """Elements that differ among those compared, and by how many steps of the result at most."""

    operator: str
    scales: str
    cases: int = 0
    refused: int = 0
    elements: int = 0
    differ: int = 0
    largest: int = 0


class Case:
    """A model of one operator; `x` makes quantized operands."""

    def __init__(self, rng: np.random.Generator, powers: bool) -> None:
        self.rng, self.powers = rng, powers
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.feeds: dict[str, Array] = {}
        self.shape = (1, *(int(n) for n in rng.integers((1, 3, 3), (9, 17, 17))))

    def scale(self, around: float) -> np.float32:
        value = around * self.rng.uniform(0.5, 2)
        return np.float32(2.0 ** np.rint(np.log2(value)) if self.powers else value)

    def const(self, array: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op_type: str, *operands: str, **attributes: Any) -> str:
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, operands, [output], name=f"n{len(self.nodes)}", **attributes))
        return output

    def grid(self, x: str, scale: np.float32) -> str:
        grid = [self.const(scale), self.const(np.int8(self.rng.integers(-60, 60)))]
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *grid), *grid)

    def x(self, shape: tuple[int, ...] = (), around: float = 0.05) -> str:
        name, scale = f"x{len(self.feeds)}", self.scale(around)
        self.feeds[name] = (self.rng.integers(-190, 190, shape or self.shape) * scale).astype(np.float32)
        return self.grid(name, scale)

    def weight(self, *shape: int) -> str:
        q = self.rng.integers(-127, 128, shape).astype(np.int8)
        return self.node("DequantizeLinear", self.const(q), self.const(self.scale(0.01)), self.const(np.int8(0)))

    def parameters(self) -> Array:
        """One float per channel."""
        return self.rng.uniform(0.3, 2, (self.shape[1], 1, 1)).astype(np.float32)

    def model(self, result: str, around: float) -> bytes:
        output = self.grid(result, self.scale(around)) if around else result
        values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, list(x.shape)) for n, x in self.feeds.items()]
        outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "case", values, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def _mean(case: Case) -> str:
    return case.node("ReduceMean", case.x(), axes=[2, 3])


def _batch(case: Case) -> str:
    values = [case.const(case.parameters().reshape(-1)) for _ in range(4)]
    return case.node("BatchNormalization", case.x(), *values)


def _ints(case: Case, *values: int) -> str:
    return case.const(np.array(values, np.int64))


def _resize(case: Case) -> str:
    scales = case.const(np.array([1, 1, 2, 3], np.float32))
    return case.node("Resize", case.x(), "", scales, mode="nearest", coordinate_transformation_mode="asymmetric")


def _slice(case: Case) -> str:
    return case.node("Slice", case.x(), _ints(case, 1, 0), _ints(case, 99, -1), _ints(case, 2, 3))


def _binary(op_type: str) -> Callable[[Case], str]:
    return lambda case: case.node(op_type, case.x(), case.x())


def _channel(op_type: str) -> Callable[[Case], str]:
    return lambda case: case.node(op_type, case.x(), case.const(case.parameters()))


def _prelu(case: Case) -> str:
    slopes = case.parameters() * case.rng.choice([-0.5, 0.25, 1], case.shape[1])[:, None, None]
    return case.node("PRelu", case.x(), case.const(slopes.astype(np.float32)))


def _softmax(axis: int, around: float) -> Callable[[Case], str]:
    """On the usual grid, before an operation of the hardware."""

    def build(case: Case) -> str:
        grid = [case.const(np.float32(1 / 256)), case.const(np.int8(-128))]
        y = case.node("Softmax", case.x(around=around), axis=axis)
        for op_type in ("MaxPool", ""):
            y = case.node("DequantizeLinear", case.node("QuantizeLinear", y, *grid), *grid)
            y = case.node(op_type, y, kernel_shape=[1, 1]) if op_type else y
        return y

    return build


def _conv(case: Case) -> str:
    return case.node("Conv", case.x(), case.weight(5, case.shape[1], 3, 3), pads=[1, 1, 1, 1])


def _depthwise(case: Case) -> str:
    return case.node("Conv", case.x(), case.weight(case.shape[1], 1, 3, 3), group=case.shape[1])


def _transposed(case: Case) -> str:
    return case.node("ConvTranspose", case.x(), case.weight(case.shape[1], 4, 3, 3), strides=[2, 2])


def _dense(case: Case) -> str:
    return case.node("MatMul", case.x((1, 40)), case.weight(40, 12))


OPERATORS: dict[str, tuple[Callable[[Case], str], float]] = {
    "Conv": (_conv, 0.1),
    "Conv, depthwise": (_depthwise, 0.05),
    "ConvTranspose": (_transposed, 0.1),
    "MatMul": (_dense, 0.2),
    "BatchNormalization": (_batch, 0.05),
    **{f"{op}, constant per channel": (_channel(op), 0.05) for op in ("Add", "Sub", "Mul", "Div")},
    "PRelu, slope per channel": (_prelu, 0.05),
    **{op: (_binary(op), 0.1) for op in ("Add", "Sub", "Max", "Min")},
    "Mul": (_binary("Mul"), 0.3),
    "MaxPool": (lambda case: case.node("MaxPool", case.x(), kernel_shape=[2, 2]), 0.05),
    "AveragePool": (lambda case: case.node("AveragePool", case.x(), kernel_shape=[3, 2]), 0.05),
    "GlobalAveragePool": (lambda case: case.node("GlobalAveragePool", case.x()), 0.02),
    "ReduceMean over pixels": (_mean, 0.02),
    "ReduceMean over channels": (lambda case: case.node("ReduceMean", case.x(), axes=[1]), 0.03),
    "ReduceSum over channels": (lambda case: case.node("ReduceSum", case.x(), _ints(case, 1)), 0.1),
    **{
        f"Softmax over {axes}, scale about {around}": (_softmax(axis, around), 0)
        for axes, axis in (("channels", 1), ("a row of pixels", 3)) for around in (0.02, 0.1)
    },
    "ReduceMax over channels": (lambda case: case.node("ReduceMax", case.x(), axes=[1]), 0.05),
    "ReduceMin over channels": (lambda case: case.node("ReduceMin", case.x(), axes=[1]), 0.05),
    "ReduceMax over pixels": (lambda case: case.node("ReduceMax", case.x(), axes=[2, 3]), 0.05),
    "Concat": (lambda case: case.node("Concat", case.x(), case.x(), axis=1), 0.05),
    "Resize": (_resize, 0.05),
    "Slice": (_slice, 0.05),
    "Pad": (lambda case: case.node("Pad", case.x(), _ints(case, 0, 0, 1, 2, 0, 0, 2, 0), mode="edge"), 0.05),
    **{
        op: (lambda case, op=op: case.node(op, case.x((1, 4, 8, 8), 0.03)), 0.01)  # type: ignore[misc]  # of a lambda with a default
        for op in sorted({*UNARY} - {"Gelu", "Mish", "Swish"})  # later operator sets
    },
}
"""How each operator's node is made, and the size of its result's scale; 0: the result is on a grid already."""


def rate(name: str, powers: bool, cases: int, options: ort.SessionOptions) -> Rate:
    """One row."""
    build, around = OPERATORS[name]
    row, rng = Rate(name, "powers of two" if powers else "random"), np.random.default_rng(1)
    for _ in range(cases):
        case = Case(rng, powers)
        model = case.model(build(case), around)
        row.cases += 1
        try:
            graph = load(model)
        except UnsupportedError:
            row.refused += 1
            continue
        theirs = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, case.feeds)[0]
        tensors = golden.run(graph, golden.host.prepare(graph, case.feeds))
        (ours,) = golden.host.finish(graph, tensors).values()
        step = graph.tensors[graph.outputs[0].tensor].scale
        gap = np.abs(np.rint((ours.astype(np.float64) - theirs) / step))
        row.elements += gap.size
        row.differ += int((gap != 0).sum())
        row.largest = max(row.largest, int(gap.max(initial=0)))
    return row


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--operator", choices=OPERATORS)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    names = [asked.operator] if asked.operator else list(OPERATORS)
    rows = [rate(name, powers, asked.cases, options) for name in names for powers in (False, True)]
    if asked.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    print("| operator | scales | models | refused | elements | differ | largest |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for row in rows:
        print(f"| {row.operator} | {row.scales} | {row.cases} | {row.refused} | {row.elements:,} | {row.differ:,} | "
              f"{row.largest} |")  # fmt: skip


if __name__ == "__main__":
    main()
