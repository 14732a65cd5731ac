"""A builder of small QDQ models, and onnxruntime as the other opinion."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw import golden
from onnxhw.ir.graph import Graph
from onnxhw.partition import load


class Model:
    """Collects nodes; methods return value names. Scales and zero points are per tensor unless an axis is given."""

    def __init__(self, unsigned: bool = False, opset: int = 17) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.dtype, self.opset, self._count = (np.uint8 if unsigned else np.int8), opset, 0

    def fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def const(self, array: npt.ArrayLike, name: str = "") -> str:
        name = name or self.fresh("const")
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op_type: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> str:
        names = [self.fresh(op_type.lower()) for _ in range(outputs)]
        self.nodes.append(
            helper.make_node(op_type, list(inputs), names, name=f"{op_type}_{self._count}", domain=domain, **attributes)
        )
        return names[0]

    def q(self, x: str, scale: float, zero_point: int = 0) -> str:
        return self.node("QuantizeLinear", x, self.const(np.float32(scale)), self.const(self.dtype(zero_point)))

    def dq(self, q: str, scale: float, zero_point: int = 0) -> str:
        return self.node("DequantizeLinear", q, self.const(np.float32(scale)), self.const(self.dtype(zero_point)))

    def requantize(self, x: str, scale: float, zero_point: int = 0) -> str:
        return self.dq(self.q(x, scale, zero_point), scale, zero_point)

    def input(self, shape: Sequence[Any], scale: float, zero_point: int = 0, name: str = "x") -> str:
        """A float input, quantized and dequantized."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))
        return self.requantize(name, scale, zero_point)

    def constant(self, q: npt.ArrayLike, scale: npt.ArrayLike, zero: Any = None, axis: int = 0) -> str:
        """A dequantized constant; `zero` (an array of the integers' type) defaults to none."""
        names = [self.const(np.asarray(q)), self.const(np.asarray(scale, np.float32))]
        if zero is not None:
            names.append(self.const(zero))
        return self.node("DequantizeLinear", *names, **({"axis": axis} if np.ndim(scale) else {}))

    def output(self, name: str, rank: int = 4, kind: int = TensorProto.FLOAT) -> "Model":
        self.outputs.append(helper.make_tensor_value_info(name, kind, [None] * rank))
        return self

    def proto(self) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "test", self.inputs, self.outputs, self.initializers)
        opsets = [helper.make_opsetid("", self.opset)]
        opsets += [helper.make_opsetid(domain, 1) for domain in {node.domain for node in self.nodes} - {""}]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def bytes(self) -> bytes:
        return self.proto().SerializeToString()

    def load(self) -> Graph:
        return load(self.bytes())

    def feeds(self, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
        """Random inputs that reach the ends of every int8 grid used here."""
        rng = np.random.default_rng(seed)
        found: dict[str, npt.NDArray[Any]] = {}
        for value in self.inputs:
            shape = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
            if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                found[value.name] = rng.integers(-140, 140, shape).astype(np.float32) / 8
            else:
                kind = np.dtype(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
                found[value.name] = rng.integers(0, 256, shape).astype(np.uint8).view(kind)
        return found

    def golden(self, feeds: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        graph = self.load()
        return golden.host.finish(graph, golden.run(graph, golden.host.prepare(graph, feeds)))

    def onnxruntime(self, feeds: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Without optimisation: float32 operators between Q and DQ, exact for scales that are powers of two."""
        ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install onnxhw[ort])")
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        runtime = ort.InferenceSession(self.bytes(), options, providers=["CPUExecutionProvider"])
        names = [value.name for value in self.outputs]
        return dict(zip(names, runtime.run(names, feeds), strict=True))

    def check(self, seeds: Sequence[int] = (0, 1)) -> Graph:
        """Golden equals onnxruntime, every element of every output; returns the graph."""
        for seed in seeds:
            feeds = self.feeds(seed)
            ours, theirs = self.golden(feeds), self.onnxruntime(feeds)
            for name, wanted in theirs.items():
                assert ours[name].dtype == wanted.dtype
                assert ours[name].shape == wanted.shape
                assert len(np.unique(wanted)) > 1, f"{name} is constant: this input shows nothing"
                np.testing.assert_array_equal(ours[name], wanted)
        return self.load()
