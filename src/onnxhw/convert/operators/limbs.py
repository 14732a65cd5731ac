"""`limbs`: sums that leave the hardware as they are, in one int8 each or in two.

q[j] = clip(sum - low - 128 - 255 * j, -128, 127)       as many as there are 255s: they add up to the sum
high = round((sum - c) / 128)        or two: a second convolution, which also reads `high`, leaves the rest,
low  = sum - c - 128 * high          -64 .. 64
"""

from dataclasses import dataclass, replace

import numpy as np

from ...ir.graph import Tensor
from ..blockers import BlockedError
from ..values import AxisMoves, Ints, QuantizedView, QuantizerTarget
from .affine_sum import FLAT, Affine
from .arrange import joined, materialise

STEP = 128
"""What the upper int8 counts: a power of two, so that it is exact, and the rest has room for a tie of the rounding."""

PIECE = 255
"""How far the sums of one int8 lie apart."""
MOST_PIECES = 8
"""Each costs the products of the layer once more."""


@dataclass(frozen=True)
class Limbs:
    """``sum of x[part j of the channels] * weights[j], plus term``: the sums."""

    tensor: Tensor
    weights: tuple[int, ...]
    term: int


def limbs(affine: Affine, name: str, bias: Ints, low: int, high: int) -> Limbs:
    """Add the operations that leave the sums, which lie in ``low .. high`` with their bias; `affine` has none.

    `BlockedError` for sums that need more, or more than one where the result is not a vector.
    """
    nodes, x = (affine.name,), affine.tensor
    count = max(1, -(-(high - low) // PIECE))
    one_pixel = affine.window.size((x.height, x.width)) == (1, 1)
    if count <= (MOST_PIECES if one_pixel else 1) and (affine.groups == 1 or count == 1):
        return _pieces(affine, name, bias, 0 if low >= -128 and high <= 127 else low + 128, count)
    vector = affine.window.kernel == x.shape[2:] and affine.window == replace(FLAT, kernel=x.shape[2:])
    narrow = int(np.abs(affine.weight.astype(np.int64)).max()) <= 127
    if high - low >= 255 * STEP or not vector or affine.groups != 1 or not narrow:
        raise BlockedError(f"its real result has sums from {low} to {high}", "quantize the result to at most 8 bits")
    inputs = affine.weight[0].size
    x = materialise(affine.context, QuantizedView(x, AxisMoves.of(x.shape, (1, inputs))))
    weight = affine.weight.reshape(len(bias), inputs, 1, 1)
    flat = replace(affine, tensor=x, weight=weight, window=FLAT)
    return _two(flat, name, bias, low + STEP * (128 + x.zero_point), nodes)


def _pieces(affine: Affine, name: str, bias: Ints, first: int, count: int) -> Limbs:
    """The same sums `count` times, each less 255 more, saturated."""
    result = QuantizerTarget(f"{name}.sums", np.float32(1), 0, -128, 127, (affine.name,))
    weight = np.concatenate([affine.weight] * count)
    terms = np.concatenate([bias - first - PIECE * j for j in range(count)])
    made = replace(affine, weight=weight, scale=np.concatenate([affine.scale] * count))
    return Limbs(made.added(result, terms, np.ones(len(terms), np.float32)), (1,) * count, first + 128 * (count - 1))


def _two(affine: Affine, name: str, bias: Ints, centre: int, nodes: tuple[str, ...]) -> Limbs:
    """Both results have the scale and zero point of the input, for they are its neighbours; the names do not matter."""
    context, x, count = affine.context, affine.tensor, len(bias)
    scale, zero = np.float32(x.scale), x.zero_point
    upper = QuantizerTarget(f"{name}.high", scale, zero, -128, 127, nodes)
    high = affine.added(upper, bias - centre, np.full(count, 1 / STEP, np.float32))
    both = joined(context, [x, high], f"{name}.and_high", f"{name}.and_high", nodes)
    down = -STEP * np.eye(count, dtype=np.int64).reshape(count, count, 1, 1)
    weight = np.concatenate([affine.weight.astype(np.int64), down], axis=1).astype(np.int8)
    rest = replace(affine, name=f"{affine.name}.low", tensor=both, weight=weight)
    lower = QuantizerTarget(f"{name}.low", scale, zero, -128, 127, nodes)
    low = rest.added(lower, bias - centre - zero, np.ones(count, np.float32))
    return Limbs(joined(context, [high, low], f"{name}.sums", f"{name}.sums", nodes), (STEP, 1), centre - STEP * zero)
