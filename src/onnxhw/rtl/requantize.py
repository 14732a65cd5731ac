"""`RequantizeLane`: scales, rounds and clamps one value per cycle."""

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..fixed import FRACTION, MULTIPLIER_BITS, SHIFT_MIN, SUM_BITS, SUM_MAX
from ..isa.instructions import VectorOp
from ..isa.timing import MULTIPLY, REQUANTIZE
from .cells import Multiplier, Primitives, primitives_of
from .delay import delay
from .shift import shift_right

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
    ``new``. ``above_lo`` and ``above_hi`` are the zero point less ``lo``, and less ``hi``. ``op``, ``exact``,
    ``zero_point`` and all of these must hold still from one cycle before the first value until the last has left.
    `dsps` of its 5 multipliers are the device's cells, the largest first; those of the large product have the roles
    ``<role>_0 .. <role>_3``.
    """

    latency = REQUANTIZE

    def __init__(self, acc_bits: int, dsps: int, reads: int = 1, *, role: str = "") -> None:
        self.dsps, self.reads, self.role = dsps, reads, role
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
                "above_lo": In(signed(10)),
                "above_hi": In(signed(10)),
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
        sum_3 = self._sum(m, draining, multiplying, adding)
        product_9 = self._product(m, primitives_of(platform), sum_3, adding)
        integer_12, fraction_12, sticky_12 = self._align(m, product_9)
        integer_14, up_14 = self._round(m, integer_12, fraction_12, sticky_12)

        # Cycle 15: round and zero point; one adder, into which `up_14` is carried. Beside it two more for the clamp.
        # Cycle 16: clamp.
        y_15 = Signal(signed(INTEGER_BITS + 2), reset_less=True)
        below_15, within_15 = Signal(reset_less=True), Signal(reset_less=True)

        def rounded(offset: Value) -> Value:
            return (Cat(up_14, integer_14).as_signed() + Cat(up_14, offset).as_signed()) >> 1

        m.d.sync += [y_15.eq(rounded(self.zero_point)), below_15.eq(rounded(self.above_lo) < 0)]
        m.d.sync += within_15.eq(rounded(self.above_hi) < 0)
        y_16 = Signal.like(self.y, reset_less=True)
        m.d.sync += y_16.eq(Mux(below_15, self.lo, Mux(within_15, y_15, self.hi)))
        m.d.comb += self.y.eq(y_16)
        return m

    def _sum(self, m: Module, draining: Signal, multiplying: Signal, adding: Signal) -> Signal:
        """Cycles 1 to 3: the value to scale, clamped to +-SUM_MAX. Of ADD: `a` in its LOW low bits, `b` in the rest."""
        # Cycle 1: bias, or the operand itself; modulo 2**32.
        sum_1 = Signal(signed(32), reset_less=True)
        m.d.sync += sum_1.eq(Mux(draining, self.acc, self.a) + Mux(draining, self.bias, 0))
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
        style = "dsp" if self.dsps == 5 else "fabric"
        m.submodules.operands = operands = Multiplier(9, 9, style=style)
        m.d.comb += [operands.a.eq(self.a), operands.b.eq(self.b)]
        sum_3 = Signal(signed(SUM_BITS))
        b_2 = delay(m, self.b, 2, name="b", reset=False)
        rest_2 = Mux(adding, b_2.as_signed(), sum_2[LOW:].as_signed())
        held_3 = delay(m, Cat(sum_2[:LOW], rest_2).as_signed(), MULTIPLY - 2, name="sum", reset=False)
        m.d.comb += sum_3.eq(Mux(multiplying, operands.p, held_3))
        return sum_3

    def _product(self, m: Module, primitives: Primitives, sum_3: Signal, adding: Signal) -> Signal:
        """Cycles 4 to 9: ``sum * multiplier``, or ``a * multiplier + b * bias``. Registers of cycle 4 add up DOT."""
        k_3 = self._late(m, self.multiplier, MULTIPLY, "k")
        bias_3 = self._late(m, self.bias[:MULTIPLIER_BITS], MULTIPLY, "bias")
        again_3 = delay(m, self.again, MULTIPLY, name="again", reset=False)
        # Cycle 4: the operands. Cycles 5 to 7: four products.
        x0, x1 = Signal(signed(LOW + 1), reset_less=True), Signal(signed(SUM_BITS - LOW), reset_less=True)
        total = Signal(signed(SUM_BITS))
        m.d.comb += total.eq(sum_3 + Mux(again_3, Cat(x0[:LOW], x1).as_signed(), 0))
        k0, k1 = Signal(MULTIPLIER_BITS, reset_less=True), Signal(MULTIPLIER_BITS, reset_less=True)
        m.d.sync += [
            x0.eq(Cat(total[:LOW], adding & total[LOW - 1]).as_signed()),  # of ADD all of it: `a`, with its sign
            x1.eq(total[LOW:]),
            k0.eq(k_3),
            k1.eq(Mux(adding, bias_3, k_3)),
        ]
        parts = []
        roles = [f"{self.role}_{index}" if self.role and index < self.dsps else "" for index in range(4)]
        shared = primitives.shared(m, [role for role in roles if role], spread=False)
        pieces = (
            ("p00", x0, k0[:HALF]),
            ("p01", x0, k0[HALF:]),
            ("p10", x1, k1[:HALF]),
            ("p11", x1, k1[HALF:]),
        )
        for index, (name, x, k) in enumerate(pieces):
            style = "dsp" if index < self.dsps else "fabric"
            part = Multiplier(len(x), len(k) + 1, style=style, role=roles[index], shared=shared)
            m.submodules[name] = part
            m.d.comb += [part.a.eq(x), part.b.eq(k)]
            parts.append(part.p)
        # Cycle 8: join the parts of the multipliers. Cycle 9: join the operands.
        low_8, high_8 = (
            Signal(signed(LOW + 1 + MULTIPLIER_BITS), reset_less=True),
            Signal(signed(PRODUCT_BITS - LOW), reset_less=True),
        )
        m.d.sync += [
            low_8.eq(parts[0] + parts[1].shift_left(HALF)),
            high_8.eq(parts[2] + parts[3].shift_left(HALF)),
        ]
        # Of a value that holds still a register more, near the adder, does not matter.
        product_9, adding_late = Signal(signed(PRODUCT_BITS), reset_less=True), Signal(reset_less=True)
        m.d.sync += adding_late.eq(adding)
        m.d.sync += product_9.eq(low_8 + Mux(adding_late, high_8, high_8.shift_left(LOW)))
        return product_9

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

    def _align(self, m: Module, product_9: Signal) -> tuple[Signal, Signal, Signal]:
        """Cycles 10 to 12: integer part (saturated), fraction and sticky bit."""
        shift_9 = self._late(m, self.shift, 9, "shift")
        wide_9 = Cat(Const(0, FRACTION - SHIFT_MIN), product_9).as_signed()
        # Cycle 10: shift by multiples of 8. Cycle 11: by 0 to 7. What is above `kept` bits saturates whatever the
        # second shift: of that only is asked whether it is all sign.
        kept = FRACTION + INTEGER_BITS + 7
        coarse_10, fine_10 = Signal(signed(kept), reset_less=True), Signal(3, reset_less=True)
        sticky_10, large_10, sign_10 = (
            Signal(name=name, reset_less=True) for name in ("sticky_10", "large_10", "sign_10")
        )
        m.d.sync += [coarse_10.eq(shift_right(wide_9, 8, shift_9[3:])), fine_10.eq(shift_9[:3]), sign_10.eq(wide_9[-1])]
        with m.Switch(shift_9[3:]):
            for i in range(4):
                with m.Case(i):
                    above = wide_9[kept - 1 + 8 * i :]
                    m.d.sync += [sticky_10.eq(wide_9[: 8 * i].any()), large_10.eq(above.any() & ~above.all())]
        aligned_11, sticky_11 = Signal(signed(kept), reset_less=True), Signal(reset_less=True)
        large_11, sign_11 = Signal(reset_less=True), Signal(reset_less=True)
        m.d.sync += [large_11.eq(large_10), sign_11.eq(sign_10), aligned_11.eq(shift_right(coarse_10, 1, fine_10))]
        shifted_out = Cat(coarse_10[j] & (fine_10 > j) for j in range(7)).any()
        m.d.sync += sticky_11.eq(sticky_10 | shifted_out)
        # Cycle 12: saturate the integer part.
        integer_12, fraction_12, sticky_12 = (
            Signal(signed(INTEGER_BITS), reset_less=True),
            Signal(FRACTION, reset_less=True),
            Signal(reset_less=True),
        )
        m.d.sync += [
            integer_12.eq(_saturate(aligned_11[FRACTION:], large_11, sign_11)),
            fraction_12.eq(aligned_11[:FRACTION]),
            sticky_12.eq(sticky_11),
        ]
        return integer_12, fraction_12, sticky_12

    def _round(self, m: Module, integer_12: Signal, fraction_12: Signal, sticky_12: Signal) -> tuple[Signal, Signal]:
        """Cycles 13 and 14: `onnxhw.fixed.scale_round`: the integer part, and whether to add one.

        What is at least a half adds one, but a tie does so only to what is odd. A tie is within a window around the
        half, or (`exact`) the half itself.
        """
        # Cycle 13: whether the half is near, and the distance's low bits, of what is less than a half inverted; the
        # window's size; whether a tie makes a difference.
        half, integer_13 = fraction_12[-1], Signal(signed(INTEGER_BITS), reset_less=True)
        distance = Cat(fraction_12[:-1], ~half) ^ (~half).replicate(FRACTION)
        near_13, half_13 = Signal(9, reset_less=True), Signal(reset_less=True)
        mask_13 = Signal(9, reset_less=True)  # bits at or above the window's
        inside_13, edge_13 = Signal(reset_less=True), Signal(reset_less=True)
        magnitude, differs = Signal(INTEGER_BITS - 1), Signal()
        m.d.comb += magnitude.eq(Mux(integer_12[-1], ~integer_12, integer_12))
        m.d.comb += differs.eq(~distance[9:].any() & (half ^ integer_12[0]))
        m.d.sync += [
            near_13.eq(distance[:9]),
            half_13.eq(half),
            inside_13.eq(differs & ~self.exact),
            edge_13.eq(differs & half & ~sticky_12),
            integer_13.eq(integer_12),
            mask_13.eq(0x1FF),
        ]
        for j in range(8):
            with m.If(magnitude[j] | magnitude[8]):
                m.d.sync += mask_13.eq((0x1FF << (j + 1)) & 0x1FF)
        # Cycle 14: is it a tie that makes a difference: within the window, or at its edge?
        window = Mux(self.exact, 0, mask_13 & ~(mask_13 << 1))  # the mask's lowest bit
        integer_14, up_14 = Signal(signed(INTEGER_BITS), reset_less=True), Signal(reset_less=True)
        tie = (inside_13 & ((near_13 & mask_13) == 0)) | (edge_13 & (near_13 == window[:9]))
        m.d.sync += [integer_14.eq(integer_13), up_14.eq(half_13 ^ tie)]
        return integer_14, up_14


def _saturate(integer: Value, large: Value, sign: Value) -> Value:
    """The low INTEGER_BITS bits, or the nearest bound; always that if `large`."""
    rest = integer[INTEGER_BITS - 1 :]
    fits = ~large & (~(rest.any()) | rest.all())
    bound = Cat((~sign).replicate(INTEGER_BITS - 1), sign)
    return Mux(fits, integer[:INTEGER_BITS], bound)
