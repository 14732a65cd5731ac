"""Inputs as bytes in a row that the array reads unaligned: what they hold, that programs are exact, and cycles fall."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnxhw import emu, golden
from onnxhw.compiler import compile_graph
from onnxhw.config import HwConfig
from onnxhw.errors import DoesNotFitError, InternalError, UsageError
from onnxhw.ir.graph import Graph, Port
from onnxhw.ir.ops.conv import Conv, PackedConv
from onnxhw.ir.verify import verify
from onnxhw.isa.units import Unit
from onnxhw.passes.packed_inputs import Origin, packed_inputs, unpacked
from onnxhw.presets import preset
from onnxhw.program.container import dumps, loads
from onnxhw.program.parts import Program
from onnxhw.program.storage import PackedInput
from onnxhw.sched import check, schedule

PAD = (1, 1, 1, 1)
relaxed = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def able(configure: Any, word: int, step: int, fast: bool = False) -> HwConfig:
    """A configuration that reads unaligned, from multiples of `step` bytes."""
    product = "fast" if fast else "plain"
    found: HwConfig = configure(word, 4, word, 2, unaligned=step, act_depth=1024, inner_product=product)
    return found


def first_layers(new_net: Any, data: st.DataObject) -> Graph:
    """One or two convolutions of one window on an input, and something behind them."""
    net = new_net(data.draw(st.integers(0, 1 << 16)))
    kernel = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    dilations = data.draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    strides = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    pads = data.draw(st.tuples(*[st.integers(-1, 3)] * 4))
    least = [d * (k - 1) + 1 + 2 for k, d in zip(kernel, dilations, strict=True)]
    size = [data.draw(st.integers(low, low + 7)) for low in least]
    x = net.input(data.draw(st.integers(1, 5)), *size)
    made = [
        net.conv(x, data.draw(st.integers(1, 9)), kernel, strides, dilations, pads)
        for _ in range(data.draw(st.integers(1, 2)))
    ]
    graph: Graph = net.graph(*made)
    verify(graph)
    return graph


def test_ways_to_pack_are_the_same_wherever_a_box_lies(new_net: Any) -> None:
    """What is found for one box is taken for all of its kind, by the way's number. The words of one way end with the
    last that can be read, or behind it, as its place has it."""
    net, config = new_net(1), preset("ulx3s-85f+sdram")
    x = net.input(3, 161, 63)
    graph = net.graph(net.conv(x, 16, (3, 3), (2, 2), (1, 1), PAD))
    found = [packed_inputs(graph, config, {x: Origin(above, above, 200, 100)}) for above in range(17)]
    ways = [[kept for way in each for kept, _ in way.storage.values()] for each in found]
    assert len({tuple((kept.row, kept.column) for kept in each) for each in ways}) == 1
    assert all(kept.words <= config.unaligned_words for each in ways for kept in each)


@relaxed
@given(data=st.data(), word=st.sampled_from([4, 8, 16]), step=st.sampled_from([1, 2, 4]), row=st.integers(0, 40),
       col=st.integers(0, 40), more=st.sampled_from([0, 300]))  # fmt: skip
def test_packed_graphs_mean_the_model(
    new_net: Any, configure: Any, data: Any, word: int, step: int, row: int, col: int, more: int
) -> None:
    """For any window: the golden model of the packed graph on packed bytes, and the model's; nothing else is read. As
    a box of a larger tensor, too, at the same bytes of host words as in that."""
    graph = first_layers(new_net, data)
    values = {"t0": np.random.default_rng(1).integers(-128, 128, graph.tensors["t0"].shape).astype(np.int8)}
    wanted = golden.run(graph, values)
    config, window = able(configure, word, step), graph.ops[0].window
    height, width = graph.tensors["t0"].shape[2:]
    origin = Origin(row, col, row + height + more, col + width + more)
    whole, lower = packed_inputs(graph, config), packed_inputs(graph, config, {"t0": origin})
    unit, pads = min(word, 4), window.pads
    phases = [(at - pad) % stride if step > 1 else 0
              for at, pad, stride in zip((row, col), pads, window.strides, strict=False)]  # fmt: skip
    for n, variant in enumerate([*whole, *lower]):
        verify(variant.graph)
        storage, shape = variant.storage["t0"]
        assert isinstance(storage, PackedInput)
        if n >= len(whole):
            there = (row - phases[0]) * storage.row + (col - phases[1]) * storage.column
            assert (storage.first - there) % unit == 0
            assert max(storage.row, storage.column) % max(1, unit // 2) == 0
        stored = storage.store(values["t0"], graph.tensors["t0"].zero_point)
        assert stored.shape == storage.stored_shape(shape) == variant.graph.tensors["t0"].shape
        np.testing.assert_array_equal(storage.restore(stored, shape), values["t0"])
        found = golden.run(variant.graph, {"t0": stored})
        for port in graph.outputs:
            np.testing.assert_array_equal(found[port.tensor], wanted[port.tensor])


@settings(relaxed, max_examples=25)
@given(data=st.data(), word=st.sampled_from([4, 8, 16]), step=st.sampled_from([1, 2]), fast=st.booleans())
def test_programs_are_exact(new_net: Any, configure: Any, data: Any, word: int, step: int, fast: bool) -> None:
    graph, hw = first_layers(new_net, data), able(configure, word, step, fast)
    values = {"t0": np.random.default_rng(2).integers(-128, 128, graph.tensors["t0"].shape).astype(np.int8)}
    program = compile_graph(graph, hw)
    again = loads(dumps(Program.of(program))).only()
    assert again.tensors == program.tensors
    machine = emu.Emulator(again)
    result = machine.run(values, trace=True)
    assert machine.cycles == program.cycles
    wanted = golden.run(graph, values)
    for name, array in {**result.tensors, **result.outputs}.items():
        np.testing.assert_array_equal(array, wanted[name], err_msg=name)
    entry = program.tensors["t0"]
    if isinstance(entry.storage, PackedInput):
        _, channels, height, width = values["t0"].shape
        at = 0, channels - 1, height - 1, width - 1
        where = entry.element(at)
        assert where is not None
        assert entry.store(values["t0"])[where] == values["t0"][at]


@pytest.mark.parametrize(
    ("shape", "outputs", "kernel", "strides", "pads", "reads"),
    [
        ((3, 32, 32), 16, (3, 3), (1, 1), PAD, 2),
        ((1, 49, 10), 16, (10, 4), (2, 2), (4, 1, 5, 1), 3),
        ((3, 48, 48), 8, (3, 3), (2, 2), (0, 0, 1, 1), 2),
        ((3, 40, 40), 8, (7, 7), (2, 2), (3, 3, 3, 3), 10),
        ((1, 28, 28), 8, (5, 5), (1, 1), (2, 2, 2, 2), 3),
        ((1, 20, 20), 8, (1, 9), (1, 2), (0, 4, 0, 4), 1),
        ((1, 20, 20), 8, (9, 1), (2, 1), (4, 0, 4, 0), 1),
        ((3, 20, 20), 8, (1, 7), (1, 2), (0, 3, 0, 3), 2),
        ((3, 20, 20), 8, (7, 1), (2, 1), (3, 0, 3, 0), 2),
        ((3, 96, 96), 8, (7, 7), (2, 2), (2, 2, 3, 3), 10),
        ((3, 20, 20), 8, (3, 3), (1, 1), (2, 2, 2, 2), 3),
    ],
    ids=["IC", "KWS", "VWW", "7x7x3", "5x5x1", "row", "column", "row of 3", "column of 3", "stem", "dilated"],
)
def test_reads_are_as_few_as_two_rows_allow(
    shape: Any, outputs: int, kernel: Any, strides: Any, pads: Any, reads: int, new_net: Any, configure: Any
) -> None:
    net = new_net(3)
    dilations = (2, 2) if (kernel, pads) == ((3, 3), (2, 2, 2, 2)) else (1, 1)
    graph = net.graph(net.conv(net.input(*shape), outputs, kernel, strides, dilations, pads))
    (best, *_) = packed_inputs(graph, configure(16, 4, 16, 2, unaligned=1, act_depth=2048))
    (op,) = best.graph.ops
    assert isinstance(op, PackedConv)
    assert len(op.tiles) == reads


def test_cycles_fall(new_net: Any, configure: Any) -> None:
    """Of two layers, too, that read one input through one window; the ports are the model's."""
    net = new_net(5)
    x = net.input(3, 20, 20)
    graph = net.graph(net.conv(x, 8, (3, 3), pads=PAD), net.conv(x, 5, (3, 3), pads=PAD))
    hw = able(configure, 16, 1)
    program, plain = compile_graph(graph, hw), schedule(graph, hw)
    assert isinstance(program.tensors["t0"].storage, PackedInput)
    assert program.cycles < 0.5 * plain.cycles
    assert program.inputs == [Port("t0", (1, 3, 20, 20), "int8", "t0")] == graph.inputs


