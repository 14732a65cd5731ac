"""The dialects give one program: the files are compared whole, byte by byte.

A program file holds, besides instructions, weights, parameters, tables and cycles, the names of tensors, of layers and
of the model's inputs and outputs. They are the model's own; where two models do not have the same, `renamed` gives them
the same.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from onnxhw import golden, sched
from onnxhw.ir.graph import Graph
from onnxhw.partition import load
from onnxhw.presets import preset
from onnxhw.program import container
from onnxhw.program.parts import Program

F = np.float32
S = [F(0.05), F(0.0711), F(0.123), F(0.0931)]


def program(graph: Graph, config: str = "ulx3s-85f") -> bytes:
    return container.dumps(Program.of(sched.schedule(graph, preset(config))))


def renamed(graph: Graph) -> Graph:
    """The graph with tensors and operations numbered, and without the names of the nodes."""
    names = {name: f"t{index}" for index, name in enumerate(graph.tensors)}

    def port(old: Any) -> Any:
        return replace(old, tensor=names[old.tensor], steps=tuple({**step, "name": ""} for step in old.steps))

    return Graph(
        graph.name,
        {names[name]: replace(tensor, name=names[name]) for name, tensor in graph.tensors.items()},
        [
            replace(op, name=f"o{index}", inputs=tuple(names[x] for x in op.inputs), output=names[op.output], nodes=())
            for index, op in enumerate(graph.ops)
        ],
        [port(old) for old in graph.inputs],
        [port(old) for old in graph.outputs],
    )


def residual(nodes: Any, dialect: str) -> Any:
    """Two convolutions, an Add with Relu, a global average and a Gemm, as QDQ or as QOperator nodes."""
    rng = np.random.default_rng(9)
    w0, w1, w2 = (rng.integers(-90, 90, shape).astype(np.int8) for shape in ((4, 3, 3, 3), (4, 4, 3, 3), (5, 4)))
    ws = rng.uniform(0.004, 0.01, 4).astype(F)
    bias = rng.integers(-500, 500, 4).astype(np.int32)
    z, i8, ms = np.zeros(4, np.int8), np.int8, "com.microsoft"
    model = nodes(17)
    model.input("x", F, [1, 3, 8, 8])

    def grid(index: int) -> list[Any]:
        return [S[index], i8([-128, -128, 3, -20][index])]

    def named(*names: str) -> None:
        for node, name in zip(model.nodes[::-1], names, strict=False):
            node.name = name

    def conv(x: str, w: Any, source: int, result: int, name: str) -> str:
        if dialect == "qop":
            y = model.node("QLinearConv", x, *grid(source), w, ws, z, *grid(result), bias, pads=[1] * 4)
            named(name)
            return str(y)
        real = model.node("DequantizeLinear", x, *grid(source))
        weights = model.node("DequantizeLinear", w, ws, z, axis=0)
        b = model.node("DequantizeLinear", bias, S[source] * ws, np.zeros(4, np.int32), axis=0)
        y = model.node("Conv", real, weights, b, pads=[1] * 4)
        named(name)
        return str(model.node("QuantizeLinear", y, *grid(result)))

    x = model.node("QuantizeLinear", "x", *grid(0))
    model.nodes[-1].name = "input"
    a = conv(x, w0, 0, 1, "conv0")
    b = conv(a, w1, 1, 2, "conv1")
    if dialect == "qop":
        y = model.node("QLinearAdd", a, *grid(1), b, *grid(2), *grid(1), domain=ms)
        named("add")
        y = model.node("QLinearGlobalAveragePool", y, *grid(1), *grid(1), channels_last=0, domain=ms)
        named("pool")
        y = model.node("Flatten", y)
        y = model.node("QGemm", y, *grid(1), w2, F(0.01), i8(0), None, *grid(3), transB=1, domain=ms)
        named("gemm")
    else:
        y = model.node("Add", model.node("DequantizeLinear", a, *grid(1)), model.node("DequantizeLinear", b, *grid(2)))
        named("add")
        y = model.node("DequantizeLinear", model.node("QuantizeLinear", model.node("Relu", y), *grid(1)), *grid(1))
        y = model.node("GlobalAveragePool", y)
        named("pool")
        y = model.node("DequantizeLinear", model.node("QuantizeLinear", y, *grid(1)), *grid(1))
        y = model.node("DequantizeLinear", model.node("QuantizeLinear", model.node("Flatten", y), *grid(1)), *grid(1))
        y = model.node("Gemm", y, model.node("DequantizeLinear", w2, F(0.01), i8(0)), transB=1)
        named("gemm")
        y = model.node("QuantizeLinear", y, *grid(3))
    y = model.node("DequantizeLinear", y, *grid(3))
    model.nodes[-1].output[0] = "y"
    return model.output("y", F)


def test_qdq_and_qoperator_give_one_program(nodes: Any) -> None:
    graphs = [renamed(residual(nodes, dialect).load()) for dialect in ("qdq", "qop")]
    assert len(graphs[0].ops) == 5
    assert program(graphs[0], "mini") == program(graphs[1], "mini")


def test_another_weight_gives_another_program(nodes: Any) -> None:
    graph = renamed(residual(nodes, "qdq").load())
    before = program(graph, "mini")
    graph.ops[0].weight[0, 0, 0, 0] ^= 1
    assert program(graph, "mini") != before


@pytest.mark.parametrize("route", ["initializer", "vector", "constant node", "product"])
def test_one_scale_by_any_route_has_the_same_bits(nodes: Any, route: str) -> None:
    """The multiplier is float32(float32(s_x * s_w) / s_y), in this order, wherever the scale comes from."""
    sx, sw, sy = F(0.06729999929666519), F(0.034299999475479126), F(0.013700000010430813)
    wanted = F(F(sx * sw) / sy)
    assert wanted != F(sx * F(sw / sy))
    model = nodes(17)
    model.input("x", F, [1, 4])
    scale: Any = sx
    if route == "vector":
        scale = sx.reshape(1)
    elif route == "constant node":
        scale = model.node("Constant", value=onnx.numpy_helper.from_array(np.asarray(sx)))
    elif route == "product":
        scale = model.node("Mul", np.asarray(sx * F(4), F), F(0.25))
    x = model.node("DequantizeLinear", model.node("QuantizeLinear", "x", scale), scale)
    w = model.node("DequantizeLinear", np.ones((4, 2), np.int8), sw)
    model.output(model.node("QuantizeLinear", model.node("MatMul", x, w), sy), np.uint8)
    assert model.load().ops[0].multiplier.tobytes() == np.full(2, wanted, F).tobytes()


def reference(models: Path, dialect: str) -> Graph:
    return load(models / f"ic_resnet8_int8_{dialect}.onnx")


@pytest.mark.slow
def test_ic_as_qdq_and_as_qoperator_gives_one_file(reference_models: Path) -> None:
    """Nothing is renamed here: the whole files are equal."""
    a, b = (program(reference(reference_models, dialect)) for dialect in ("qdq", "qop"))
    assert a == b


@pytest.mark.slow
def test_ic_as_qonnx_is_the_same_integer_graph(reference_models: Path) -> None:
    """Up to names and the last steps on the host, where QDQ quantizes to int8 and QONNX to uint8, 128 higher."""
    a, b = (renamed(reference(reference_models, dialect)) for dialect in ("qdq", "qonnx"))
    a.outputs, b.outputs = ([replace(port, steps=()) for port in graph.outputs] for graph in (a, b))
    assert program(a) == program(b)


def test_ic_gives_the_same_outputs_in_all_dialects(reference_models: Path, reference_data: Path) -> None:
    images = np.load(reference_data / "cifar10_test1000_jpeg_nhwc_u8.npz")["x"][:20]
    feeds = {"input": images.transpose(0, 3, 1, 2).astype(F)}
    results, integers = [], []
    for dialect in ("qdq", "qop", "qonnx"):
        graph = reference(reference_models, dialect)
        tensors = golden.run(graph, golden.host.prepare(graph, feeds))
        results.append(golden.host.finish(graph, tensors)["output"])
        integers.append([tensors[op.output] for op in graph.ops])
    assert len(np.unique(results[0])) > 10
    for other, tensors in zip(results[1:], integers[1:], strict=True):
        np.testing.assert_array_equal(results[0], other)
        for wanted, found in zip(integers[0], tensors, strict=True):
            np.testing.assert_array_equal(wanted, found)


@pytest.mark.parametrize("name", ["kws_dscnn_int8_qdq", "vww_mobilenetv1_025_96_int8_qdq", "ad_autoencoder_int8_qdq"])
def test_the_other_reference_models_run_on_the_hardware_as_a_whole(reference_models: Path, name: str) -> None:
    graph = load(reference_models / f"{name}.onnx")
    model = onnx.load(reference_models / f"{name}.onnx")
    weighted = [node for node in model.graph.node if node.op_type in ("Conv", "Gemm", "MatMul")]
    named = {name for op in graph.ops for name in op.nodes}
    assert {node.name for node in weighted} <= named
