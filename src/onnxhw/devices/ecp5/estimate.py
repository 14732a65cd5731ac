"""What a configuration takes on an ECP5, from its parameters alone, before anything is synthesized.

Block RAMs and multipliers follow from the construction of the RTL and are exact. Logic is a sum of terms per processing
element, lane, memory and so on, fitted to what Yosys makes (the tests hold it to `TOLERANCE`).
"""

from collections.abc import Sequence
from functools import cache

from ...config import WINDOW, HwConfig, bits_for
from ...isa.timing import MULTIPLY, weight_hops, weight_skew
from ...isa.units import Unit
from ...rtl.kernel_window import SHORT
from ...rtl.weight_blocks import blocks, tail
from ..family import Estimate
from ..memories import all_block_rams
from .fabric import fabric_levels, fabric_registers, joined

TOLERANCE = 0.15
"""Relative error of the LUT4 and flip-flop estimates that the tests allow."""
LANE_MULTIPLIERS = ((17, 18), (17, 10), (9, 18), (9, 10), (9, 9))
"""Operand widths of the multipliers of a requantizer lane, in the order in which they take multiplier blocks."""


@cache
def fabric_luts(a_bits: int, b_bits: int) -> int:
    """LUT4 of a fabric multiplier, as `fabric.fabric_multiplier` builds it (two per carry cell)."""
    wide, narrow = max(a_bits, b_bits), min(a_bits, b_bits)
    spans = [2] * -(-narrow // 2)
    total = len(spans) * (_chain(wide + 1) + 1)
    while len(spans) > 1:
        total += sum(_chain(wide + high) for high in spans[1::2])
        spans = joined(spans)
    return total


def _chain(bits: int) -> int:
    """LUT4 sites of a carry chain: one for the carry into it, rounded up to whole cells."""
    return -(-(bits + 1) // 2) * 2


def multipliers(config: HwConfig) -> int:
    """Multiplier blocks, exactly."""
    return config.array_dsps + config.lanes * config.requant_dsps


@cache
def fabric_ffs(a_bits: int, b_bits: int, stages: int = MULTIPLY) -> int:
    """Flip-flops of a fabric multiplier."""
    return sum(fabric_registers(a_bits, b_bits, fabric_levels(a_bits, b_bits, stages)))


LUT_TERMS = (7376.88, 792.53, 4.22, 23.81, 4.54)
FF_TERMS = (7156.33, 778.66, 0.0, 17.06, 0.0)
"""LUT4 and flip-flops per `features`, as `bench/cost_model.py` fits them to what Yosys 0.70 makes of the configurations
in bench/synthesized.json; docs/explore.md has the errors. Of the LUT4 of `ulx3s-25f` nextpnr makes 7 % more."""

DEPTHWISE_UNIT = (600, 900)
"""LUT4 and flip-flops of the depthwise unit's fetcher, loops and control."""

EXTERNAL_MEMORY = ((1877, 4.0), (1700, 2.4))
"""LUT4 and flip-flops of the unit `move`, the memory's controller and the host's way to it, and for each bit of all
banks' words, which have registers of their own to be written from. By Yosys, `mini`, `ulx3s-25f-dense` and
`ulx3s-85f` take 2,389, 2,901 and about 4,055 LUT4 more with it."""


def features(config: HwConfig) -> tuple[float, ...]:
    """What the rest of the logic is proportional to: the design, lanes, accumulator row, activation word, all banks."""
    bits = 8 * config.word
    return 1.0, config.lanes, config.cols * config.acc_bits, bits, bits * config.act_banks


def counted(config: HwConfig) -> tuple[int, int]:
    """LUT4 and flip-flops of array and multipliers, which follow from their construction."""
    serve, cols, psum = config.element_rows, config.cols, config.psum_bits
    down = config.rows // serve
    elements = down * cols
    skew = 8 * serve * _triangle(down) + psum * _triangle(cols) + _weight_delays(config)
    lut, ff = elements * (psum + 2), elements * (psum + 24 * serve + 1) + skew
    shapes = [(8, 8)] * elements  # of fabric, as far as they are
    if config.fast:  # operands' adders; the activation products' column, their way east, and what is subtracted
        lut += elements * 2 * _chain(9) + (down + cols) * (psum + 2)
        ff += down * (psum + 16) + cols * 2 * psum
        shapes = [(8, 8)] * down + [(9, 9)] * elements
    shapes = shapes[: len(shapes) - config.array_dsps]
    if config.depthwise:
        depthwise_lut, depthwise_ff, taps = depthwise_counted(config)
        lut, ff, shapes = lut + depthwise_lut, ff + depthwise_ff, shapes + [(8, 8)] * taps
    ff += sum(fabric_ffs(*shape) for shape in shapes)
    if config.unaligned:  # an address for each slice, of four; the operand turned in two steps
        bits, word = bits_for(config.act_depth), 8 * config.word
        lut, ff = lut + 3 * bits * config.slices + 5 * word, ff + (bits + 2) * config.slices + 3 * bits + word
    # Lookup tables of 16 words of 4 bits take 6 LUT4; each bit is chosen, and registered twice.
    width, rows = 8 * config.weight_word, -(-tail(config) // 16)
    lut, ff = lut + width * rows * 6 // 4 + width * rows, ff + 2 * width * bool(rows)
    shapes_lane = LANE_MULTIPLIERS[config.requant_dsps :]
    lane = sum(fabric_ffs(*shape) for shape in shapes_lane)
    lut += sum(fabric_luts(*shape) for shape in [*shapes, *shapes_lane * config.lanes])
    return lut, ff + lane * config.lanes


def _weight_delays(config: HwConfig) -> int:
    """Flip-flops that delay weights and their enables on the way to the elements, and the addresses if they do it."""
    ways = 8 * config.load_rows + config.tile_words
    if config.tile_words > 1:
        hops = weight_hops(config, config.rows - 1) * config.cols
        west = config.cols * 8 * config.load_rows + config.tile_words if config.fast else 0
        return ways * hops + 8 * config.load_rows * _triangle(config.cols) + west
    late = {byte: weight_skew(config, *divmod(byte, config.cols)) for byte in range(config.weight_word)}
    within = sum(late[byte] - part.later for part in blocks(config) for byte in part.bytes)
    enables = config.rows // config.element_rows * config.cols
    return 8 * within + bits_for(config.weight_depth) * max(part.later for part in blocks(config)) + enables


def depthwise_counted(config: HwConfig) -> tuple[int, int, int]:
    """LUT4 and flip-flops of the depthwise unit without its multipliers, and how many of these it has."""
    lanes, taps = config.depthwise_lanes, WINDOW**2
    additions, registers, terms, bits = 0, 0, taps, 16
    while terms > 1:  # a level of additions
        bits += 1
        additions += terms // 2 * _chain(bits)
        registers += terms // 2 * bits + terms % 2 * (bits - 1)
        terms -= terms // 2
    weights = 8 * (taps * lanes + min(taps * lanes, config.weight_word) * config.depthwise_words)
    window = 8 * lanes * taps
    sums, word = config.sum_bits * lanes, 8 * config.word
    row = config.cols * config.acc_bits  # the choice of what the vector unit drains
    shapes = ((16 * lanes, config.depthwise), (sums, config.window_depth))
    short = sum(_distributed(width, depth) for width, depth in shapes if depth <= SHORT)
    short += _distributed(32, config.depthwise_ucode) if Unit.DEPTHWISE.in_luts(config) else 0
    own_lut, own_ff = DEPTHWISE_UNIT
    lut = additions * lanes + short + 2 * sums + sums + 2 * word + own_lut
    return lut, registers * lanes + weights + window + 2 * sums + row + word + own_ff, taps * lanes


def _distributed(width: int, depth: int) -> int:
    """LUT4 of a memory of lookup tables: 16 words of 4 bits take 6, and each bit of a deeper one is chosen."""
    rows = -(-depth // 16)
    return rows * (-(-width // 4) * 6) + width * max(0, rows - 1) * 2 // 3


def _triangle(n: int) -> int:
    """``0 + 1 + ... + (n - 1)``: delays of a skewed edge."""
    return n * (n - 1) // 2


def _sum(terms: Sequence[float], values: Sequence[float]) -> int:
    return round(sum(term * value for term, value in zip(terms, values, strict=True)))


def estimate(config: HwConfig) -> Estimate:
    """The resources of a configuration with serial link and clock."""
    lut, ff = counted(config)
    values = features(config)
    if config.external:
        more_lut, more_ff = (round(own + per_bit * values[-1]) for own, per_bit in EXTERNAL_MEMORY)
        lut, ff = lut + more_lut, ff + more_ff
    lut, ff = lut + _sum(LUT_TERMS, values), ff + _sum(FF_TERMS, values)
    return Estimate(lut, ff, multipliers(config), all_block_rams(config))
