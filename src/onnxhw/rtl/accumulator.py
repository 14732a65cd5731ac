"""`Accumulators`: two banks of C-wide accumulator rows, read, added to and written every cycle; `WindowSums`: the rows
of the depthwise unit."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from ..config import HwConfig, bits_for
from ..isa.timing import MEMORY
from ..isa.units import STREAMING, Unit
from .cells import BlockRam, DuplicatedRegister
from .delay import delay
from .kernel_window import SHORT
from .ports import drain


def target(unit: Unit, config: HwConfig) -> data.StructLayout:
    """Where a row of a unit's sums goes: bank, if there are two, and row; and whether it replaces what is there."""
    bank = {"bank": 1} if STREAMING[unit].banks > 1 else {}
    return data.StructLayout({"valid": 1, **bank, "row": bits_for(STREAMING[unit].rows(config)), "replace": 1})


class Accumulators(wiring.Component):
    """``acc[bank][row][c] = (0 if replace else acc[bank][row][c]) + sums[c]``.

    `i_target` comes `MEMORY` + 1 cycles before its `i_sums`. A row can be read by the drain, or added to again, when
    its sum is `ACCUMULATE` cycles past the first read. The drain must not read the bank that is being added to.
    """

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        super().__init__(
            {
                "i_target": In(target(Unit.ARRAY, config)),
                "i_sums": In(signed(config.psum_bits)).array(config.cols),
                "drain": In(drain(Unit.ARRAY, config)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        width = config.cols * config.acc_bits
        banks = [BlockRam(width=width, depth=config.acc_depth, role=f"acc_{i}") for i in range(2)]
        m.submodules.bank_0, m.submodules.bank_1 = banks

        # Cycle 1: the row to read, in a register of each bank's own.
        adding = self.i_target.valid & (self.i_target.bank == 0), self.i_target.valid & (self.i_target.bank == 1)
        for i, (bank, busy) in enumerate(zip(banks, adding, strict=True)):
            row_1 = Signal.like(self.drain.row, name=f"row_1_{i}", reset_less=True)
            m.d.sync += row_1.eq(Mux(busy, self.i_target.row, self.drain.row))
            m.d.comb += bank.r_addr.eq(row_1)

        # Cycle 1 + MEMORY: add. Cycle 2 + MEMORY: write.
        target_2, target_3, target_4 = (Signal(target(Unit.ARRAY, config)) for _ in range(3))
        m.d.comb += target_2.eq(delay(m, self.i_target.as_value(), MEMORY, name="target"))
        m.d.sync += target_3.eq(target_2)
        m.submodules.how = how = DuplicatedRegister(2, config.cols)  # bank and whether to replace, for each column
        m.d.comb += how.i.eq(Cat(target_2.bank, target_2.replace))
        sum_4 = Signal(width, reset_less=True)
        columns = []
        for c in range(config.cols):
            before = Signal(signed(config.acc_bits), name=f"before_{c}")
            bank_3, replace_3 = how.o[c]
            old = (bank.r_data.word_select(c, config.acc_bits) for bank in reversed(banks))
            m.d.comb += before.eq(Mux(replace_3, 0, Mux(bank_3, *old)))
            after = Signal(signed(config.acc_bits), name=f"after_{c}")
            m.d.comb += after.eq(before + self.i_sums[c])
            columns.append(after)
        m.d.sync += [target_4.eq(target_3), sum_4.eq(Cat(*columns))]
        for i, bank in enumerate(banks):
            m.d.comb += [
                bank.w_addr.eq(target_4.row),
                bank.w_data.eq(sum_4),
                bank.w_en.eq(target_4.valid & (target_4.bank == i)),
            ]

        drain_bank_3 = delay(m, self.drain.bank, 1 + MEMORY, name="drain_bank")
        drain = Signal.like(self.drain.sums, name="drain", reset_less=True)
        m.d.sync += drain.eq(Mux(drain_bank_3, banks[1].r_data, banks[0].r_data))
        m.d.comb += self.drain.sums.eq(drain)
        return m


class WindowSums(wiring.Component):
    """``window[row][d] = (0 if replace else window[row][d]) + sums[d]``.

    `i_target` comes `MEMORY` + 1 cycles before its `i_sums`. The drain must not read what is being written, nor
    anything while sums are added to, for they share a read port.
    """

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        super().__init__(
            {
                "i_target": In(target(Unit.DEPTHWISE, config)),
                "i_sums": In(signed(config.window_bits)).array(config.depthwise_lanes),
                "drain": In(drain(Unit.DEPTHWISE, config)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        lanes, bits = config.depthwise_lanes, config.sum_bits
        short = config.window_depth <= SHORT
        m.submodules.rows = rows = BlockRam(
            width=lanes * bits, depth=config.window_depth, role="window", distributed=short
        )

        # Cycle 1: the row to read.
        row_1 = Signal.like(self.drain.row, name="row_1", reset_less=True)
        m.d.sync += row_1.eq(Mux(self.i_target.valid & ~self.i_target.replace, self.i_target.row, self.drain.row))
        m.d.comb += rows.r_addr.eq(row_1)

        # Cycle 1 + MEMORY: add. Cycle 2 + MEMORY: write.
        target_2, target_3, target_4 = (Signal(target(Unit.DEPTHWISE, config)) for _ in range(3))
        m.d.comb += target_2.eq(delay(m, self.i_target.as_value(), MEMORY, name="target"))
        m.d.sync += [target_3.eq(target_2), target_4.eq(target_3)]
        m.submodules.how = how = DuplicatedRegister(1, lanes)  # whether to replace, for each lane
        m.d.comb += how.i.eq(target_2.replace)
        sums_4 = Signal(lanes * bits, reset_less=True)
        for d in range(lanes):
            before, after = Signal(signed(bits), name=f"before_{d}"), Signal(signed(bits), name=f"after_{d}")
            m.d.comb += [
                before.eq(Mux(how.o[d], 0, rows.r_data.word_select(d, bits))),
                after.eq(before + self.i_sums[d]),
            ]
            m.d.sync += sums_4.word_select(d, bits).eq(after)
        m.d.comb += [rows.w_addr.eq(target_4.row), rows.w_data.eq(sums_4), rows.w_en.eq(target_4.valid)]

        drain = Signal.like(self.drain.sums, name="drain", reset_less=True)
        m.d.sync += drain.eq(rows.r_data)
        m.d.comb += self.drain.sums.eq(drain)
        return m
