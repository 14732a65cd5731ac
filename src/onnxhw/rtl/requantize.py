"""`RequantizeLane`: scales, rounds and clamps one value per cycle."""

from collections.abc import Sequence
from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..fixed import FRACTION, MULTIPLIER_BITS, SHIFT_MIN, SUM_BITS, SUM_MAX
from ..isa.instructions import VectorOp
from ..isa.timing import REQUANTIZE, SCALE
from .cells import Multiplier, Ties
from .delay import delay

HALF = 17
"""The multiplier is applied as its 17 low bits and the rest."""
LOW = 16
"""The sum is applied as its 16 low bits and the rest: with these one of the four products fills a multiplier cell of
18 x 18 bits, and the others, which may be of fabric, are small."""
PRODUCT_BITS = SUM_BITS + MULTIPLIER_BITS
INTEGER_BITS = 10


class RequantizeLane(wiring.Component):
    """`onnxhw.fixed.lane_drain` and `lane_add`, one value per cycle, `latency` cycles.

    ``acc`` (DRAIN), ``a`` (SUM, MAX; ADD, MUL and DOT: 9 bits) and ``b`` are the operands; ``multiplier``,
    ``shift`` (less SHIFT_MIN) and ``bias`` the parameter entry. DOT: the result is that of the products since the last
    that came without ``again``. With `reads` 2 the entry holds still for two cycles at least, and a new one comes with
    ``new``. ``op``, ``exact``, ``zero_point``, ``lo`` and ``hi`` must hold still from one cycle before the first value
    until the last has left. `dsps` of its 5 multipliers are
    the device's cells, the largest first, at the places `sites` if there are any.
    """

    latency = REQUANTIZE

    def __init__(self, acc_bits: int, dsps: int, sites: Sequence[str] = (), reads: int = 1) -> None:
        self.dsps, self.sites, self.reads = dsps, sites, reads
        super().__init__(
            {
                "acc": In(signed(acc_bits)),
                "a": In(signed(SUM_BITS)),
                "b": In(signed(9)),
                "again": In(1),
                "new": In(1),
                "bias": In(signed(32)),
                "multiplier": In(MULTIPLIER_BITS),
                "shift": In(5),
                "op": In(3),
                "exact": In(1),
                "zero_point": In(signed(8)),
                "lo": In(signed(8)),
                "hi": In(signed(8)),
                "y": Out(signed(8)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        draining, adding, multiplying = (
            Signal(name=name, reset_less=True) for name in ("draining", "adding", "multiplying")
        )
        m.d.sync += [
            draining.eq(self.op == VectorOp.DRAIN),
            adding.eq(self.op == VectorOp.ADD),
            multiplying.eq((self.op == VectorOp.MUL) | (self.op == VectorOp.DOT)),
        ]
        sum_4 = self._sum(m, draining, multiplying)
        product_11 = self._product(m, sum_4, adding)
        integer_14, fraction_14, sticky_14 = self._align(m, product_11)
        integer_16, up_16 = self._round(m, integer_14, fraction_14, sticky_14)

        # Cycle 17: round and zero point. Cycle 18: clamp.
        y_17 = Signal(signed(INTEGER_BITS + 2), reset_less=True)
        m.d.sync += y_17.eq(integer_16 + self.zero_point + up_16)
        y_18 = Signal.like(self.y, reset_less=True)
        m.d.sync += y_18.eq(Mux(y_17 < self.lo, self.lo, Mux(y_17 > self.hi, self.hi, y_17)))
        m.d.comb += self.y.eq(y_18)
        return m

    def _sum(self, m: Module, draining: Signal, multiplying: Signal) -> Signal:
        """Cycles 1 to 4: the value to scale, clamped to +-SUM_MAX."""
        # Cycle 1: bias, or the operand itself; modulo 2**32.
        sum_1 = Signal(signed(32), reset_less=True)
        with m.If(draining):
            m.d.sync += sum_1.eq(self.acc + self.bias)
        with m.Else():
            m.d.sync += sum_1.eq(self.a)
        # Cycle 2: clamp.
        sum_2 = Signal(signed(SUM_BITS), reset_less=True)
        top = sum_1[SUM_BITS - 1 :]
        with m.If(~sum_1[-1] & top.any()):
            m.d.sync += sum_2.eq(SUM_MAX)
        with m.Elif(sum_1[-1] & ~(top.all() & sum_1[: SUM_BITS - 1].any())):
            m.d.sync += sum_2.eq(-SUM_MAX)
        with m.Else():
            m.d.sync += sum_2.eq(sum_1)
        # Cycle 4: or the product of two operands.
        style = "dsp" if self.dsps == 5 else "fabric"
        m.submodules.operands = operands = Multiplier(9, 9, style=style, stages=SCALE)
        m.d.comb += [operands.a.eq(self.a), operands.b.eq(self.b)]
        sum_4 = Signal(signed(SUM_BITS))
        held_4 = delay(m, sum_2, SCALE - 2, name="sum", reset=False)
        m.d.comb += sum_4.eq(Mux(multiplying, operands.p, held_4))
        return sum_4

    def _product(self, m: Module, sum_4: Signal, adding: Signal) -> Signal:
        """Cycles 5 to 11: ``sum * multiplier``, or ``a * multiplier + b * bias``. Registers of cycle 5 add up DOT."""
        a_4 = delay(m, self.a[:9].as_signed(), SCALE, name="a", reset=False)
        b_4 = delay(m, self.b, SCALE, name="b", reset=False)
        k_4 = self._late(m, self.multiplier, SCALE, "k")
        bias_4 = self._late(m, self.bias[:MULTIPLIER_BITS], SCALE, "bias")
        again_4 = delay(m, self.again, SCALE, name="again", reset=False)
        # Cycle 5: the operands. Cycles 6 to 9: four products.
        x0, x1 = Signal(signed(LOW + 1), reset_less=True), Signal(signed(SUM_BITS - LOW), reset_less=True)
        total = Signal(signed(SUM_BITS))
        m.d.comb += total.eq(sum_4 + Mux(again_4, Cat(x0[:LOW], x1).as_signed(), 0))
        k0, k1 = Signal(MULTIPLIER_BITS, reset_less=True), Signal(MULTIPLIER_BITS, reset_less=True)
        m.d.sync += [
            x0.eq(Mux(adding, a_4.as_signed(), total[:LOW])),
            x1.eq(Mux(adding, b_4.as_signed(), total[LOW:].as_signed())),
            k0.eq(k_4),
            k1.eq(Mux(adding, bias_4, k_4)),
        ]
        parts = []
        ties = None
        if self.sites:
            m.submodules.ties = ties = Ties()
        pieces = (
            ("p00", x0, k0[:HALF]),
            ("p01", x0, k0[HALF:]),
            ("p10", x1, k1[:HALF]),
            ("p11", x1, k1[HALF:]),
        )
        for index, (name, x, k) in enumerate(pieces):
            style, site = ("dsp", self.sites[index] if self.sites else "") if index < self.dsps else ("fabric", "")
            part = Multiplier(len(x), len(k) + 1, style=style, site=site, ties=ties, stages=SCALE)
            m.submodules[name] = part
            m.d.comb += [part.a.eq(x), part.b.eq(k)]
            parts.append(part.p)
        # Cycle 10: join the parts of the multipliers. Cycle 11: join the operands.
        low_10, high_10 = (
            Signal(signed(LOW + 1 + MULTIPLIER_BITS), reset_less=True),
            Signal(signed(PRODUCT_BITS - LOW), reset_less=True),
        )
        m.d.sync += [
            low_10.eq(parts[0] + parts[1].shift_left(HALF)),
            high_10.eq(parts[2] + parts[3].shift_left(HALF)),
        ]
        product_11 = Signal(signed(PRODUCT_BITS), reset_less=True)
        m.d.sync += product_11.eq(low_10 + Mux(adding, high_10, high_10.shift_left(LOW)))
        return product_11

    def _late(self, m: Module, value: Value, cycles: int, name: str) -> Value:
        """A part of the parameter entry so many cycles later: a register per cycle, or per `reads` of them."""
        if self.reads == 1:
            return delay(m, value, cycles, name=name, reset=False)
        news = [self.new]
        for at in range(1, cycles):
            news.append(delay(m, news[-1], 1, name=f"new_{name}_{at}", reset=False))
        for at in range((cycles - 1) % self.reads, cycles, self.reads):
            stage = Signal(value.shape(), name=f"{name}_{at + 1}", reset_less=True)
            with m.If(news[at]):
                m.d.sync += stage.eq(value)
            value = stage
        return value

    def _align(self, m: Module, product_11: Signal) -> tuple[Signal, Signal, Signal]:
        """Cycles 12 to 14: integer part (saturated), fraction and sticky bit."""
        shift_11 = self._late(m, self.shift, 11, "shift")
        wide_11 = Cat(Const(0, FRACTION - SHIFT_MIN), product_11).as_signed()
        # Cycle 12: shift by multiples of 8. Cycle 13: by 0 to 7.
        coarse_12, sticky_12, fine_12 = (
            Signal(signed(len(wide_11)), reset_less=True),
            Signal(reset_less=True),
            Signal(3, reset_less=True),
        )
        with m.Switch(shift_11[3:]):
            for i in range(4):
                with m.Case(i):
                    m.d.sync += [coarse_12.eq(wide_11 >> (8 * i)), sticky_12.eq(wide_11[: 8 * i].any())]
        m.d.sync += fine_12.eq(shift_11[:3])
        # What is above `kept` bits saturates whatever the second shift, and only needs a sign.
        kept = FRACTION + INTEGER_BITS + 7
        aligned_13, sticky_13 = Signal(signed(kept), reset_less=True), Signal(reset_less=True)
        large_13, sign_13 = Signal(reset_less=True), Signal(reset_less=True)
        above = coarse_12[kept - 1 :]
        m.d.sync += [large_13.eq(above.any() & ~above.all()), sign_13.eq(coarse_12[-1])]
        with m.Switch(fine_12):
            for i in range(8):
                with m.Case(i):
                    value = coarse_12[:kept].as_signed() >> i
                    m.d.sync += [aligned_13.eq(value), sticky_13.eq(sticky_12 | coarse_12[:i].any())]
        # Cycle 14: saturate the integer part.
        integer_14, fraction_14, sticky_14 = (
            Signal(signed(INTEGER_BITS), reset_less=True),
            Signal(FRACTION, reset_less=True),
            Signal(reset_less=True),
        )
        m.d.sync += [
            integer_14.eq(_saturate(aligned_13[FRACTION:], large_13, sign_13)),
            fraction_14.eq(aligned_13[:FRACTION]),
            sticky_14.eq(sticky_13),
        ]
        return integer_14, fraction_14, sticky_14

    def _round(self, m: Module, integer_14: Signal, fraction_14: Signal, sticky_14: Signal) -> tuple[Signal, Signal]:
        """Cycles 15 and 16: `onnxhw.fixed.scale_round`: the integer part, and whether to add one."""
        # Cycle 15: distance to the half, size of the window in which the half is a tie.
        distance = Cat(fraction_14[:-1], ~fraction_14[-1])
        near_15, integer_15 = Signal(9, reset_less=True), Signal(signed(INTEGER_BITS), reset_less=True)
        above_15, below_15, half_15, sticky_15 = (
            Signal(reset_less=True),
            Signal(reset_less=True),
            Signal(reset_less=True),
            Signal(reset_less=True),
        )
        mask_15 = Signal(9, reset_less=True)  # bits at or above the window's
        magnitude = Signal(INTEGER_BITS - 1)
        m.d.comb += magnitude.eq(Mux(integer_14[-1], ~integer_14, integer_14))
        m.d.sync += [
            near_15.eq(distance[:9]),
            above_15.eq(~distance[9:].any()),
            below_15.eq(distance[9:].all()),
            half_15.eq(fraction_14[-1]),
            sticky_15.eq(sticky_14),
            integer_15.eq(integer_14),
            mask_15.eq(0x1FF),
        ]
        for j in range(8):
            with m.If(magnitude[j] | magnitude[8]):
                m.d.sync += mask_15.eq((0x1FF << (j + 1)) & 0x1FF)
        # Cycle 16: tie?
        window = mask_15 & ~(mask_15 << 1)  # the mask's lowest bit
        loose = (above_15 & (((near_15 & mask_15) == 0) | ((near_15 == window) & ~sticky_15))) | (
            below_15 & ((~near_15 & mask_15) == 0)
        )
        sharp = above_15 & (near_15 == 0) & ~sticky_15
        integer_16, up_16 = Signal(signed(INTEGER_BITS), reset_less=True), Signal(reset_less=True)
        m.d.sync += [
            integer_16.eq(integer_15),
            up_16.eq(Mux(Mux(self.exact, sharp, loose), integer_15[0], half_15)),
        ]
        return integer_16, up_16


def _saturate(integer: Value, large: Value, sign: Value) -> Value:
    """The low INTEGER_BITS bits, or the nearest bound; always that if `large`."""
    rest = integer[INTEGER_BITS - 1 :]
    fits = ~large & (~(rest.any()) | rest.all())
    bound = Cat((~sign).replicate(INTEGER_BITS - 1), sign)
    return Mux(fits, integer[:INTEGER_BITS], bound)
