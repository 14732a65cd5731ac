"""Copy and cropped windows: every tensor of the scheduled program is the golden model's."""

from typing import Any

import numpy as np
import pytest
from legal_orders import random_order

from onnxhw import emu, golden
from onnxhw.config import HwConfig
from onnxhw.errors import InternalError
from onnxhw.ir.graph import Conv, Copy, Graph, MaxPool, Op, Piece, Port, Tensor
from onnxhw.ir.text import parse, text
from onnxhw.ir.verify import verify
from onnxhw.sched import schedule


def copy(net: Any, inputs: tuple[str, ...], height: int, width: int, pieces: list[Piece], fill: int = 0) -> str:
    """Append a Copy; the inputs take the first one's zero point."""
    first = net.tensors[inputs[0]]
    for name in inputs:
        old = net.tensors[name]
        net.tensors[name] = Tensor(name, old.shape, old.scale, first.zero_point)
    name = f"copied{len(net.tensors)}"
    net.tensors[name] = Tensor(name, (1, first.channels, height, width), first.scale, first.zero_point)
    net.ops.append(Copy(f"copy{len(net.ops)}", inputs, name, pieces=tuple(pieces), fill=fill))
    return name


def equal(net: Any, hw: HwConfig, *outputs: str) -> None:
    """Schedule, run in the timeline's order and in a legal random one, compare all tensors."""
    graph = net.graph(*outputs)
    verify(graph)
    assert text(parse(text(graph, constants=True)), constants=True) == text(graph, constants=True)
    program, values = schedule(graph, hw), net.values()
    wanted = golden.run(graph, values)
    for name, found in emu.run(program, values, trace=True).tensors.items():
        np.testing.assert_array_equal(found, wanted[name], err_msg=name)
    for name, found in emu.run(program, values, order=random_order(program.code, 3)).outputs.items():
        np.testing.assert_array_equal(found, wanted[name], err_msg=name)


H, W = 6, 7
PIECES = {
    "slice": (3, 4, [Piece(0, 2 * W + 1, W, 1, 3, 4)], 0),
    "strided slice": (3, 3, [Piece(0, 1, 2 * W, 3, 3, 2, x=1)], -77),
    "backwards": (H, W, [Piece(0, H * W - 1, -W, -1, H, W)], 0),
    "turned": (W, H, [Piece(0, 0, 1, W, W, H)], 0),
    "pixel everywhere": (4, 5, [Piece(0, 9, 0, 0, 4, 5)], 0),
    "twice as large": (2 * H, 2 * W, [Piece(0, 0, W, 1, H, W, y, x, 2, 2) for y in (0, 1) for x in (0, 1)], 0),
    "framed": (H + 3, W + 3, [Piece(0, 0, W, 1, H, W, 1, 2)], 55),
    "every other pixel": (2 * H, 2 * W - 1, [Piece(0, 0, W, 1, H, W, 1, 0, 2, 2)], -128),
    "nothing": (2, 3, [], 19),
}


@pytest.mark.parametrize("case", PIECES)
def test_copies_of_one_block(case: str, hw: HwConfig, new_net: Any) -> None:
    net = new_net(len(case))
    height, width, pieces, fill = PIECES[case]
    x = net.conv(net.input(5, H, W), 9, pads=(1, 1, 1, 1))
    copied = copy(net, (x,), height, width, pieces, fill)
    equal(net, hw, net.conv(copied, 6, (2, 2), pads=(0, 1, 1, 0)), copied)


def test_copies_of_several_blocks(hw: HwConfig, new_net: Any) -> None:
    net = new_net(4)
    a, b = net.input(7, 3, 5), net.input(7, 4, 5)
    stacked = copy(net, (a, b), 7, 5, [Piece(1, 0, 5, 1, 4, 5), Piece(0, 0, 5, 1, 3, 5, y=4)])
    equal(net, hw, net.max_pool(stacked), net.table(stacked))