def test_what_fits_only_packed_is_packed(new_net: Any, configure: Any) -> None:
    """A pixel to a word, the input takes 400 words of 384, its bytes in a row 120."""
    net = new_net(5)
    graph = net.graph(net.conv(net.input(1, 20, 20), 4, (3, 3), (3, 3), pads=PAD))
    hw, whole_words = (configure(4, 4, 4, 2, act_depth=128, act_banks=3, unaligned=step) for step in (1, 0))
    for config in (hw, whole_words):
        with pytest.raises(DoesNotFitError, match="E5101"):
            schedule(graph, config)
    with pytest.raises(DoesNotFitError, match="E5101"):
        compile_graph(graph, whole_words)
    program, values = compile_graph(graph, hw), net.values()
    np.testing.assert_array_equal(emu.run(program, values).outputs["t1"], golden.run(graph, values)["t1"])


def test_lanes_between_taps_are_no_multiplications(new_net: Any, configure: Any) -> None:
    """Pixels of four bytes for three channels, and what a read brings beyond the window."""
    net = new_net(5)
    graph = net.graph(net.conv(net.input(3, 20, 20), 8, (3, 3), pads=PAD))
    (op,) = graph.ops
    assert isinstance(op, Conv)
    op.weight[:] = 1
    program = compile_graph(graph, able(configure, 16, 4))
    entry = program.tensors["t0"]
    assert isinstance(entry.storage, PackedInput)
    assert entry.storage.column == 4
    assert program.macs == graph.macs() == program.layers[0].macs


