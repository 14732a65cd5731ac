"""Output channels onto array columns, input channels onto rows: column tiles and their weight images.

A column tile is up to ``used_cols`` output channels, beginning at a multiple of Q so that lane groups
of the columns are lane groups of the activation words. Its input channels (all, or those of its groups)
lie in some blocks; the array takes, per block, R channels at a time (`sub`). Channel blocks that need equally
many row groups form one `BlockRun`, one array instruction.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace

import numpy as np

from ..config import HwConfig
from ..errors import UnsupportedError
from ..fixed import ONE, Ints, NotProvable, Scale
from ..ir.graph import Array8, Concat, Conv, Graph, Tensor
from .certificate import SumBounds, drain_bias
from .constant_memories import ConstantMemories
from .degenerate_channels import ChannelScale, channel_scale

CALIBRATE = (
    "the multiplier is input scale * weight scale / output scale: calibrate again, so that the output scale follows "
    "the range of the results (about range / 255) and no weight scale is far from the others"
)
"""What to do about a scale that cannot be proved."""


MAX_STEP = 1 << 20
"""What a load's step between column tiles is less than: the bits of the field `nt_step`."""


@dataclass(frozen=True)
class BlockRun:
    """Channel blocks ``block .. block + kt_n - 1`` of `tensor`, `sub_n` row groups each; weights from word `weights`.

    `extra`: what the array adds to each column beyond the products with the activations (see `isa.instructions.Array`).
    """

    tensor: Tensor
    block: int
    kt_n: int
    sub_n: int
    weights: int
    tiles: int
    extra: tuple[int, ...]

    def cut(self, block: int, config: HwConfig) -> list["BlockRun"]:
        """The parts before a block and from it on."""
        before = block - self.block
        if not 0 < before < self.kt_n:
            return [self]
        taken = self.tiles // self.kt_n * before
        rest = replace(
            self,
            block=block,
            kt_n=self.kt_n - before,
            weights=self.weights + taken * config.tile_words,
            tiles=self.tiles - taken,
        )
        return [replace(self, kt_n=before, tiles=taken), rest]

    def cuts(self, blocks: tuple[int, ...], config: HwConfig) -> list["BlockRun"]:
        """The parts between blocks, in order."""
        parts = [self]
        for block in blocks:
            parts += parts.pop().cut(block, config)
        return parts


@dataclass(frozen=True)
class Drain:
    """Adjacent lane groups of one output block: what one vector instruction can write."""

    block: int
    lane_group: int
    column_group: int
    groups: int
    params: int


DrainSet = tuple[Drain, int, int, int, int]
"""The first drain, its column tile, the number of drains, and the steps of column tile and parameter row."""


@dataclass(frozen=True)
class ColumnTile:
    """One column tile: what the array streams and where the columns go."""

    runs: tuple[BlockRun, ...]
    drains: tuple[Drain, ...]


def weight_step(one: ColumnTile, other: ColumnTile) -> int | None:
    """Weight words from one column tile to another that takes the same channels; None if they differ otherwise."""
    if len(one.runs) != len(other.runs):
        return None
    steps = set()
    for a, b in zip(one.runs, other.runs, strict=True):
        if (a.tensor, a.block, a.kt_n, a.sub_n, a.tiles) != (b.tensor, b.block, b.kt_n, b.sub_n, b.tiles):
            return None
        steps.add(b.weights - a.weights)
    step = steps.pop()
    return step if not steps and 0 <= step < MAX_STEP else None


def grouped_columns(columns: list[ColumnTile], cuts: tuple[int, ...], most: int) -> list[list[ColumnTile]]:
    """Column tiles in groups that one instruction can stream, of at most `most`; not across `cuts`, single if none."""
    if not cuts:
        return [[column] for column in columns]
    groups: list[list[ColumnTile]] = []
    for index, column in enumerate(columns):
        last = groups[-1] if groups and index not in cuts else []
        step = weight_step(last[-1], column) if last else None
        if step is None or len(last) >= most or (len(last) > 1 and step != weight_step(*last[:2])):
            groups.append([column])
        else:
            last.append(column)
    return groups


def drain_sets(columns: list[tuple[Drain, ...]], per_block: bool = False) -> list[DrainSet]:
    """The drains of a group of column tiles; those that go to adjacent blocks with equal steps are one, unless
    `per_block`.
    """
    found: dict[tuple[int, int, int], list[list[tuple[int, Drain]]]] = {}
    for tile, column in enumerate(columns):
        for drain in column:
            rows = found.setdefault((drain.lane_group, drain.column_group, drain.groups), [])
            if rows and not per_block and _continues(rows[-1], tile, drain):
                rows[-1].append((tile, drain))
            else:
                rows.append([(tile, drain)])
    groups = []
    for row in (row for rows in found.values() for row in rows):
        (tile, drain), (other, following) = row[0], row[min(1, len(row) - 1)]
        groups.append((drain, tile, len(row), other - tile, following.params - drain.params))
    return sorted(groups, key=lambda one: (one[1], one[0].block))


def _continues(row: list[tuple[int, Drain]], tile: int, drain: Drain) -> bool:
    """Whether a drain is the next of a row of drains with constant steps."""
    (before, last), (other, earlier) = row[-1], row[max(0, len(row) - 2)]
    steps = tile - before, drain.params - last.params
    same = len(row) == 1 or steps == (before - other, last.params - earlier.params)
    return same and drain.block == last.block + 1 and steps[1] >= 0


