"""Networks that are too large for the small configuration beside them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from heuristics import Net

from onnxhw.ir.graph import Array8, Copy, Graph, MaxPool, Piece
from onnxhw.presets import preset
from onnxhw.segments import Segment
from onnxhw.segments.group_costs import GroupCosts
from onnxhw.segments.groups import Candidate

SMALL = replace(preset("mini+sdram"), name="small", act_depth=64, weight_depth=256)
"""`mini` with 1,024 bytes of activations and 1,024 of weights."""


def inverted(channels: int = 8, size: int = 10) -> Graph:
    """Inverted bottlenecks with a sum and a stride, an average and a dense layer."""
    net, y = Net(channels, size), "x"
    for stride in (1, 2):
        wide = net.depthwise(net.conv(y, 3 * channels, 1), stride=stride)
        narrow = net.conv(wide, channels, 1)
        y = net.add(y, narrow) if stride == 1 else narrow
    return net.graph("inverted", net.conv(net.average(y), 20, 1))


def residual() -> Graph:
    """Convolutions of 3 x 3 around a shortcut that is a convolution, a pool, two outputs."""
    net = Net(6, 12)
    y = net.conv("x", 8)
    z = net.add(net.conv(net.conv(y, 12, 3, 2), 12), net.conv(y, 12, 1, 2))
    pooled = net._op(MaxPool, (z,), (12, 3, 3), kernel=(2, 2), strides=(2, 2))
    return net.graph("residual", y, net.conv(pooled, 24, 1))


def branches() -> Graph:
    """A concatenation, and a product with one number per channel."""
    net = Net(8, 10)
    y = net.concat(net.conv("x", 5, 1), net.conv("x", 11), net.depthwise("x", 5))
    return net.graph("branches", net.scale(y, net.conv(net.average(y), 24, 1)))


def upsampled() -> Graph:
    """Edges repeated, twice as large from four convolutions, and again by repeating pixels, beside a shortcut."""
    net, grid = Net(6, 8), range(2)
    edges = [(0, 0, 1, 8, 0, 1), (0, 0, 8, 1, 1, 0), (0, 0, 8, 8, 1, 1), (0, 7, 8, 1, 1, 9), (0, 56, 1, 8, 9, 1)]
    pieces = [Piece(source, start, 8, 1, *rest) for source, start, *rest in edges]
    framed = net._op(Copy, ("x",), (6, 10, 10), pieces=tuple(pieces), fill=9)
    phases = tuple(net.conv("x", 10, 1 + 2 * (n % 2)) for n in range(4))
    twice = tuple(Piece(2 * y + x, 0, 8, 1, 8, 8, y, x, 2, 2) for y in grid for x in grid)
    larger = net._op(Copy, phases, (10, 16, 16), pieces=twice)
    pooled = net._op(MaxPool, (net.conv(framed, 7),), (7, 8, 8), kernel=(3, 3))
    repeated = tuple(Piece(0, 0, 8, 1, 8, 8, y, x, 2, 2) for y in grid for x in grid)
    both = net.concat(larger, net._op(Copy, (pooled,), (7, 16, 16), pieces=repeated))
    return net.graph("upsampled", net.conv(both, 5, 1))


def chain() -> Graph:
    """Three small convolutions."""
    net, y = Net(4, 3), "x"
    for _ in range(3):
        y = net.conv(y, 4)
    return net.graph("chain", y)


def joined(channels: int, size: int, kernel: int, width: int) -> Graph:
    """A concatenation, of tensors in external memory, that a convolution reads."""
    net = Net(channels, size)
    one = net.conv("x", channels, kernel)
    other = net.conv(net.conv(one, width), channels, kernel)
    return net.graph("joined", net.conv(net.concat(one, other), width))


def deep() -> Graph:
    """Convolutions of so many channels that the weights of one tile's columns exceed their memory."""
    net = Net(40, 5)
    y = net.conv("x", 40)
    return net.graph("deep", net.add(y, "x"), net.conv(net.average(net.conv(y, 6, 3, 2)), 10, 1))


def dense_channels(size: int = 3) -> Graph:
    """One convolution of which each set of columns has 720 words of weights; `SMALL` holds 256."""
    net = Net(80, size)
    return net.graph("dense channels", net.conv("x", 24))


NETWORKS = {"inverted": inverted, "residual": residual, "branches": branches, "upsampled": upsampled, "deep": deep}


def inputs(graph: Graph, seed: int = 0) -> dict[str, Array8]:
    """Random values of a graph's inputs."""
    rng = np.random.default_rng(seed)
    return {port.tensor: rng.integers(-128, 128, port.shape).astype(np.int8) for port in graph.inputs}


def anything(_: Segment) -> Any:
    """A scheduler that takes everything."""


def candidates(costs: GroupCosts, longest: int = 3) -> Iterator[Candidate]:
    """All candidates of groups of so many operations at most that fit."""
    groups = costs.groups
    for first in range(len(groups.graph.ops)):
        for end in range(first + 1, min(first + longest, len(groups.graph.ops)) + 1):
            single = groups.results(first, end) == [groups.graph.ops[end - 1].output]
            for finer in groups.cuts(first, end) if single else ():
                for cuts in finer:
                    yield from (found for found, _ in costs.of(Candidate(first, end, cuts)))
