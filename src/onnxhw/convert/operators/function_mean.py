"""The mean over all pixels of a function of a quantized tensor, whose values are on no grid of int8.

onnxruntime's quantizer writes ``DequantizeLinear -> HardSwish -> GlobalAveragePool -> QuantizeLinear`` in QOperator
form, for it knows no integer HardSwish. Here the values are rounded to integers of more bits, and their sum is exact::

    n = round(f / s) = 127 * hi + lo        two tables; s so that sums of n stay below 2^24
    y = round(sum of n * s / (count * scale)) + zero point

The planes of hi and lo lie one above the other, and a depthwise convolution over both has the weights 127 and 1.
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

    def finish(self, result: QuantizerTarget) -> Tensor:
        """Add the operations."""
        context, x = self.context, self.tensor
        context.means.add(self.name)
        high = np.rint(self.n / HIGH).astype(np.int64)
        halves = [
            enter_table(context, x, half, f"{result.name}.{name}", self.step, 0, (f"{self.name}.{name}",))
            for half, name in ((high, "high"), (self.n - HIGH * high, "low"))
        ]
        pieces = tuple(Piece(n, 0, x.width, 1, x.height, x.width, n * x.height) for n in (0, 1))
        names = tuple(half.name for half in halves)
        made = Copy(f"{self.name}.planes", names, f"{result.name}.planes", (self.name,), pieces)
        planes = context.put(made, (1, x.channels, 2 * x.height, x.width), self.step, 0)
        weight = np.ones((x.channels, 1, 2 * x.height, x.width), np.int64)
        weight[:, :, : x.height] = HIGH
        scale = np.full(x.channels, 1 / (x.height * x.width), np.float32)
        window = Window((2 * x.height, x.width))
        return Affine(context, self.name, planes, weight, scale, None, window, x.channels).finish(result)


def mean_of_function(context: Context, value: Value, window: Window, name: str) -> Unquantized | None:
    """The mean over a window of a function that leaves its operand's grid; None if the value is another, the window is
    not the whole plane or has more rows or columns than a convolution's, or values are not finite."""
    if not isinstance(value, QuantizedView) or len(value.functions) < 2 or len(value.shape) not in (3, 4):
        return None
    _, channels, height, width = form(value.shape)
    whole = window.kernel == (height, width) and not any(window.pads) and max(2 * height, width) <= MOST_ROWS
    if not whole or materialized(context, value) is not None:
        return None
    values = value.reals().astype(np.float64)
    largest = float(np.abs(values).max())
    step = float(np.float32(largest / min(MOST, MOST_SUM // (height * width))))
    if not step >= SMALLEST_NORMAL or not np.isfinite(largest):
        return None
    n = np.clip(np.rint(values / step), -MOST, MOST).astype(np.int64)
    made = FunctionMean(context, name, materialise(context, value), n, step)
    out = (1, channels, 1, 1)
    return Unquantized(made.finish, AxisMoves.of(out, out if len(value.shape) == 4 else out[:3]), (name,))