def conv_scales(op: Conv, graph: Graph, sums: SumBounds) -> list[ChannelScale]:
    """The scale of each output channel; `UnsupportedError` E4303 if one cannot be proved."""
    zero = graph.tensors[op.output].zero_point
    return [_scale(op, channel, sums, zero) for channel in range(len(op.weight))]


def conv_columns(
    op: Conv, graph: Graph, bounds: SumBounds, channels: list[ChannelScale], images: ConstantMemories, config: HwConfig
) -> list[ColumnTile]:
    """The column tiles of a convolution whose sums have these bounds."""
    x = graph.tensors[op.inputs[0]]
    scales = [found.scale for found in channels]
    outputs, depth = len(op.weight) // op.groups, op.weight.shape[1]
    tiles, multiplied, streamed = [], 0, op.streamed()
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
            starts = [at // outputs * depth for at in range(first, end) if not channels[at].constant]
            high = low + len(matrix)
            multiplied += sum(int(streamed[max(at, low) : min(at + depth, high)].sum()) for at in starts)
        else:
            matrix = matrix[:1]
        runs = _runs(op.name, x, low, matrix, images, config)
        extra = _extra(runs)
        bounds.fit(op, range(first, end), extra[: end - first], config.acc_bits)
        tiles.append(ColumnTile(tuple(runs), drains(op.name, first, scales[first:end], images, config, extra)))
    images.multiplied[op.name] = multiplied * op.weight.shape[2] * op.weight.shape[3]
    return tiles


def concat_columns(
    op: Concat, graph: Graph, copied: set[tuple[str, int]], images: ConstantMemories, config: HwConfig
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
        runs: list[BlockRun] = []
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


def _scale(op: Conv, channel: int, sums: SumBounds, zero: int) -> ChannelScale:
    low, high = int(sums.low[channel]), int(sums.high[channel])
    try:
        return channel_scale(op, channel, low, high, int(sums.bias[channel]), zero)
    except NotProvable as error:
        raise UnsupportedError("E4303", f"output channel {channel}: {error}", where=op.where, hint=CALIBRATE) from error


def _runs(
    layer: str, x: Tensor, low: int, matrix: Array8, images: ConstantMemories, config: HwConfig
) -> list[BlockRun]:
    """Runs over the channels ``low ..`` of a tensor with weights int8 ``[channels, C, KH, KW]``."""
    word, rows = config.word, config.rows
    first, end = low // word, -(-(low + len(matrix)) // word)
    padded = np.zeros((end - first, word, *matrix.shape[1:]), np.int8)
    padded.reshape(-1, *matrix.shape[1:])[low - first * word : low - first * word + len(matrix)] = matrix
    subs = [-(-(min(low + len(matrix), (block + 1) * word) - block * word) // rows) for block in range(first, end)]
    runs: list[BlockRun] = []
    block = first
    while block < end:
        stop = block
        while stop < end and subs[stop - first] == subs[block - first]:
            stop += 1
        tiles = _tiles(padded[block - first : stop - first], subs[block - first], config)
        weights = images.weights(layer, tiles)
        extra = _pair_products(tiles, config)
        runs.append(BlockRun(x, block, stop - block, subs[block - first], weights, len(tiles), extra))
        block = stop
    return runs


def _tiles(blocks: Array8, sub_n: int, config: HwConfig) -> Array8:
    """Weights int8 ``[blocks, W, C, KH, KW]`` as tiles ``[n, R, C]`` in the order kt, sub, kh, kw."""
    count, word, cols, kh, kw = blocks.shape
    padded = np.zeros((count, config.row_groups * config.rows, cols, kh, kw), np.int8)
    padded[:, :word] = blocks
    split = padded.reshape(count, config.row_groups, config.rows, cols, kh, kw)[:, :sub_n]
    return np.ascontiguousarray(split.transpose(0, 1, 4, 5, 2, 3)).reshape(-1, config.rows, cols)


def _pair_products(tiles: Array8, config: HwConfig) -> tuple[int, ...]:
    """Per column, the products of each row pair's weights, summed over tiles ``[n, R, C]``; 0 unless `config.fast`."""
    if not config.fast:
        return (0,) * config.cols
    wide = tiles.astype(np.int64)
    return tuple((wide[:, 0::2] * wide[:, 1::2]).sum(axis=(0, 1)).tolist())


def _extra(runs: list[BlockRun]) -> Ints:
    """What the array adds to each column over all runs: ``[C]``."""
    total: Ints = np.array([run.extra for run in runs], np.int64).sum(axis=0)
    return total


def drains(
    layer: str, first: int, scales: list[Scale], images: ConstantMemories, config: HwConfig, extra: Ints | None = None
) -> tuple[Drain, ...]:
    """The drains of the columns that hold output channels ``first ..``, less what is extra in each column."""
    entries = list(scales)
    if extra is not None:
        entries = [replace(s, bias=drain_bias(s.bias, int(more))) for s, more in zip(scales, extra, strict=False)]
    params = images.params(layer, entries)
    found: list[Drain] = []
    for group in range(-(-len(scales) // config.lanes)):
        block, lane = divmod(first // config.lanes + group, config.lane_groups)
        if found and found[-1].block == block:
            last = found.pop()
            found.append(Drain(block, last.lane_group, last.column_group, last.groups + 1, last.params))
        else:
            found.append(Drain(block, lane, group, 1, params + group))
    return tuple(found)
