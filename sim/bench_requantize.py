"""`RequantizeLane` equals `onnxhw.fixed`, for every operation, with sums at ties and at the bounds."""

from typing import Any

import cocotb
import numpy as np
from bench import drive, edgy, parameters, signed, start, tick

from onnxhw.fixed import SHIFT_MIN, SUM_BITS, Scale, lane_add, lane_drain, wrap
from onnxhw.isa import VectorOp


def random_scale(random: np.random.Generator, op: VectorOp) -> Scale:
    if op == VectorOp.ADD:
        return Scale(int(random.integers(1 << 26)), int(random.integers(20, 29)), int(random.integers(1 << 26)))
    bias = edgy(random, 32 if random.random() < 0.3 else 13)[0]
    if random.random() < 0.15:  # a sum at the clamp would be a tie one further out
        return Scale((2 * int(random.integers(64, 128)) + 1) << 16, SUM_BITS + 16)
    if random.random() < 0.4:  # powers of two: ties
        return Scale(1 << 23, int(random.integers(23, 33)), bias)
    return Scale(int(random.integers(1 << 23, 1 << 24)), int(random.integers(16, 41)), bias)


@cocotb.test()
async def equals_fixed(dut: Any) -> None:
    random = await start(dut)
    acc_bits, latency = parameters()["acc_bits"], parameters()["latency"]
    for op in list(VectorOp) * 8:
        exact, zero_point = int(random.integers(2)), edgy(random, 8)[0]
        lo, hi = sorted(edgy(random, 8, 2)) if random.random() < 0.4 else (-128, 127)
        dut.op.value, dut.exact.value = int(op), exact
        for name, value in (("zero_point", zero_point), ("lo", lo), ("hi", hi)):
            drive(getattr(dut, name), value, 8)
        drive(dut.above_lo, zero_point - lo, 10)
        drive(dut.above_hi, zero_point - hi - 1, 10)
        await tick(dut)
        expected: list[tuple[int, str]] = []
        total = 0
        for number in range(60):
            scale = random_scale(random, op)
            acc, a, b = edgy(random, acc_bits)[0], edgy(random, SUM_BITS)[0], edgy(random, 9)[0]
            if op in (VectorOp.ADD, VectorOp.MUL, VectorOp.DOT):
                a = edgy(random, 9)[0]
            if op == VectorOp.DRAIN and random.random() < 0.6:  # results inside int8
                acc = round(random.integers(-140, 140) * 2.0**scale.shift / scale.multiplier) - scale.bias
                acc = max(-(1 << (acc_bits - 1)), min((1 << (acc_bits - 1)) - 1, acc + int(random.integers(-1, 2))))
            again = op == VectorOp.DOT and number and random.random() < 0.8 and abs(total + a * b) < 1 << (SUM_BITS - 1)
            total = a * b + (total if again else 0)
            dut.again.value = int(bool(again))
            drive(dut.acc, acc, acc_bits)
            drive(dut.a, a, SUM_BITS)
            drive(dut.b, b, 9)
            drive(dut.bias, scale.bias, 32)
            dut.multiplier.value, dut.shift.value = scale.multiplier, scale.shift - SHIFT_MIN
            if op == VectorOp.ADD:
                want = lane_add(np.array([a]), np.array([b]), scale, bool(exact), zero_point, lo, hi)
            else:
                drained = wrap(np.array([acc + scale.bias]), 32)[0]
                value = {VectorOp.DRAIN: drained, VectorOp.MUL: total, VectorOp.DOT: total}.get(op, a)
                want = lane_drain(np.array([value]), scale, bool(exact), zero_point, lo, hi)
            case = f"{op.name} acc={acc} a={a} b={b} sum={total} {scale} exact={exact} zero_point={zero_point}"
            expected.append((int(want[0]), case))
            await tick(dut)
            if len(expected) >= latency:
                check(dut, *expected.pop(0))
        while expected:
            await tick(dut)
            check(dut, *expected.pop(0))


def check(dut: Any, want: int, case: str) -> None:
    got = signed(dut.y, 8, "y")
    assert got == want, f"y is {got}, not {want}: {case}"
