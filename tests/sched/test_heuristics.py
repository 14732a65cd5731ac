"""Each switch takes its heuristic away and nothing else: programs stay exact, and what it is for no longer happens."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from onnxhw import emu, golden
from onnxhw.config import HwConfig
from onnxhw.ir.graph import Graph
from onnxhw.isa.instructions import Array
from onnxhw.presets import preset
from onnxhw.sched import lower, search
from onnxhw.sched.heuristics import ALL, NAMES, Heuristics
from onnxhw.sched.scheduler import finish, initial_schedule

PAD = (1, 1, 1, 1)
HW = HwConfig(
    "switches", rows=8, cols=8, word=8, lanes=4, load_rows=8, acc_bits=27, act_depth=512, weight_depth=1024,
    acc_depth=64, param_depth=512, window_depth=64, depthwise=16, array_ucode=4096, vector_ucode=8192,
    load_ucode=4096, depthwise_ucode=2048,
)  # fmt: skip


def without(name: str) -> Heuristics:
    return dataclasses.replace(ALL, **{name: False})


def branches(net: Any) -> Graph:
    """A depthwise convolution, then a long branch before a short one."""
    x = net.conv(net.conv(net.input(8, 8, 6), 16, (1, 1)), 16, pads=PAD, groups=16)
    a = net.conv(net.conv(x, 16, (1, 1)), 16, (1, 1))
    found: Graph = net.graph(net.add(a, net.conv(x, 16, (1, 1))))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_program_without_a_heuristic_is_exact(name: str, new_net: Any) -> None:
    net = new_net(1)
    graph = branches(net)
    program = finish(initial_schedule(graph, HW, without(name)))
    values = net.values()
    (output,) = (port.tensor for port in graph.outputs)
    np.testing.assert_array_equal(emu.run(program, values).outputs[output], golden.run(graph, values)[output])


@pytest.mark.parametrize(
    ("name", "field"),
    [("overlap", "overlap"), ("bank_preferences", "preferences"), ("strategies", "order"), ("clock_order", "clocked"),
     ("short_branches", "graph"), ("eager", "eager")],
)  # fmt: skip
def test_a_switch_narrows_the_first_settings(name: str, field: str, new_net: Any) -> None:
    """Fewer values of one field, and of no other."""
    graph = branches(new_net(1))

    def values(use: Heuristics) -> dict[str, set[Any]]:
        points = [s for group in search.first_points(lower.lower(graph, HW, use)) for s in group]
        names = ("overlap", "preferences", "order", "clocked", "eager")
        found: dict[str, set[Any]] = {one: {getattr(s, one) for s in points} for one in names}
        return {**found, "graph": {tuple(op.name for op in s.graph.ops) for s in points}}

    everything, fewer = values(ALL), values(without(name))
    assert {one for one in everything if everything[one] != fewer[one]} == {field}
    assert fewer[field] < everything[field]


def test_descent_and_column_groups_are_gone(new_net: Any) -> None:
    net = new_net(2)
    y = net.input(96, 1, 1)
    for channels in (128, 64, 100):
        y = net.conv(y, channels, (1, 1))
    graph, dense = net.graph(y), preset("ulx3s-85f-dense")
    begun = initial_schedule(graph, dense, without("descent"))
    assert finish(begun).cycles == begun.candidate.cycles
    for name, together in (("lookahead", True), ("column_groups", False)):
        code = finish(initial_schedule(graph, dense, without(name))).code["array"]
        assert any(i.nt_n > 1 for i in code if isinstance(i, Array)) == together


def test_the_unit_of_a_depthwise_convolution(new_net: Any) -> None:
    """With a stride of 7 the depthwise unit meets 49 times the pixels; without the choice it gets it all the same."""
    net = new_net(3)
    graph = net.graph(net.conv(net.input(8, 24, 24), 8, strides=(7, 7), groups=8))
    switches = ALL, without("fewest_cycles_unit")
    used = [bool(initial_schedule(graph, HW, use).candidate.code["depthwise"]) for use in switches]
    assert used == [False, True]
