"""Inputs as patches of a first convolution: where they are made, what they hold, and that cycles fall."""

from typing import Any

import numpy as np
import pytest

from onnxhw import emu, golden
from onnxhw.compiler import compile_graph
from onnxhw.config import HwConfig
from onnxhw.errors import DoesNotFitError
from onnxhw.ir.graph import Graph, Port
from onnxhw.passes.variants import variants
from onnxhw.program.kept import Patches
from onnxhw.sched import schedule

PAD = (1, 1, 1, 1)


def first_layer(net: Any, pads: tuple[int, int, int, int] = PAD) -> Graph:
    x = net.input(1, 9, 8)
    y = net.conv(x, 7, (3, 3), (2, 1), pads=pads)
    found: Graph = net.graph(y, net.conv(x, 5, (3, 3), (2, 1), pads=pads))
    return found


def test_two_first_layers_share_their_patches_and_cycles_fall(hw: HwConfig, new_net: Any) -> None:
    graph = first_layer(new_net(1))
    program = compile_graph(graph, hw)
    entry = program.tensors["t0"]
    assert entry.kept == Patches((3, 3), (2, 1), (1, 1), PAD)
    assert (entry.shape, entry.place.shape) == ((1, 1, 9, 8), (1, 9, 5, 8))
    assert program.cycles < schedule(graph, hw).cycles
    assert program.inputs == graph.inputs


def test_patches_hold_taps_then_channels_and_the_zero_point_outside() -> None:
    patches = Patches((2, 3), (2, 1), (1, 2), (1, 0, 0, 1))
    values = np.arange(2 * 5 * 6).astype(np.int8).reshape(1, 2, 5, 6)
    kept = patches.store(values, -7)
    assert kept.shape == patches.kept(values.shape) == (1, 12, 3, 3)
    for kh, kw, c, y, x in np.ndindex(2, 3, 2, 3, 3):
        row, col = 2 * y - 1 + kh, x + 2 * kw
        inside = 0 <= row < 5 and 0 <= col < 6
        assert kept[0, (kh * 3 + kw) * 2 + c, y, x] == (values[0, c, row, col] if inside else -7)
    restored = patches.restore(kept, values.shape)
    np.testing.assert_array_equal(restored, values)
    at = patches.element((0, 1, 3, 2), values.shape)
    assert at is not None
    assert kept[at] == values[0, 1, 3, 2]


def test_an_input_whose_last_row_no_window_meets_is_not_traced(hw: HwConfig, new_net: Any) -> None:
    net = new_net(3)
    graph = net.graph(net.conv(net.input(1, 8, 7), 4, (3, 3), (2, 2)))
    program = compile_graph(graph, hw)
    assert not program.tensors["t0"].whole
    values = net.values()
    result = emu.run(program, values, trace=True)
    assert "t0" not in result.tensors
    np.testing.assert_array_equal(result.outputs["t1"], golden.run(graph, values)["t1"])


@pytest.mark.parametrize("reader", ["pool", "other window", "groups", "output", "1x1"])
def test_inputs_that_are_read_otherwise_stay(reader: str, new_net: Any, hw: HwConfig) -> None:
    net = new_net(4)
    x = net.input(2, 8, 8)
    y = net.conv(x, 4, (1, 1) if reader == "1x1" else (3, 3), groups=2 if reader == "groups" else 1)
    other = {
        "pool": lambda: net.max_pool(x),
        "other window": lambda: net.conv(x, 4, (3, 3), (2, 2)),
        "output": lambda: x,
    }.get(reader, lambda: y)()
    graph = net.graph(*{y: 0, other: 0})
    assert not any(variant.kept for group in variants(graph, hw) for variant in group)


def test_where_patches_do_not_fit_the_columns_or_rows_of_the_window_do(new_net: Any, configure: Any) -> None:
    """The window is 3 words for each of 625 pixels, its columns are one, as is the result; there are 1,536."""
    net = new_net(5)
    graph = net.graph(net.conv(net.input(1, 25, 25), 4, (3, 3), pads=PAD))
    hw = configure(4, 4, 4, 2, act_depth=512, act_banks=3)
    program = compile_graph(graph, hw)
    assert program.tensors["t0"].kept == Patches((1, 3), (1, 1), (1, 1), (0, 1, 0, 1))
    assert program.cycles < schedule(graph, hw).cycles


def test_without_patches_they_are_made_only_where_nothing_else_fits(new_net: Any, configure: Any) -> None:
    """As it is, the input takes 625 words; its patches are 3 words for each of 81 pixels."""
    net = new_net(5)
    graph = net.graph(net.conv(net.input(1, 25, 25), 4, (3, 3), (3, 3), pads=PAD))
    roomy, tight = (configure(4, 4, 4, 2, act_depth=depth, act_banks=4) for depth in (512, 128))
    assert compile_graph(graph, roomy, patches=False).tensors["t0"].kept is None
    with pytest.raises(DoesNotFitError):
        schedule(graph, tight)
    program = compile_graph(graph, tight, patches=False)
    assert isinstance(program.tensors["t0"].kept, Patches)
    values = net.values()
    np.testing.assert_array_equal(emu.run(program, values).outputs["t1"], golden.run(graph, values)["t1"])


def test_ports_are_the_model_s(new_net: Any, hw: HwConfig) -> None:
    graph = first_layer(new_net(8))
    assert compile_graph(graph, hw).inputs == [Port("t0", (1, 1, 9, 8), "int8", "t0")]
