"""`Plan`: a graph as segments that run one after the other, with buffers in external memory between them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np

from ..config import WINDOW, HwConfig
from ..ir.boxes import Box
from ..ir.graph import Graph, Op
from ..ir.operation import Tensor
from ..passes.packed_inputs import Origin

Weights = Mapping[tuple[str, tuple[int, int]], int]
"""Weight words, by operation and its output channels."""
IMAGE = 4
"""Channels of an image at most."""
PARAM_BYTES = 8
"""Of an output channel: bias, multiplier and shift in a row of the parameter memory."""


@dataclass(frozen=True, order=True)
class Region:
    """A box of one of the model's tensors."""

    tensor: str
    box: Box

    @classmethod
    def whole(cls, graph: Graph, tensor: str) -> "Region":
        """All of a tensor."""
        return cls(tensor, Box.whole(graph.tensors[tensor].shape))


class OperationPart(NamedTuple):
    """A box of the result, `tensor`, of one of the model's operations."""

    op: str
    tensor: str
    box: Box


@dataclass(frozen=True)
class Segment:
    """Parts of operations that run as one program.

    `graph` is what runs; its inputs and outputs are, in order, the regions `inputs` and `outputs` of the model's
    tensors. Before it runs `loads` come from external memory; other inputs are on chip from the segments before.
    Outputs are stored. With `early` the loads come while the segment before runs. The only output lies where it belongs
    in the tensor `gathered`, which stays on chip as a whole for the segments that read it there (`gathering`).
    `origins`: of the graph's inputs that are boxes of the model's inputs, where they lie in those.
    """

    graph: Graph
    parts: tuple[OperationPart, ...]
    inputs: tuple[Region, ...]
    outputs: tuple[Region, ...]
    loads: tuple[Region, ...]
    early: bool = False
    gathered: Region | None = None
    origins: Mapping[str, Origin] = field(default_factory=dict)


@dataclass(frozen=True)
class Buffer:
    """Bytes of external memory: of a tensor or, with `weights`, of an operation's weights and parameters.

    `first`, `last`: the segments between which it is in use, both included; -1: from before the first on.
    """

    name: str
    address: int
    size: int
    first: int
    last: int
    weights: bool = False


@dataclass(frozen=True)
class Plan:
    """Segments in order, and where in external memory everything lies."""

    segments: tuple[Segment, ...]
    buffers: tuple[Buffer, ...]

    @property
    def external_bytes(self) -> int:
        """Bytes of external memory up to the last buffer's end."""
        return max((buffer.address + buffer.size for buffer in self.buffers), default=0)


