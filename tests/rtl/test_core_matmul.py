"""Scheduled products of two activations on the core: the golden model's integers, in the predicted cycles."""

from typing import Any

import numpy as np
import pytest
from core_bench import Bench, CompiledBench
from geometries import GEOMETRIES

from onnxhw import golden
from onnxhw.config import HwConfig
from onnxhw.emu import Machine
from onnxhw.ir.graph import Graph, MatMul, Port, Tensor
from onnxhw.ir.verify import verify
from onnxhw.sched import schedule

BY_ITSELF = HwConfig(
    "3x3 of one lane", rows=3, cols=3, word=3, lanes=1, acc_bits=24, requant_dsps=0, act_depth=256, weight_depth=64,
    acc_depth=64, param_depth=64, tables=1,
)  # fmt: skip
"""In Amaranth's simulator."""
KINDS = [(CompiledBench, GEOMETRIES[0]), (CompiledBench, GEOMETRIES[4]), (Bench, BY_ITSELF)]


def product(rng: np.random.Generator) -> Graph:
    """One MatMul of random shape, transposed or not, any zero points."""
    heads, m, k, n = (int(size) for size in rng.integers(1, [7, 6, 13, 6]))
    turned = bool(rng.integers(2)), bool(rng.integers(2))
    a, b = ((k, m) if turned[0] else (m, k)), ((n, k) if turned[1] else (k, n))
    tensors = {
        name: Tensor(name, (1, heads, *size), 0.05, int(rng.choice([-128, 127, *rng.integers(-128, 128, 4)])))
        for name, size in (("a", a), ("b", b), ("y", (m, n)))
    }
    ports = {name: Port(name, tensor.shape, "int8", name) for name, tensor in tensors.items()}
    multiplier = float(np.float32(rng.uniform(0.005, 0.02) / np.sqrt(k)))
    op = MatMul("product", ("a", "b"), "y", multiplier=multiplier, transposed_a=turned[0], transposed_b=turned[1])
    graph = Graph("product", tensors, [op], [ports["a"], ports["b"]], [ports["y"]])
    verify(graph)
    return graph


@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("kind", "config"), KINDS, ids=[config.name for _, config in KINDS])
def test_products(kind: type[Bench | CompiledBench], config: HwConfig) -> None:
    rng = np.random.default_rng(config.word)
    cases, wanted = [], []
    for _ in range(3):
        graph = product(rng)
        program = schedule(graph, config)
        values = {
            name: rng.choice([-128, 127, *rng.integers(-128, 128, 9)], graph.tensors[name].shape).astype(np.int8)
            for name in "ab"
        }
        machine = Machine(config)
        for name, value in values.items():
            machine.write(program.tensors[name].place, value)
        cases.append((program, machine.act))
        wanted.append(golden.run(graph, values)["y"])
    results = iter(wanted)

    def check(program: Any, before: Any, registers: dict[str, int], after: Any) -> None:
        machine = Machine(config)
        machine.act[:] = after
        np.testing.assert_array_equal(machine.read(program.tensors["y"].place), next(results))
        assert registers["cycles"] == program.cycles

    kind(config).each(cases, check)
    assert next(results, None) is None
