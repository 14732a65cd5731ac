"""`arrange`: any movement of a tensor's elements as IR operations that move pixels and channels.

A movement is an index: for each element of the result, which element of the sources it is (counted through all of
them), or -1 for a constant. Two forms of it can be performed, if only a few different ways occur:

by pixel     every pixel of the result takes its channels from one pixel
             x -> 1x1 Conv with weights of 0 and 1, one per way to choose the channels -> Copy of pixels -> result
by channel   every channel of the result takes its pixels from one channel
             x -> Copy of pixels, one per way to choose them -> Concat -> 1x1 Conv that chooses channels -> result

Both are exact: a choosing Conv's sum is the value less the zero point, and its multiplier is 1. Either step is left out
where it would change nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from ...ir.graph import Concat, Conv, Copy, Op, Piece, Reshape, Tensor
from ..blockers import BlockedError
from ..context import Context
from ..values import Ints, QuantizedView, form
from .pixel_grids import pieces
from .producer_slice import is_sliceable, producer_slice

FEW_WAYS, MOST_WAYS = 16, 64
"""Different choices of one movement. More choices of channels than the first are made alone where that can be (a dense
layer whose result becomes a plane), more choices of pixels by a window; more choices of channels than the second, the
pieces of a Copy, are not performed."""
MOST_TAPS = 255
"""Rows or columns of a convolution's window."""
DEEP = f"heads of up to {MOST_WAYS} channels fit; data at the model's inputs and outputs may move in any way"
FEW_WEIGHTS = 1 << 16
"""Weights of one Conv that chooses channels, up to which it is worth its while."""
MOST_WEIGHTS = 1 << 20
"""And up to which it is performed: 1,024 of 1,024."""
REMEMBERED = 1 << 14
"""Most elements of a movement whose pieces are remembered."""
Form = tuple[int, int, int, int]


@dataclass(frozen=True)
class MovementBuilder:
    """One movement of `sources`, which have one scale and zero point, under the name `name`; `fill` is the constant."""

    context: Context
    name: str
    sources: tuple[Tensor, ...]
    fill: int

    def channels(self, tensor: Tensor, wanted: Ints, output: str, many: bool = False) -> Tensor:
        """`tensor` with the channels `wanted`; -1 is a channel of the constant. `many` such choices are to be made."""
        if np.array_equal(wanted, np.arange(tensor.channels)):
            return tensor
        if (many or len(wanted) * tensor.channels > FEW_WEIGHTS) and is_sliceable(self.context, tensor):
            made = producer_slice(self.context, tensor, wanted, output, self.name)
            if made is not None:
                return made
        if len(wanted) * tensor.channels > MOST_WEIGHTS:
            raise BlockedError(f"choosing {len(wanted)} of {tensor.channels} channels would take too many weights")
        weight = np.zeros((len(wanted), tensor.channels, 1, 1), np.int8)
        weight[np.flatnonzero(wanted >= 0), wanted[wanted >= 0]] = 1
        bias = np.where(wanted < 0, self.fill - tensor.zero_point, 0).astype(np.int32)
        ones = np.ones(len(wanted), np.float32)
        chosen = Conv(self.name, (tensor.name,), output, (self.name,), weight, bias, ones)
        return self.put(chosen, (1, len(wanted), tensor.height, tensor.width))

    def pixels(self, tensors: Sequence[Tensor], source: Ints, pixel: Ints, output: str) -> Tensor:
        """Pixels of `tensors`, source and number of each given as ``[H, W]``; source -1 is the constant."""
        height, width = source.shape
        first = tensors[0]
        unmoved = np.array_equal(pixel.ravel(), np.arange(pixel.size)) and not source.any()
        if unmoved and len(tensors) == 1 and (height, width) == first.shape[2:]:
            return first
        return self.copied(tensors, tuple(pieces(source, pixel)), (height, width), output)

    def copied(
        self, tensors: Sequence[Tensor], found: tuple[Piece, ...], size: tuple[int, int], output: str
    ) -> Tensor:
        """The pieces of `tensors` put together."""
        names = tuple(tensor.name for tensor in tensors)
        copy = Copy(self.name, names, output, (self.name,), found, self.fill)
        return self.put(copy, (1, tensors[0].channels, *size))

    def joined(self, tensors: Sequence[Tensor], output: str) -> Tensor:
        """The tensors' channels one after the other."""
        return tensors[0] if len(tensors) == 1 else joined(self.context, tensors, output, self.name, (self.name,))

    def put(self, op: Op, shape: Form) -> Tensor:
        """Add an operation, and the tensor that it makes on the sources' grid."""
        return self.context.put(op, shape, self.sources[0].scale, self.sources[0].zero_point)


