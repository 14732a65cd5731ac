"""`ActMemory`: the banks of activation memory with their users."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.timing import ACT_READ, MEMORY
from .cells import BlockRam
from .delay import delay

READERS = ("array", "a", "b", "host")
"""Users of the read ports: the array, both operands of the vector unit, the host."""
WRITERS = ("vector", "host")
ADDRESS_BITS = 16


def read_request() -> data.StructLayout:
    """A read: enable and word address."""
    return data.StructLayout({"en": 1, "addr": ADDRESS_BITS})


def write_request(config: HwConfig) -> data.StructLayout:
    """A write: one enable per lane, word address, W bytes."""
    return data.StructLayout({"en": config.word, "addr": ADDRESS_BITS, "data": 8 * config.word})


class ActMemory(wiring.Component):
    """Banks of W-byte words; each bank serves one read and one write per cycle.

    ``read_USER`` is answered on ``word_USER`` `latency` cycles later. A write lands in its bank at the end of the
    next cycle. Two users of a port in one cycle must name different banks: programs are proved so, nothing
    arbitrates.
    """

    latency = ACT_READ

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        members = {f"read_{user}": In(read_request()) for user in READERS}
        members |= {f"word_{user}": Out(8 * config.word) for user in READERS}
        members |= {f"write_{user}": In(write_request(config)) for user in WRITERS}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        config = self.config
        split = bits_for(config.act_depth)

        banks = []
        for i in range(config.act_banks):
            bank = BlockRam(width=8 * config.word, depth=config.act_depth, granularity=8)
            m.submodules[f"bank_{i}"] = bank
            banks.append(bank)

        def selects(address, i: int):
            return address[split:] == i

        # Cycle 1: requests.
        reads, writes = {}, {}
        for user in READERS:
            reads[user] = Signal(read_request(), name=f"read_{user}_1")
            m.d.sync += reads[user].eq(getattr(self, f"read_{user}"))
        for user in WRITERS:
            writes[user] = Signal(write_request(config), name=f"write_{user}_1")
            m.d.sync += writes[user].eq(getattr(self, f"write_{user}"))

        for i, bank in enumerate(banks):
            read = 0
            for user in READERS:
                hit = reads[user].en & selects(reads[user].addr, i)
                read = read | Mux(hit, reads[user].addr[:split], 0)
            m.d.comb += bank.r_addr.eq(read)
            from_host = Signal(name=f"from_host_{i}")
            m.d.comb += from_host.eq(writes["host"].en.any())
            write = Signal(write_request(config), name=f"write_{i}")
            m.d.comb += write.eq(Mux(from_host, writes["host"].as_value(), writes["vector"].as_value()))
            m.d.comb += [
                bank.w_addr.eq(write.addr[:split]),
                bank.w_data.eq(write.data),
                bank.w_en.eq(Mux(selects(write.addr, i), write.en, 0)),
            ]

        # Cycle 1 + MEMORY: select the bank.
        words = Cat(bank.r_data for bank in banks)
        for user in READERS:
            number = delay(m, reads[user].addr[split:], MEMORY, name=f"bank_{user}", reset=False)
            m.d.sync += getattr(self, f"word_{user}").eq(words.word_select(number[: bits_for(config.act_banks)], 8 * config.word))
        return m
