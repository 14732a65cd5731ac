"""`packed_inputs`: an input that convolutions read lies as bytes in a row, and they read them unaligned.

An array of R rows multiplies R input channels at a time, and a first layer has one or three. In a row of the input the
elements that a row of the window meets are bytes side by side; so one read of R bytes brings a row of the window, or
part of it, from wherever it begins::

    x (1, C, H, W)                    x' (1, R, 1, n), bytes in a row
    y = Conv KHxKW(x)           ->    y = PackedConv(x')

Rows are a pitch apart that is ``L`` modulo R, L bytes being a row of the window. Then what follows in the next row
comes at a jump of whole words, and the same read brings it: almost every lane of a read has an element. Between the
rows, above and below lies the zero point, so padding is read like anything else. Columns may take the part of rows.

Where the input is a box of a larger tensor, other boxes of which other convolutions read, its rows lie at the same
bytes of host words as in the larger one (`Origin`): so moves, which copy whole host words, find all boxes in that one.
Rows begin at two bytes of host words at most, or at one where those of the larger tensor are short, and no host word
that has bytes of a row reaches into another row, or into the padding between.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import lcm

import numpy as np

from ..config import HwConfig
from ..ir.boxes import Box
from ..ir.graph import Conv, Graph, Op
from ..ir.ops.conv import PackedConv, PackedTile
from ..ir.windows import Window
from ..isa.memory import HOST_BYTES
from ..program.storage import PackedInput, Shape, StorageFormat
from ..program.variant import Variant

MOST_JUMP = 63
"""What the field `jump` of an `Array` instruction holds."""
ROW_GAPS = (2, 5, 4, 3)
"""By the bytes of a row modulo four, those between rows of a larger tensor that begin at two bytes of host words, so
that the host words at both ends of a row have no byte of another one."""
LEAST_ROW = 128
"""How many such gaps long a row is at least that has one: so it is 0.8 % of what travels, which frames may take 4 % of,
3.2 % being their own. It may spare a read of a window. Other rows begin at one byte of host words."""


@dataclass(frozen=True, order=True)
class Origin:
    """Where a box lies in a larger tensor: its first row and column, and how many rows and columns that one has."""

    row: int
    col: int
    rows: int
    cols: int

    @classmethod
    def of(cls, box: Box, shape: Shape) -> "Origin":
        """A box of a tensor, ``(1, C, H, W)``."""
        return cls(box.rows[0], box.cols[0], *shape[2:])

    def short_rows(self, channels: int) -> tuple[bool, bool]:
        """Whether rows of the larger tensor are too short for a gap, and whether columns are."""
        rows, columns = (length * channels for length in (self.cols, self.rows))
        return rows < LEAST_ROW * ROW_GAPS[rows % 4], columns < LEAST_ROW * ROW_GAPS[columns % 4]


NO_ORIGINS: Mapping[str, Origin] = {}


def packed_inputs(graph: Graph, config: HwConfig, origins: Mapping[str, Origin] = NO_ORIGINS) -> list[Variant]:
    """Graphs with such inputs, those that take the fewest reads first; none if no input qualifies. `origins`: of inputs
    that are boxes of a larger tensor, where they lie in it.

    An input does if only convolutions of one window, without groups, read it, if reads become fewer, and if it is no
    output of the model.
    """
    if not config.unaligned:
        return []
    outputs = {port.tensor for port in graph.outputs}
    inner = {name: ops for name, ops in _readers(graph).items() if name not in outputs}
    found = {
        name: _plans(graph.tensors[name].shape, ops, config, origins.get(name))[0] for name, ops in inner.items()
    }
    ways = {name: plans for name, plans in found.items() if plans}
    if not ways:
        return []
    levelled = zip(*_levelled([*ways.values()]), strict=True)
    return [_variant(graph, dict(zip(ways, one, strict=True))) for one in levelled]


def packed_alike(graph: Graph, origins: Mapping[str, Origin]) -> object:
    """Equal for graphs of a kind whose inputs of these `origins` are packed in the same ways."""
    return frozenset((name, origin.short_rows(graph.tensors[name].channels)) for name, origin in origins.items())


def _levelled(ways: "list[list[PackingPlan]]") -> "list[list[PackingPlan]]":
    """As many plans for each input: the last of one that has fewer is repeated."""
    most = max(map(len, ways))
    return [plans + plans[-1:] * (most - len(plans)) for plans in ways]


def _readers(graph: Graph) -> dict[str, list[Op]]:
    """Who reads each input."""
    readers: dict[str, list[Op]] = {port.tensor: [] for port in graph.inputs}
    for op in graph.ops:
        for name in readers.keys() & op.inputs:
            readers[name].append(op)
    return readers


@dataclass(frozen=True)
class PackingPlan:
    """How an input is packed, and read: tiles, the taps of their lanes, bytes from one position to the next; `length`:
    bytes from the first one of the first row's padding to the last one that is read; `transposed`: columns follow each
    other, not rows.

    `taps` has, for each tile and lane, the element ``(kh, kw, c)`` of the window, or None.
    """

    packed: PackedInput
    tiles: tuple[PackedTile, ...]
    taps: tuple[tuple[int, int, int] | None, ...]
    pitch: tuple[int, int]
    length: int
    transposed: bool


def unpacked(graph: Graph, config: HwConfig) -> dict[str, str]:
    """Why inputs lie one pixel to a word though a convolution over few channels reads them; by name."""
    found = {}
    outputs = {port.tensor for port in graph.outputs}
    for name, readers in _readers(graph).items():
        shape = graph.tensors[name].shape
        if not any(op.any_order and op.window.kernel != (1, 1) for op in readers):
            continue
        if shape[1] >= config.word:
            continue
        reason = _plans(shape, readers, config)[1] if config.unaligned else f"{config.name} reads whole words"
        if reason or name in outputs:
            found[name] = reason or "it is an output, too"
    return found


def _plans(
    shape: Shape, readers: list[Op], config: HwConfig, origin: Origin | None = None
) -> tuple[list[PackingPlan], str]:
    """Ways to pack an input of that shape, best first; why there is none. With its `origin` in a larger one there is
    one way for all boxes of that, or none if this box is too large for it."""
    fewer, why = _fewer_reads(shape, readers, config, origin)
    near = [plan for plan in fewer if _most_words(plan, config, origin) <= config.unaligned_words]
    if fewer and not near:
        least = min(_most_words(plan, config, origin) for plan in fewer)
        return [], f"it takes {least} words, of which {config.unaligned_words} can be read from any byte on"
    return near, why


def too_large(graph: Graph, config: HwConfig, origins: Mapping[str, Origin]) -> bool:
    """Whether one of these inputs could lie packed if its box were smaller."""
    if not config.unaligned:
        return False
    readers = _readers(graph)
    boxes = [(graph.tensors[name].shape, readers[name], config, origin) for name, origin in origins.items()]
    return any(_fewer_reads(*box)[0] and not _plans(*box)[0] for box in boxes)


def _fewer_reads(
    shape: Shape, readers: list[Op], config: HwConfig, origin: Origin | None
) -> tuple[list[PackingPlan], str]:
    """Ways to pack an input that make reads fewer, whatever room it takes, best first, with an `origin` the best one
    alone; why there is none."""
    windows = set[Window]()
    for op in readers:
        if not op.weight.size:
            return [], f"{op.name!r}, no convolution, reads it"
        if not op.any_order:
            return [], f"{op.name!r}, a convolution of groups, reads it"
        windows.add(op.window)
    if len(windows) != 1:
        return [], f"convolutions of {len(windows)} windows read it"
    window = windows.pop()
    plain = window.kernel[0] * window.kernel[1] * -(-shape[1] // config.word)
    pixels = {shape[1], -(-shape[1] // config.unaligned) * config.unaligned}
    ways = product((False, True), sorted(pixels))
    plans = [plan for way, pixel in ways if (plan := _plan(shape, window, config, way, pixel, origin))]
    if not plans:
        return [], f"its window's positions are no multiples of {config.unaligned} bytes apart"
    fewer = [plan for plan in plans if len(plan.tiles) < plain]
    if not fewer:
        return [], f"it would take {min(len(plan.tiles) for plan in plans)} reads for {plain}"

    if origin is None:
        return sorted(fewer, key=lambda plan: (len(plan.tiles), -(-plan.length // config.word))), ""

    def rank(plan: PackingPlan) -> tuple[int, int, bool]:
        """The same for all boxes of a tensor, whatever they take."""
        return len(plan.tiles), min(plan.packed.row, plan.packed.column), plan.transposed

    return [min(fewer, key=rank)], ""


def _most_words(plan: PackingPlan, config: HwConfig, origin: Origin | None) -> int:
    """Words that the plan takes; of a part of a larger tensor the most that it takes wherever it lies in that, so that
    all boxes of a kind can be packed in the same ways."""
    if origin is None:
        return plan.packed.words
    return -(-(plan.length + moved_bytes(config) - 1) // config.word)


def moved_bytes(config: HwConfig) -> int:
    """Bytes of activation memory that a move copies at least: what a word of it has of a host word."""
    return min(HOST_BYTES, config.word)


def _plan(
    shape: Shape, window: Window, config: HwConfig, transposed: bool, pixel: int, origin: Origin | None
) -> PackingPlan | None:
    """The plan with rows of the input, or its columns, one after the other, and so many bytes for each pixel; None if
    reads would begin where they cannot."""
    step, (_, channels, *spatial) = config.unaligned, shape
    outer, inner = (1, 0) if transposed else (0, 1)
    positions = window.size((shape[2], shape[3]))
    before, _, kernel, stride, dilation = window.axis(inner)
    reach = (positions[inner] - 1) * stride - before + (kernel - 1) * dilation + 1
    around = max(0, before, reach - spatial[inner])  # columns of padding that two rows share
    row = (kernel - 1) * dilation * pixel + channels
    whole = dilation == 1 or -(-row // config.word) < kernel
    least, joined = (spatial[inner] + around) * pixel, row if whole else channels

    def rank(pitch: int) -> tuple[int, bool, int]:
        """Fewest reads; a pitch at which the next row of the window comes at a jump of whole words; the least."""
        found = _tiles(_segments(window, channels, pitch, pixel, outer, whole), config)
        apart = window.kernel[outer] == 1 or (window.dilations[outer] * pitch - joined) % config.word != 0
        return sum(1 for _ in found), apart, pitch

    if origin is None:
        able = _pitches(least, step, config)
    else:
        unit = moved_bytes(config)
        even = lcm(step, unit if origin.short_rows(channels)[outer] else max(1, unit // 2))
        # The same bytes of host words for all boxes, however wide: of pitches that are as short as may be.
        alike = min(_pitches(row, even, config), key=lambda pitch: (rank(pitch)[0], pitch % unit))
        wide = _pitches(least + 2 * (unit - 1), even, config)
        able = [pitch for pitch in wide if pitch % unit == alike % unit]
    pitch = min(able, key=rank)
    pads = [window.pads[axis] for axis in (outer, inner)]
    begin = _begin(window, (outer, inner), (pitch, pixel), config, origin)
    first = begin + max(0, pads[0]) * pitch + max(0, pads[1]) * pixel
    corner = begin + max(0, -pads[0]) * pitch + max(0, -pads[1]) * pixel
    tiles, taps = [], list[tuple[int, int, int] | None]()
    for tile, lanes in _tiles(_segments(window, channels, pitch, pixel, outer, whole), config):
        tiles.append(PackedTile(corner + tile.first, tile.split, tile.jump))
        taps += lanes
    if any(at % step for tile in tiles for at in (tile.first, tile.split)):
        return None
    steps = {outer: window.strides[outer] * pitch, inner: window.strides[inner] * pixel}
    last = sum((positions[axis] - 1) * steps[axis] for axis in (0, 1))
    ends = (tile.first + config.word * (1 + tile.jump * (tile.split > 0)) for tile in tiles)
    elements = first + (spatial[outer] - 1) * pitch + (spatial[inner] - 1) * pixel + channels
    end = max(last + max(ends), elements)
    words = -(-end // config.word)
    by_axis = {outer: pitch, inner: pixel}
    packed = PackedInput(config.word, words, first, by_axis[0], by_axis[1])
    # A single position needs no step, whatever it would be; but other boxes of a larger tensor have more.
    moves = tuple(steps[axis] if positions[axis] > 1 else 0 for axis in (0, 1))
    if any(at % step for at in (moves if origin is None else steps.values())):
        return None
    return PackingPlan(packed, tuple(tiles), tuple(taps), (moves[0], moves[1]), end - begin, transposed)


def _pitches(least: int, step: int, config: HwConfig) -> Sequence[int]:
    """Bytes from row to row that may be, multiples of `step`: `least` or more, one of each number modulo the word."""
    return range(-(-least // step) * step, least + max(config.word, step) + step, step)


def _begin(
    window: Window, axes: tuple[int, int], steps: tuple[int, int], config: HwConfig, origin: Origin | None
) -> int:
    """Bytes before the first one of the padding, so that a box lies at the same bytes of host words as in the larger
    tensor; windows begin where reads can."""
    if origin is None:
        return 0
    found = 0
    for axis, step in zip(axes, steps, strict=True):
        first, pad = (origin.row, origin.col)[axis], window.pads[axis]
        phase = (first - pad) % window.strides[axis] if config.unaligned > 1 else 0
        found += (first - max(0, pad) - phase) * step
    return found % moved_bytes(config)


Segment = tuple[int, list[tuple[int, int, int] | None]]
"""The first byte of elements that lie side by side, and which they are."""


def _segments(window: Window, channels: int, pitch: int, pixel: int, outer: int, whole: bool) -> list[Segment]:
    """The rows of the window in order if `whole`, with what lies between their taps, or else its single taps."""
    (k_outer, k_inner), (d_outer, d_inner) = (
        (numbers[outer], numbers[1 - outer]) for numbers in (window.kernel, window.dilations)
    )
    segments: list[Segment] = []
    for o, i in product(range(k_outer), range(k_inner)):
        kh, kw = (o, i) if outer == 0 else (i, o)
        taps: list[tuple[int, int, int] | None] = [(kh, kw, c) for c in range(channels)]
        if i and whole:
            segments[-1][1].extend([None] * (d_inner * pixel - channels) + taps)
        else:
            segments.append((o * d_outer * pitch + i * d_inner * pixel, taps))
    return segments


def _tiles(segments: list[Segment], config: HwConfig) -> Iterator[tuple[PackedTile, list[tuple[int, int, int] | None]]]:
    """Reads that bring all segments: each part of one, and of the next if that is a jump of whole words further."""
    word, step = config.word, config.unaligned
    left = [(first, list(taps)) for first, taps in segments]
    while left:
        first, taps = left.pop(0)
        lanes, rest = taps[:word], taps[word:]
        split = jump = 0
        if rest:
            left.insert(0, (first + word, rest))
        elif left:
            begin, following = left[0]
            words, odd = divmod(begin - first - len(lanes), word)
            at = len(lanes) + odd
            count = min(len(following), word - at)
            if count > 0 and at % step == 0 and 0 <= words <= MOST_JUMP:
                split, jump = at, words
                lanes += [None] * odd + following[:count]
                left[0] = begin + count, following[count:]
                if not following[count:]:
                    left.pop(0)
        yield PackedTile(first, split, jump), lanes + [None] * (word - len(lanes))


def _variant(graph: Graph, plans: dict[str, PackingPlan]) -> Variant:
    storage: dict[str, tuple[StorageFormat, Shape]] = {}
    tensors = dict(graph.tensors)
    for name, plan in plans.items():
        x = graph.tensors[name]
        storage[name] = plan.packed, x.shape
        tensors[name] = dataclasses.replace(x, shape=plan.packed.stored_shape(x.shape))
    ops = [_convolved(op, plans[op.inputs[0]]) if isinstance(op, Conv) and op.inputs[0] in plans else op
           for op in graph.ops]  # fmt: skip
    return Variant(dataclasses.replace(graph, tensors=tensors, ops=ops), storage)


def _convolved(op: Conv, plan: PackingPlan) -> PackedConv:
    """The convolution over packed bytes: weights by tile and lane, 0 where a lane has no element."""
    weight = np.zeros((len(op.weight), len(plan.taps), 1, 1), np.int8)
    for lane, tap in enumerate(plan.taps):
        if tap is not None:
            kh, kw, c = tap
            weight[:, lane, 0, 0] = op.weight[:, c, kh, kw]
    return PackedConv(
        op.name, op.inputs, op.output, op.nodes, weight=weight, bias=op.bias, multiplier=op.multiplier,
        lo=op.lo, hi=op.hi, pitch=plan.pitch, tiles=plan.tiles, elements=tuple(tap is not None for tap in plan.taps),
    )  # fmt: skip
