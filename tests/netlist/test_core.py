"""The post-synthesis netlist of a whole core: outputs and cycles equal golden model and emulator.

A block RAM read of the address being written is X in this simulation, so it also shows that no result depends on
what the device leaves undefined.
"""

import dataclasses

import numpy as np
import pytest
from netlist import synthesize_netlist
from netlist_program import compile_core, run_program

from onnxhw import golden
from onnxhw.config import HwConfig
from onnxhw.devices.gowin.estimate import multipliers
from onnxhw.emu import Emulator
from onnxhw.ir.graph import Add, Conv, Graph, MatMul, MaxPool, Port, Table, Tensor
from onnxhw.rtl.core import Core
from onnxhw.sched import schedule

pytestmark = [pytest.mark.netlist, pytest.mark.synth, pytest.mark.slow]

# Rows and word differ; the array uses multiplier blocks, requantizer and depthwise unit the fabric. The depthwise
# unit has its sums and microcode in block RAMs (gowin), or in lookup tables (ecp5). Of the fast array's multipliers
# half are fabric. The first has as many lanes as a word, so parameter rows come in two halves. On the ecp5 it would
# take five minutes: what it has there of its own are cells, which test_mapping.py and tests/rtl/test_cells.py compare.
CONFIG = HwConfig(
    "netlist", rows=1, cols=2, word=2, lanes=2, acc_bits=24, act_banks=2, act_depth=256, weight_depth=512,
    acc_depth=128, param_depth=64, tables=1, requant_dsps=1, depthwise=8,
)  # fmt: skip
FAST = dataclasses.replace(
    CONFIG, name="fast", rows=4, word=5, lanes=1, load_rows=4, inner_product="fast", window_depth=64,
    depthwise_ucode=128, act_banks=3, array_fabric=3, requant_dsps=2,
)  # fmt: skip


def network(rng: np.random.Generator) -> Graph:
    """Padded convolution, a depthwise one, pool, residual addition, MatMul, table: most of what the core can do."""

    def tensor(name: str, channels: int, size: int, zero: int) -> Tensor:
        return Tensor(name, (1, channels, size, size), 0.05, zero)

    def conv(name: str, x: str, y: str, inputs: int, outputs: int, kernel: int, pad: int, groups: int = 1) -> Conv:
        return Conv(
            name, (x,), y,
            weight=rng.integers(-127, 128, (outputs, inputs, kernel, kernel)).astype(np.int8),
            bias=rng.integers(-20000, 20000, outputs).astype(np.int32),
            multiplier=rng.uniform(0.0005, 0.003, outputs).astype(np.float32),
            strides=(1, 1), pads=(pad, pad, pad, pad), groups=groups,
        )  # fmt: skip

    tensors = [
        tensor("x", 2, 5, 17), tensor("a", 4, 5, -20), tensor("w", 4, 5, -20), tensor("b", 4, 2, -20),
        tensor("c", 4, 2, 3), tensor("d", 4, 2, -7), tensor("e", 4, 2, 9), tensor("y", 4, 2, 0),
    ]  # fmt: skip
    ops = [
        conv("first", "x", "a", 2, 4, 3, 1),
        conv("window", "a", "w", 1, 4, 3, 1, groups=4),
        MaxPool("pool", ("w",), "b", kernel=(2, 2), strides=(2, 2)),
        conv("second", "b", "c", 4, 4, 1, 0),
        Add("sum", ("b", "c"), "d", ratio_a=float(np.float32(0.7)), ratio_b=float(np.float32(0.6))),
        MatMul("rows", ("c", "d"), "e", multiplier=float(np.float32(0.008)), transposed_b=True),
        Table("table", ("e",), "y", table=rng.integers(-128, 128, 256).astype(np.int8)),
    ]
    port = {t.name: Port(t.name, t.shape, "int8", t.name) for t in tensors}
    return Graph("net", {t.name: t for t in tensors}, ops, [port["x"]], [port["y"]])


BUILDS = [("ecp5", FAST), ("gowin", CONFIG)]


@pytest.fixture(scope="module", params=BUILDS, ids=lambda build: f"{build[1].name} {build[0]}")
def built(request, icarus):
    """A configuration and its netlist."""
    family, config = request.param
    return config, compile_core(synthesize_netlist(Core(config), family=family))


@pytest.fixture(scope="module")
def config(built):
    return built[0]


@pytest.fixture(scope="module")
def core(built):
    return built[1]


@pytest.fixture(scope="module")
def graph():
    return network(np.random.default_rng(8))


def test_the_netlist_is_made_of_the_cells_that_were_asked_for(core, config):
    array = {"netlist": 1 * 2, "fast": 2 * (2 + 1) - 3}[config.name]
    wanted = {"ecp5": array + config.lanes * config.requant_dsps, "gowin": multipliers(config)}
    assert core.netlist.dsps == wanted[core.netlist.family]
    assert "$mul" not in core.netlist.cells


def test_netlist_equals_golden_model_and_emulator(core, graph, config):
    rng = np.random.default_rng(1)
    x = rng.integers(-128, 128, (1, 2, 5, 5)).astype(np.int8)
    x[rng.random(x.shape) < 0.2] = -128
    program = schedule(graph, config)
    assert program.code["depthwise"]
    found = run_program(core, program, {"x": x}, trace=True)
    assert np.array_equal(found.outputs["y"], golden.run(graph, {"x": x})["y"])
    assert found.cycles == program.cycles == Emulator(program).run({"x": x}).cycles


@pytest.mark.parametrize("built", BUILDS[1:], ids=lambda build: f"{build[1].name} {build[0]}", indirect=True)
def test_a_wrong_weight_is_seen(core, config):
    """The comparison above can fail: one weight changed in the core, not in the golden model."""
    rng = np.random.default_rng(3)
    x, y = Tensor("x", (1, 2, 1, 1), 0.05, 0), Tensor("y", (1, 2, 1, 1), 0.05, 0)
    weight = rng.integers(-127, 128, (2, 2, 1, 1)).astype(np.int8)
    dot = Conv("dot", ("x",), "y", weight=weight, bias=np.zeros(2, np.int32), multiplier=np.full(2, 0.004, np.float32))
    ports = [Port(t.name, t.shape, "int8", t.name) for t in (x, y)]
    graph = Graph("dot", {"x": x, "y": y}, [dot], ports[:1], ports[1:])
    values = {"x": np.full((1, 2, 1, 1), 100, np.int8)}
    program, wanted = schedule(graph, config), golden.run(graph, values)["y"]
    assert np.array_equal(run_program(core, program, values).outputs["y"], wanted)
    program.weights = program.weights.copy()
    program.weights[0, 0] ^= 0x40
    assert not np.array_equal(run_program(core, program, values).outputs["y"], wanted)
