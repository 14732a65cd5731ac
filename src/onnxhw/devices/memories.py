"""Which memories a configuration has, and how many block RAMs they take where `block_ram.plan` cuts them."""

from ..config import HwConfig
from ..isa.memory import param_shape
from ..isa.units import ucode_words, units_of
from ..rtl.kernel_window import SHORT
from ..rtl.weight_blocks import blocks, tail
from . import block_ram

LINK_MEMORIES = ((9, 4096, 9), (32, 512, 32), (32, 256, 32), (8, 2048, 8), (32, 16, 32))
"""Width, depth and granularity of the link's memories: input, frame buffer, description, reply buffer, start of a
program."""


def memories(config: HwConfig) -> dict[str, tuple[int, tuple[int, int, int]]]:
    """Every memory in block RAM: how many of it, and its width, depth and write granularity."""
    row, parts = config.cols * config.acc_bits, blocks(config)
    sums = config.window_depth > SHORT
    lines, window = 16 * config.depthwise_lanes, config.sum_bits * config.depthwise_lanes
    return {
        "activations": (config.act_banks, (8 * config.word, config.act_depth, 8)),
        "weights": (len(parts), (8 * len(parts[0].bytes), config.weight_depth - tail(config), 8)),
        "accumulators": (2, (row, config.acc_depth, row)),
        **({"depthwise lines": (1, (lines, config.depthwise, lines))} if config.depthwise > SHORT else {}),
        **({"depthwise sums": (1, (window, config.window_depth, window))} if config.depthwise and sums else {}),
        "parameters": (1, (*param_shape(config), 8)),
        "tables": (config.lanes, (8, config.tables * 256, 8)),
        **{
            f"{unit} microcode": (1, (32, ucode_words(config, unit), 32)) for unit in units_of(config)
            if not unit.in_luts(config)
        },
    }


def block_rams(config: HwConfig) -> dict[str, int]:
    """Block RAMs by memory, exactly, without the link's."""
    found = {name: count * len(block_ram.plan(*shape)) for name, (count, shape) in memories(config).items()}
    _, act = memories(config)["activations"]
    found["activations"] += len(block_ram.plan(*act, config.slices)) - len(block_ram.plan(*act))
    return found


def all_block_rams(config: HwConfig) -> int:
    """Block RAMs of a design with a link, exactly."""
    return sum(block_rams(config).values()) + sum(len(block_ram.plan(*shape)) for shape in LINK_MEMORIES)
