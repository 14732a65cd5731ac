"""`Concat`, `Reshape` and `Copy`: operations that compute nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...fixed import Ints
from ..boxes import Box, Span
from ..channels import Mask, agree, constant_planes
from ..operation import Array8, Interval, Operation, Tensor, hull
from ..windows import Pads

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11


class Movement(Operation):
    """The elements of the operands, elsewhere."""

    moves = True

    def range(self, inputs: Sequence[Interval]) -> Interval:
        return hull(inputs)


class Joining(Movement):
    """The elements of the operands, one operand after the other."""

    joins = True

    def constant_channels(self, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
        elements = [np.repeat(values, x.height * x.width) for values, x in zip(known, inputs, strict=True)]
        return constant_planes(np.concatenate(elements).reshape(y.channels, -1))

    def restore_channels(self, known: list[Ints], inputs: list[Tensor], drop: list[Mask], y: Mask) -> None:
        agree(drop, [x.height * x.width for x in inputs], y)


@dataclass(frozen=True)
class Concat(Joining):
    """Concatenation along the channels; all inputs have the output's scale and zero point."""

    def check(self, inputs: list[Tensor], y: Tensor) -> None:
        self.require(len(inputs) >= 1, "must have an operand")
        self.require_same_scale(inputs, y)
        self.require(sum(x.channels for x in inputs) == y.channels, "channels of the operands do not add up")
        same = all(x.shape[2:] == y.shape[2:] for x in inputs)
        self.require(same, "operands must have the result's height and width")

    def evaluate(self, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
        return np.concatenate(arrays, axis=1).astype(np.int64)

    @property
    def crops(self) -> tuple[bool, bool, bool]:
        return True, True, True

    def needed(self, box: Box, inputs: list[Tensor], y: Tensor) -> list[Box]:
        """Of each operand the channels that it gives to the box."""
        begins = accumulate((x.channels for x in inputs), initial=0)
        placed = zip(begins, inputs, strict=False)
        ends = ([min(max(end - begin, 0), x.channels) for end in box.channels] for begin, x in placed)
        return [Box((low, high), box.rows, box.cols) for low, high in ends]

    def part(self, box: Box, inputs: list[Tensor], y: Tensor) -> "Self":
        """A concatenation of those operands that give something."""
        given = zip(self.inputs, self.needed(box, inputs, y), strict=True)
        return replace(self, inputs=tuple(name for name, mine in given if mine.size))


@dataclass(frozen=True)
class Reshape(Joining):
    """Same elements in ONNX (C, H, W) order under another shape; free when a layout exists for it."""

    def check(self, inputs: list[Tensor], y: Tensor) -> None:
        self.require_count(inputs, 1)
        self.require_same_scale(inputs, y)
        self.require(prod(inputs[0].shape) == prod(y.shape), "must keep the number of elements")

    def evaluate(self, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
        return arrays[0].reshape(len(arrays[0]), *y.shape[1:]).astype(np.int64)

    @property
    def crops(self) -> tuple[bool, bool, bool]:
        return True, False, False

    def needed(self, box: Box, inputs: list[Tensor], y: Tensor) -> list[Box]:
        whole = Box.whole(inputs[0].shape)
        return [whole._replace(channels=box.channels) if inputs[0].channels == y.channels else whole]

    def part(self, box: Box, inputs: list[Tensor], y: Tensor) -> "Self | None":
        """Of some channels, where planes alone change their form."""
        whole = Box.whole(y.shape)
        kept = inputs[0].channels == y.channels and box._replace(channels=whole.channels) == whole
        return self if kept or box == whole else None


@dataclass(frozen=True)
class Piece:
    """Pixels of one input put into the result: a grid of `rows` x `cols` of them.

    Pixel (i, j) of the grid is pixel ``start + i * row + j * col`` of input `source`, counted row by row, and
    becomes pixel ``(y + i * dy, x + j * dx)`` of the result.
    """

    source: int
    start: int
    row: int
    col: int
    rows: int
    cols: int
    y: int = 0
    x: int = 0
    dy: int = 1
    dx: int = 1


@dataclass(frozen=True)
class Steps:
    """The steps of a piece in an operand of `width` columns as rows and columns, (rows, columns) each; None where its
    pixels run on from one row to the next, so that they are told apart by their numbers alone."""

    width: int
    row: tuple[int, int] | None
    col: tuple[int, int] | None

    @classmethod
    def of(cls, piece: Piece, width: int) -> "Steps":
        """Of a piece: those by which it never leaves the columns."""
        left = piece.start % width
        for row in _divided(piece.row, width):
            for col in _divided(piece.col, width):
                ends = [left + (piece.rows - 1) * i * row[1] + (piece.cols - 1) * j * col[1]
                        for i in (0, 1) for j in (0, 1)]  # fmt: skip
                if min(ends) >= 0 and max(ends) < width:
                    return cls(width, row, col)
        return cls(width, None, None)

    def spans(self, piece: Piece) -> tuple[Span, Span]:
        """Rows and columns of the operand that have the piece's pixels; all columns where pixels run on."""
        top, left = divmod(piece.start, self.width)
        if self.row is None or self.col is None:
            steps = (0, (piece.rows - 1) * piece.row), (0, (piece.cols - 1) * piece.col)
            ends = [piece.start + i + j for i in steps[0] for j in steps[1]]
            return (min(ends) // self.width, max(ends) // self.width + 1), (0, self.width)
        found = []
        for first, row, col in zip((top, left), self.row, self.col, strict=True):
            down, across = (piece.rows - 1) * row, (piece.cols - 1) * col
            found.append((first + min(0, down) + min(0, across), first + max(0, down) + max(0, across) + 1))
        return found[0], found[1]

    def within(self, piece: Piece, box: Box) -> Piece:
        """The piece of the operand's pixels in a box alone."""
        top, left = divmod(piece.start, self.width)
        width = box.shape[3]
        start = (top - box.rows[0]) * width + left - box.cols[0]
        if self.row is None or self.col is None:
            return replace(piece, start=start)
        row, col = (step[0] * width + step[1] for step in (self.row, self.col))
        return replace(piece, start=start, row=row, col=col)


def _divided(step: int, width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """A step between numbers of pixels as rows and columns to the right, or as one row more and columns to the left."""
    rows, cols = divmod(step, width)
    return (rows, cols), (rows + 1, cols - width)


@dataclass(frozen=True)
class Copy(Movement):
    """Pixels of the inputs, with all their channels, in a new arrangement: what slices, joins, repeats or turns planes.

    No two `pieces` write the same pixel; pixels that none writes hold `fill`. All tensors have the same channels,
    scale and zero point.
    """

    pieces: tuple[Piece, ...] = ()
    fill: int = 0

    channelwise = True

    def index(self, inputs: list[Tensor], y: Tensor) -> npt.NDArray[np.int64]:
        """``[H, W]``: which pixel each pixel of the result is, counted through all inputs; -1 where it is `fill`."""
        first = np.cumsum([0, *(tensor.height * tensor.width for tensor in inputs)])
        index = np.full(y.shape[2:], -1, np.int64)
        for piece in self.pieces:
            i, j = np.arange(piece.rows)[:, None], np.arange(piece.cols)
            index[piece.y + i * piece.dy, piece.x + j * piece.dx] = (
                first[piece.source] + piece.start + i * piece.row + j * piece.col
            )
        return index

    def check(self, inputs: list[Tensor], y: Tensor) -> None:
        self.require(len(inputs) >= 1, "must have an operand")
        self.require_same_scale(inputs, y)
        self.require(all(x.channels == y.channels for x in inputs), "operands must have the result's channels")
        self.require(-128 <= self.fill <= 127, "fill must be -128..127, not {}", self.fill)
        wrong = _misplaced(self.pieces, tuple(x.height * x.width for x in inputs), (y.height, y.width))
        self.require(not wrong, "{}", wrong)

    def evaluate(self, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
        """Every pixel is looked up by its number; the last one stands for `fill`."""
        pixels = [x.reshape(*x.shape[:2], -1) for x in arrays]
        fill = np.full((*arrays[0].shape[:2], 1), self.fill, np.int8)
        return np.concatenate([*pixels, fill], axis=2)[:, :, self.index(inputs, y)].astype(np.int64)

    def range(self, inputs: Sequence[Interval]) -> Interval:
        return hull([*inputs, (self.fill, self.fill)])

    @property
    def crops(self) -> tuple[bool, bool, bool]:
        return True, True, True

    def needed(self, box: Box, inputs: list[Tensor], y: Tensor) -> list[Box]:
        """Of each operand the pixels of all pieces in the box; of the first operand one pixel if there is no piece."""
        pieces = self._within(box)
        if not pieces:
            empty = [Box(box.channels, (0, 0), (0, 0)) for _ in inputs[1:]]
            return [Box(box.channels, (0, 1), (0, 1)), *empty]
        found = [Box(box.channels, (0, 0), (0, 0)) for _ in inputs]
        for piece in pieces:
            rows, cols = Steps.of(piece, inputs[piece.source].width).spans(piece)
            found[piece.source] = found[piece.source].hull(Box(box.channels, rows, cols))
        return found

    def part(self, box: Box, inputs: list[Tensor], y: Tensor) -> "Self":
        """The pieces in the box, of what is needed of their operands."""
        needed = self.needed(box, inputs, y)
        given = [n for n, mine in enumerate(needed) if mine.size]
        pieces = tuple(
            replace(
                Steps.of(piece, inputs[piece.source].width).within(piece, needed[piece.source]),
                source=given.index(piece.source), y=piece.y - box.rows[0], x=piece.x - box.cols[0],
            )
            for piece in self._within(box)
        )  # fmt: skip
        return replace(self, inputs=tuple(self.inputs[n] for n in given), pieces=pieces)

    def _within(self, box: Box) -> list[Piece]:
        """Of each piece what it writes into a box of the result."""
        found = []
        for piece in self.pieces:
            (first, bottom), (left, right) = (
                (max(0, -(-(low - at) // step)), min(count, -(-(high - at) // step)))
                for (low, high), at, step, count in (
                    (box.rows, piece.y, piece.dy, piece.rows), (box.cols, piece.x, piece.dx, piece.cols)
                )
            )  # fmt: skip
            if first < bottom and left < right:
                found.append(replace(
                    piece, start=piece.start + first * piece.row + left * piece.col, rows=bottom - first,
                    cols=right - left, y=piece.y + first * piece.dy, x=piece.x + left * piece.dx,
                ))  # fmt: skip
        return found

    def padding(self, inputs: list[Tensor], y: Tensor) -> Pads | None:
        if len(inputs) != 1 or len(self.pieces) != 1:
            return None
        (x,), (piece,) = inputs, self.pieces
        row, col = divmod(piece.start, x.width)
        stepped = piece.rows > 1 and (piece.row != x.width or piece.dy != 1)
        if stepped or (piece.cols > 1 and (piece.col != 1 or piece.dx != 1)):
            return None
        before = (piece.y, piece.x), (row, col)
        after = (
            (y.height - piece.y - piece.rows, y.width - piece.x - piece.cols),
            (x.height - row - piece.rows, x.width - col - piece.cols),
        )
        sides = [(added[axis], cut[axis]) for added, cut in (before, after) for axis in (0, 1)]
        if any(cut < 0 or (added and cut) for added, cut in sides):
            return None
        if any(added for added, _ in sides) and self.fill != x.zero_point:
            return None
        top, left, bottom, right = (added - cut for added, cut in sides)
        return top, left, bottom, right


@lru_cache(maxsize=1024)
def _misplaced(pieces: tuple[Piece, ...], pixels: tuple[int, ...], size: tuple[int, int]) -> str:
    """What is wrong with pieces of operands of so many `pixels` each in a result of this size; "" if nothing is."""
    written = np.zeros(size, np.int64)
    for piece in pieces:
        if not 0 <= piece.source < len(pixels):
            return f"{piece} is of no operand"
        if min(piece.rows, piece.cols, piece.dy, piece.dx) < 1:
            return f"{piece} is not a grid"
        ends = piece.y + (piece.rows - 1) * piece.dy, piece.x + (piece.cols - 1) * piece.dx
        if min(piece.y, piece.x) < 0 or ends[0] >= size[0] or ends[1] >= size[1]:
            return f"{piece} leaves the result"
        down, across = (0, (piece.rows - 1) * piece.row), (0, (piece.cols - 1) * piece.col)
        corners = [piece.start + i + j for i in down for j in across]
        if min(corners) < 0 or max(corners) >= pixels[piece.source]:
            return f"{piece} leaves its operand"
        written[piece.y : ends[0] + 1 : piece.dy, piece.x : ends[1] + 1 : piece.dx] += 1
    return "two pieces write one pixel" if int(written.max()) > 1 else ""
