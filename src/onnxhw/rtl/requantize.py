"""`RequantizeLane`: scales, rounds and clamps one value per cycle."""

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..fixed import FRACTION, MULTIPLIER_BITS, SHIFT_MIN, SUM_BITS, SUM_MAX
from ..isa.instructions import VectorOp
from ..isa.timing import MULTIPLY, REQUANTIZE
from .cells import Multiplier
from .delay import delay

HALF = MULTIPLIER_BITS // 2
"""The multiplier is applied as two halves of 13 bits."""
LOW = 12
"""The sum is applied as its 12 low bits and the rest."""
PRODUCT_BITS = SUM_BITS + MULTIPLIER_BITS
INTEGER_BITS = 10


class RequantizeLane(wiring.Component):
    """`onnxhw.fixed.lane_drain` and `lane_add`, one value per cycle, `latency` cycles.

    ``acc`` (DRAIN), ``a`` (SUM, MAX; ADD and MUL: 9 bits) and ``b`` are the operands; ``multiplier``,
    ``shift`` (less SHIFT_MIN) and ``bias`` the parameter entry. ``op``, ``exact``, ``zero_point``, ``lo`` and ``hi``
    must hold still while values are in flight. `dsps` of its 5 multipliers are the device's cells, the largest first.
    """

    latency = REQUANTIZE

    def __init__(self, acc_bits: int, dsps: int) -> None:
        self.dsps = dsps
        super().__init__(
            {
                "acc": In(signed(acc_bits)),
                "a": In(signed(SUM_BITS)),
                "b": In(signed(9)),
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
        sum_3 = self._sum(m)
        product_8 = self._product(m, sum_3)
        integer_11, fraction_11, sticky_11 = self._align(m, product_8)
        integer_13, up_13 = self._round(m, integer_11, fraction_11, sticky_11)

        # Cycle 14: round and zero point. Cycle 15: clamp.
        y_14 = Signal(signed(INTEGER_BITS + 2), reset_less=True)
        m.d.sync += y_14.eq(integer_13 + self.zero_point + up_13)
        m.d.sync += self.y.eq(Mux(y_14 < self.lo, self.lo, Mux(y_14 > self.hi, self.hi, y_14)))
        return m

    def _sum(self, m: Module) -> Signal:
        """Cycles 1 to 3: the value to scale, clamped to +-SUM_MAX."""
        # Cycle 1: bias, or the operand itself; modulo 2**32.
        sum_1 = Signal(signed(32), reset_less=True)
        with m.If(self.op == VectorOp.DRAIN):
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
        # Cycle 3: or the product of two operands.
        m.submodules.operands = operands = Multiplier(9, 9, style="dsp" if self.dsps == 5 else "fabric")
        m.d.comb += [operands.a.eq(self.a), operands.b.eq(self.b)]
        sum_3 = Signal(signed(SUM_BITS), reset_less=True)
        sum_2b = Signal(signed(SUM_BITS), reset_less=True)
        m.d.sync += sum_2b.eq(sum_2)
        m.d.comb += sum_3.eq(Mux(self.op == VectorOp.MUL, operands.p, sum_2b))
        return sum_3

    def _product(self, m: Module, sum_3: Signal) -> Signal:
        """Cycles 4 to 8: ``sum * multiplier``, or ``a * multiplier + b * bias``."""
        adding = self.op == VectorOp.ADD
        a_3 = delay(m, self.a[:9].as_signed(), MULTIPLY, name="a", reset=False)
        b_3 = delay(m, self.b, MULTIPLY, name="b", reset=False)
        k_3 = delay(m, self.multiplier, MULTIPLY, name="k", reset=False)
        bias_3 = delay(m, self.bias[:MULTIPLIER_BITS], MULTIPLY, name="bias", reset=False)
        x0, x1 = Signal(signed(LOW + 1), reset_less=True), Signal(signed(SUM_BITS - LOW), reset_less=True)
        k1 = Signal(MULTIPLIER_BITS, reset_less=True)
        m.d.comb += [
            x0.eq(Mux(adding, a_3.as_signed(), sum_3[:LOW])),
            x1.eq(Mux(adding, b_3.as_signed(), sum_3[LOW:].as_signed())),
            k1.eq(Mux(adding, bias_3, k_3)),
        ]
        parts = []
        halves = (
            ("p00", x0, k_3[:HALF]),
            ("p01", x0, k_3[HALF:]),
            ("p10", x1, k1[:HALF]),
            ("p11", x1, k1[HALF:]),
        )
        for index, (name, x, k) in enumerate(halves):
            part = Multiplier(LOW + 1, HALF + 1, style="dsp" if index < self.dsps else "fabric")
            m.submodules[name] = part
            m.d.comb += [part.a.eq(x), part.b.eq(k)]
            parts.append(part.p)
        # Cycle 7: join the halves of the multipliers. Cycle 8: join the operands.
        low_7, high_7 = (
            Signal(signed(PRODUCT_BITS - LOW), reset_less=True),
            Signal(signed(PRODUCT_BITS - LOW), reset_less=True),
        )
        m.d.sync += [low_7.eq(parts[0] + (parts[1] << HALF)), high_7.eq(parts[2] + (parts[3] << HALF))]
        product_8 = Signal(signed(PRODUCT_BITS), reset_less=True)
        m.d.sync += product_8.eq(low_7 + Mux(adding, high_7, high_7 << LOW))
        return product_8

    def _align(self, m: Module, product_8: Signal) -> tuple[Signal, Signal, Signal]:
        """Cycles 9 to 11: integer part (saturated), fraction and sticky bit."""
        shift_8 = delay(m, self.shift, 8, name="shift", reset=False)
        wide_8 = Cat(Const(0, FRACTION - SHIFT_MIN), product_8).as_signed()
        # Cycle 9: shift by multiples of 8. Cycle 10: by 0 to 7.
        coarse_9, sticky_9, fine_9 = (
            Signal(signed(len(wide_8)), reset_less=True),
            Signal(reset_less=True),
            Signal(3, reset_less=True),
        )
        with m.Switch(shift_8[3:]):
            for i in range(4):
                with m.Case(i):
                    m.d.sync += [coarse_9.eq(wide_8 >> (8 * i)), sticky_9.eq(wide_8[: 8 * i].any())]
        m.d.sync += fine_9.eq(shift_8[:3])
        aligned_10, sticky_10 = Signal(signed(len(wide_8)), reset_less=True), Signal(reset_less=True)
        with m.Switch(fine_9):
            for i in range(8):
                with m.Case(i):
                    m.d.sync += [aligned_10.eq(coarse_9 >> i), sticky_10.eq(sticky_9 | coarse_9[:i].any())]
        # Cycle 11: saturate the integer part.
        integer_11, fraction_11, sticky_11 = (
            Signal(signed(INTEGER_BITS), reset_less=True),
            Signal(FRACTION, reset_less=True),
            Signal(reset_less=True),
        )
        m.d.sync += [
            integer_11.eq(_saturate(aligned_10[FRACTION:])),
            fraction_11.eq(aligned_10[:FRACTION]),
            sticky_11.eq(sticky_10),
        ]
        return integer_11, fraction_11, sticky_11

    def _round(self, m: Module, integer_11: Signal, fraction_11: Signal, sticky_11: Signal) -> tuple[Signal, Signal]:
        """Cycles 12 and 13: `onnxhw.fixed.scale_round`: the integer part, and whether to add one."""
        # Cycle 12: distance to the half, size of the window in which the half is a tie.
        distance = Cat(fraction_11[:-1], ~fraction_11[-1])
        near_12, integer_12 = Signal(9, reset_less=True), Signal(signed(INTEGER_BITS), reset_less=True)
        above_12, below_12, half_12, sticky_12 = (
            Signal(reset_less=True),
            Signal(reset_less=True),
            Signal(reset_less=True),
            Signal(reset_less=True),
        )
        mask_12 = Signal(9, reset_less=True)  # bits at or above the window's
        magnitude = Signal(INTEGER_BITS - 1)
        m.d.comb += magnitude.eq(Mux(integer_11[-1], ~integer_11, integer_11))
        m.d.sync += [
            near_12.eq(distance[:9]),
            above_12.eq(~distance[9:].any()),
            below_12.eq(distance[9:].all()),
            half_12.eq(fraction_11[-1]),
            sticky_12.eq(sticky_11),
            integer_12.eq(integer_11),
            mask_12.eq(0x1FF),
        ]
        for j in range(8):
            with m.If(magnitude[j] | magnitude[8]):
                m.d.sync += mask_12.eq((0x1FF << (j + 1)) & 0x1FF)
        # Cycle 13: tie?
        window = mask_12 & ~(mask_12 << 1)  # the mask's lowest bit
        loose = (above_12 & (((near_12 & mask_12) == 0) | ((near_12 == window) & ~sticky_12))) | (
            below_12 & ((~near_12 & mask_12) == 0)
        )
        sharp = above_12 & (near_12 == 0) & ~sticky_12
        integer_13, up_13 = Signal(signed(INTEGER_BITS), reset_less=True), Signal(reset_less=True)
        m.d.sync += [
            integer_13.eq(integer_12),
            up_13.eq(Mux(Mux(self.exact, sharp, loose), integer_12[0], half_12)),
        ]
        return integer_13, up_13


def _saturate(integer: Value) -> Value:
    """The low INTEGER_BITS bits, or the nearest bound."""
    sign, rest = integer[-1], integer[INTEGER_BITS - 1 :]
    fits = ~(rest.any()) | rest.all()
    bound = Cat((~sign).replicate(INTEGER_BITS - 1), sign)
    return Mux(fits, integer[:INTEGER_BITS], bound)
