"""The scheduler's small parts, each against its definition."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from onnxhw import fixed, golden
from onnxhw.errors import UnsupportedError
from onnxhw.ir.graph import Conv
from onnxhw.ir.windows import Window
from onnxhw.sched.aliases import find_aliases
from onnxhw.sched.alloc import Needs, allocate, banks_meet, share_banks
from onnxhw.sched.certificate import certify, drain_bias
from onnxhw.sched.degenerate_channels import channel_scale
from onnxhw.sched.operation_order import short_branches_first
from onnxhw.sched.task import window_rows
from onnxhw.sched.tiling import even, limit


def test_banks_meet_is_what_it_says() -> None:
    random = np.random.default_rng(1)
    for _ in range(2000):
        a, b, words = (int(v) for v in random.integers([0, 0, 1], [64, 64, 24]))
        steps = np.arange(words)
        assert banks_meet(a, b, words, 16) == bool(((a + steps) // 16 == (b + steps) // 16).any())


def test_share_banks_is_what_it_says() -> None:
    random = np.random.default_rng(2)
    for _ in range(2000):
        a, n, b, m = (int(v) for v in random.integers([0, 1, 0, 1], [64, 40, 64, 40]))
        banks = set((np.arange(a, a + n) // 16).tolist()) & set((np.arange(b, b + m) // 16).tolist())
        assert share_banks(a, n, b, m, 16) == bool(banks)


@pytest.mark.parametrize("order", ["size", "birth", "tied"])
def test_allocation_never_overlaps_the_living(order: str, configure: Any) -> None:
    random = np.random.default_rng(3)
    config = configure(4, 4, 4, 2, act_depth=64)
    for _ in range(200):
        births = random.integers(0, 20, 12)
        life = {f"r{i}": (int(b), int(b + random.integers(0, 8))) for i, b in enumerate(births)}
        size = {name: int(random.integers(1, 60)) for name in life}
        placed = allocate(Needs(size, life), config, order, preferences=False)
        if placed is None:
            continue
        for one in life:
            assert 0 <= placed[one] <= config.act_words - size[one]
            for two in life:
                together = life[one][0] <= life[two][1] and life[two][0] <= life[one][1]
                if one < two and together:
                    assert placed[one] + size[one] <= placed[two] or placed[two] + size[two] <= placed[one]


def test_window_rows_are_the_hull_of_the_taps() -> None:
    for stride, pad, kernel, dilation in [(1, 1, 3, 1), (2, 0, 3, 1), (3, 2, 2, 3), (1, 5, 2, 1)]:
        taps = [y * stride - pad + k * dilation for y in range(2, 5) for k in range(kernel)]
        seen = Window((1, kernel), (1, stride), (1, dilation), (0, pad, 0, 0))
        assert window_rows((2, 5), seen, 1, 9) == (max(0, min(taps)), min(9, max(taps) + 1))
        assert window_rows((2, 5), seen, 0, 9) == (2, 5)
    low, high = window_rows((0, 1), Window((2, 1), pads=(5, 0, 0, 0)), 0, 9)
    assert low >= high  # in the padding altogether


def test_cuts() -> None:
    assert even(10, 3) == (0, 3, 6, 10)
    assert even(2, 5) == (0, 1, 2)
    assert limit((0, 7, 10), 3) == (0, 2, 4, 7, 10)
    assert limit((0, 2, 3), 3) == (0, 2, 3)


def test_the_certificate_bounds_every_sum_and_is_tight(new_net: Any) -> None:
    net = new_net(11)
    name = net.conv(net.input(3, 6, 6), 5, pads=(1, 1, 1, 1))
    op, graph = net.ops[0], net.graph(name)
    zero = graph.tensors[op.inputs[0]].zero_point
    sums = certify(op, zero, (-128, 127))
    np.testing.assert_array_equal(sums.bias, op.bias - zero * op.weight.astype(np.int64).sum(axis=(1, 2, 3)))
    for channel in range(5):
        worst = np.where(op.weight[channel] > 0, 127, -128).astype(np.int64) - zero
        total = int((worst * op.weight[channel]).sum() + op.bias[channel])
        assert total == sums.high[channel]
        low = np.where(op.weight[channel] > 0, -128, 127).astype(np.int64) - zero
        assert int((low * op.weight[channel]).sum() + op.bias[channel]) == sums.low[channel]


def test_accumulators_that_are_too_narrow_are_refused_with_the_numbers(new_net: Any) -> None:
    net = new_net(12)
    net.conv(net.input(64, 6, 6), 2)
    weight = np.full((2, 64, 3, 3), 127, np.int8)
    op = dataclasses.replace(net.ops[0], weight=weight)
    reach = 64 * 9 * 127 * 128
    with pytest.raises(UnsupportedError, match=f"E4301 .*conv0.*channel 0 can reach -{reach} .*beyond 24 bits"):
        certify(op, 0, (-128, 127)).fit(op, range(2), np.zeros(2, np.int64), 24)
    clamped = certify(op, 0, (-1, 1))  # a clamped producer makes it fit
    clamped.fit(op, range(2), np.zeros(2, np.int64), 24)
    with pytest.raises(UnsupportedError, match=f"E4301 .*what accumulates of .* channel 1 can .* {1 << 23}, "):
        clamped.fit(op, range(1, 2), np.array([(1 << 23) - 64 * 9 * 127]), 24)


def test_what_the_array_adds_comes_off_the_bias_modulo_two_to_the_32() -> None:
    assert drain_bias(5, 7) == -2
    assert drain_bias(-(1 << 31), 1) == (1 << 31) - 1
    assert drain_bias((1 << 31) - 1, -2) == -(1 << 31) + 1


def narrow(multiplier: float, bias: int, weight: int, low: int, high: int, zero: int) -> None:
    """A channel of one weight keeps its outputs for every input."""
    op = Conv(
        "c", ("x",), "y", weight=np.full((1, 1, 1, 1), weight, np.int8), bias=np.array([bias], np.int32),
        multiplier=np.array([multiplier], np.float32),
    )  # fmt: skip
    found = channel_scale(op, 0, low, high, bias, zero)
    sums = np.arange(low, high + 1)
    wanted = fixed.requantize(sums, np.float32(multiplier), zero)
    values = np.zeros_like(sums) if found.constant else sums - bias
    got = fixed.lane_drain(values + found.scale.bias, found.scale, False, zero, -128, 127)
    np.testing.assert_array_equal(got, wanted)


def test_large_sums_of_few_values_keep_their_outputs() -> None:
    narrow(2.3024772e-07, 99174816, 1, 99105456, 99198276, -128)  # one output value
    narrow(6.950277e-07, 26571660, 1, 26480370, 26636685, -128)  # two
    narrow(6.950277e-07, -26571660, 1, -26636685, -26480370, 3)
    with pytest.raises(fixed.NotProvable):
        narrow(6.950277e-07, 26571660, 1, 20000000, 36636685, -128)  # many


def test_ranges_hold(new_net: Any) -> None:
    net = new_net(14)
    x = net.conv(net.input(3, 8, 8), 6)
    y = net.concat(net.table(x), net.max_pool(net.add(x, net.conv(x, 6, (1, 1))), (1, 1)))
    graph = net.graph(y)
    ranges = graph.ranges()
    for name, values in golden.run(graph, net.values()).items():
        assert ranges[name][0] <= values.min()
        assert values.max() <= ranges[name][1]


def test_short_branches_come_first(new_net: Any) -> None:
    net = new_net(15)
    x = net.input(4, 6, 6)
    a = net.conv(net.conv(x, 4, (1, 1)), 4, (1, 1))
    s = net.conv(x, 4, (1, 1))
    graph = net.graph(net.add(a, s))
    assert [op.name for op in short_branches_first(graph).ops] == ["conv2", "conv0", "conv1", "add3"]


def test_only_aligned_parts_of_a_concatenation_lie_in_place(new_net: Any, configure: Any) -> None:
    config = configure(4, 4, 4, 2)
    net = new_net(16)
    x = net.input(3, 4, 4)
    parts = [net.conv(x, channels, (1, 1)) for channels in (4, 6, 2, 8)]
    aliases = find_aliases(net.graph(net.concat(*parts)), config)
    # 4 at 0 and 8 at 12 are whole words; 6 at 4 ends inside a word and 2 at 10 begins inside one.
    assert {position for _, position in aliases.copied} == {1, 2}
    assert aliases.of[parts[3]].block == 3