@pytest.mark.parametrize("pads", [(-1, -2, -1, 0), (-2, 1, 1, -3), (0, -4, -3, 2)])
def test_negative_pads_leave_rows_and_columns_out(pads: tuple[int, int, int, int], hw: HwConfig, new_net: Any) -> None:
    net = new_net(8)
    x = net.input(6, 8, 9)
    y, z = net.conv(x, 7, (3, 2), (2, 1), pads=pads), net.max_pool(x, (2, 3), strides=(1, 2), pads=pads)
    equal(net, hw, y, z)
    rows, cols = slice(max(0, -pads[0]), 8 + min(0, pads[2])), slice(max(0, -pads[1]), 9 + min(0, pads[3]))
    values = net.values()
    rest = tuple(max(0, pad) for pad in pads)
    small = new_net(8)
    kept = small.input(6, 8 + min(0, pads[0]) + min(0, pads[2]), 9 + min(0, pads[1]) + min(0, pads[3]))
    small.tensors[kept] = Tensor(kept, small.tensors[kept].shape, 0.05, net.tensors[x].zero_point)
    for op in net.ops:
        small.tensors[op.output] = net.tensors[op.output]
        fields = {"kernel": op.kernel} if isinstance(op, MaxPool) else {"weight": op.weight, "bias": op.bias}
        if isinstance(op, Conv):
            fields |= {"multiplier": op.multiplier, "lo": op.lo, "hi": op.hi}
        small.ops.append(type(op)(op.name, (kept,), op.output, strides=op.strides, pads=rest, **fields))
    wanted = golden.run(small.graph(y, z), {kept: np.ascontiguousarray(values[x][:, :, rows, cols])})
    found = golden.run(net.graph(y, z), values)
    for name in (y, z):
        np.testing.assert_array_equal(found[name], wanted[name])


def test_channels_that_meet_only_zeros_are_not_streamed(hw: HwConfig, new_net: Any) -> None:
    net = new_net(2)
    x = net.conv(net.input(4, 5, 5), 40)
    y = net.conv(x, 5, (1, 1))
    weight = net.ops[-1].weight
    weight[:, :31] = 0
    weight[:, 36:] = 0
    equal(net, hw, y)
    graph = net.graph(y)
    few = schedule(graph, hw).cycles
    weight[:, 0], weight[:, 39] = 1, 1
    assert schedule(graph, hw).cycles > few


def one(piece: Piece, channels: int = 2) -> Graph:
    tensors = {"x": Tensor("x", (1, 2, 3, 4), 1.0, 0), "y": Tensor("y", (1, channels, 2, 2), 1.0, 0)}
    ports = [Port(name, tensor.shape, "int8", name) for name, tensor in tensors.items()]
    ops: list[Op] = [Copy("c", ("x",), "y", pieces=(piece, Piece(0, 0, 0, 0, 1, 1)))]
    return Graph("one", tensors, ops, ports[:1], ports[1:])


@pytest.mark.parametrize(
    ("piece", "message"),
    [
        (Piece(1, 0, 0, 0, 1, 1, 1, 1), "is of no operand"),
        (Piece(0, 10, 1, 1, 2, 2, 0, 1), "leaves the result"),
        (Piece(0, 11, 0, 1, 1, 2, 1, 0), "leaves its operand"),
        (Piece(0, 0, -1, 1, 2, 1, 0, 1), "leaves its operand"),
        (Piece(0, 0, 0, 0, 0, 1, 1, 1), "is not a grid"),
        (Piece(0, 0, 1, 1, 2, 2), "two pieces write one pixel"),
    ],
)
def test_pieces_that_do_not_fit_are_found(piece: Piece, message: str) -> None:
    with pytest.raises(InternalError, match=message):
        verify(one(piece))


def test_a_copy_keeps_the_channels() -> None:
    with pytest.raises(InternalError, match="must have the result's channels"):
        verify(one(Piece(0, 0, 0, 0, 1, 1, 1, 1), channels=3))
