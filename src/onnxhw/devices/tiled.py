"""A memory made of block RAMs: the tiles of `block_ram.plan` side by side, and a multiplexer of its segments."""

from collections.abc import Callable
from typing import Any

from amaranth import Array, Module, Signal
from amaranth.hdl import Value

from ..rtl.cells import BlockRam
from . import block_ram

MakeCell = Callable[[block_ram.BlockRamTile, Value | int, int], tuple[Any, Signal]]
"""A family's block RAM: its tile, what enables writing to its segment, and its number in the plan give the instance
and the data two cycles after the address, in the order of the tile's `DataSlot.at`."""


def tiled(memory: BlockRam, make: MakeCell) -> Module:
    """The body of `memory`: the tiles of `block_ram.plan`, each made by `make`, and a multiplexer of the segments."""
    m = Module()
    tiles = block_ram.plan(memory.width, memory.depth, memory.granularity, memory.slices)
    bases = sorted({tile.base for tile in tiles})
    words = {base: Signal(memory.width, name=f"segment_{base}") for base in bases}
    limits = {base: upper for base, upper in zip(bases, [*bases[1:], 1 << len(memory.w_addr)], strict=True)}
    for number, tile in enumerate(tiles):
        here: Value | int = 1
        if len(bases) > 1:
            here = (memory.w_addr >= tile.base) & (memory.w_addr < limits[tile.base])
        cell, out = make(tile, here, number)
        m.submodules[f"tile_{number}"] = cell
        for slot in tile.slots:
            m.d.comb += words[tile.base][slot.low : slot.low + slot.bits].eq(out[slot.at : slot.at + slot.bits])
    if len(bases) == 1:
        m.d.comb += memory.r_data.eq(words[0])
        return m
    # Which segment the data will come from, two cycles later.
    width = memory.width // memory.slices
    for part in range(memory.slices):
        name, address = f"_{part}" if part else "", memory.read_address(part)
        segment_1 = Signal(range(len(bases)), name=f"segment_1{name}")
        segment_2 = Signal.like(segment_1, name=f"segment_2{name}")
        for index, base in enumerate(bases[1:], start=1):
            with m.If(address >= base):
                m.d.sync += segment_1.eq(index)
        with m.If(address < bases[1]):
            m.d.sync += segment_1.eq(0)
        m.d.sync += segment_2.eq(segment_1)
        ways = Array(word.word_select(part, width) for word in words.values())
        m.d.comb += memory.r_data.word_select(part, width).eq(ways[segment_2])
    return m
