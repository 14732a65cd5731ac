"""Degenerate channels: their sums are too large for the requantizer's 24 bits, but vary so little that it is no matter.

A channel of small weights and a large bias may reach one or two output values only. Then another
parameter entry gives the same outputs for every sum that can occur::

    one value y        ->  weights 0, bias y - zero_point, scale 1
    y below t, else y + 1  ->  bias moved and scale chosen so that t falls on y + 1/2
"""

from dataclasses import dataclass

import numpy as np

from .. import fixed
from ..fixed import NotProvable, Scale
from ..ir.graph import Conv

EXHAUSTIVE = 1 << 22
"""Most sums over which an entry is proved one by one: 32 MB for each array of them."""
SLOPE = 0.4
"""How many outputs the farthest sum comes to lie from the threshold: below 1/2, or a third value would appear; the rest
is room for rounding the scale."""


@dataclass(frozen=True)
class ChannelScale:
    """A channel's parameter entry; `constant`: its weights are to be 0."""

    scale: Scale
    constant: bool = False


def channel_scale(op: Conv, channel: int, low: int, high: int, bias: int, zero_point: int) -> ChannelScale:
    """The entry of a channel whose sums (folded bias included) lie in ``low .. high``; else `NotProvable`."""
    multiplier = float(op.multiplier[channel])
    try:
        return ChannelScale(fixed.scale_for_requantize(multiplier, low, high, bias))
    except NotProvable:
        ends = fixed.requantize(np.array([low, high]), multiplier, zero_point, op.lo, op.hi)
        first, last = int(ends[0]) - zero_point, int(ends[1]) - zero_point
        if first == last:
            return ChannelScale(Scale(fixed.ONE.multiplier, fixed.ONE.shift, first), constant=True)
        if last == first + 1 and high - low < EXHAUSTIVE:
            return ChannelScale(_step(op, channel, low, high, bias, zero_point))
        raise


def _step(op: Conv, channel: int, low: int, high: int, bias: int, zero_point: int) -> Scale:
    """An entry for two adjacent output values, proved over every sum."""
    sums = np.arange(low, high + 1, dtype=np.int64)
    wanted = fixed.requantize(sums, float(op.multiplier[channel]), zero_point, op.lo, op.hi)
    below = int(wanted[0]) - zero_point
    threshold = low + int(np.argmax(wanted != wanted[0]))
    reach = max(threshold - low, high + 1 - threshold)
    # The threshold's sum, moved to `at`, times the scale is `below` + 1/2; the ends stay within 1/2 of it.
    slope = SLOPE / reach
    at = round((below + 0.5) / slope)
    for move in (0, -1, 1):
        shift_by = at - threshold + move
        try:
            scale = fixed.scale_for_requantize(slope, low + shift_by, high + shift_by, bias + shift_by)
        except (NotProvable, ValueError):
            continue
        got = fixed.lane_drain(sums + shift_by, scale, False, zero_point, op.lo, op.hi)
        if np.array_equal(got, wanted):
            return scale
    raise NotProvable(f"sums in {low} .. {high} at multiplier {float(op.multiplier[channel]):g}: no entry found")
