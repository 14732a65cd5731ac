"""The unit by itself: requests, words and their places, whatever gaps a controller leaves between columns."""

import random
from collections import deque
from typing import Any

import pytest
from amaranth.sim import Simulator
from move_programs import GEOMETRIES, random_move

from onnxhw.config import HwConfig
from onnxhw.isa.external_instructions import Move
from onnxhw.isa.memory import Space, host_stride
from onnxhw.isa.move_timing import columns_per_word
from onnxhw.isa.timing import ACT_READ
from onnxhw.rtl.units.move import MOVED, MoveUnit

pytestmark = pytest.mark.rtl


def places(i: Move) -> list[int]:
    """Host words in the order in which they are moved."""
    return [i.chip + block * i.c_block + run * i.c_run + word
            for block in range(i.block_n) for run in range(i.run_n) for word in range(i.word_n)]  # fmt: skip


def stored(place: int) -> int:
    """What the memory of the core has in a host word."""
    return (place * 0x9E3779B1 + 7) & 0xFFFFFFFF


class Surroundings:
    """A controller with gaps, and activation memory, around a unit that executes one move."""

    def __init__(self, config: HwConfig, move: Move, rng: random.Random) -> None:
        self.unit, self.move, self.rng = MoveUnit(config), move, rng
        self.columns, self.bits, self.stride = columns_per_word(config), 32 // columns_per_word(config), 1
        self.stride = host_stride(config.word)
        self.requests: list[tuple[int, int, int]] = []
        self.written: list[tuple[int, int, int]] = []
        """Space, place and word."""
        self.taken: list[int] = []
        self.given = 0

    async def run(self, ctx: Any) -> None:
        unit, rng = self.unit, self.rng
        reads: deque[int] = deque([0] * ACT_READ, ACT_READ)
        due, quiet, done = 0, 0, False
        ctx.set(unit.issue.bits, sum(word << 32 * n for n, word in enumerate(self.move.encode())))
        await ctx.tick()  # as a fetcher, whose instruction stands a cycle before it is valid
        ctx.set(unit.issue.valid, 1)
        while not done:
            external, free = unit.external, quiet > 2
            ready, column = int(not due and rng.random() < 0.3), int(bool(due) and free and rng.random() < 0.6)
            ctx.set(external.request.ready, ready)
            ctx.set(external.w_next, column if self.move.store else 0)
            ctx.set(external.r_valid, 0 if self.move.store else column)
            ctx.set(external.r_data, stored(self.given // self.columns) >> self.bits * (self.given % self.columns)
                    & (1 << self.bits) - 1)  # fmt: skip
            ctx.set(unit.read.move.word, reads[0])
            if column:
                due, self.given = due - 1, self.given + 1
                self.taken += [ctx.get(external.w_data)] * self.move.store
            quiet += 1
            if ready and ctx.get(external.request.valid):
                payload = external.request.payload
                self.requests.append((ctx.get(payload.write), ctx.get(payload.address), ctx.get(payload.count)))
                due, quiet = ctx.get(payload.count), 0
            self._memory(ctx, reads)
            done = bool(ctx.get(unit.status.done))
            await ctx.tick()
            if self.requests or quiet > 0:
                ctx.set(unit.issue.valid, 0)

    def _memory(self, ctx: Any, reads: "deque[int]") -> None:
        unit, stride = self.unit, self.stride
        address = ctx.get(unit.read.move.request.addr)
        reads.append(sum(stored(address * stride + n) << 32 * n for n in range(stride)))
        request, moved = unit.write.request, unit.moved
        if enable := ctx.get(request.en):
            (place,) = [n for n in range(stride) if enable >> 4 * n & 0xF == 0xF]
            assert enable == 0xF << 4 * place
            data = ctx.get(request.data) >> 32 * place & 0xFFFFFFFF
            self.written.append((Space.ACT, ctx.get(request.addr) * stride + place, data))
        if valid := ctx.get(moved.valid):
            (space,) = (space for number, space in enumerate(MOVED) if valid >> number & 1)
            self.written.append((space, ctx.get(moved.addr), ctx.get(moved.data)))


@pytest.mark.parametrize("config", GEOMETRIES[:2], ids=lambda config: config.name)
@pytest.mark.parametrize(
    ("space", "store"), [(Space.ACT, 0), (Space.ACT, 1), (Space.WEIGHT, 0), (Space.VECTOR_UCODE, 0)]
)
def test_a_move(config: HwConfig, space: Space, store: int) -> None:
    rng = random.Random(space + store)
    for _ in range(4):
        move = random_move(rng, space, 3, 400, bool(store), 30)
        around, columns = Surroundings(config, move, rng), columns_per_word(config)
        simulator = Simulator(around.unit)
        simulator.add_clock(1e-8)
        simulator.add_testbench(around.run)
        simulator.run()
        starts = [move.external + block * move.e_block + run * move.e_run
                  for block in range(move.block_n) for run in range(move.run_n)]  # fmt: skip
        assert around.requests == [(store, start * columns, move.word_n * columns) for start in starts]
        if store:
            mask = (1 << around.bits) - 1
            words = [stored(place) for place in places(move)]
            assert around.taken == [word >> around.bits * n & mask for word in words for n in range(columns)]
            assert around.written == []
        else:
            wanted = [(space, place, stored(n)) for n, place in enumerate(places(move))]
            assert around.written == wanted
