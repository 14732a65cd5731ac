"""Few-bit networks with affine functions between sums and quantizers: one program, equal to QONNX's float32."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest

from onnxhw import fixed, golden
from onnxhw.compiler import compile_graph
from onnxhw.convert.operators import staircase
from onnxhw.convert.operators.staircase import Staircase
from onnxhw.emu import Emulator
from onnxhw.golden import host
from onnxhw.ir.graph import Conv, Table
from onnxhw.partition import read
from onnxhw.presets import PRESETS
from onnxhw.runtime.session import InferenceSession

from . import networks
from .networks import F, Network, float_run

QONNX, FINN, BREVITAS = networks.DOMAINS
NETWORKS = {
    "TFC 1W1A": lambda: networks.tfc(1, 1, BREVITAS),
    "TFC 1W2A": lambda: networks.tfc(1, 2, FINN, opset=14),
    "TFC 2W2A": lambda: networks.tfc(2, 2),
    "KWS": lambda: networks.kws(BREVITAS),
    "UNSW": lambda: networks.unsw(FINN),
    "CNV 1W1A": lambda: networks.cnv(),
    "CNV 2W2A": lambda: networks.cnv(bits=2),
}


def inputs(model: onnx.ModelProto, count: int, seed: int = 1) -> list[Any]:
    """Random ones, of which every other has values at and beside the thresholds of the first quantizer."""
    shape = [entry.dim_value for entry in model.graph.input[0].type.tensor_type.shape.dim]
    rng, found = np.random.default_rng(seed), []
    for index in range(count):
        x = rng.uniform(-1, 1, shape).astype(F) * F(rng.choice([1, 3, 8]))
        if index % 2:
            steps = (rng.integers(-40, 41, shape) + F(0.5)).astype(F) / F(rng.choice([2, 4, 16, 128]))
            x = np.where(rng.random(shape) < 0.5, np.nextafter(steps, F(rng.choice([-9, 9]))), steps).astype(F)
        found.append(x)
    return found


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_one_program_and_equal_to_float32(name: str) -> None:
    model = NETWORKS[name]()
    session = InferenceSession(model.SerializeToString())
    assert [type(part).__name__ for part in session.model.parts] == ["HardwarePart"]
    products = sum(node.op_type in ("MatMul", "Conv") for node in model.graph.node)
    ran = [row for row in session.model.placement if row.op_type in ("MatMul", "Conv") and row.where == "hardware"]
    assert len(ran) == products
    assert not any(isinstance(op, Table) for op in session.model.hardware[0].graph.ops)
    seen = set()
    for x in inputs(model, 200):
        wanted = float_run(model, x)[model.graph.output[0].name]
        (ours,) = session.run(None, {"x": x})
        np.testing.assert_array_equal(ours, wanted)
        seen.add(ours.tobytes())
    assert len(seen) > 1


@pytest.mark.parametrize("name", NETWORKS)
def test_the_emulator_computes_every_tensor(name: str) -> None:
    model = NETWORKS[name]()
    graph = read(model.SerializeToString()).hardware[0].graph
    program = compile_graph(graph, PRESETS["virtual"])
    emulator = Emulator(program)
    for x in inputs(model, 4):
        prepared = host.prepare(graph, {"x": x})
        expected, result = golden.run(graph, prepared), emulator.run(prepared, trace=True)
        assert result.cycles == program.cycles
        for tensor, values in (result.tensors | result.outputs).items():
            np.testing.assert_array_equal(values, expected[tensor], err_msg=tensor)


@pytest.mark.parametrize("scales", ["powers of two", "any"])
def test_scales_of_any_kind_give_the_same_class(scales: str) -> None:
    """A float32 MatMul rounds its sums, in whatever order; quantized layers are equal all the same."""
    model = networks.tfc(2, 2, exact=scales == "powers of two")
    session = InferenceSession(model.SerializeToString())
    for x in inputs(model, 100):
        wanted = float_run(model, x)[model.graph.output[0].name]
        np.testing.assert_allclose(session.run(None, {"x": x})[0], wanted, rtol=0, atol=2e-6)


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
@pytest.mark.parametrize("weights", [1, 4, 8])
def test_every_sum_gives_what_the_formula_gives(bits: int, weights: int) -> None:
    """All sums of one product: slopes of both signs, weights that leave no room for a factor."""
    made = Network([1, 1, 16, 16], seed=bits)
    made.quant(8, 1.0).conv(1, 24, weights, 1).norm(24, 20.0, 0.5).op("Mul", made.rng.normal(size=(24, 1, 1)).astype(F))
    made.quant(bits, 0.5)
    model = made.model([1, 24, 16, 16])
    x = np.arange(-128, 128).astype(F).reshape(1, 1, 16, 16)
    graph = read(model.SerializeToString())
    assert [type(part).__name__ for part in graph.parts] == ["HardwarePart"]
    (ours,) = InferenceSession(model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_array_equal(ours, float_run(model, x)[model.graph.output[0].name])


@pytest.mark.parametrize("mode", ["FLOOR", "CEIL", "ROUND"])
def test_rounding_modes_behind_sums(mode: str) -> None:
    made = Network([1, 1, 16, 16])
    made.quant(8, 1.0).conv(1, 8, 3, 1).quant(3, 4.0, rounding_mode=mode)
    model = made.model([1, 8, 16, 16])
    x = np.arange(-128, 128).astype(F).reshape(1, 1, 16, 16)
    session = InferenceSession(model.SerializeToString())
    assert [type(part).__name__ for part in session.model.parts] == ["HardwarePart"]
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], float_run(model, x)[model.graph.output[0].name])


def test_a_sum_at_zero_is_positive() -> None:
    """BipolarQuant of 0 is +1, also where the slope is negative."""
    made = Network([1, 1, 16, 16])
    made.quant(8, 1.0).conv(1, 4, 1, 1).op("Mul", np.array([1, -1, 2, -2], F).reshape(4, 1, 1)).quant(1, 1.0)
    model = made.model([1, 4, 16, 16])
    x = np.arange(-128, 128).astype(F).reshape(1, 1, 16, 16)
    (ours,) = InferenceSession(model.SerializeToString()).run(None, {"x": x})
    assert (ours[x.repeat(4, 1) == 0] == 1).all()
    np.testing.assert_array_equal(ours, float_run(model, x)[model.graph.output[0].name])


@pytest.mark.parametrize("weight", [-128, 127, -1])
def test_a_weight_of_128_changes_its_sign(weight: int) -> None:
    """-(-128) is no int8: such weights are sums of two."""
    made = Network([1, 1, 16, 16])
    made.quant(8, 1.0)
    here = made.at
    made.quant(8, 1.0, made.const(np.full((2, 1, 1, 1), weight, F)))
    made.op("Conv", made.at, at=here, kernel_shape=[1, 1])
    made.op("Mul", np.array([-0.01, 0.01], F).reshape(2, 1, 1)).quant(2, 1.0)
    model = made.model([1, 2, 16, 16])
    x = np.arange(-128, 128).astype(F).reshape(1, 1, 16, 16)
    session = InferenceSession(model.SerializeToString())
    assert [type(part).__name__ for part in session.model.parts] == ["HardwarePart"]
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], float_run(model, x)[model.graph.output[0].name])


def test_staircases_are_found_by_their_steps() -> None:
    rng = np.random.default_rng(3)
    slope, offset = rng.uniform(0.001, 0.5, (20, 1)), rng.normal(size=(20, 1)) * 4
    sums = np.arange(-700, 701)

    def function(x: Any) -> Any:
        return np.clip(np.rint(x * slope + offset), -3, 4).astype(np.int64)

    found = staircase.staircases(function, np.full(20, -700), np.full(20, 700), 7)
    np.testing.assert_array_equal([one.values(sums) for one in found], function(sums[None].repeat(20, 0)))


@pytest.mark.parametrize(("levels", "most"), [(1, 1), (3, 1), (7, 1), (7, 42), (15, 18)])
def test_lines_and_their_sums_are_the_staircase(levels: int, most: int) -> None:
    """Any staircase of up to eight levels has a multi-threshold; a near line mostly has one requantizer."""
    rng, sums = np.random.default_rng(levels), np.arange(-300, 301)
    for number in range(12):
        steps = np.sort(rng.integers(-299, 301, levels))
        if number % 2:
            steps = np.rint(np.arange(levels) * rng.uniform(1, 500 / levels) - 250 + rng.random()).astype(np.int64)
        one = Staircase(-300, 300, 0, steps)
        single = staircase.line(one, 0, 0, levels, most)
        if single is not None:
            got = fixed.requantize(sums * single.factor + single.bias, single.multiplier, 0, 0, levels)
            np.testing.assert_array_equal(got, one.values(sums))
        found = staircase.lines([one], 0, levels, [most], 8)
        assert found is not None or levels > 8
        if found is not None:
            count, (entries,) = found
            parts = [fixed.requantize(sums * e.factor + e.bias, e.multiplier, 0, 0, count) for e in entries]
            np.testing.assert_array_equal(sum(parts), one.values(sums))


@pytest.mark.parametrize("inputs_", [20, 100, 260, 600])
def test_sums_leave_whole(inputs_: int) -> None:
    """The last layer has no quantizer: one int8, several, or a high and a low one."""
    made = Network([1, inputs_], seed=inputs_)
    made.quant(4, 0.5).dense(inputs_, 5, 3)
    model = made.model([1, 5])
    session = InferenceSession(model.SerializeToString())
    assert [type(part).__name__ for part in session.model.parts] == ["HardwarePart"]
    reach = np.where(np.arange(inputs_) % 3, 9, -9).astype(F)[None]
    for x in [*inputs(model, 20), reach, -reach, np.full((1, inputs_), 9, F), np.full((1, inputs_), -9, F)]:
        wanted = float_run(model, x)[model.graph.output[0].name]
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], wanted)


def test_a_program_of_one_network_is_the_same_in_every_domain() -> None:
    graphs = [read(networks.tfc(1, 1, domain).SerializeToString()).hardware[0].graph for domain in networks.DOMAINS]
    for graph in graphs[1:]:
        for one, other in zip(graphs[0].ops, graph.ops, strict=True):
            assert isinstance(one, Conv)
            assert isinstance(other, Conv)
            np.testing.assert_array_equal(one.weight, other.weight)
            assert replace(one, weight=other.weight, bias=other.bias, multiplier=other.multiplier).name == other.name


def random_chain(seed: int) -> onnx.ModelProto:
    """A product, any functions per channel or tensor behind it, any quantizer; constants small, large and negative."""
    rng, made = np.random.default_rng(seed), Network([1, 1, 16, 16], seed=seed, exact=bool(seed % 2))
    made.quant(8, float(rng.choice([1.0, 0.5, 0.0731]))).conv(1, 6, int(rng.integers(1, 9)), 1)
    for _ in range(rng.integers(0, 6)):
        kind = rng.choice(["Add", "Sub", "Mul", "Div", "norm", "Relu", "swapped"])
        constant = (rng.normal(size=(6, 1, 1)) * rng.choice([0.01, 1, 50])).astype(F)
        constant = constant[0, 0, 0] if rng.random() < 0.3 else constant
        if kind == "norm":
            made.norm(6, float(rng.choice([1, 20])), 0.5)
        elif kind == "Relu":
            made.op("Relu")
        elif kind == "swapped":
            made.op("Sub", made.at, at=made.const(constant))
        else:
            made.op(str(kind), constant)
    bits, mode = int(rng.integers(1, 9)), str(rng.choice(["ROUND", "FLOOR", "CEIL"]))
    signed = int(rng.integers(2)) if bits > 1 else 1
    made.quant(bits, float(rng.choice([0.5, 1, 0.0731, 3])), signed=signed, narrow=int(bits > 1), rounding_mode=mode)
    return made.model([1, 6, 16, 16])


@pytest.mark.parametrize("seed", range(40))
def test_any_chain_is_equal_unless_it_says_otherwise(seed: int) -> None:
    model = random_chain(seed)
    scale = onnx.numpy_helper.to_array(model.graph.initializer[0])
    x = (np.arange(-128, 128) * scale).astype(F).reshape(1, 1, 16, 16)
    session = InferenceSession(model.SerializeToString())
    if "W3601" not in [diagnostic.code for diagnostic in session.model.diagnostics]:
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], float_run(model, x)[model.graph.output[0].name])
