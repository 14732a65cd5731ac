"""Scheduled programs in the emulator give the golden model's integers, on every tensor, in any legal order."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from legal_orders import random_order

from onnxhw import emu, golden
from onnxhw.config import HwConfig
from onnxhw.ir.graph import Graph
from onnxhw.ir.verify import verify
from onnxhw.sched import schedule

PAD = (1, 1, 1, 1)
NetType = Any


def equal(net: NetType, graph: Graph, hw: HwConfig) -> None:
    """Schedule, run in the timeline's order and in a random legal one, compare all tensors."""
    verify(graph)
    program = schedule(graph, hw)
    values = net.values()
    wanted = golden.run(graph, values)
    machine = emu.Emulator(program)
    traced = machine.run(values, trace=True)
    assert machine.cycles == program.cycles
    assert set(traced.tensors) == set(graph.tensors)
    for name, found in traced.tensors.items():
        np.testing.assert_array_equal(found, wanted[name], err_msg=f"{name} made by {program.tensors[name].op!r}")
    for seed in range(2):
        outputs = emu.run(program, values, order=random_order(program.code, seed)).outputs
        for name, found in outputs.items():
            np.testing.assert_array_equal(found, wanted[name], err_msg=f"{name} in random order {seed}")


def conv_cases() -> dict[str, Callable[[NetType], str]]:
    """A convolution of every kind."""
    return {
        "pointwise": lambda n: n.conv(n.input(7, 5, 6), 9, (1, 1)),
        "3x3 padded": lambda n: n.conv(n.input(7, 9, 8), 5, pads=PAD),
        "asymmetric": lambda n: n.conv(n.input(3, 10, 9), 6, (5, 4), (2, 2), pads=(2, 1, 1, 3)),
        "stride 3x1": lambda n: n.conv(n.input(4, 11, 9), 6, (3, 3), (3, 1)),
        "dilated": lambda n: n.conv(n.input(4, 11, 12), 6, (3, 2), dilations=(2, 3), pads=(2, 0, 3, 1)),
        "depthwise": lambda n: n.conv(n.input(13, 7, 6), 13, pads=PAD, groups=13),
        "depthwise doubled": lambda n: n.conv(n.input(6, 5, 5), 12, pads=PAD, groups=6),
        "grouped": lambda n: n.conv(n.input(12, 6, 5), 18, pads=PAD, groups=3),
        "groups of odd size": lambda n: n.conv(n.input(15, 4, 5), 9, (2, 2), groups=3),
        "gemm": lambda n: n.conv(n.input(37, 1, 1), 21, (1, 1)),
        "wide row": lambda n: n.conv(n.input(3, 3, 150), 4, pads=PAD),
        "tall": lambda n: n.conv(n.input(2, 90, 3), 4, (5, 3), pads=(2, 1, 2, 1)),
        "mostly padding": lambda n: n.conv(n.input(3, 2, 2), 4, (3, 3), pads=(4, 4, 4, 4)),
        "whole kernel": lambda n: n.conv(n.input(6, 4, 5), 10, (4, 5)),
    }


@pytest.mark.parametrize("case", conv_cases())
def test_convolutions(case: str, hw: HwConfig, new_net: NetType) -> None:
    net = new_net(len(case))
    y = conv_cases()[case](net)
    equal(net, net.graph(y), hw)


