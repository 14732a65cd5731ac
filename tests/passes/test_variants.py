"""Constant channels left out and inputs packed: the model's tensors are what they were, and cycles fall."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnxhw import emu, golden
from onnxhw.bisect import compare
from onnxhw.compiler import compile_graph
from onnxhw.config import HwConfig
from onnxhw.engines import open as open_engine
from onnxhw.errors import DoesNotFitError, UnsupportedError
from onnxhw.ir.channels import VARIES
from onnxhw.ir.graph import Conv, Copy, Graph, Piece, Tensor
from onnxhw.ir.verify import verify
from onnxhw.passes.constant_propagation import constant_channels
from onnxhw.passes.dead_channel_elimination import eliminate_dead_channels
from onnxhw.passes.variants import variants
from onnxhw.program.container import dumps, loads
from onnxhw.program.layout import Place
from onnxhw.program.model import Entry
from onnxhw.program.parts import Program
from onnxhw.program.storage import ElidedChannels
from onnxhw.sched import fastest, schedule
from onnxhw.sched.scheduler import initial_schedule

PAD = (1, 1, 1, 1)
Values = dict[str, Any]


def starve(net: Any, y: str, channels: list[int], at_zero: bool = False) -> str:
    """Take the weights of output channels of the convolution that makes `y`; `at_zero`: they hold its zero point."""
    (op,) = [op for op in net.ops if op.output == y]
    op.weight[channels] = 0
    if at_zero:
        op.bias[channels] = 0
    return y


def grow(net: Any, data: st.DataObject, x: str) -> str:
    """One more operation on `x`."""
    _, channels, height, width = net.tensors[x].shape
    kind = data.draw(st.sampled_from(KINDS))
    pads = data.draw(st.sampled_from([(0, 0, 0, 0), PAD, (0, 0, 1, 1), (2, 1, 0, 1)]))
    kernel = data.draw(st.sampled_from([(1, 1), (3, 3), (2, 3)]))
    if height + min(pads[0], pads[2]) < kernel[0] or width < kernel[1]:
        kernel, pads = (1, 1), (0, 0, 0, 0)
    if kind in ("conv", "depthwise", "grouped"):
        groups = {"conv": 1, "depthwise": channels, "grouped": 2 if channels % 2 == 0 else 1}[kind]
        outputs = channels * data.draw(st.integers(1, 2)) if groups > 1 else data.draw(st.integers(1, 9))
        strides = data.draw(st.sampled_from([(1, 1), (2, 1)]))
        y = net.conv(x, outputs, kernel, strides, pads=pads, groups=groups)
        dead = data.draw(st.lists(st.integers(0, outputs - 1), max_size=outputs, unique=True))
        return starve(net, y, dead, data.draw(st.booleans()))
    if kind == "residual":
        y = net.conv(x, channels, (3, 3), pads=PAD)
        dead = data.draw(st.lists(st.integers(0, channels - 1), max_size=channels, unique=True))
        return str(net.add(x, starve(net, y, dead)))
    if kind == "gate":
        y = net.conv(net.global_average(x), channels, (1, 1))
        return str(net.mul(x, starve(net, y, [0])))
    if kind == "product":
        y = net.conv(x, channels, (3, 3), pads=PAD)
        return str(net.mat_mul(starve(net, y, [0]), x, transposed_b=True))
    if kind == "concat":
        y = net.conv(x, data.draw(st.integers(1, 5)), (1, 1))
        return str(net.concat(x, starve(net, y, [0])))
    if kind == "pool":
        pads = pads if kernel != (1, 1) else (0, 0, 0, 0)
        if data.draw(st.booleans()):
            return str(net.max_pool(x, kernel, pads=pads))
        return str(net.average_pool(x, kernel, pads=pads, count_pad=data.draw(st.booleans())))
    if kind == "copy":
        return framed(net, x, data.draw(st.sampled_from([0, net.tensors[x].zero_point])))
    if kind == "reshape":
        return str(net.reshape(x, channels, width, height))
    return str(net.table(x))


KINDS = ["conv", "conv", "depthwise", "grouped", "residual", "gate", "product", "concat", "pool", "copy", "reshape"]
KINDS += ["table"]


def network(new_net: Any, data: st.DataObject) -> tuple[Any, Graph]:
    """A random chain that begins with a convolution and has dead channels."""
    net = new_net(data.draw(st.integers(0, 1 << 16)))
    x = net.input(data.draw(st.integers(1, 4)), data.draw(st.integers(3, 7)), data.draw(st.integers(3, 6)))
    kernel = data.draw(st.sampled_from([(3, 3), (3, 1), (2, 3), (1, 1)]))
    pads = data.draw(st.sampled_from([(0, 0, 0, 0), PAD, (2, 0, 1, 3), (-1, 0, 1, 0)]))
    kernel = (2, 1) if pads[0] < 0 else kernel
    y = net.conv(x, data.draw(st.integers(1, 9)), kernel, data.draw(st.sampled_from([(1, 1), (2, 3)])), pads=pads)
    made = [y]
    for _ in range(data.draw(st.integers(0, 5))):
        made.append(grow(net, data, made[-1]))
    graph = net.graph(*dict.fromkeys([made[-1], data.draw(st.sampled_from(made))]))
    verify(graph)
    return net, graph


def stored(entry: Entry, values: Any) -> Any:
    return np.concatenate([entry.store(one[None]) for one in values])


relaxed = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@relaxed
@given(st.data())
def test_what_is_known_is_so(new_net: Any, data: st.DataObject) -> None:
    net, graph = network(new_net, data)
    known = constant_channels(graph)
    for name, values in golden.run(graph, net.values()).items():
        for channel, value in enumerate(known[name]):
            assert value == VARIES or (values[:, channel] == value).all(), (name, channel)


def framed(net: Any, x: str, fill: int) -> str:
    """A Copy of `x` below a row of `fill`."""
    first, name = net.tensors[x], f"copied{len(net.tensors)}"
    _, channels, height, width = first.shape
    net.tensors[name] = Tensor(name, (1, channels, height + 1, width), first.scale, first.zero_point)
    piece = Piece(0, 0, width, 1, height, width, 1)
    net.ops.append(Copy(f"copy{len(net.ops)}", (x,), name, pieces=(piece,), fill=fill))
    return name


@pytest.mark.parametrize("at_zero", [False, True])
@pytest.mark.parametrize("count_pad", [False, True])
def test_a_constant_is_known_exactly_until_a_border_shows(at_zero: bool, count_pad: bool, new_net: Any) -> None:
    """Channel 0 has no weights; what is made of it is known if and only if it is one value."""
    net = new_net(11)
    x = net.conv(net.input(2, 5, 6), 3, (1, 1))
    starve(net, x, [0], at_zero)
    made = [
        net.average_pool(x, (3, 3), pads=PAD, count_pad=count_pad),
        net.max_pool(x, (3, 3), pads=PAD),
        net.max_pool(x, (2, 2), pads=(3, 0, 0, 0)),
        net.conv(x, 3, (3, 3), pads=PAD, groups=3),
        net.conv(x, 3, (3, 3), groups=3),
        net.conv(x, 3, (3, 3), pads=(0, 0, 1, 1), groups=3),
        framed(net, x, 0),
        framed(net, x, net.tensors[x].zero_point),
        net.table(x),
        net.add(x, x),
        net.reshape(x, 3, 6, 5),
        net.mat_mul(x, net.table(x), transposed_b=True),
    ]
    graph = net.graph(*made)
    values, known = golden.run(graph, net.values()), constant_channels(graph)
    varies = 0
    for name in (x, *made):
        one = np.unique(values[name][:, 0])
        varies += len(one) > 1
        assert known[name][0] == (one[0] if len(one) == 1 else VARIES), name
    assert varies == {(False, False): 5, (False, True): 6, (True, False): 2, (True, True): 2}[at_zero, count_pad]


@relaxed
@given(st.data())
def test_every_variant_means_the_model(new_net: Any, hw: HwConfig, data: st.DataObject) -> None:
    """The golden model of the rewritten graph on what is kept of the inputs gives what is kept of every tensor."""
    net, graph = network(new_net, data)
    values = net.values()
    wanted = golden.run(graph, values)
    for variant in (each for group in variants(graph, hw) for each in group):
        verify(variant.graph)
        entries = {}
        for name, tensor in variant.graph.tensors.items():
            storage, model = variant.storage.get(name, (None, None))
            place = Place(0, 0, 0, tensor.shape)
            entries[name] = Entry(name, place, tensor.scale, tensor.zero_point, storage=storage, model=model)
            assert entries[name].shape == graph.tensors[name].shape
        found = golden.run(variant.graph, {name: entries[name].store(array) for name, array in values.items()})
        for name, array in found.items():
            np.testing.assert_array_equal(entries[name].restore(array), wanted[name], err_msg=name)


@settings(relaxed, max_examples=25)
@given(st.data())
def test_compiled_programs_give_every_tensor_of_the_model(new_net: Any, hw: HwConfig, data: st.DataObject) -> None:
    net, graph = network(new_net, data)
    values = net.values()
    try:
        program = compile_graph(graph, hw)
    except (DoesNotFitError, UnsupportedError):
        return
    again = loads(dumps(Program.of(program))).only()
    assert again.tensors == program.tensors
    wanted = golden.run(graph, values)
    machine = emu.Emulator(again)
    result = machine.run(values, trace=True)
    assert machine.cycles == program.cycles
    assert set(result.tensors) == set(again.tensors)
    for name, array in {**result.tensors, **result.outputs}.items():
        np.testing.assert_array_equal(array, wanted[name], err_msg=name)


def dead_net(new_net: Any, at_zero: bool) -> tuple[Any, Graph]:
    """Dead channels before a padded depthwise layer; what follows it must see their border, unless they are zero."""
    net = new_net(6)
    x = net.conv(net.input(8, 6, 6), 16, (1, 1))
    starve(net, x, list(range(4, 16)), at_zero)
    y = net.conv(x, 16, (3, 3), pads=PAD, groups=16)
    return net, net.graph(net.conv(y, 6, (1, 1)))


def test_dead_channels_go_through_a_depthwise_layer_at_the_zero_point_only(new_net: Any) -> None:
    _, graph = dead_net(new_net, at_zero=True)
    reduced = eliminate_dead_channels(graph)
    assert reduced is not None
    assert [op.weight.shape for op in reduced.graph.ops if isinstance(op, Conv)] == [
        (4, 8, 1, 1), (4, 1, 3, 3), (6, 4, 1, 1),
    ]  # fmt: skip
    assert [op.groups for op in reduced.graph.ops if isinstance(op, Conv)] == [1, 4, 1]
    _, graph = dead_net(new_net, at_zero=False)
    assert eliminate_dead_channels(graph) is None


def test_constants_that_a_border_shows_come_last_and_cost_no_weights(new_net: Any, configure: Any) -> None:
    net = new_net(9)
    x = net.conv(net.input(32, 6, 6), 16, (1, 1))
    starve(net, x, list(range(0, 16, 2)))
    y = net.conv(x, 16, (3, 3), pads=PAD, groups=16)
    graph = net.graph(net.conv(y, 6, (1, 1)))
    reduced = eliminate_dead_channels(graph)
    assert reduced is not None
    order = ElidedChannels((*range(1, 16, 2), *range(0, 16, 2)), ())
    assert reduced.storage == {name: (order, (1, 16, 6, 6)) for name in (x, y)}
    hw = configure(4, 4, 4, 2)
    program = compile_graph(graph, hw)
    assert program.cycles < schedule(graph, hw).cycles
    assert len(program.weights) < len(schedule(graph, hw).weights)
    values = net.values()
    wanted = golden.run(graph, values)
    for name, found in emu.run(program, values, trace=True).tensors.items():
        np.testing.assert_array_equal(found, wanted[name], err_msg=name)


def test_an_input_keeps_the_order_of_its_channels(new_net: Any) -> None:
    """A constant channel that is added to an input stays where the input has it."""
    net = new_net(12)
    x = net.input(4, 5, 5)
    graph = net.graph(net.add(x, starve(net, net.conv(x, 4, pads=PAD), [0])))
    assert eliminate_dead_channels(graph) is None


@pytest.mark.parametrize(
    ("dead", "shapes"),
    [([2], None), ([2, 3], [(3, 2, 2), (6, 2, 1), (6, 2, 1), (6, 2, 1)]), (range(2, 6), [(2, 2, 2), *3 * [(4, 2, 1)]])],
)
def test_a_reshape_leaves_out_what_nobody_needs_on_its_other_side(dead: Any, shapes: Any, new_net: Any) -> None:
    """Each of 4 channels becomes 2, of which an addition needs those whose other operand varies."""
    net = new_net(13)
    x = starve(net, net.conv(net.input(3, 2, 2), 4, (1, 1)), [1, 2])
    wide = net.reshape(x, 8, 2, 1)
    other = starve(net, net.conv(net.input(3, 2, 1), 8, (1, 1)), list(dead))
    y = net.add(wide, other)
    reduced = eliminate_dead_channels(net.graph(y))
    if shapes is None:
        assert reduced is None
        return
    assert reduced is not None
    verify(reduced.graph)
    assert [reduced.graph.tensors[name].shape[1:] for name in (x, wide, other, y)] == shapes


def test_a_layer_that_is_all_constant_keeps_a_channel(new_net: Any, hw: HwConfig) -> None:
    net = new_net(7)
    y = starve(net, net.conv(net.input(4, 5, 5), 9, (1, 1)), list(range(9)))
    graph = net.graph(y)
    program = compile_graph(graph, hw)
    assert program.tensors[y].place.shape == (1, 1, 5, 5)
    values = net.values()
    np.testing.assert_array_equal(emu.run(program, values).outputs[y], golden.run(graph, values)[y])


def test_bisect_names_the_word_of_the_model_s_element(new_net: Any, hw: HwConfig) -> None:
    net, graph = dead_net(new_net, at_zero=True)
    program = compile_graph(graph, hw)
    name = graph.ops[0].output
    entry = program.tensors[name]
    assert isinstance(entry.storage, ElidedChannels)
    values = net.values()
    with open_engine("golden", hw, graph=graph) as one, open_engine("emulator", hw) as two:
        assert compare(program, values, one, two) is None
        broken = graph.ops[0]
        assert isinstance(broken, Conv)
        broken.bias[3] += 1 << 20
        difference = compare(program, values, one, two)
        assert difference is not None
        assert difference.element[:2] == (0, 3)
        assert difference.word is not None
        assert difference.culprits
        broken.bias[3] -= 1 << 20
        broken.bias[7] += 1 << 20
        difference = compare(program, values, one, two)
        assert difference is not None
        assert (difference.element[1], difference.word) == (7, None)
        assert "its channel is constant and not computed" in difference.error().text()


def test_the_error_names_what_even_the_smallest_variant_needs(new_net: Any, configure: Any) -> None:
    _, graph = dead_net(new_net, at_zero=True)
    hw = configure(4, 4, 4, 2, weight_depth=16)
    needs = []
    for group in variants(graph, hw):
        for variant in group:
            with pytest.raises(DoesNotFitError) as caught:
                initial_schedule(variant.graph, hw)
            needs.append(caught.value.what)
    assert len(set(needs)) > 1
    with pytest.raises(DoesNotFitError) as caught:
        fastest(variants(graph, hw), hw)
    assert caught.value.what == needs[-1]