def joined(context: Context, tensors: Sequence[Tensor], output: str, name: str, nodes: tuple[str, ...]) -> Tensor:
    """The channels of tensors of one scale and zero point, one after the other."""
    first = tensors[0]
    shape = (1, sum(tensor.channels for tensor in tensors), *first.shape[2:])
    made = Concat(name, tuple(tensor.name for tensor in tensors), output, nodes)
    return context.put(made, shape, first.scale, first.zero_point)


def materialise(context: Context, value: QuantizedView) -> Tensor:
    """The value's own IR tensor, in the IR form of its ONNX shape; adds what moves the elements where needed.

    What the hardware cannot move the host does if it is an input: it loads the input once more, moved.
    """
    shape, old = form(value.shape), value.tensor
    if shape == old.shape and value.moves.index is None:
        return old
    index = np.arange(prod(shape)) if value.moves.index is None else value.moves.index.ravel()
    key = (old.name, shape, index.tobytes())
    if key not in context.arranged:
        name = f"{old.name}.reshape"
        try:
            context.arranged[key] = arrange(context, [old], index, shape, name, name)
        except BlockedError:
            fed = context.fed(old, value.shape, *value.moves.steps)
            if fed is None:
                raise
            context.arranged[key] = context.feed(fed, name, (), old.scale, old.zero_point)
    return context.arranged[key]


