"""`WordFifo`: the words of a queue, and how many of them there are, in every cycle."""

import random
from collections import deque
from typing import Any

import pytest
from amaranth.sim import Simulator

from onnxhw.rtl.word_fifo import WordFifo


@pytest.mark.parametrize("depth", [4, 16])
def test_words_come_out_as_of_a_queue(depth: int) -> None:
    fifo, rng = WordFifo(width=8, depth=depth), random.Random(depth)
    seen = set()

    async def testbench(ctx: Any) -> None:
        words = deque[int]()
        for cycle in range(800):
            busy = 0.8 if cycle % 200 < 100 else 0.2
            writes, reads, word = rng.random() < busy and len(words) < depth, rng.random() > busy, rng.randrange(256)
            ctx.set(fifo.w_en, writes)
            ctx.set(fifo.w_data, word)
            ctx.set(fifo.r_en, reads)
            assert ctx.get(fifo.r_rdy) == bool(words)
            assert ctx.get(fifo.half) == (len(words) >= depth // 2)
            if words:
                assert ctx.get(fifo.r_data) == words[0]
            seen.add(len(words))
            if reads and words:
                words.popleft()
            if writes:
                words.append(word)
            await ctx.tick()

    simulator = Simulator(fifo)
    simulator.add_clock(1e-8)
    simulator.add_testbench(testbench)
    simulator.run()
    assert seen == set(range(depth + 1))
