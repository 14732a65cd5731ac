"""Resize in mode linear to a multiple of the size: a convolution per phase of the result's pixels, then the phases put
in place.

    y[s t + r] = (x[t + k] * (d - n) + x[t + k + 1] * n) / d      with k = floor, n / d = fraction of r's coordinate

Along each axis; what lies before the first element is the first one, what lies behind the last the last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, prod

import numpy as np

from ...ir.graph import Add, Copy, Piece, Tensor
from ..blockers import BlockedError
from ..context import Context
from ..values import AxisMoves, Ints, QuantizedView, QuantizerTarget, Unquantized, Value
from .affine_sum import MOST_PARTS, Affine
from .arrange import MovementBuilder, materialise
from .window import Window

MOST_FACTOR = 8
"""Along an axis: 64 phases, as many pieces as a Copy has; weights of at most 15 * 15, which takes two int8."""
HALF_PIXEL = ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
"""Coordinates that are the same where the result is a multiple of the size and has more than one element."""


Added = Callable[[str, Tensor, Ints, Window, QuantizerTarget], Tensor]
"""Adds the convolution of a phase: name, operand, weights, window, result."""


@dataclass(frozen=True)
class ResizePhase:
    """Along one axis: the place of the first weight before or behind the result's position, and the weights, integers
    whose sum is the same for all phases."""

    first: int
    weights: tuple[int, ...]


def phases(factor: int, coordinates: str) -> list[ResizePhase]:
    """Of a result that is so many times as large; `BlockedError` for coordinates whose phases are not alike."""
    if factor == 1:
        return [ResizePhase(0, (1,))]
    if coordinates in HALF_PIXEL:
        places = [Fraction(2 * r + 1, 2 * factor) - Fraction(1, 2) for r in range(factor)]
    elif coordinates == "asymmetric":
        places = [Fraction(r, factor) for r in range(factor)]
    else:
        what = f"coordinate_transformation_mode {coordinates} gives every pixel weights of its own in mode linear"
        raise BlockedError(what, "use half_pixel or asymmetric")
    firsts = [place.numerator // place.denominator for place in places]
    shares = [place - first for place, first in zip(places, firsts, strict=True)]
    whole = max(share.denominator for share in shares)
    found = [(whole - int(share * whole), int(share * whole)) for share in shares]
    common = gcd(*(weight for pair in found for weight in pair))
    return [
        ResizePhase(first, (near // common, far // common) if far else (near // common,))
        for first, (near, far) in zip(firsts, found, strict=True)
    ]


@dataclass(frozen=True)
class LinearResize:
    """A linear Resize of a tensor that waits for its result's scale."""

    context: Context
    name: str
    tensor: Tensor
    axes: tuple[list[ResizePhase], list[ResizePhase]]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the result."""
        (rows, cols), x = self.axes, self.tensor
        return 1, x.channels, x.height * len(rows), x.width * len(cols)

    @property
    def total(self) -> int:
        """Sum of the weights of a pixel."""
        rows, cols = self.axes
        return sum(rows[0].weights) * sum(cols[0].weights)

    def finish(self, result: QuantizerTarget) -> Tensor:
        """Add the operations of the real result, rounded once to the result's grid."""
        scale = np.full(self.tensor.channels, 1 / self.total, np.float32)

        def added(name: str, source: Tensor, weight: Ints, window: Window, target: QuantizerTarget) -> Tensor:
            made = Affine(self.context, name, source, weight, scale, None, window, source.channels)
            return made.finish(target)

        return self._interleaved(added, result)

    def integers(self, output: str, unsigned: bool) -> Tensor:
        """Add the operations of integers on the operand's grid, of which onnxruntime takes the whole part: uint8 down,
        int8 to zero, which is the sum of what is above zero, down, and what is below, up."""
        x, name = self.tensor, self.name
        if unsigned:
            return self._rounded(-1, QuantizerTarget(output, np.float32(x.scale), x.zero_point, -128, 127, (name,)))
        above, below = f"{output}.above", f"{output}.below"
        self._rounded(-1, QuantizerTarget(above, np.float32(x.scale), x.zero_point, 0, 127, (name,)))
        self._rounded(1, QuantizerTarget(below, np.float32(x.scale), 0, -128, 0, (name,)))
        return self.context.put(Add(name, (above, below), output, (name,)), self.shape, x.scale, x.zero_point)

    def _rounded(self, way: int, target: QuantizerTarget) -> Tensor:
        """The integers, rounded down (-1) or up (1) and clamped: ``floor(sum / d)`` is ``round((2 sum - (d - 1)) /
        (2 d))``, never a tie, because d is even."""
        channels, total = self.tensor.channels, self.total
        moved = 2 * total * (self.tensor.zero_point - target.zero_point)
        bias = np.full(channels, moved + way * (total - 1), np.int64)
        multiplier = np.full(channels, 1 / (2 * total), np.float32)

        def added(name: str, source: Tensor, weight: Ints, window: Window, target: QuantizerTarget) -> Tensor:
            scale = np.ones(channels, np.float32)
            made = Affine(self.context, name, source, 2 * weight, scale, None, window, channels)
            return made.added(target, bias, multiplier)

        return self._interleaved(added, target)

    def _interleaved(self, added: Added, result: QuantizerTarget) -> Tensor:
        """A convolution for each phase, of the operand with what lies around it, and the Copy that puts them in
        place."""
        (rows, cols), x = self.axes, self.tensor
        firsts = [[phase.first for phase in axis] for axis in self.axes]
        ends = [[phase.first + len(phase.weights) - 1 for phase in axis] for axis in self.axes]
        before, after = [-min(each) for each in firsts], [max(each) for each in ends]
        source = self._repeated(before, after, result.name)
        parts, pieces = list[Tensor](), list[Piece]()
        for y, down in enumerate(rows):
            for x_, across in enumerate(cols):
                # What other phases need around the operand and this one does not is left out.
                pads = (
                    -before[0] - down.first, -before[1] - across.first, ends[0][y] - after[0], ends[1][x_] - after[1]
                )  # fmt: skip
                window = Window((len(down.weights), len(across.weights)), pads=pads)
                weight = np.broadcast_to(np.outer(down.weights, across.weights), (x.channels, 1, *window.kernel))
                suffix = f".phase{y}.{x_}"
                target = replace(result, name=result.name + suffix)
                parts.append(added(self.name + suffix, source, weight.astype(np.int64), window, target))
                pieces.append(Piece(len(parts) - 1, 0, x.width, 1, x.height, x.width, y, x_, len(rows), len(cols)))
        made = Copy(self.name, tuple(part.name for part in parts), result.name, result.nodes, tuple(pieces))
        return self.context.put(made, self.shape, result.scale, result.zero_point)

    def _repeated(self, before: Sequence[int], after: Sequence[int], output: str) -> Tensor:
        """The operand with its first and last rows and columns repeated so often."""
        x = self.tensor
        pixels = np.arange(x.height * x.width).reshape(x.height, x.width)
        index = np.pad(pixels, [*zip(before, after, strict=True)], "edge")
        builder = MovementBuilder(self.context, f"{self.name}.edges", (x,), x.zero_point)
        return builder.pixels([x], np.zeros_like(index), index, f"{output}.edges")


