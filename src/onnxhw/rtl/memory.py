"""`ActMemory`: the banks of activation memory with their users."""

from typing import Any, NamedTuple

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.timing import ACT_READ, MEMORY
from ..isa.units import Unit, units_of
from .cells import BlockRam, DuplicatedRegister
from .delay import delay
from .ports import act_read, act_write, by_name, each, reads_unaligned, unturned, write_request
from .shift import rotate_right

HOST = "host"
CHOSEN = 4
"""Lanes of an answer that a register chooses the bank of: one register for 16 lanes has 384 loads."""


class _Read(NamedTuple):
    """A read in cycle 1: its offset in a bank, and which banks are meant."""

    offset: Signal
    hits: Signal


class _Write(NamedTuple):
    """A write in cycle 1: its request, which banks are meant, and whether any lane is written."""

    word: Any
    hits: Signal
    some: Signal


class ActMemory(wiring.Component):
    """Banks of W-byte words; each bank serves one read and one write per cycle.

    ``read`` and ``write`` have a port for each user. A read is answered `latency` cycles later. A write lands in its
    bank two cycles later.
    Two readers in one cycle must name different banks: programs are proved so, nothing arbitrates. So must the vector
    unit and moves from external memory, if there are any, when both write. Only a write of the host's waits for a cycle
    in which no unit writes; from the cycle after the request on `blocked` tells that it does, and another one is not
    taken. `host_writes` tells that the host's request is a write, which is known sooner than from its lanes; it has one
    or more, or waits as if it had.
    """

    latency = ACT_READ

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        self.split = bits_for(config.act_depth)
        """Bits of an address below the bank's number."""
        self.readers = {port: reads_unaligned(unit, config) for unit in units_of(config) for port in unit.ports.reads}
        self.readers[HOST] = False
        self.writers = (*(unit for unit in units_of(config) if unit.ports.writes), HOST)
        super().__init__(
            {
                "read": In(each(self.readers, lambda user: act_read(config, self.readers[user]))),
                "write": In(each(self.writers, lambda _: act_write(config))),
                "host_writes": In(1),
                "blocked": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        banks = [self._bank(m, number) for number in range(self.config.act_banks)]
        reads = {user: self._take_read(m, user, port.request) for user, port in by_name(self.read).items()}
        writes = {user: self._take_write(m, user, port.request) for user, port in by_name(self.write).items()}
        moved = writes.get(Unit.MOVE)
        # No unit writes: a register beside those of the writers, which drive whole words of multiplexers.
        free = Signal(init=1)
        m.d.sync += free.eq(~Cat(port.request.en for user, port in by_name(self.write).items() if user != HOST).any())
        m.d.comb += self.blocked.eq(writes[HOST].some & ~free)
        shared = self._shared(m, writes[HOST], writes[Unit.VECTOR])
        for number, bank in enumerate(banks):
            self._read_bank(m, number, bank, reads)
            self._write_bank(m, number, bank, writes[HOST], writes[Unit.VECTOR], shared, moved)
        self._answer(m, [bank.r_data for bank in banks])
        return m

    def _bank(self, m: Module, number: int) -> BlockRam:
        """The memory of a bank; only bank 0 is read unaligned."""
        config = self.config
        slices = config.slices if number == 0 else 1
        bank = BlockRam(
            width=8 * config.word, depth=config.act_depth, granularity=8, role=f"act_{number}", slices=slices
        )
        m.submodules[f"bank_{number}"] = bank
        return bank

    def _take_read(self, m: Module, user: str, request: Any) -> _Read:
        """Cycle 1: a request, with the bank decoded."""
        offset = Signal(self.split, name=f"read_offset_{user}", reset_less=True)
        hits = Signal(self.config.act_banks, name=f"read_hits_{user}")
        m.d.sync += [offset.eq(request.addr), hits.eq(self._selected(request.en, request.addr))]
        return _Read(offset, hits)

    def _take_write(self, m: Module, user: str, request: Any) -> _Write:
        """Cycle 1: the same of a write, which the host's one may have to wait behind."""
        word = Signal(write_request(self.config), name=f"write_{user}_1", reset_less=True)
        hits = Signal(self.config.act_banks, name=f"write_hits_{user}")
        some = Signal(name=f"writing_{user}")
        enable = self.host_writes if user == HOST else request.en.any()
        taken = [word.eq(request), hits.eq(self._selected(enable, request.addr)), some.eq(enable)]
        if user == HOST:
            with m.If(~self.blocked):
                m.d.sync += taken
        else:
            m.d.sync += taken
        return _Write(word, hits, some)

    def _selected(self, enable: Value, address: Value) -> Value:
        """Per bank, whether it is meant."""
        return Cat(enable & (address[self.split :] == number) for number in range(self.config.act_banks))

    def _shared(self, m: Module, host: _Write, vector: _Write) -> tuple[Signal, Signal]:
        """Cycle 2: offset and data of what is written go to all banks, which lie side by side."""
        w_addr = Signal(self.split, reset_less=True)
        w_data = Signal(8 * self.config.word, reset_less=True)
        m.d.sync += [
            w_addr.eq(Mux(vector.some, vector.word.addr[: self.split], host.word.addr[: self.split])),
            w_data.eq(Mux(vector.some, vector.word.data, host.word.data)),
        ]
        return w_addr, w_data

    def _read_bank(self, m: Module, number: int, bank: BlockRam, reads: dict[str, _Read]) -> None:
        """Cycle 2: a bank's own read addresses, near its block RAMs: one for each slice."""
        apart = [user for user, unaligned in self.readers.items() if unaligned and bank.slices > 1]
        common: Any = 0
        for user, read in reads.items():
            if user not in apart:
                common = common | Mux(read.hits[number], read.offset, 0)
        ways = {user: self._sliced(m, user, reads[user].offset) for user in apart}
        for part in range(bank.slices):
            name = f"r_addr_{number}_{part}" if apart else f"r_addr_{number}"
            r_addr, mine = Signal(self.split, name=name, reset_less=True), common
            for user, by_part in ways.items():
                mine = mine | Mux(reads[user].hits[number], by_part[part], 0)
            m.d.sync += r_addr.eq(mine)
            m.d.comb += bank.read_address(part).eq(r_addr)

    def _write_bank(
        self, m: Module, number: int, bank: BlockRam, host: _Write, vector: _Write, shared: tuple[Signal, Signal],
        moved: _Write | None,
    ) -> None:  # fmt: skip
        """Cycle 2: a bank's own lanes to write, with what it shares; where moves write, address and data of its own."""
        w_en = Signal(self.config.word, name=f"w_en_{number}")
        lanes = [Mux(writer.hits[number], writer.word.en, 0) for writer in (vector, host)]
        w_addr, w_data = shared
        if moved is None:
            m.d.sync += w_en.eq(Mux(vector.some, *lanes))
        else:
            w_addr, w_data = (
                Signal.like(each, name=f"{name}_{number}", reset_less=True)
                for name, each in (("w_addr", w_addr), ("w_data", w_data))
            )
            # A write of the host's that is blocked is not taken, whichever bank a move writes.
            m.d.sync += w_en.eq(Mux(vector.some, lanes[0], Mux(moved.some, 0, lanes[1])))
            with m.If(moved.hits[number]):
                m.d.sync += [w_en.eq(moved.word.en), w_addr.eq(moved.word.addr), w_data.eq(moved.word.data)]
            with m.Elif(vector.some):
                m.d.sync += [w_addr.eq(vector.word.addr), w_data.eq(vector.word.data)]
            with m.Else():
                m.d.sync += [w_addr.eq(host.word.addr), w_data.eq(host.word.data)]
        m.d.comb += [bank.w_addr.eq(w_addr), bank.w_data.eq(w_data), bank.w_en.eq(w_en)]

    def _sliced(self, m: Module, user: str, offset: Signal) -> list[Value]:
        """Cycle 1: the offset in bank 0 for each slice of a word: that of the first byte's word, or of the next for
        slices before it; and so many words further where lanes behind the jump lie."""
        config, request = self.config, by_name(self.read)[user].request
        count, bits = config.slices, bits_for(config.act_depth)
        grain, width = config.unaligned.bit_length() - 1, config.word.bit_length() - 1
        first = request.byte[width:][:bits]
        starts = [first + 1, first + request.jump, first + request.jump + 1]
        words = [Signal(bits, name=f"{name}_{user}", reset_less=True) for name in ("second", "behind", "behind_second")]
        m.d.sync += [word.eq(start) for word, start in zip(words, starts, strict=True)]
        turn, split = request.byte[grain:width], request.split[grain:width]
        begin = Signal(len(turn) + 1, name=f"begin_{user}")
        m.d.comb += begin.eq(turn + split)
        beyond, jumps = begin[-1], request.unaligned & split.any()
        found = []
        for part in range(count):
            early, before = part < turn, part < begin[:-1]
            carry, behind = (Signal(name=f"{name}_{user}_{part}", reset_less=True) for name in ("carry", "behind"))
            m.d.sync += [
                carry.eq(request.unaligned & early),
                behind.eq(jumps & Mux(beyond, early & ~before, early | ~before)),
            ]
            found.append(Mux(behind, Mux(carry, words[2], words[1]), Mux(carry, words[0], offset)))
        return found

    def _answer(self, m: Module, banks: list[Value]) -> None:
        """Cycle 2 + MEMORY: select the bank for each reader; `banks` are what they show."""
        config = self.config
        number_bits = bits_for(config.act_banks)
        for user, port in by_name(self.read).items():
            number = port.request.addr[bits_for(config.act_depth) :][:number_bits]
            copies = 1 if config.word % CHOSEN else config.word // CHOSEN
            m.submodules[f"number_{user}"] = numbers = DuplicatedRegister(number_bits, copies)
            m.d.comb += numbers.i.eq(delay(m, number, 1 + MEMORY, name=f"bank_{user}", reset=False))
            word = Signal(8 * config.word, name=f"word_{user}_5", reset_less=True)
            size = len(word) // copies
            for part, number_4 in enumerate(numbers.o):
                shown = [bank.word_select(part, size) for bank in banks]
                m.d.sync += word.word_select(part, size).eq(Cat(shown).word_select(number_4, size))
            m.d.comb += port.word.eq(word)
            if self.readers[user]:
                self._turn(m, user, port, banks[0])

    def _turn(self, m: Module, user: str, port: Any, word: Value) -> None:
        """Cycle 2 + MEMORY of an unaligned read: the first byte comes into lane 0, but for `unturned` slices."""
        config = self.config
        left, grain = unturned(config), config.unaligned.bit_length() - 1
        number = port.request.byte[grain + left.bit_length() - 1 : config.word.bit_length() - 1]
        number_4 = delay(m, number, 2 + MEMORY, name=f"turn_{user}", reset=False)
        turned = Signal(8 * config.word, name=f"turned_{user}_5", reset_less=True)
        m.d.sync += turned.eq(rotate_right(word, 8 * config.unaligned * left, number_4))
        m.d.comb += port.turned.eq(turned)
