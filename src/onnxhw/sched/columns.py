"""Output channels onto array columns, input channels onto rows: column tiles and their weight images.

A column tile is up to ``used_cols`` output channels, beginning at a multiple of Q so that lane groups
of the columns are lane groups of the activation words. Its input channels (all, or those of its groups)
lie in some planes; the array takes, per plane, R channels at a time (`sub`). Planes that need equally
many row groups form one `Run`, one array instruction.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace

import numpy as np

from ..config import HwConfig
from ..errors import UnsupportedError
from ..fixed import ONE, SHIFT_MIN, Ints, NotProvable, Scale
from ..ir.graph import Array8, Concat, Conv, Graph, Tensor
from .certificate import Sums, drain_bias
from .images import Images
from .narrow import ChannelScale, channel_scale

CALIBRATE = (
    "the multiplier is input scale * weight scale / output scale: calibrate again, so that the output scale follows "
    "the range of the results (about range / 255) and no weight scale is far from the others"
)
"""What to do about a scale that cannot be proved."""


@dataclass(frozen=True)
class Run:
    """Planes ``plane .. plane + kt_n - 1`` of `tensor`, `sub_n` row groups each; weights from word `weights`.

    `extra`: what the array adds to each column beyond the products with the activations (see `isa.instructions.Array`).
    """

    tensor: Tensor
    plane: int
    kt_n: int
    sub_n: int
    weights: int
    tiles: int
    extra: tuple[int, ...]


@dataclass(frozen=True)
class Drain:
    """Adjacent lane groups of one output plane: what one vector instruction can write."""

    plane: int
    lane_group: int
    column_group: int
    groups: int
    params: int


@dataclass(frozen=True)
class ColumnTile:
    """One column tile: what the array streams and where the columns go."""

    runs: tuple[Run, ...]
    drains: tuple[Drain, ...]


def conv_scales(op: Conv, graph: Graph, sums: Sums) -> list[ChannelScale]:
    """The scale of each output channel; `UnsupportedError` E4303 if one cannot be proved."""
    zero = graph.tensors[op.output].zero_point
    return [_scale(op, channel, sums, zero) for channel in range(len(op.weight))]


def conv_columns(
    op: Conv, graph: Graph, bounds: Sums, channels: list[ChannelScale], images: Images, config: HwConfig
) -> list[ColumnTile]:
    """The column tiles of a convolution whose sums have these bounds."""
    x = graph.tensors[op.inputs[0]]
    scales = [found.scale for found in channels]
    outputs, depth = len(op.weight) // op.groups, op.weight.shape[1]
    tiles = []
    for first in range(0, len(op.weight), config.used_cols):
        end = min(first + config.used_cols, len(op.weight))
        low, high = first // outputs * depth, ((end - 1) // outputs + 1) * depth
        matrix = np.zeros((high - low, config.cols, *op.weight.shape[2:]), np.int8)
        for column, channel in enumerate(range(first, end)):
            if channels[channel].constant:
                continue
            at = channel // outputs * depth - low
            matrix[at : at + depth, column] = op.weight[channel]
        used = np.flatnonzero(matrix.any(axis=(1, 2, 3)))
        if len(used):  # channels at either end that meet only weights of 0 are not streamed
            low, matrix = low + int(used[0]), matrix[used[0] : used[-1] + 1]
        else:
            matrix = matrix[:1]
        runs = _runs(op.name, x, low, matrix, images, config)
        extra = _extra(runs)
        bounds.fit(op, range(first, end), extra[: end - first], config.acc_bits)
        tiles.append(ColumnTile(tuple(runs), drains(op.name, first, scales[first:end], images, config, extra)))
    return tiles


def concat_columns(
    op: Concat, graph: Graph, copied: set[tuple[str, int]], images: Images, config: HwConfig
) -> list[ColumnTile]:
    """Column tiles that copy the parts of a concatenation which do not lie in place.

    A copy is a 1x1 convolution whose weights are a shifted identity: the accumulator holds the
    value itself, to be scaled by 1.
    """
    parts, start = [], 0
    for position, name in enumerate(op.inputs):
        tensor = graph.tensors[name]
        if (op.name, position) in copied:
            parts.append((start, tensor))
        start += tensor.channels
    tiles = []
    starts, ends = [at for at, _ in parts], [at + tensor.channels for at, tensor in parts]
    for first, end in _column_ranges(parts, config.used_cols):
        runs: list[Run] = []
        for at, tensor in parts[bisect_right(ends, first) : bisect_left(starts, end)]:
            low, high = max(first, at), min(end, at + tensor.channels)
            matrix = np.zeros((high - low, config.cols, 1, 1), np.int8)
            matrix[np.arange(high - low), np.arange(low - first, high - first)] = 1
            runs += _runs(op.name, tensor, low - at, matrix, images, config)
        ones = [ONE] * (end - first)
        tiles.append(ColumnTile(tuple(runs), drains(op.name, first, ones, images, config, _extra(runs))))
    return tiles


def _column_ranges(parts: list[tuple[int, Tensor]], width: int) -> list[tuple[int, int]]:
    """Channel ranges of at most `width` that cover adjacent parts; gaps (parts in place) begin a new one."""
    spans: list[list[int]] = []
    for at, tensor in parts:
        if spans and spans[-1][1] == at:
            spans[-1][1] += tensor.channels
        else:
            spans.append([at, at + tensor.channels])
    return [(first, min(first + width, end)) for start, end in spans for first in range(start, end, width)]


def _scale(op: Conv, channel: int, sums: Sums, zero: int) -> ChannelScale:
    low, high = int(sums.low[channel]), int(sums.high[channel])
    try:
        return channel_scale(op, channel, low, high, int(sums.bias[channel]), zero)
    except NotProvable as error:
        where = f"node {op.name!r} (Conv)"
        raise UnsupportedError("E4303", f"output channel {channel}: {error}", where=where, hint=CALIBRATE) from error


def _runs(layer: str, x: Tensor, low: int, matrix: Array8, images: Images, config: HwConfig) -> list[Run]:
    """Runs over the channels ``low ..`` of a tensor with weights int8 ``[channels, C, KH, KW]``."""
    word, rows = config.word, config.rows
    first, end = low // word, -(-(low + len(matrix)) // word)
    padded = np.zeros((end - first, word, *matrix.shape[1:]), np.int8)
    padded.reshape(-1, *matrix.shape[1:])[low - first * word : low - first * word + len(matrix)] = matrix
    subs = [-(-(min(low + len(matrix), (plane + 1) * word) - plane * word) // rows) for plane in range(first, end)]
    runs: list[Run] = []
    plane = first
    while plane < end:
        stop = plane
        while stop < end and subs[stop - first] == subs[plane - first]:
            stop += 1
        tiles = _tiles(padded[plane - first : stop - first], subs[plane - first], config)
        weights = images.weights(layer, tiles)
        extra = _pair_products(tiles, config)
        runs.append(Run(x, plane, stop - plane, subs[plane - first], weights, len(tiles), extra))
        plane = stop
    return runs


def _tiles(planes: Array8, sub_n: int, config: HwConfig) -> Array8:
    """Weights int8 ``[planes, W, C, KH, KW]`` as tiles ``[n, R, C]`` in the order kt, sub, kh, kw."""
    count, word, cols, kh, kw = planes.shape
    padded = np.zeros((count, config.row_groups * config.rows, cols, kh, kw), np.int8)
    padded[:, :word] = planes
    split = padded.reshape(count, config.row_groups, config.rows, cols, kh, kw)[:, :sub_n]
    return np.ascontiguousarray(split.transpose(0, 1, 4, 5, 2, 3)).reshape(-1, config.rows, cols)


def _pair_products(tiles: Array8, config: HwConfig) -> tuple[int, ...]:
    """Per column, the products of each row pair's weights, summed over tiles ``[n, R, C]``; 0 unless `config.fast`."""
    if not config.fast:
        return (0,) * config.cols
    wide = tiles.astype(np.int64)
    return tuple((wide[:, 0::2] * wide[:, 1::2]).sum(axis=(0, 1)).tolist())


def _extra(runs: list[Run]) -> Ints:
    """What the array adds to each column over all runs: ``[C]``."""
    total: Ints = np.array([run.extra for run in runs], np.int64).sum(axis=0)
    return total


def drains(
    layer: str, first: int, scales: list[Scale], images: Images, config: HwConfig, extra: Ints | None = None
) -> tuple[Drain, ...]:
    """The drains of the columns that hold output channels ``first ..``, less what is extra in each column."""
    groups = -(-len(scales) // config.lanes)
    entries = list(scales)
    if extra is not None:
        entries = [replace(s, bias=drain_bias(s.bias, int(more))) for s, more in zip(scales, extra, strict=False)]
    entries += [Scale(0, SHIFT_MIN)] * (groups * config.lanes - len(scales))
    params = images.params(layer, entries)
    found: list[Drain] = []
    for group in range(groups):
        plane, lane = divmod(first // config.lanes + group, config.lane_groups)
        if found and found[-1].plane == plane:
            last = found.pop()
            found.append(Drain(plane, last.lane_group, last.column_group, last.groups + 1, last.params))
        else:
            found.append(Drain(plane, lane, group, 1, params + group * config.lanes))
    return tuple(found)
