"""Tasks of convolutions on the depthwise unit: every output channel sees one input channel, its own."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..config import WINDOW, HwConfig
from ..ir.graph import Array8, Conv, Graph, Op, Tensor
from ..ir.windows import Window
from ..isa.instructions import ADDRESS, WINDOW_BANK, Depthwise, Load
from .array_mapping import Drain, drain_sets, drains
from .array_task import Geometry, drain_steps, limit
from .constant_memories import ConstantMemories
from .degenerate_channels import ChannelScale
from .task import ArrayStep, TileTask, Tiling, window_region

MAX_STRIDE = 7
"""What the fields `sh` and `sw` of the instruction hold."""
MAX_PIXELS = 4095
"""Most rows of a strip: what the field `oh_n` of the instruction holds."""


@dataclass(frozen=True)
class DepthwiseLanes:
    """D channels: group `group` of block `block` of the input; weights of `pieces` windows from word `weights`."""

    tensor: Tensor
    block: int
    group: int
    pieces: tuple[int, int]
    weights: int
    drains: tuple[Drain, ...]


def possible(op: Op, graph: Graph, config: HwConfig) -> bool:
    """Whether the depthwise unit can do it: any kernel, as 3 x 3 windows side by side, but not spread out."""
    single, window = op.channelwise and len(op.weight) == graph.tensors[op.inputs[0]].channels, op.window
    dense = all(d == 1 or k == 1 for d, k in zip(window.dilations, window.kernel, strict=True))
    return bool(config.depthwise) and single and dense and max(window.strides) <= MAX_STRIDE


def depthwise_lanes(
    op: Conv, graph: Graph, channels: list[ChannelScale], images: ConstantMemories, config: HwConfig
) -> list[DepthwiseLanes]:
    """The groups of D channels of a convolution with their weights and drains."""
    x, width = graph.tensors[op.inputs[0]], config.depthwise_lanes
    weight = np.where([[[[found.constant]]] for found in channels], 0, op.weight).astype(np.int8)
    images.multiplied[op.name] = sum(not found.constant for found in channels) * op.weight[0].size
    found = []
    for first in range(0, x.channels, width):
        end = min(first + width, x.channels)
        tiles, pieces = _tiles(weight[first:end, 0], config)
        scales = [channel.scale for channel in channels[first:end]]
        block, lane = divmod(first, config.word)
        at = images.weights(op.name, tiles)
        found.append(
            DepthwiseLanes(x, block, lane // width, pieces, at, drains(op.name, first, scales, images, config))
        )
    return found


def _tiles(kernels: Array8, config: HwConfig) -> tuple[Array8, tuple[int, int]]:
    """Tiles int8 ``[n, bytes]`` of kernels ``[channels, KH, KW]`` padded to 3 x 3 windows, and how many each way."""
    count, height, width = kernels.shape
    down, across = -(-height // WINDOW), -(-width // WINDOW)
    padded = np.zeros((config.depthwise_lanes, down * WINDOW, across * WINDOW), np.int8)
    padded[:count, :height, :width] = kernels
    split = padded.reshape(-1, down, WINDOW, across, WINDOW).transpose(1, 3, 2, 4, 0).reshape(down * across, -1)
    tiles = np.zeros((down * across, config.depthwise_words * config.weight_word), np.int8)
    tiles[:, : split.shape[1]] = split
    return tiles, (down, across)


def depthwise_tasks(g: Geometry, lanes: list[DepthwiseLanes], tiling: Tiling, config: HwConfig) -> list[TileTask]:
    """One task per strip and group of channels; strips are cut where they would exceed the line buffer."""
    y = g.y
    most = min(config.window_depth, (config.depthwise - WINDOW) // g.window.strides[1] + 1)
    parts = -(-y.width // most)
    edges = [y.width * i // parts for i in range(parts + 1)]
    room = config.window_depth // (1 if tiling.whole else 2)
    cuts = limit(tiling.cuts, min(max(1, room // min(y.width, most)), (MAX_PIXELS - WINDOW) // g.window.strides[0] + 1))
    boxes = [(rows, cols) for rows in pairwise(cuts) for cols in pairwise(edges)]
    if tiling.blocks_first:
        return [_task(g, group, *box) for group in lanes for box in boxes]
    return [_task(g, group, *box) for box in boxes for group in lanes]


def _task(g: Geometry, lanes: DepthwiseLanes, rows: tuple[int, int], cols: tuple[int, int]) -> TileTask:
    x, w, (down, across) = lanes.tensor, g.window, lanes.pieces
    ih0, iw0 = rows[0] * w.strides[0] - w.pads[0], cols[0] * w.strides[1] - w.pads[1]
    strip = Depthwise(
        act_base=(lanes.block * x.height * x.width + ih0 * x.width + iw0) & ADDRESS,
        kh_n=down,
        kw_n=across,
        oh_n=(rows[1] - rows[0] - 1) * w.strides[0] + WINDOW,
        ow_n=(cols[1] - cols[0] - 1) * w.strides[1] + WINDOW,
        a_kh=WINDOW * x.width & ADDRESS,
        a_oh=x.width,
        ih0=ih0,
        iw0=iw0,
        in_h=x.height,
        in_w=x.width,
        pad=g.pad,
        group=lanes.group,
        sh=w.strides[0],
        sw=w.strides[1],
    )
    seen = Window((WINDOW * down, WINDOW * across), w.strides, pads=w.pads)
    region = window_region(x, (lanes.block, lanes.block + 1), seen, rows, cols)
    load = Load(base=lanes.weights, tiles=down * across, depthwise=1)
    step = ArrayStep(load, strip, x.name, () if region.empty else (region,))
    drains = drain_steps(g, drain_sets([lanes.drains]), rows, cols)
    vectors = (replace(drain, vector=drain.vector.but(acc_bank=WINDOW_BANK)) for drain in drains)
    return TileTask(g.op, (step,), tuple(vectors))
