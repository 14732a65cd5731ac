"""Executed multiply-accumulates: counted from what is streamed, never more than the peak or than the model has."""

from typing import Any

import pytest

from onnxhw.bench.measure import model
from onnxhw.bench.topologies import TOPOLOGIES
from onnxhw.compiler import compile
from onnxhw.config import HwConfig
from onnxhw.ir.graph import Conv, Graph
from onnxhw.presets import PRESETS
from onnxhw.report.profile import profile
from onnxhw.sched import schedule


def steps(graph: Graph, config: HwConfig) -> int:
    """Weights of the model between the first and last used channel of each set of columns, times pixels: slowly."""
    total = 0
    for op in graph.ops:
        assert isinstance(op, Conv)
        assert op.groups == 1
        out = graph.tensors[op.output]
        for first in range(0, len(op.weight), config.used_cols):
            weight = op.weight[first : first + config.used_cols]
            rows = [at for at in range(weight.shape[1]) if weight[:, at].any()]
            taps = weight.shape[2] * weight.shape[3]
            total += (rows[-1] - rows[0] + 1 if rows else 0) * len(weight) * taps * out.height * out.width
    return total


@pytest.mark.parametrize("gone", [0, 3, 16, 20])
def test_channels_that_meet_only_zeros_are_not_executed(hw: HwConfig, new_net: Any, gone: int) -> None:
    net = new_net(7)
    graph = net.graph(net.conv(net.input(24, 5, 4), 20, (3, 3), pads=(1, 1, 1, 1)))
    (op,) = graph.ops
    assert isinstance(op, Conv)
    op.weight[:, :gone] = 0
    program = schedule(graph, hw)
    assert program.nominal == graph.macs()
    assert program.macs == steps(graph, hw) == graph.macs() * (24 - gone) // 24
    assert sum(layer.macs for layer in program.layers) == program.macs
    assert sum(layer.nominal for layer in program.layers) == program.nominal


@pytest.mark.slow
@pytest.mark.parametrize("preset", sorted(PRESETS))
@pytest.mark.parametrize("name", sorted(TOPOLOGIES))
def test_no_layer_is_over_its_peak(name: str, preset: str) -> None:
    """With the reference weights where they are: those of VWW have channels that are not computed or not streamed."""
    made = compile(model(name).source, PRESETS[preset])
    for program in made.programs:
        rows = profile(program).layers
        assert max((row.utilization for row in rows), default=0) <= 1
        assert program.macs <= program.nominal
        assert sum(row.macs_executed for row in rows) == program.macs
