"""`RequantizeLane`: scales, rounds and clamps one value per cycle."""

from amaranth import Cat, Const, Module, Mux, Signal, signed
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
    must hold still while values are in flight.
    """

    latency = REQUANTIZE

    def __init__(self, acc_bits: int, style: str) -> None:
        self.style = style
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

    def elaborate(self, platform):
        m = Module()
        sum_3 = self._sum(m)
        product_8 = self._product(m, sum_3)
        integer_10, fraction_10, sticky_10 = self._align(m, product_8)
        rounded_12 = self._round(m, integer_10, fraction_10, sticky_10)

        # Cycle 13: zero point. Cycle 14: clamp.
        y_13 = Signal(signed(INTEGER_BITS + 2))
        m.d.sync += y_13.eq(rounded_12 + self.zero_point)
        m.d.sync += self.y.eq(Mux(y_13 < self.lo, self.lo, Mux(y_13 > self.hi, self.hi, y_13)))
        return m

    def _sum(self, m: Module) -> Signal:
        """Cycles 1 to 3: the value to scale, clamped to +-SUM_MAX."""
        # Cycle 1: bias, or the operand itself; modulo 2**32.
        sum_1 = Signal(signed(32))
        with m.If(self.op == VectorOp.DRAIN):
            m.d.sync += sum_1.eq(self.acc + self.bias)
        with m.Else():
            m.d.sync += sum_1.eq(self.a)
        # Cycle 2: clamp.
        sum_2 = Signal(signed(SUM_BITS))
        top = sum_1[SUM_BITS - 1 :]
        with m.If(~sum_1[-1] & top.any()):
            m.d.sync += sum_2.eq(SUM_MAX)
        with m.Elif(sum_1[-1] & ~(top.all() & sum_1[: SUM_BITS - 1].any())):
            m.d.sync += sum_2.eq(-SUM_MAX)
        with m.Else():
            m.d.sync += sum_2.eq(sum_1)
        # Cycle 3: or the product of two operands.
        m.submodules.operands = operands = Multiplier(9, 9, style=self.style)
        m.d.comb += [operands.a.eq(self.a), operands.b.eq(self.b)]
        sum_3 = Signal(signed(SUM_BITS))
        sum_2b = Signal(signed(SUM_BITS))
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
        x0, x1 = Signal(signed(LOW + 1)), Signal(signed(SUM_BITS - LOW))
        k1 = Signal(MULTIPLIER_BITS)
        m.d.comb += [
            x0.eq(Mux(adding, a_3.as_signed(), sum_3[:LOW])),
            x1.eq(Mux(adding, b_3.as_signed(), sum_3[LOW:].as_signed())),
            k1.eq(Mux(adding, bias_3, k_3)),
        ]
        parts = []
        for name, x, k in (("p00", x0, k_3[:HALF]), ("p01", x0, k_3[HALF:]), ("p10", x1, k1[:HALF]), ("p11", x1, k1[HALF:])):
            part = Multiplier(LOW + 1, HALF + 1, style=self.style)
            m.submodules[name] = part
            m.d.comb += [part.a.eq(x), part.b.eq(k)]
            parts.append(part.p)
        # Cycle 7: join the halves of the multipliers. Cycle 8: join the operands.
        low_7, high_7 = Signal(signed(PRODUCT_BITS - LOW)), Signal(signed(PRODUCT_BITS - LOW))
        m.d.sync += [low_7.eq(parts[0] + (parts[1] << HALF)), high_7.eq(parts[2] + (parts[3] << HALF))]
        product_8 = Signal(signed(PRODUCT_BITS))
        m.d.sync += product_8.eq(low_7 + Mux(adding, high_7, high_7 << LOW))
        return product_8

    def _align(self, m: Module, product_8: Signal) -> tuple[Signal, Signal, Signal]:
        """Cycles 9 and 10: integer part (saturated), fraction and sticky bit."""
        shift_8 = delay(m, self.shift, 8, name="shift", reset=False)
        left = FRACTION - SHIFT_MIN
        wide_8 = Cat(Const(0, left), product_8).as_signed()
        coarse_9, sticky_9, fine_9 = Signal(signed(len(wide_8))), Signal(), Signal(3)
        with m.Switch(shift_8[3:]):
            for i in range(4):
                with m.Case(i):
                    m.d.sync += [coarse_9.eq(wide_8 >> (8 * i)), sticky_9.eq(wide_8[: 8 * i].any())]
        m.d.sync += fine_9.eq(shift_8[:3])
        # Integer bits beyond what saturation needs are folded into it one bit later.
        integer_10, fraction_10, sticky_10 = Signal(signed(INTEGER_BITS)), Signal(FRACTION), Signal()
        with m.Switch(fine_9):
            for i in range(8):
                with m.Case(i):
                    aligned = coarse_9 >> i
                    integer = aligned[FRACTION:].as_signed()
                    m.d.sync += [
                        fraction_10.eq(aligned[:FRACTION]),
                        sticky_10.eq(sticky_9 | coarse_9[:i].any()),
                        integer_10.eq(_saturate(integer)),
                    ]
        return integer_10, fraction_10, sticky_10

    def _round(self, m: Module, integer_10: Signal, fraction_10: Signal, sticky_10: Signal) -> Signal:
        """Cycles 11 and 12: `onnxhw.fixed.scale_round`."""
        # Cycle 11: distance to the half, size of the window in which the half is a tie.
        distance_10 = Cat(fraction_10[:-1], ~fraction_10[-1])
        near, integer_11 = Signal(9), Signal(signed(INTEGER_BITS))
        above_11, below_11, half_11, sticky_11 = Signal(), Signal(), Signal(), Signal()
        mask_11 = Signal(9)  # bits at or above the window's
        magnitude = Signal(8)
        m.d.comb += magnitude.eq(Mux(integer_10[-1], ~integer_10, integer_10)[:8])
        beyond = Mux(integer_10[-1], ~integer_10, integer_10)[8:].any()
        m.d.sync += [
            near.eq(distance_10[:9]),
            above_11.eq(~distance_10[9:].any()),
            below_11.eq(distance_10[9:].all()),
            half_11.eq(fraction_10[-1]),
            sticky_11.eq(sticky_10),
            integer_11.eq(integer_10),
            mask_11.eq(0x1FF),
        ]
        for j in range(8):
            with m.If(magnitude[j] | beyond):
                m.d.sync += mask_11.eq((0x1FF << (j + 1)) & 0x1FF)
        # Cycle 12: round.
        bit = mask_11 & ~(mask_11 << 1)  # the window: the mask's lowest bit
        loose = (above_11 & (((near & mask_11) == 0) | ((near == bit) & ~sticky_11))) | (
            below_11 & ((~near & mask_11) == 0)
        )
        sharp = above_11 & (near == 0) & ~sticky_11
        tie = Mux(self.exact, sharp, loose)
        rounded_12 = Signal(signed(INTEGER_BITS + 1))
        m.d.sync += rounded_12.eq(integer_11 + Mux(tie, integer_11[0], half_11))
        return rounded_12


def _saturate(integer):
    """The low INTEGER_BITS bits, or the nearest bound."""
    sign, rest = integer[-1], integer[INTEGER_BITS - 1 :]
    fits = ~(rest.any()) | rest.all()
    bound = Cat((~sign).replicate(INTEGER_BITS - 1), sign)
    return Mux(fits, integer[:INTEGER_BITS], bound)