@pytest.mark.parametrize("reader", ["pool", "other window", "groups", "output", "1x1"])
def test_inputs_that_are_read_otherwise_stay(reader: str, new_net: Any, configure: Any) -> None:
    net = new_net(4)
    x = net.input(2, 8, 8)
    y = net.conv(x, 4, (1, 1) if reader == "1x1" else (3, 3), groups=2 if reader == "groups" else 1)
    other = {
        "pool": lambda: net.max_pool(x),
        "other window": lambda: net.conv(x, 4, (3, 3), (2, 2)),
        "output": lambda: x,
    }.get(reader, lambda: y)()
    graph, hw = net.graph(*{y: 0, other: 0}), able(configure, 8, 1)
    assert packed_inputs(graph, hw) == []
    why = {"pool": "no convolution", "other window": "2 windows", "output": "an output, too"}.get(reader)
    assert (why or "") in unpacked(graph, hw).get("t0", "")
    assert bool(unpacked(graph, hw)) == (why is not None)  # of others nobody expects it


def test_a_configuration_that_reads_whole_words_says_so(new_net: Any, configure: Any) -> None:
    net = new_net(4)
    graph = net.graph(net.conv(net.input(1, 20, 20), 4, (2, 2), (2, 2)))
    assert unpacked(graph, configure(8, 4, 8, 2)) == {"t0": "8x4 W8 Q2 reads whole words"}
    assert unpacked(graph, able(configure, 8, 1)) == {}


def test_an_input_beyond_the_bank_is_not_packed(new_net: Any, configure: Any) -> None:
    net = new_net(4)
    graph = net.graph(net.conv(net.input(3, 40, 40), 4, (3, 3)))
    assert packed_inputs(graph, able(configure, 8, 1))
    small = configure(8, 4, 8, 2, unaligned=1, act_depth=512)
    assert not packed_inputs(graph, small)
    assert "of which 512 can be read" in unpacked(graph, small)["t0"]


def test_two_inputs_are_both_packed(new_net: Any, configure: Any) -> None:
    net = new_net(6)
    a, b = net.input(1, 9, 9), net.input(3, 9, 9)
    graph = net.graph(net.add(net.conv(a, 4, (3, 3)), net.conv(b, 4, (3, 3))))
    values, hw = net.values(), able(configure, 8, 1)
    program = compile_graph(graph, hw)
    assert all(isinstance(program.tensors[name].storage, PackedInput) for name in (a, b))
    (y,) = [port.tensor for port in graph.outputs]
    np.testing.assert_array_equal(emu.run(program, values).outputs[y], golden.run(graph, values)[y])


@pytest.mark.parametrize(
    "fields",
    [{"split": 3}, {"act_base": 1}, {"a_ow": 3}, {"jump": 63, "split": 2}, {"unaligned": 0}, {"act_base": 60_000}],
)
def test_the_checker_refuses_what_is_not_in_reach(fields: dict[str, int], new_net: Any, configure: Any) -> None:
    net = new_net(7)
    graph = net.graph(net.conv(net.input(2, 12, 12), 4, (3, 3)))
    program = compile_graph(graph, able(configure, 8, 2))
    code = list(program.code[Unit.ARRAY])
    code[0] = code[0].but(**fields)
    with pytest.raises(InternalError, match="E12"):
        check(replace(program, code={**program.code, Unit.ARRAY: code}))


@pytest.mark.parametrize(("word", "rows", "step"), [(8, 4, 1), (8, 8, 3), (12, 12, 4)])
def test_configurations_that_cannot_are_refused(word: int, rows: int, step: int) -> None:
    with pytest.raises(UsageError, match="unaligned must divide"):
        HwConfig("x", rows=rows, cols=4, word=word, lanes=2, unaligned=step)