def arrange(
    context: Context, sources: Sequence[Tensor], index: Ints, shape: Form, output: str, name: str, fill: int = 0
) -> Tensor:
    """The tensor `output` of `shape` whose elements `index` chooses; `BlockedError` where neither form fits.

    `sources` have one scale and zero point; `name` is the node's.
    """
    first = sources[0]
    order = index.ravel()
    if len(sources) == 1 and order[0] == 0 and np.array_equal(order, np.arange(prod(first.shape))):
        if shape == first.shape:
            return first
        if shape[1] == first.channels:
            return context.put(Reshape(output, (first.name,), output), shape, first.scale, first.zero_point)
    movement = MovementBuilder(context, name, tuple(sources), fill)
    if len(sources) == 1 and shape[1] == first.channels:
        plan = _planes if index.size <= REMEMBERED else _planes.__wrapped__
        found = plan(first.height * first.width, shape, np.asarray(index, np.int64).tobytes())
        if found is not None:
            return movement.copied([first], found, shape[2:], output)
    starts = np.cumsum([0, *(prod(tensor.shape) for tensor in sources)])
    flat = index.reshape(shape[1], -1)
    source = np.where(flat < 0, -1, np.searchsorted(starts, flat, side="right") - 1)
    planes = np.array([tensor.height * tensor.width for tensor in sources])[source]
    channel = np.where(flat < 0, -1, (flat - starts[source]) // planes)
    pixel = np.where(flat < 0, -1, (flat - starts[source]) % planes)
    made, many = None, None
    try:
        made = _by_pixel(movement, source, channel, pixel, shape, output)
    except BlockedError as error:
        many = error
    if made is None and len(sources) == 1:
        made = _by_channel(movement, channel, pixel, shape, output)
    if made is None:
        raise many or BlockedError(
            f"it mixes channels and pixels: {[list(tensor.shape) for tensor in sources]} -> {list(shape)}",
            "keep channels and pixels apart, or move data at the model's inputs and outputs only",
        )
    return made


@lru_cache(maxsize=512)
def _planes(plane: int, shape: Form, index: bytes) -> tuple[Piece, ...] | None:
    """The pieces of a movement in which every channel keeps its place and all move their pixels alike; else None."""
    rows = np.frombuffer(index, np.int64).reshape(shape[1], -1)
    pixel = rows[0]
    if pixel.max() >= plane:
        return None
    if not np.array_equal(rows, np.where(pixel < 0, -1, pixel + np.arange(shape[1])[:, None] * plane)):
        return None
    source, pixel = np.minimum(pixel, 0).reshape(shape[2:]), pixel.reshape(shape[2:])
    return tuple(pieces(source, pixel))


def _by_pixel(
    movement: MovementBuilder, source: Ints, channel: Ints, pixel: Ints, shape: Form, output: str
) -> Tensor | None:
    at, where = pixel.max(axis=0), source.max(axis=0)
    filled = channel < 0
    if not bool(np.all((pixel == at) & (source == where) | filled)):
        return None
    ways, which = _distinct(np.concatenate([where[None], channel]).T)
    used = [way for way in range(len(ways)) if ways[way, 0] >= 0]
    if not used:
        used = [0]  # nothing but the constant
    if len(used) > MOST_WAYS:
        raise BlockedError(f"its pixels choose channels in {len(used)} ways, at most {MOST_WAYS} are performed", DEEP)
    whole = np.array_equal(at, np.arange(len(at))) and len(used) == len(ways) == 1
    tensors: list[Tensor] = []
    for way in used:
        tensor, wanted = movement.sources[max(0, int(ways[way, 0]))], ways[way, 1:]
        to = output if whole else f"{output}.channels{len(tensors)}"
        tensors.append(movement.channels(tensor, wanted, to, many=len(used) > FEW_WAYS))
    number = np.full(len(ways), -1, np.int64)
    number[used] = np.arange(len(used))
    chosen = np.where(where < 0, -1, number[which])
    return movement.pixels(tensors, chosen.reshape(shape[2:]), at.reshape(shape[2:]), output)


def _by_channel(movement: MovementBuilder, channel: Ints, pixel: Ints, shape: Form, output: str) -> Tensor | None:
    x = movement.sources[0]
    which_channel = channel.max(axis=1)
    if not bool(np.all((channel == which_channel[:, None]) | (channel < 0))):
        return None
    ways, which = _distinct(pixel)
    if len(ways) > FEW_WAYS:
        made = _by_window(movement, channel, pixel, shape, output)
        if made is None:
            what = f"its channels choose pixels in {len(ways)} ways, at most {FEW_WAYS} are performed"
            raise BlockedError(what, DEEP)
        return made
    order = np.argsort(np.unique(which, return_index=True)[1])  # of first use
    rank = np.argsort(order)
    parts: list[Tensor] = []
    for way in order:
        at = ways[way].reshape(shape[2:])
        name = output if len(ways) == 1 else f"{output}.pixels{len(parts)}"
        parts.append(movement.pixels([x], np.where(at < 0, -1, 0), at, name))
    joined = movement.joined(parts, f"{output}.joined")
    wanted = np.where(which_channel < 0, 0, rank[which] * x.channels + which_channel)
    return movement.channels(joined, wanted, output)


def _by_window(movement: MovementBuilder, channel: Ints, pixel: Ints, shape: Form, output: str) -> Tensor | None:
    """A Conv of 0 and 1 that chooses a channel and a place of its window for each channel of the result; None if the
    pixels of the result are not those of a window that moves on."""
    x, which = movement.sources[0], channel[:, 0]
    if (channel != which[:, None]).any() or (channel < 0).any():
        return None
    plane = shape[2] * shape[3]
    for size in (shape[2:], (1, plane), (plane, 1)):
        places = [axis.reshape(-1, *size) for axis in np.divmod(pixel, x.width)]
        steps = [int(np.diff(axis[0], axis=n).max(initial=0)) or 1 for n, axis in enumerate(places)]
        first = [axis[:, 0, 0] for axis in places]
        grid = np.meshgrid(*(np.arange(count) * step for count, step in zip(size, steps, strict=True)), indexing="ij")
        if any((axis != at[:, None, None] + along).any() for axis, at, along in zip(places, first, grid, strict=True)):
            continue
        begin = [int(at.min()) for at in first]
        kernel = [int(at.max()) - start + 1 for at, start in zip(first, begin, strict=True)]
        if max(kernel) > MOST_TAPS or len(which) * x.channels * prod(kernel) > MOST_WEIGHTS:
            continue
        weight = np.zeros((len(which), x.channels, *kernel), np.int8)
        weight[np.arange(len(which)), which, first[0] - begin[0], first[1] - begin[1]] = 1
        ends = [(n - 1) * step + taps + start - whole for n, step, taps, start, whole in
                zip(size, steps, kernel, begin, x.shape[2:], strict=True)]  # fmt: skip
        zeros, ones = np.zeros(len(which), np.int32), np.ones(len(which), np.float32)
        pads, name = (-begin[0], -begin[1], ends[0], ends[1]), movement.name
        to = output if size == shape[2:] else f"{output}.window"
        conv = Conv(name, (x.name,), to, (name,), weight, zeros, ones, (steps[0], steps[1]), (1, 1), pads)
        made = movement.put(conv, (1, len(which), *size))
        return made if size == shape[2:] else movement.put(Reshape(output, (made.name,), output), shape)
    return None


def _distinct(rows: npt.NDArray[np.int64]) -> tuple[Ints, Ints]:
    """The different rows, and which of them each row is."""
    if len(rows) and bool((rows == rows[0]).all()):
        return rows[:1], np.zeros(len(rows), np.int64)
    keys = np.ascontiguousarray(rows).view([("", rows.dtype)] * rows.shape[1]).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], inverse.ravel()
