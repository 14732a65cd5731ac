"""Networks with a state, as integer graphs: what one run makes is what the next one finds."""

import numpy as np
from heuristics import Net

from onnxhw.ir.graph import Array8, Copy, Graph, Piece, Port, Tensor
from onnxhw.ir.states import State

Stateful = tuple[Graph, tuple[State, ...]]


def _input(net: Net, name: str, shape: tuple[int, int, int]) -> str:
    net.tensors[name] = Tensor(name, (1, *shape), 0.05, 3)
    return name


def _stateful(
    net: Net, name: str, inputs: tuple[str, ...], outputs: tuple[str, ...], *pairs: tuple[str, str]
) -> Stateful:
    sides = ((inputs, ""), (outputs, " out"))
    ports = [[Port(one + side, net.tensors[one].shape, "int8", one) for one in names] for names, side in sides]
    states = tuple(State(f"{made} out", read, made, read, _initial(net.tensors[read])) for made, read in pairs)
    return Graph(name, net.tensors, net.ops, *ports), states


def _initial(tensor: Tensor) -> Array8:
    """Something that is not 0."""
    return np.random.default_rng(9).integers(-128, 128, tensor.shape).astype(np.int8)


def ring(channels: int = 6, size: int = 8, frames: int = 3) -> Stateful:
    """The last frames, oldest first as rows of an image, and the next one behind them, under a convolution."""
    net = Net(channels, size)
    _input(net, "x", (channels, 1, size))
    _input(net, "old", (channels, frames, size))
    pieces = (Piece(0, 0, size, 1, frames, size, 0, 0), Piece(1, 0, size, 1, 1, size, frames, 0))
    window = net._op(Copy, ("old", "x"), (channels, frames + 1, size), pieces=pieces)
    kept = net._op(Copy, (window,), (channels, frames, size), pieces=(Piece(0, size, size, 1, frames, size, 0, 0),))
    y = net.conv(net.conv(window, channels), channels, 3, 2)
    return _stateful(net, "ring", ("x", "old"), (y, kept), (kept, "old"))


def cell(channels: int = 8, size: int = 6) -> Stateful:
    """A recurrent cell, whose new value is the result of another layer, too."""
    net = Net(channels, size)
    _input(net, "h", (channels, size, size))
    h = net.add(net.conv("x", channels), net.conv("h", channels))
    return _stateful(net, "cell", ("x", "h"), (net.conv(h, 5), h), (h, "h"))


def read_late(channels: int = 8, size: int = 10) -> Stateful:
    """The old value is read in the end, when the new one was made long before."""
    net = Net(channels, size)
    _input(net, "h", (channels, size, size))
    h = net.conv("x", channels)
    y = net.conv(net.conv(h, 2 * channels), channels)
    return _stateful(net, "late", ("x", "h"), (net.add(net.conv(y, channels), "h"), h), (h, "h"))


def two(channels: int = 8, size: int = 8) -> Stateful:
    """Two states; the input itself is the first one's new value, and a result is the second one's."""
    net = Net(channels, size)
    _input(net, "before", (channels, size, size))
    _input(net, "sum", (channels, size, size))
    y = net.add(net.conv(net.add("x", "before"), channels), "sum")
    return _stateful(net, "two", ("x", "before", "sum"), ("x", y, net.conv(y, 4)), ("x", "before"), (y, "sum"))


STREAMING = {"ring": ring, "cell": cell, "late": read_late, "two": two}
