"""The accumulator certificate: interval analysis on the real weights of a convolution.

The array accumulates raw products ``x * w``; the zero point is folded into the bias,
``bias' = bias - zero_point * sum(w)``, and positions in the padding read the zero point. Two things
must hold for every input: each partial sum of raw products, in whatever order, fits `acc_bits`;
the whole sum with the folded bias is the true sum and fits 32 bits.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import UnsupportedError
from ..fixed import Ints
from ..ir.graph import Conv
from .ranges import Interval
from .refusals import TooLargeError

BIAS_BITS = 32
PRODUCTS = "a partial sum"


@dataclass(frozen=True)
class Sums:
    """Bounds per output channel: `low` and `high` of the true sum with bias; `bias` is the folded one."""

    low: Ints
    high: Ints
    bias: Ints


def certify(op: Conv, zero_point: int, values: Interval, acc_bits: int) -> Sums:
    """The sums of a convolution over inputs in `values`; `UnsupportedError` E4301 if one may not fit.

    It is a `TooLargeError` where the products alone are too many.
    """
    low, high = values
    if any(op.pads):
        low, high = min(low, zero_point), max(high, zero_point)
    weight = op.weight.astype(np.int64).reshape(len(op.weight), -1)
    bias = op.bias.astype(np.int64)

    raw_low, raw_high = np.minimum(weight * low, weight * high), np.maximum(weight * low, weight * high)
    _fits(op, PRODUCTS, np.minimum(raw_low, 0).sum(1), np.maximum(raw_high, 0).sum(1), acc_bits)
    folded = bias - zero_point * weight.sum(1)
    _fits(op, "bias - zero_point * sum(weights)", folded, folded, BIAS_BITS)
    total_low, total_high = raw_low.sum(1) + folded, raw_high.sum(1) + folded
    _fits(op, "the sum with bias", total_low, total_high, BIAS_BITS)
    return Sums(total_low, total_high, folded)


def _fits(op: Conv, what: str, low: Ints, high: Ints, bits: int) -> None:
    limit = 1 << (bits - 1)
    bad = np.flatnonzero((low < -limit) | (high >= limit))
    if len(bad):
        channel = int(bad[0])
        where = f"node {op.name!r} (Conv)"
        reach = (
            f"{what} of output channel {channel} can reach {int(low[channel])} .. {int(high[channel])}, "
            f"beyond {bits} bits (-{limit} .. {limit - 1}); {len(bad)} of {len(low)} channels"
        )
        if what == PRODUCTS:
            hint = "use a configuration with more acc_bits" if bits < BIAS_BITS else ""
            raise TooLargeError("E4301", reach, "E5106", where=where, hint=hint)
        raise UnsupportedError("E4301", reach, where=where)
