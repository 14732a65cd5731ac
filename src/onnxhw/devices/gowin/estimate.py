"""What a configuration takes on a GW2A, from its parameters alone, before anything is synthesized.

Block RAMs and multipliers follow from the construction of the RTL and are exact. Logic is a sum of terms, fitted to
what Yosys makes (the tests hold it to `TOLERANCE`).
"""

from ...config import WINDOW, HwConfig
from ...rtl.kernel_window import SHORT
from ..family import Estimate
from ..memories import all_block_rams
from .cells import NARROW

TOLERANCE = 0.15
"""Relative error of the LUT4 and flip-flop estimates that the tests allow."""
LANE_MULTIPLIERS = ((17, 18), (17, 10), (9, 18), (9, 10), (9, 9))
"""Operand widths of the multipliers of a requantizer lane, in the order in which they take multiplier blocks."""
FABRIC = 14
"""LUT4 of a multiplier of logic per bit of its wider operand and eight of the other (120 for 8 x 8, as Yosys 0.70
makes it)."""
LUT_TERMS = (6900, 800, 8.0, 25.0)
FF_TERMS = (7000, 930, 6.2, 15.0)
"""LUT4 and flip-flops of the design, per lane, per bit of an accumulator row and of an activation word, fitted to Yosys
0.70 on ``mini`` and two larger configurations."""
DEPTHWISE = (1600, 1300)
"""The same of the depthwise unit, without its window, weights and sums."""


def multipliers(config: HwConfig) -> int:
    """Multiplier blocks, exactly: one per wide multiplier, one per two narrow ones, of which those of "fabric" are."""
    taps = WINDOW**2 * config.depthwise_lanes if config.depthwise else 0
    narrow, wide = config.array_multipliers + taps, 0
    for index, operands in enumerate(LANE_MULTIPLIERS):
        if max(operands) <= NARROW:
            narrow += config.lanes
        elif index < config.requant_dsps:
            wide += config.lanes
    return wide + -(-narrow // 2)


def logic(config: HwConfig) -> tuple[int, int]:
    """LUT4 and flip-flops."""
    row, word, psum = config.cols * config.acc_bits, 8 * config.word, config.psum_bits
    down = config.rows // config.element_rows
    elements = down * config.cols
    values = (1, config.lanes, row, word)
    lut = sum(term * value for term, value in zip(LUT_TERMS, values, strict=True)) + elements * (psum + 2)
    ff = sum(term * value for term, value in zip(FF_TERMS, values, strict=True))
    ff += elements * (psum + 24 * config.element_rows + 1)
    if config.fast:
        lut += elements * 2 * NARROW
        ff += down * (psum + 16) + config.cols * 2 * psum
    fabric = [max(pair) * min(pair) for pair in LANE_MULTIPLIERS[config.requant_dsps :] if max(pair) > NARROW]
    lut += config.lanes * sum(fabric) * FABRIC / 8
    if config.depthwise:
        lanes, sums = config.depthwise_lanes, config.sum_bits * config.depthwise_lanes
        short = config.window_depth <= SHORT
        lut += DEPTHWISE[0] + 3 * sums + (-(-config.window_depth // 16) * -(-sums // 4) * 6 if short else 0)
        ff += DEPTHWISE[1] + 3 * 8 * lanes * WINDOW**2 + 2 * sums
    return round(lut), round(ff)


def estimate(config: HwConfig) -> Estimate:
    """The resources of a configuration with serial link and clock; a block RAM is the table of input regions."""
    return Estimate(*logic(config), multipliers(config), all_block_rams(config) + 1)
