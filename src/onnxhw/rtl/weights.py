"""`WeightMemory`: the weights, in blocks that are read one after the other where the array wants them so."""

from dataclasses import dataclass
from typing import Any

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.timing import LOAD_TO_SHADOW, MEMORY
from . import ebr
from .cells import BlockRam
from .delay import delay
from .floorplan import memory_sites


@dataclass(frozen=True)
class Block:
    """A part of every weight word: `name` in the hierarchy, its bytes, and by how many cycles it is read later."""

    name: str
    bytes: tuple[int, ...]
    later: int = 0


ADDRESSES, REGISTERS = 2, LOAD_TO_SHADOW - 2 - MEMORY
"""Register stages before and behind the block RAMs."""


def block_rows(config: HwConfig) -> int:
    """Rows of a block of one column: the largest divisor of R whose bytes are in one block RAM at that depth."""
    fit = next((rows for rows in (4, 2) if config.weight_depth <= ebr.words(ebr.BYTE * rows)), 1)
    return max(rows for rows in range(1, fit + 1) if config.rows % rows == 0)


def blocks(config: HwConfig) -> list[Block]:
    """The blocks of the weight memory: one, or if a word is a whole tile, `block_rows` rows of a column each.

    A tile's row r and column c are then wanted r + c cycles after its first (see `SystolicArray`); a delayed address
    serves a block, and registers only what is left within it.
    """
    if config.tile_words > 1:
        return [Block("all", tuple(range(config.weight_word)))]
    height = block_rows(config)
    return [
        Block(f"row_{row}_column_{c}", tuple((row + i) * config.cols + c for i in range(height)), row + c)
        for row in range(0, config.rows, height)
        for c in range(config.cols)
    ]


class WeightMemory(wiring.Component):
    """``r_data`` shows the word at ``r_addr`` `LOAD_TO_SHADOW` cycles later; if a word is a whole tile, its
    row r and column c come r + c cycles after that.
    """

    latency = LOAD_TO_SHADOW

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        address = bits_for(config.weight_depth)
        super().__init__(
            {
                "w_addr": In(address),
                "w_data": In(8 * config.weight_word),
                "w_en": In(config.weight_word),
                "r_addr": In(address),
                "r_data": Out(8 * config.weight_word),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        parts = blocks(config)
        sites = memory_sites(platform, config).get("weights", ()) if len(parts) == 1 else ()
        addresses = [self.r_addr]
        for cycle in range(1, ADDRESSES + 1 + max(part.later for part in parts)):
            address = Signal.like(self.r_addr, name=f"address_{cycle}", reset_less=True)
            m.d.sync += address.eq(addresses[-1])
            addresses.append(address)
        for part in parts:
            ram = BlockRam(width=8 * len(part.bytes), depth=config.weight_depth, granularity=8, sites=sites)
            m.submodules[part.name] = ram
            m.d.comb += [ram.w_addr.eq(self.w_addr), ram.r_addr.eq(addresses[ADDRESSES + part.later])]
            for i, byte in enumerate(part.bytes):
                later = REGISTERS + (i if len(parts) > 1 else 0)
                value = delay(m, ram.r_data.word_select(i, 8), later, name=f"weight_{byte}", reset=False)
                m.d.comb += [
                    ram.w_data.word_select(i, 8).eq(self.w_data.word_select(byte, 8)),
                    ram.w_en[i].eq(self.w_en[byte]),
                    self.r_data.word_select(byte, 8).eq(value),
                ]
        return m
