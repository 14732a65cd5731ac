"""The accumulator certificate: interval analysis on the real weights of a convolution.

The array accumulates raw products ``x * w``, with the fast inner product also products of weights, modulo
``2**acc_bits``; the zero point is folded into the bias, ``bias' = bias - zero_point * sum(w)``, and positions in the
padding read the zero point. Two things must hold for every input: what is drained fits `acc_bits`; the whole sum with
the folded bias is the true sum and fits 32 bits.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import UnsupportedError
from ..fixed import Ints, wrap
from ..ir.graph import Conv
from ..ir.operation import Interval
from .refusals import TooLargeError

BIAS_BITS = 32
"""Bits of the bias in a parameter entry, and of the adder that takes it."""
PRODUCTS = "what accumulates"
"""What messages call the sums without their bias, for which a configuration has `acc_bits`."""


@dataclass(frozen=True)
class SumBounds:
    """Bounds per output channel: `low` and `high` of the true sum with bias; `bias` is the folded one."""

    low: Ints
    high: Ints
    bias: Ints

    def fits(self, channels: int, bits: int) -> bool:
        """Whether the sums of the first channels, without their bias, fit some bits for every input."""
        limit = 1 << (bits - 1)
        bias = self.bias[:channels]
        low, high = self.low[:channels] - bias, self.high[:channels] - bias
        return bool((low >= -limit).all() and (high < limit).all())

    def fit(self, op: Conv, channels: range, extra: Ints, acc_bits: int) -> None:
        """`TooLargeError` E4301 if a sum of some channels, and what the array adds to each, may not fit."""
        mine = slice(channels.start, channels.stop)
        more = extra - self.bias[mine]
        _fits(op, PRODUCTS, self.low[mine] + more, self.high[mine] + more, acc_bits, channels.start)


def drain_bias(bias: int, extra: int) -> int:
    """The bias that makes up for what the array added: modulo ``2**32``, as the drain adds it."""
    return int(wrap(np.array([bias - extra], np.int64), BIAS_BITS)[0])


def certify(op: Conv, zero_point: int, values: Interval) -> SumBounds:
    """The sums of a convolution over inputs in `values`; `UnsupportedError` E4301 if one may not fit 32 bits."""
    low, high = values
    if any(op.pads):
        low, high = min(low, zero_point), max(high, zero_point)
    weight = op.weight.astype(np.int64).reshape(len(op.weight), -1)
    bias = op.bias.astype(np.int64)

    raw_low, raw_high = np.minimum(weight * low, weight * high), np.maximum(weight * low, weight * high)
    folded = bias - zero_point * weight.sum(1)
    _fits(op, "bias - zero_point * sum(weights)", folded, folded, BIAS_BITS)
    total_low, total_high = raw_low.sum(1) + folded, raw_high.sum(1) + folded
    _fits(op, "the sum with bias", total_low, total_high, BIAS_BITS)
    return SumBounds(total_low, total_high, folded)


def _fits(op: Conv, what: str, low: Ints, high: Ints, bits: int, first: int = 0) -> None:
    limit = 1 << (bits - 1)
    bad = np.flatnonzero((low < -limit) | (high >= limit))
    if len(bad):
        channel = int(bad[0])
        reach = (
            f"{what} of output channel {first + channel} can reach {int(low[channel])} .. {int(high[channel])}, "
            f"beyond {bits} bits (-{limit} .. {limit - 1}); {len(bad)} of {len(low)} channels"
        )
        if what == PRODUCTS:
            hint = "use a configuration with more acc_bits" if bits < BIAS_BITS else ""
            raise TooLargeError("E4301", reach, "E5106", where=op.where, hint=hint)
        raise UnsupportedError("E4301", reach, where=op.where)