def vector_cases() -> dict[str, Callable[[NetType], str]]:
    """Every operation of the vector unit."""
    return {
        "add": lambda n: n.add(n.input(11, 6, 5), n.input(11, 6, 5)),
        "add itself": lambda n: (lambda x: n.add(x, x))(n.input(6, 3, 5)),
        "mul": lambda n: n.mul(n.input(11, 6, 5), n.input(11, 6, 5)),
        "mul by itself": lambda n: (lambda x: n.mul(x, x))(n.input(6, 3, 5)),
        "mul broadcast": lambda n: n.mul(n.input(11, 6, 5), n.input(11, 1, 1)),
        "broadcast mul": lambda n: n.mul(n.input(11, 1, 1), n.input(11, 6, 5)),
        "matmul": lambda n: n.mat_mul(n.input(11, 6, 5), n.input(11, 5, 7)),
        "matmul of a transposed": lambda n: n.mat_mul(n.input(3, 5, 6), n.input(3, 5, 5), transposed_a=True),
        "matmul of b transposed": lambda n: n.mat_mul(n.input(9, 4, 5), n.input(9, 3, 5), transposed_b=True),
        "matmul of both transposed": lambda n: n.mat_mul(n.input(2, 5, 4), n.input(2, 3, 5), True, True),
        "matmul of squares": lambda n: n.mat_mul(n.input(4, 6, 6), n.input(4, 6, 6)),
        "matmul of one pixel": lambda n: n.mat_mul(n.input(13, 1, 1), n.input(13, 1, 1)),
        "matmul of a long row": lambda n: n.mat_mul(n.input(3, 2, 140), n.input(3, 2, 140), transposed_b=True),
        "matmul of convolutions": lambda n: n.mat_mul(n.conv(n.input(3, 6, 5), 9), n.conv(n.input(3, 5, 8), 9)),
        "max pool": lambda n: n.max_pool(n.input(9, 8, 7), (2, 3), strides=(2, 1), pads=(1, 0, 0, 2)),
        "max pool dilated": lambda n: n.max_pool(n.input(3, 8, 9), (2, 2), dilations=(3, 2)),
        "average": lambda n: n.average_pool(n.input(9, 8, 7), (2, 2), strides=(2, 2)),
        "average, border not counted": lambda n: n.average_pool(n.input(6, 7, 9), (3, 3), strides=(2, 1), pads=PAD),
        "average, border counted": lambda n: n.average_pool(n.input(6, 7, 9), (3, 3), pads=PAD, count_pad=True),
        "global average": lambda n: n.global_average(n.input(19, 6, 7)),
        "table": lambda n: n.table(n.input(10, 5, 4)),
        "two tables": lambda n: n.table(n.table(n.input(10, 5, 4))),
    }


@pytest.mark.parametrize("case", vector_cases())
def test_vector_operations(case: str, hw: HwConfig, new_net: NetType) -> None:
    net = new_net(len(case))
    y = vector_cases()[case](net)
    equal(net, net.graph(y), hw)


@pytest.mark.parametrize("sizes", [(8, 8), (16, 3), (3, 5, 7), (40, 40), (5, 40, 2), (1, 1, 1, 1)])
def test_concat(sizes: tuple[int, ...], hw: HwConfig, new_net: NetType) -> None:
    net = new_net(sum(sizes))
    x = net.input(3, 6, 5)
    y = net.concat(*(net.conv(x, size, pads=PAD) for size in sizes))
    equal(net, net.graph(y, net.conv(y, 6, (1, 1))), hw)


def test_concat_of_inputs_twice_nested_and_shared(hw: HwConfig, new_net: NetType) -> None:
    net = new_net(5)
    x, w = net.input(hw.word, 4, 3), net.input(2 * hw.word, 4, 3)
    inner = net.concat(x, w)
    outer = net.concat(inner, x, x)
    equal(net, net.graph(outer, net.table(inner), x), hw)


def test_add_of_two_parts_of_one_concat(hw: HwConfig, new_net: NetType) -> None:
    net = new_net(6)
    x = net.input(3, 5, 4)
    a, b = net.conv(x, hw.word, (1, 1)), net.conv(x, hw.word, (1, 1))
    joined = net.concat(a, b)
    equal(net, net.graph(joined, net.add(a, b)), hw)


def test_reshape_that_keeps_the_channels_is_free(hw: HwConfig, new_net: NetType) -> None:
    net = new_net(7)
    x = net.input(5, 4, 6)
    y = net.reshape(net.conv(x, 6, pads=PAD), 6, 8, 3)
    same = net.reshape(y, 6, 8, 3)
    equal(net, net.graph(net.conv(y, 4, (2, 2)), net.add(y, same)), hw)


