"""`LoopNest`: every value and every condition of every iteration, whatever the counts."""

import itertools
import random
from typing import Any

from amaranth.sim import Simulator

from onnxhw.rtl.loops import LoopNest
from onnxhw.rtl.ports import by_name

LEVELS = {"x": 4, "y": 4, "z": 4}
VALUES = {"a": (16, ("x", "z")), "b": (16, ("y",)), "c": (16, ("x", "y", "z"))}


def test_loops_of_all_counts_stepped_at_any_time() -> None:
    loops, rng = LoopNest(LEVELS, VALUES, apart=["b"]), random.Random(7)
    ports = loops.count, loops.ahead, loops.last, loops.base, loops.value
    count, ahead, last_of, base_of, value_of = map(by_name, ports)
    stride_of = {name: by_name(port) for name, port in by_name(loops.stride).items()}
    seen = 0

    async def nest(ctx: Any, counts: dict[str, int]) -> None:
        nonlocal seen
        base = {value: rng.randrange(1 << 16) for value in VALUES}
        stride = {(value, level): rng.randrange(1 << 16) for value in VALUES for level in VALUES[value][1]}
        for level in LEVELS:
            ctx.set(ahead[level], counts[level])
        await ctx.tick()
        ctx.set(loops.begins, 1)
        await ctx.tick()
        ctx.set(loops.begins, 0)
        for level in LEVELS:
            ctx.set(ahead[level], rng.randrange(16))
            ctx.set(count[level], counts[level])
        for value, level in stride:
            ctx.set(stride_of[value][level], stride[value, level])
        for value in VALUES:
            ctx.set(base_of[value], base[value])
        ctx.set(loops.moves, 1)
        await ctx.tick()
        for value in VALUES:
            ctx.set(base_of[value], 0)
        for index in itertools.product(*(range(n) for n in counts.values())):
            at, step = dict(zip(LEVELS, index, strict=True)), False
            while not step:
                for value, (width, on) in VALUES.items():
                    expected = base[value] + sum(at[level] * stride[value, level] for level in on)
                    assert ctx.get(value_of[value]) == expected % (1 << width), (value, at, counts)
                for number, level in enumerate(LEVELS):
                    inner = list(LEVELS)[number:]
                    last = all(at[other] == counts[other] - 1 for other in inner)
                    assert ctx.get(last_of[level]) == last, (level, at, counts)
                step = rng.random() < 0.7
                ctx.set(loops.step, step)
                ctx.set(loops.moves, step)
                await ctx.tick()
                ctx.set(loops.step, 0)
                ctx.set(loops.moves, 0)
            seen += 1

    async def testbench(ctx: Any) -> None:
        for counts in itertools.product((1, 2, 3), repeat=3):
            await nest(ctx, dict(zip(LEVELS, counts, strict=True)))
        await nest(ctx, {"x": 2, "y": 1, "z": 15})

    simulator = Simulator(loops)
    simulator.add_clock(1e-8)
    simulator.add_testbench(testbench)
    simulator.run()
    assert seen == 6**3 + 30