def linear_resize(
    context: Context, value: Value, factors: Sequence[int], coordinates: str, output: str, name: str
) -> Value:
    """The value, ``(1, C, L)`` or ``(1, C, H, W)``, so many times as large along its last axes, in mode linear.

    `BlockedError` for a factor or coordinates that are not performed.
    """
    if not isinstance(value, QuantizedView) or not (value.integer or value.plain):
        raise BlockedError("its input is not quantized", "put QuantizeLinear and DequantizeLinear on every activation")
    if len(factors) not in (1, 2) or max(factors) > MOST_FACTOR:
        raise BlockedError(f"factors {list(factors)} in mode linear", f"one or two of at most {MOST_FACTOR}")
    rows, cols = (phases(factor, coordinates) for factor in (1, *factors)[-2:])
    made = LinearResize(context, name, materialise(context, value), (rows, cols))
    shape = made.shape if len(factors) == 2 else (1, made.shape[1], made.shape[3])
    moves = AxisMoves.of(made.shape, shape)
    if value.integer:
        largest = prod(max(max(phase.weights) for phase in axis) for axis in (rows, cols))
        if 2 * largest > 127 * MOST_PARTS:
            raise BlockedError(f"integers by factors {list(factors)} in mode linear", "quantize its result (QDQ form)")
        return QuantizedView(made.integers(output, value.unsigned), moves, (), value.unsigned)
    return Unquantized(made.finish, moves, (name,))
