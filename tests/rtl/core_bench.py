"""Drives a `Core` through its host port, for tests: in Amaranth's simulator, or compiled."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from amaranth.sim import Simulator

from onnxhw.config import HwConfig
from onnxhw.engines.cxxrtl.core_model import CoreModel, core_library
from onnxhw.isa.instructions import UNITS
from onnxhw.isa.memory import Control, Space, host_stride
from onnxhw.program import DeviceProgram, from_host, to_host
from onnxhw.program.host_words import memories
from onnxhw.rtl.core import Core

Act = np.ndarray
Check = Callable[[DeviceProgram, Act, dict[str, int], Act], None]


def units(program: DeviceProgram) -> list[int]:
    """What the registers from `Control.LOAD_COUNT` on take: instructions per unit."""
    return [len(program.code.get(unit, ())) for unit in UNITS]


class CompiledBench:
    """`Bench` on the compiled core: costs a compilation, then programs are almost free."""

    def __init__(self, config: HwConfig) -> None:
        self.config = config

    def each(self, cases: Iterable[tuple[DeviceProgram, Act]], check: Check) -> None:
        """As `Bench.each`."""
        word = self.config.word
        addresses = np.arange(self.config.act_words)
        with CoreModel(core_library(self.config).path, self.config) as core:
            for program, act in cases:
                for space, words in [*memories(program), (Space.ACT, to_host(act.view(np.uint8), word))]:
                    core.write(space, 0, words)
                core.write(Space.CONTROL, Control.LOAD_COUNT, units(program))
                core.write(Space.CONTROL, Control.BUDGET, program.cycles + 200)
                self.run(core, program)
                registers = {r.name.lower(): core.control(r)[0] for r in Control}
                check(program, act, registers, core.act(addresses).view(np.int8))

    def run(self, core: CoreModel, program: DeviceProgram) -> None:
        """Start what is loaded and wait for its end."""
        core.start()
        core.run(program.cycles + 1000)


class Bench:
    """A core in simulation; `run` executes programs one after the other on it."""

    def __init__(self, config: HwConfig) -> None:
        self.config, self.core = config, Core(config)

    def each(self, cases: Iterable[tuple[DeviceProgram, Act]], check: Check) -> None:
        """Run every case; ``check(program, before, registers, after)`` sees the whole activation memory."""

        async def testbench(ctx: Any) -> None:
            for program, act in cases:
                await self._load(ctx, program, act)
                registers = await self._run(ctx, program)
                check(program, act, registers, await self._dump(ctx))

        simulator = Simulator(self.core)
        simulator.add_clock(1e-8)
        simulator.add_testbench(testbench)
        simulator.run()

    async def _write(self, ctx: Any, space: int, address: int, data: int) -> None:
        core = self.core
        ctx.set(core.host_space, space)
        ctx.set(core.host_addr, address)
        ctx.set(core.host_wdata, data)
        ctx.set(core.host_wstrb, 15)
        ctx.set(core.host_we, 1)
        await ctx.tick()
        ctx.set(core.host_we, 0)

    async def _load(self, ctx: Any, program: DeviceProgram, act: Act) -> None:
        for space, words in [*memories(program), (Space.ACT, to_host(act.view(np.uint8), self.config.word))]:
            for address, word in enumerate(words):
                await self._write(ctx, space, address, int(word))
        for i, count in enumerate(units(program)):
            await self._write(ctx, Space.CONTROL, Control.LOAD_COUNT + i, count)

    async def _run(self, ctx: Any, program: DeviceProgram) -> dict[str, int]:
        await self._write(ctx, Space.CONTROL, Control.BUDGET, program.cycles + 200)
        await self._write(ctx, Space.CONTROL, Control.RUN, 1)
        await ctx.tick().repeat(3)
        while ctx.get(self.core.running):
            await ctx.tick()
        return {r.name.lower(): (await self._read(ctx, Space.CONTROL, [r]))[0] for r in Control}

    async def _read(self, ctx: Any, space: int, addresses: Iterable[int]) -> list[int]:
        """Pipelined reads: one access per cycle."""
        core, values = self.core, []
        ctx.set(core.host_space, space)
        for address in addresses:
            ctx.set(core.host_addr, address)
            ctx.set(core.host_re, 1)
            await ctx.tick()
            if ctx.get(core.host_rvalid):
                values.append(ctx.get(core.host_rdata))
        ctx.set(core.host_re, 0)
        for _ in range(core.HOST_READ_LATENCY):
            await ctx.tick()
            if ctx.get(core.host_rvalid):
                values.append(ctx.get(core.host_rdata))
        return values

    async def _dump(self, ctx: Any) -> Act:
        words = await self._read(ctx, Space.ACT, range(self.config.act_words * host_stride(self.config.word)))
        return from_host(np.array(words, np.uint32), self.config.word).view(np.int8)