def test_input_as_output_and_several_outputs(hw: HwConfig, new_net: NetType) -> None:
    net = new_net(8)
    x = net.input(5, 4, 6)
    y = net.conv(x, 6)
    equal(net, net.graph(x, y, net.global_average(y)), hw)


def test_output_that_is_an_input_and_nothing_else(hw: HwConfig, new_net: NetType) -> None:
    net = new_net(8)
    equal(net, net.graph(net.input(5, 4, 6)), hw)


def test_residual_network(hw: HwConfig, new_net: NetType) -> None:
    net = new_net(9)
    x = net.conv(net.input(3, 13, 11), 10, pads=PAD)
    y = net.conv(net.conv(x, 10, pads=PAD), 10, pads=PAD)
    x = net.add(x, y)
    y = net.conv(net.conv(x, 20, strides=(2, 2), pads=PAD), 20, pads=PAD)
    x = net.add(net.conv(x, 20, (1, 1), strides=(2, 2)), y)
    x = net.conv(net.global_average(x), 7, (1, 1))
    equal(net, net.graph(x), hw)


def test_memory_is_reused_when_it_is_tight(hw: HwConfig, new_net: NetType, configure: Any) -> None:
    net = new_net(10)
    x = net.input(4, 12, 12)
    for _ in range(9):
        x = net.conv(x, hw.word, pads=PAD)
    tight = configure(hw.rows, hw.cols, hw.word, hw.lanes, load_rows=hw.load_rows, act_depth=128, act_banks=4)
    equal(net, net.graph(x), tight)


def random_net(net: NetType) -> Graph:
    """A random network of a dozen operations."""
    choose = net.random
    pool = [net.input(int(choose.integers(1, 12)), 9, 8)]

    def like(name: str) -> str:
        shape = net.tensors[name].shape
        same = [other for other in pool if net.tensors[other].shape == shape]
        return str(choose.choice(same))

    for _ in range(12):
        x = str(choose.choice(pool[-4:]))
        _, channels, height, width = net.tensors[x].shape
        match int(choose.integers(0, 9)):
            case 0 | 1:
                pool.append(net.conv(x, int(choose.integers(1, 14)), pads=PAD))
            case 2:
                stride = (2, 2) if min(height, width) > 3 else (1, 1)
                pool.append(net.conv(x, int(choose.integers(1, 20)), pads=(0, 1, 2, 1), strides=stride))
            case 3:
                pool.append(net.conv(x, channels, pads=PAD, groups=channels))
            case 4:
                pool.append(net.add(x, like(x)))
            case 5:
                pool.append(net.mul(x, net.global_average(x)))
            case 6 if min(height, width) > 2:
                pool.append(net.max_pool(x, (2, 2), pads=(0, 1, 1, 0)))
            case 7:
                pool.append(net.table(x))
            case 8:
                pool.append(net.concat(net.conv(x, int(choose.integers(1, 9)), (1, 1)), net.conv(x, 3, (1, 1))))
            case _:
                pool.append(net.average_pool(x, (3, 3), pads=PAD))
    found: Graph = net.graph(pool[-1], pool[-2])
    return found


@pytest.mark.parametrize("seed", range(4))
def test_random_networks(seed: int, hw: HwConfig, new_net: NetType) -> None:
    net = new_net(1000 + seed)
    equal(net, random_net(net), hw)


def test_column_tiles_of_small_maps_are_streamed_together(hw: HwConfig, new_net: NetType) -> None:
    hw = dataclasses.replace(hw, load_rows=hw.rows)
    net = new_net(11)
    x = net.conv(net.input(3, 4, 4), 19, (3, 3))
    x = net.conv(x, 37, (2, 2))
    for channels in (41, 6, 33):
        x = net.conv(x, channels, (1, 1))
    graph = net.graph(x)
    program = schedule(graph, hw)
    assert max(i.nt_n for i in program.code["array"]) > 1
    if hw.word % hw.used_cols == 0:
        assert max(i.cb_n for i in program.code["vector"]) > 1
    equal(net, graph, hw)
