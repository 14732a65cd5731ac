"""A requantizer lane equals `fixed.lane_drain` and `fixed.lane_add`, `REQUANTIZE` cycles later, at all extremes."""

import random
from itertools import product
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from onnxhw.fixed import FRACTION, MULTIPLIER_BITS, SHIFT_MIN, SUM_MAX, Scale, lane_add, lane_drain
from onnxhw.isa.instructions import VectorOp
from onnxhw.rtl.requantize import RequantizeLane

COUNT, ACC_BITS = 500, 27
ZERO, LO, HI = -7, -120, 100


def spread(rng: random.Random, bits: int) -> int:
    """A signed number whose size, not only its value, is random; often an extreme."""
    value = rng.getrandbits(rng.randint(1, bits - 1))
    return rng.choice([value, -value, ~value, (1 << bits - 1) - 1, -1 << bits - 1])


def case(rng: random.Random, op: VectorOp) -> dict[str, int]:
    """Operands and a parameter entry; results of every size, and ties."""
    multiplier = rng.choice([rng.getrandbits(MULTIPLIER_BITS), 1 << rng.randrange(MULTIPLIER_BITS), (1 << 26) - 1, 0])
    bias = spread(rng, 32) if op == VectorOp.DRAIN else rng.getrandbits(MULTIPLIER_BITS)
    wide = op in (VectorOp.SUM, VectorOp.MAX)
    one = {"acc": spread(rng, ACC_BITS), "a": spread(rng, 25 if wide else 9), "b": spread(rng, 9), "bias": bias}
    size = abs(one["acc"] + bias if op == VectorOp.DRAIN else one["a"]) * multiplier
    near = size.bit_length() - rng.randint(2, 9) - SHIFT_MIN  # a result of a few bits
    return one | {"multiplier": multiplier, "shift": min(max(near, 0), 31) if rng.random() < 0.7 else rng.randrange(32)}


