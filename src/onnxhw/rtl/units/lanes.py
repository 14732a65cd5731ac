"""`add_lanes`: the vector unit's lanes, what they get and when.

Each takes one value of a group of a word per cycle, with its parameters.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed

from ...config import HwConfig, bits_for
from ...fixed import MULTIPLIER_BITS
from ...isa.memory import PARAM_BITS
from ...isa.timing import MEMORY
from ..cells import BlockRam, DuplicatedRegister
from ..decode import Decoded
from ..delay import delay
from ..requantize import RequantizeLane
from ..window_reduce import WindowReduce


def add_lanes(
    m: Module, config: HwConfig, params: BlockRam, reduce: WindowReduce, now: Decoded,
    word_0: Value, plane_0: Value, param_0: Value, again_5: Value, drain_6: Value,
) -> tuple[Signal, list[Signal]]:  # fmt: skip
    """Give the lanes of an instruction `now` one group per cycle; those of DOT every word, of its only group.

    `word_0` is high where a word's window ends, `plane_0` with the first of a plane, `param_0` its row of `params`;
    `again_5` where a sum of products goes on; `drain_6` a row of sums. A number behind a name is the cycle it is of, as
    that of `word_0` is 0. Returns whether there are results (in cycle 7, before the lanes' own `REQUANTIZE`), and
    these.
    """
    # Cycle 2: a new group number, and its parameter row. Cycle 3: that row's address, at the memory.
    group_2, left, valid_2, fresh_2 = Signal(6, reset_less=True), Signal(6), Signal(), Signal()
    word_1, param_1 = delay(m, word_0, 1, name="word"), delay(m, param_0, 1, name="row", reset=False)
    param_2 = Signal.like(param_1, reset_less=True)
    m.d.sync += [valid_2.eq(word_1 | (left != 0)), fresh_2.eq(word_1), group_2.eq(0)]
    with m.If(word_1):
        m.d.sync += [left.eq(now.groups - 1), param_2.eq(param_1)]
    with m.Elif(left != 0):
        m.d.sync += [group_2.eq(group_2 + 1), left.eq(left - 1)]
        with m.If(now.per_channel):
            m.d.sync += param_2.eq(param_2 + 1)
    if config.param_reads > 1:
        param_6, new_5 = _halves(m, params, word_0, plane_0, param_0)
    else:
        m.d.comb += params.r_addr.eq(delay(m, param_2, 1, name="param_address", reset=False))
        param_6, new_5 = delay(m, params.r_data, 1, name="parameters", reset=False), Const(1)
    group_5 = delay(m, group_2, MEMORY + 1, name="group", reset=False)
    valid_6 = delay(m, valid_2, MEMORY + 2, name="valid_2")
    fresh_5 = delay(m, fresh_2, MEMORY + 1, name="fresh_2")

    # Cycle 6: the operands stand in `reduce`, the accumulators in `drain_6`, and a register behind their memory,
    # for it may lie far away, the parameters.
    # Each lane's own: whether the accumulators are new, whether a sum goes on, the group's columns and lanes.
    column_bits, lane_bits = bits_for(config.col_groups), bits_for(config.lane_groups)
    m.submodules.of_group = of_group = DuplicatedRegister(3 + column_bits + lane_bits, config.lanes)
    column_5, lane_5 = now.column_group + group_5, now.lane_group + group_5
    m.d.comb += of_group.i.eq(Cat(fresh_5, again_5, new_5, column_5[:column_bits], lane_5[:lane_bits]))

    # Cycle 7: operands and parameters of the group.
    # These hold still: a cycle or two later will do.
    above_lo, above_hi = (Signal(signed(10), name=name, reset_less=True) for name in ("above_lo", "above_hi"))
    m.d.sync += [above_lo.eq(now.zy - now.lo), above_hi.eq(now.zy - now.hi)]
    settings = Cat(now.op, now.exact, now.zy, now.lo, now.hi, above_lo, above_hi)
    m.submodules.settings = mine = DuplicatedRegister(len(settings), config.lanes)
    m.d.comb += mine.i.eq(settings)
    results = []
    for q in range(config.lanes):
        unit = RequantizeLane(config.acc_bits, config.requant_dsps, config.param_reads, role=f"lane_{q}")
        m.submodules[f"lane_{q}"] = unit
        columns = [drain_6.word_select(g * config.lanes + q, config.acc_bits) for g in range(config.col_groups)]
        _feed(m, config, q, unit, of_group.o[q], columns, reduce, param_6.word_select(q, PARAM_BITS))
        taken = Cat(unit.op, unit.exact, unit.zero_point, unit.lo, unit.hi, unit.above_lo, unit.above_hi)
        m.d.comb += taken.eq(mine.o[q])
        results.append(unit.y)
    return delay(m, valid_6, 1, name="valid"), results


def _feed(
    m: Module, config: HwConfig, q: int, unit: RequantizeLane, group: Value, drained: list[Value], reduce: WindowReduce,
    entry: Value,
) -> None:  # fmt: skip
    """Registers of cycle 7 before a lane: its operands, of its `group`, and its parameters."""
    fresh, again, new = group[0], group[1], group[2]
    column_bits = bits_for(config.col_groups)
    column, lane = group[3 : 3 + column_bits], group[3 + column_bits :]
    columns = drained
    if config.col_groups > 1:
        held = Signal(config.col_groups * config.acc_bits, name=f"held_{q}", reset_less=True)
        with m.If(fresh):
            m.d.sync += held.eq(Cat(drained))
        row = Mux(fresh, Cat(drained), held)
        columns = [row.word_select(g, config.acc_bits) for g in range(config.col_groups)]
    for port, choices, index in (
        (unit.acc, columns, column),
        (unit.a, [reduce.a[g * config.lanes + q] for g in range(config.lane_groups)], lane),
        (unit.b, [reduce.b[g * config.lanes + q] for g in range(config.lane_groups)], lane),
    ):
        chosen = Signal.like(port, name=f"{port.name}_7_{q}", reset_less=True)
        with m.Switch(index):
            for g, choice in enumerate(choices):
                with m.Case(g):
                    m.d.sync += chosen.eq(choice)
        m.d.comb += port.eq(chosen)
    for port, value in (
        (unit.bias, entry[:32]),
        (unit.multiplier, entry[32 : 32 + MULTIPLIER_BITS]),
        (unit.shift, entry[58:63]),
    ):
        chosen = Signal.like(port, name=f"{port.name}_7_{q}", reset_less=True)
        with m.If(new if config.param_reads > 1 else 1):
            m.d.sync += chosen.eq(value)
        m.d.comb += port.eq(chosen)
    m.d.comb += [
        unit.again.eq(delay(m, again, 1, name=f"again_7_{q}", reset=False)),
        unit.new.eq(delay(m, new, 1, name=f"new_7_{q}", reset=False)),
    ]


def _halves(m: Module, params: BlockRam, word_0: Value, plane_0: Value, param_0: Value) -> tuple[Value, Signal]:
    """Read a plane's parameter row in two cycles, the first a cycle before that of its first word.

    The row in cycle 6 of that word, and a cycle before, whether it is there.
    """
    param_1, high_1 = Signal.like(param_0, name="param_1", reset_less=True), Signal(reset_less=True)
    with m.If(word_0):
        m.d.sync += param_1.eq(param_0)
    m.d.sync += high_1.eq(~plane_0)
    m.d.comb += params.r_addr.eq(delay(m, Cat(high_1, param_1), 1, name="param_address", reset=False))
    half_6 = delay(m, params.r_data, 1, name="parameters", reset=False)
    new_5 = delay(m, plane_0, 5, name="new", reset=False)
    low_6 = Signal.like(half_6, name="low_6", reset_less=True)
    with m.If(new_5):
        m.d.sync += low_6.eq(half_6)
    return Cat(low_6, half_6), new_5
