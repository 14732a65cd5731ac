"""The mean over a window of a function of a quantized tensor, whose values are on no grid of int8.

onnxruntime's quantizer writes ``DequantizeLinear -> HardSwish -> GlobalAveragePool -> QuantizeLinear`` in QOperator
form, for it knows no integer HardSwish. Here the values are rounded to integers of more bits, and their sum is exact::

    n = round(f / s) = 127 * hi + lo        two tables; s so that sums of n stay below 2^24
    y = round(sum of n * s / (count * scale)) + zero point

The planes of hi and lo lie one above the other, or row by row in turn where the window is not the whole plane, and a
depthwise convolution over both has the weights 127 and 1.
"""

from dataclasses import dataclass

import numpy as np

from ...ir.graph import Copy, Piece, Tensor
from ..context import Context
from ..dialects.qdq import SMALLEST_NORMAL, enter_table
from ..values import AxisMoves, QuantizedView, QuantizerTarget, Unquantized, Value, form
from .affine_sum import Affine
from .arrange import materialise
from .operands import materialized
from .window import Window

HIGH = 127
"""Weight of the upper part."""
MOST = HIGH * HIGH + HIGH // 2
"""Largest n that has two parts."""
MOST_SUM = (1 << 24) - 1
"""Of n: sums of 24 bits are requantized exactly."""
MOST_ROWS = 255
"""Of a convolution's window."""


@dataclass(frozen=True)
class FunctionMean:
    """The mean of a function of `tensor`, ``f = n * step`` of each value, that waits for its result's scale."""

    context: Context
    name: str
    tensor: Tensor
    n: np.ndarray[tuple[int], np.dtype[np.int64]]
    step: float
    window: Window

    def finish(self, result: QuantizerTarget) -> Tensor:
        """Add the operations."""
        context, x = self.context, self.tensor
        context.means.add(self.name)
        high = np.rint(self.n / HIGH).astype(np.int64)
        halves = [
            enter_table(context, x, half, f"{result.name}.{name}", self.step, 0, (f"{self.name}.{name}",))
            for half, name in ((high, "high"), (self.n - HIGH * high, "low"))
        ]
        (rows, cols), (down, across) = self.window.kernel, self.window.strides
        whole = rows == x.height and not any(self.window.pads)
        places = [(n * x.height, 0, 1) if whole else (n, 0, 2) for n in (0, 1)]
        pieces = tuple(Piece(n, 0, x.width, 1, x.height, x.width, *place) for n, place in enumerate(places))
        names = tuple(half.name for half in halves)
        made = Copy(f"{self.name}.planes", names, f"{result.name}.planes", (self.name,), pieces)
        planes = context.put(made, (1, x.channels, 2 * x.height, x.width), self.step, 0)
        weight = np.ones((x.channels, 1, 2 * rows, cols), np.int64)
        weight[:, :, slice(rows) if whole else slice(None, None, 2)] = HIGH
        scale = np.full(x.channels, 1 / (rows * cols), np.float32)
        top, left, bottom, right = self.window.pads
        window = Window((2 * rows, cols), (1 if whole else 2 * down, across), pads=(2 * top, left, 2 * bottom, right))
        return Affine(context, self.name, planes, weight, scale, None, window, x.channels).finish(result)


def mean_of_function(
    context: Context, value: Value, window: Window, name: str, counted: bool = False
) -> Unquantized | None:
    """The mean over a window of a function that leaves its operand's grid; None if the value is another, the window has
    gaps, padding that is not `counted`, or more rows or columns than a convolution's, or values are not finite."""
    if not isinstance(value, QuantizedView) or len(value.functions) < 2 or len(value.shape) not in (3, 4):
        return None
    _, channels, height, width = form(value.shape)
    rows, cols = window.kernel
    fits = max(2 * rows, cols) <= MOST_ROWS and window.dilations == (1, 1) and (counted or not any(window.pads))
    if not fits or materialized(context, value) is not None:
        return None
    values = value.reals().astype(np.float64)
    largest = float(np.abs(values).max())
    step = float(np.float32(largest / min(MOST, MOST_SUM // (rows * cols))))
    if not step >= SMALLEST_NORMAL or not np.isfinite(largest):
        return None
    n = np.clip(np.rint(values / step), -MOST, MOST).astype(np.int64)
    made = FunctionMean(context, name, materialise(context, value), n, step, window)
    out = (1, channels, *window.size((height, width)))
    shape = out if len(value.shape) == 4 else (1, channels, out[3])
    return Unquantized(made.finish, AxisMoves.of(out, shape), (name,))