def act_words(shape: tuple[int, ...], config: HwConfig) -> int:
    """Activation words of a tensor, a word for each pixel and W channels."""
    return -(-shape[1] // config.word) * shape[2] * shape[3]


def packed_words(x: Tensor, op: Op, config: HwConfig) -> int | None:
    """Activation words of a tensor that a first convolution reads packed (`onnxhw.passes.packed_inputs`), about: its
    bytes, with the padding between rows; None if it is not read so."""
    if not config.unaligned or not op.any_order or op.taps < 2 or not few_channels(x.channels, config):
        return None
    top, left, bottom, right = (max(0, pad) for pad in op.window.pads)
    return -(-x.channels * (x.height + top + bottom) * (x.width + left + right) // config.word)


def few_channels(channels: int, config: HwConfig) -> bool:
    """Whether a window's elements of so many channels take fewer reads as bytes in a row, about: those of an image do,
    and others that take a quarter of a word."""
    return channels <= max(IMAGE, config.word // IMAGE)


def depthwise_cycles(op: Op, x: Tensor, config: HwConfig) -> int | None:
    """Cycles in which the depthwise unit reads a convolution's operand, once for each window of 3 x 3 that its kernel
    takes; None if the unit cannot do it, or the array takes fewer."""
    if not config.depthwise or not op.channelwise or len(op.weight) != x.channels:
        return None
    window, (down, across) = op.window, pieces(op)
    if not all(step == 1 or size == 1 for step, size in zip(window.dilations, window.kernel, strict=True)):
        return None
    largest = 128 * int(np.abs(op.weight.astype(np.int64)).sum(axis=(1, 2, 3)).max()) if down * across > 1 else 0
    if largest >= 1 << config.sum_bits - 1:
        return None
    height, width = (
        (size - 1) * stride + WINDOW
        for size, stride in zip(window.size((x.height, x.width)), window.strides, strict=True)
    )
    found = -(-x.channels // config.depthwise_lanes) * down * across * height * width
    return found if found <= array_cycles(op, x, config) or not _fits_array(op, config) else None


def array_cycles(op: Op, x: Tensor, config: HwConfig) -> int:
    """Cycles in which the array has products of a convolution."""
    height, width = op.window.size((x.height, x.width))
    return _array_words(op, config) // config.tile_words * height * width


def pieces(op: Op) -> tuple[int, int]:
    """Windows of 3 x 3, side by side, that a kernel takes, down and across."""
    down, across = op.window.kernel
    return -(-down // WINDOW), -(-across // WINDOW)


def weight_words(op: Op, x: Tensor, config: HwConfig) -> int:
    """Weight words of an operation on this operand in whole tiles, as if none were alike."""
    if not op.weight.size:
        return 0
    if depthwise_cycles(op, x, config) is not None:
        return -(-len(op.weight) // config.depthwise_lanes) * prod(pieces(op)) * config.depthwise_words
    return _array_words(op, config)


def _array_words(op: Op, config: HwConfig) -> int:
    """Those on the array."""
    outputs, depth = int(op.weight.shape[0]), int(op.weight.shape[1])
    columns = -(-outputs // config.used_cols)
    if op.channelwise:
        return columns * op.taps * config.tile_words
    packed = few_channels(depth, config)
    rows = -(-depth * op.taps // config.rows) + op.window.kernel[0] if packed else -(-depth // config.rows) * op.taps
    return columns * rows * config.tile_words


def _fits_array(op: Op, config: HwConfig) -> bool:
    return _array_words(op, config) <= config.weight_depth


class Occupancy:
    """Activation words of a graph's tensors that are in use at once if its operations run one after the other; outputs
    stay to the end."""

    def __init__(self, graph: Graph, config: HwConfig) -> None:
        self.words = {name: act_words(x.shape, config) for name, x in graph.tensors.items()}
        self.inputs = [port.tensor for port in graph.inputs]
        outputs = {port.tensor for port in graph.outputs}
        last = dict.fromkeys(self.inputs, 0) | {op.output: n for n, op in enumerate(graph.ops)}
        last |= {name: n for n, op in enumerate(graph.ops) for name in op.inputs}
        ended: list[list[str]] = [[] for _ in graph.ops]
        for name, n in last.items():
            if name not in outputs:
                ended[n].append(name)
        self.steps = [*zip((op.output for op in graph.ops), ended, strict=True)]
        """Of each operation its result, and what nobody reads behind it."""
        self.ports = outputs.union(self.inputs)
        self.read = dict(self.words)
        """Words where inputs may be packed."""
        for op in graph.ops:
            for name in op.inputs:
                if name in self.ports and name in self.inputs:
                    self.read[name] = packed_words(graph.tensors[name], op, config) or self.read[name]

    def peak(self, kept: Collection[str] = ()) -> int:
        """The most words; the tensors `kept` stay to the end, too."""
        return self._peak(self.read, kept)

    def between(self) -> int:
        """The most words of tensors that are neither inputs nor outputs."""
        return self._peak(self.words | dict.fromkeys(self.ports, 0))

    def _peak(self, words: Mapping[str, int], kept: Collection[str] = ()) -> int:
        live = peak = sum([words[name] for name in self.inputs])
        for made, ended in self.steps:
            live += words[made]
            peak = max(peak, live)
            for name in ended:
                if name not in kept:
                    live -= words[name]
        return peak


def peak_words(graph: Graph, config: HwConfig, kept: Collection[str] = ()) -> int:
    """Most activation words that are in use at once if the operations run one after the other; outputs, and the
    tensors `kept`, stay to the end."""
    return Occupancy(graph, config).peak(kept)


def ports_of(segment: Segment, regions: Collection[Region]) -> set[str]:
    """The tensors in a segment's graph that stand for these of its regions."""
    pairs = [*zip(segment.graph.inputs, segment.inputs, strict=True)]
    pairs += zip(segment.graph.outputs, segment.outputs, strict=True)
    return {port.tensor for port, region in pairs if region in regions}


def weights_of(segment: Segment, config: HwConfig) -> Weights:
    """The weights of a segment."""
    graph = segment.graph
    words = {op.name: weight_words(op, graph.tensors[op.inputs[0]], config) for op in graph.ops}
    found = {(part.op, part.box.channels): words[part.op] for part in segment.parts}
    return {key: size for key, size in found.items() if size}


def region_words(regions: Collection[Region], config: HwConfig) -> int:
    """Activation words of regions."""
    return sum(act_words(region.box.shape, config) for region in regions)


def tensor_bytes(tensor: Tensor) -> int:
    """Bytes in external memory: its elements."""
    return prod(tensor.shape)