def close(rng: random.Random, op: VectorOp) -> dict[str, int]:
    """The same of SUM or ADD with a result next to a half: at most some fraction bits, or less than one, away."""
    while True:
        shift = rng.randrange(33, 48)
        unit = 1 << shift - FRACTION  # what is smaller is the sticky bit
        target = (2 * rng.randrange(-3, 3) + 1 << shift - 1) + rng.randrange(-3, 4) * unit
        one = {"acc": 0, "a": spread(rng, 9), "b": spread(rng, 9)}
        one |= {"bias": 0, "multiplier": 0, "shift": shift - SHIFT_MIN}
        if op == VectorOp.ADD:
            last, one["multiplier"] = "b", rng.getrandbits(MULTIPLIER_BITS)
        else:
            last, one["a"] = "a", rng.choice([-1, 1]) * rng.randint(unit // 4, unit)
        rest = target - (one["a"] * one["multiplier"] if op == VectorOp.ADD else 0)
        factor = -(-rest // one[last]) if one[last] else -1
        if 0 <= factor < 1 << MULTIPLIER_BITS:
            return one | {"bias" if op == VectorOp.ADD else "multiplier": factor}


def expected(op: VectorOp, exact: bool, one: dict[str, int]) -> int:
    scale = Scale(one["multiplier"], one["shift"] + SHIFT_MIN, one["bias"])
    rest = scale, exact, ZERO, LO, HI
    if op == VectorOp.ADD:
        return int(lane_add(np.array([one["a"]]), np.array([one["b"]]), *rest)[0])
    wrapped = (one["acc"] + one["bias"] + (1 << 31)) % (1 << 32) - (1 << 31)
    value = {VectorOp.DRAIN: wrapped, VectorOp.MUL: one["a"] * one["b"]}.get(op, one["a"])
    return int(lane_drain(np.array([value]), *rest)[0])


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("op", [VectorOp.DRAIN, VectorOp.SUM, VectorOp.ADD, VectorOp.MUL])
def test_lane(op: VectorOp, exact: bool) -> None:
    rng = random.Random(f"{op.name} {exact}")
    assert len(set(run(op, exact, [case(rng, op) for _ in range(COUNT)]))) > 40


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("op", [VectorOp.SUM, VectorOp.ADD])
def test_what_is_next_to_a_half_is_no_tie(op: VectorOp, exact: bool) -> None:
    rng = random.Random(f"{op.name} {exact}")
    run(op, exact, [close(rng, op) for _ in range(COUNT)])


@pytest.mark.parametrize("exact", [False, True])
def test_what_is_a_tie_has_nothing_below_the_last_fraction_bit(exact: bool) -> None:
    """Halves and what is some fraction bits away: the products are just these, at every shift."""
    cases = []
    for halves, bits, low in product(range(-5, 6, 2), range(-4, 5), range(17)):
        target = (halves << FRACTION - 1) + bits
        factor = next((d for d in range(6, 512) if target % d == 0), 0)
        if factor:  # else it is of large primes
            entry = {"multiplier": factor << low, "shift": FRACTION - SHIFT_MIN + low, "bias": 0}
            cases.append({"acc": 0, "a": target // factor, "b": 0, **entry})
    assert len(cases) > 400
    assert all(abs(one["a"]) <= SUM_MAX and one["multiplier"] < 1 << MULTIPLIER_BITS for one in cases)
    run(VectorOp.SUM, exact, cases)


def run(op: VectorOp, exact: bool, cases: list[dict[str, int]]) -> list[int]:
    """The results of a lane, which are those that are expected."""
    wanted = [expected(op, exact, one) for one in cases]
    assert results(op, exact, cases) == wanted
    return wanted


def results(op: VectorOp, exact: bool, cases: list[dict[str, int]]) -> list[int]:
    """What a lane says `REQUANTIZE` cycles after each of the cases, one per cycle."""
    lane, found = RequantizeLane(ACC_BITS, 2), list[int]()

    async def testbench(ctx: Any) -> None:
        held = {"op": op, "exact": exact, "zero_point": ZERO, "lo": LO, "hi": HI}
        for name, value in (held | {"above_lo": ZERO - LO, "above_hi": ZERO - HI - 1}).items():
            ctx.set(getattr(lane, name), value)
        await ctx.tick()
        for cycle in range(len(cases) + lane.latency):
            for name, value in cases[min(cycle, len(cases) - 1)].items():
                ctx.set(getattr(lane, name), value)
            if cycle >= lane.latency:
                found.append(ctx.get(lane.y))
            await ctx.tick()

    simulator = Simulator(lane)
    simulator.add_clock(1e-8)
    simulator.add_testbench(testbench)
    simulator.run()
    return found


@pytest.mark.parametrize("exact", [False, True])
def test_sums_of_products(exact: bool) -> None:
    """Of every length, one right after the other, up to the largest sum of either sign."""
    rng = random.Random(f"dot {exact}")
    cases: list[dict[str, int]] = []
    wanted: dict[int, int] = {}
    for length in [1, 1, 2, 1, 3, *(rng.randint(1, 9) for _ in range(150)), 258, 258, 1]:
        side = rng.choice([-255, 255])
        pairs = [(255, side) if length == 258 else (spread(rng, 9), spread(rng, 9)) for _ in range(length)]
        total = sum(a * b for a, b in pairs)
        multiplier = rng.getrandbits(MULTIPLIER_BITS)
        near = (abs(total) * multiplier).bit_length() - rng.randint(2, 9) - SHIFT_MIN  # a result of a few bits
        entry = {"multiplier": multiplier, "shift": min(max(near, 0), 31), "bias": rng.getrandbits(26), "acc": 99}
        cases += [{"a": a, "b": b, "again": int(i > 0), **entry} for i, (a, b) in enumerate(pairs)]
        scale = Scale(multiplier, entry["shift"] + SHIFT_MIN)
        wanted[len(cases) - 1] = int(lane_drain(np.array([total]), scale, exact, ZERO, LO, HI)[0])
    found = results(VectorOp.DOT, exact, cases)
    assert {index: found[index] for index in wanted} == wanted
    assert len(set(wanted.values())) > 40
