"""What a configuration takes on an ECP5, from its parameters alone, before anything is synthesized.

Block RAMs and multipliers follow from the construction of the RTL and are exact. Logic is a sum of terms per processing
element, lane, memory and so on, fitted to what Yosys makes (the tests hold it to `TOLERANCE`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..board import Board
from ..config import HwConfig
from ..rtl import ebr
from .flow import check_fit

TOLERANCE = 0.15
"""Relative error of the LUT4 and flip-flop estimates that the tests allow."""
LANE_MULTIPLIERS = ((9, 9), (13, 14), (13, 14), (13, 14), (13, 14))
"""Operand widths of the multipliers of a requantizer lane."""
LINK_MEMORIES = ((32, 256, 32), (32, 16, 32), (8, 1024, 8))
"""Width, depth and granularity of the serial link's memories: frame buffer, description, reply buffer."""


@dataclass(frozen=True)
class Estimate:
    """Resources of the whole design (core, serial link, clock)."""

    lut: int
    ff: int
    dsp: int
    ebr: int

    def counts(self) -> dict[str, int]:
        """By the names that `flow.check_fit` uses."""
        return {"LUT4": self.lut, "flip-flops": self.ff, "multipliers": self.dsp, "block RAMs": self.ebr}

    def fits(self, board: Board) -> bool:
        """Whether it is no more than the board's device has."""
        have = board.resources
        return self.lut <= have.lut4 and self.ff <= have.ff and self.dsp <= have.dsp and self.ebr <= have.ebr


def memories(config: HwConfig) -> dict[str, tuple[int, tuple[int, int, int]]]:
    """Every memory in block RAM: how many of it, and its width, depth and write granularity."""
    row = config.cols * config.acc_bits
    return {
        "activations": (config.act_banks, (8 * config.word, config.act_depth, 8)),
        "weights": (1, (8 * config.weight_word, config.weight_depth, 8)),
        "accumulators": (2, (row, config.acc_depth, row)),
        "parameters": (1, (64, config.param_depth, 8)),
        "tables": (config.lanes, (8, config.tables * 256, 8)),
        "load microcode": (1, (32, config.load_ucode, 32)),
        "array microcode": (1, (32, config.array_ucode, 32)),
        "vector microcode": (1, (32, config.vector_ucode, 32)),
    }


def block_rams(config: HwConfig) -> dict[str, int]:
    """Block RAMs by memory, exactly, without the link's."""
    return {name: count * len(ebr.plan(*shape)) for name, (count, shape) in memories(config).items()}


def fabric_luts(a_bits: int, b_bits: int) -> int:
    """LUT4 of a fabric multiplier, as `rtl.ecp5.fabric_multiplier` builds it (two per carry cell)."""
    wide, narrow = max(a_bits, b_bits), min(a_bits, b_bits)
    spans = [2] * -(-narrow // 2)
    total = len(spans) * (_chain(wide + 1) + 1)
    while len(spans) > 1:
        pairs = [(low, high) for low, high in zip(spans[::2], spans[1::2], strict=False)]
        total += sum(_chain(wide + high) for _, high in pairs)
        spans = [low + high for low, high in pairs] + (spans[-1:] if len(spans) % 2 else [])
    return total


def _chain(bits: int) -> int:
    """LUT4 sites of a carry chain: one for the carry into it, rounded up to whole cells."""
    return -(-(bits + 1) // 2) * 2


def multipliers(config: HwConfig) -> int:
    """Multiplier blocks, exactly."""
    array = config.rows * config.cols if config.multiplier == "dsp" else 0
    lanes = config.lanes * len(LANE_MULTIPLIERS) if config.requant_multiplier == "dsp" else 0
    return array + lanes


LUT_TERMS: tuple[float, ...] = (0.0,) * 8
FF_TERMS: tuple[float, ...] = (0.0,) * 8


def features(config: HwConfig) -> tuple[float, ...]:
    """What logic is proportional to: once, per element, lane, column bits, activation bits, accumulator bits."""
    elements = config.rows * config.cols
    return (
        1.0,
        elements,
        elements * config.psum_bits,
        config.lanes,
        8 * config.word,
        8 * config.word * config.act_banks,
        config.cols * config.acc_bits,
        8 * config.weight_word,
    )


def fabric_part(config: HwConfig) -> int:
    """LUT4 of all multipliers that are made of carry chains."""
    array = config.rows * config.cols * fabric_luts(8, 8) if config.multiplier == "fabric" else 0
    lane = sum(fabric_luts(*bits) for bits in LANE_MULTIPLIERS)
    return array + (config.lanes * lane if config.requant_multiplier == "fabric" else 0)


def _sum(terms: Sequence[float], values: Sequence[float]) -> int:
    return round(sum(term * value for term, value in zip(terms, values, strict=True)))


def estimate(config: HwConfig) -> Estimate:
    """The resources of a configuration with serial link and clock."""
    rams = sum(block_rams(config).values()) + sum(len(ebr.plan(*shape)) for shape in LINK_MEMORIES)
    values = features(config)
    lut = _sum(LUT_TERMS, values) + fabric_part(config)
    return Estimate(lut, _sum(FF_TERMS, values), multipliers(config), rams)


def check(config: HwConfig, board: Board) -> Estimate:
    """The estimate, or `DoesNotFitError` E5201 that tells all resources that are too few and what to lower."""
    found = estimate(config)
    check_fit(found.counts(), board, where=f"{config.name} on {board.name}")
    return found
