"""`WeightMemory`: the weights, in blocks that are read one after the other where the array wants them so."""

from typing import Any

from amaranth import Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.timing import LOAD_TO_SHADOW, MEMORY, weight_skew
from .cells import BlockRam
from .delay import delay
from .weight_blocks import blocks, tail

ADDRESSES, REGISTERS = 2, LOAD_TO_SHADOW - 2 - MEMORY
"""Register stages before and behind the block RAMs."""


class WeightMemory(wiring.Component):
    """``r_data`` shows the word at ``r_addr`` `LOAD_TO_SHADOW` cycles later, each byte `weight_skew` after that.

    The last `blocks.tail` words lie in lookup tables beside each block.
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
        parts, beyond = blocks(config), tail(config)
        depth = config.weight_depth - beyond
        addresses = [self.r_addr]
        for cycle in range(1, ADDRESSES + 1 + max(part.later for part in parts)):
            address = Signal.like(self.r_addr, name=f"address_{cycle}", reset_less=True)
            m.d.sync += address.eq(addresses[-1])
            addresses.append(address)
        # Whether the word lies in lookup tables, as late as the address; and a `MEMORY` more, where the words come out.
        in_tail = [self.r_addr >= depth]
        for cycle in range(1, len(addresses) + MEMORY if beyond else 1):
            late = Signal(name=f"in_tail_{cycle}", reset_less=True)
            m.d.sync += late.eq(in_tail[-1])
            in_tail.append(late)
        for part in parts:
            address = addresses[ADDRESSES + part.later]
            ram = BlockRam(width=8 * len(part.bytes), depth=depth, granularity=8, role=f"weights {part.name}")
            m.submodules[part.name] = ram
            memories, word = [(ram, self.w_addr < depth if beyond else Const(1))], ram.r_data
            if beyond:
                last = BlockRam(width=ram.width, depth=beyond, granularity=8, distributed=True)
                m.submodules[f"{part.name}_tail"] = last
                memories.append((last, self.w_addr >= depth))
                word = Mux(in_tail[ADDRESSES + part.later + MEMORY], last.r_data, word)
            for memory, here in memories:
                m.d.comb += [memory.w_addr.eq(self.w_addr), memory.r_addr.eq(address)]
                for i, byte in enumerate(part.bytes):
                    m.d.comb += [
                        memory.w_data.word_select(i, 8).eq(self.w_data.word_select(byte, 8)),
                        memory.w_en[i].eq(self.w_en[byte] & here),
                    ]
            for i, byte in enumerate(part.bytes):
                later = weight_skew(config, *divmod(byte, config.cols)) - part.later
                value = delay(m, word[8 * i : 8 * i + 8], REGISTERS + later, name=f"weight_{byte}", reset=False)
                m.d.comb += self.r_data.word_select(byte, 8).eq(value)
        return m
