"""The core equals the emulator: every word of activation memory, every counter, every cycle."""

import dataclasses
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from core_bench import Bench, CompiledBench
from geometries import GEOMETRIES
from programs import Builder, random_program

from onnxhw.config import HwConfig
from onnxhw.emu import Machine
from onnxhw.emu.counters import counters
from onnxhw.emu.order import steps, time_order
from onnxhw.engines.cxxrtl.core_model import CoreModel
from onnxhw.isa import VectorOp
from onnxhw.isa.instructions import wait_reads
from onnxhw.isa.memory import Control, Space, host_stride
from onnxhw.isa.timeline import timeline
from onnxhw.isa.timing import ORDER
from onnxhw.program import DeviceProgram, from_host, to_host
from onnxhw.sched import footprint

LATE = 2
"""Cycles from the completion of what an input waits for to `input_free`."""

pytestmark = [pytest.mark.rtl, pytest.mark.usefixtures("compiler")]


def expect_equal(program, before, registers, after) -> None:
    machine = Machine(program.config)
    machine.act[:] = before
    machine.load(program)
    times = timeline(program.config, program.code)
    for unit, index in steps(program.code, time_order(times)):
        machine.execute(program.code[unit][index])
    assert np.array_equal(after, machine.act)
    assert registers["run"] == 0b010
    assert registers["cycles"] == program.cycles
    expected = counters(program.code, times)
    assert {name: registers[name] for name in expected} == expected
    fingerprint = registers["fingerprint_high"] << 32 | registers["fingerprint_low"]
    assert f"{fingerprint:016x}" == program.config.fingerprint


@pytest.mark.parametrize("config", [GEOMETRIES[15]], ids=lambda c: c.name)
def test_random_programs(config: HwConfig) -> None:
    """In Amaranth's own simulator, of a small one that has all units."""
    Bench(config).each([random_program(config, 0, 5)], expect_equal)


@pytest.mark.slow
@pytest.mark.parametrize("config", GEOMETRIES, ids=lambda c: c.name)
def test_many_random_programs(config: HwConfig) -> None:
    CompiledBench(config).each([random_program(config, seed, 8) for seed in range(10, 40)], expect_equal)


def test_vector_instructions_of_the_same_settings_overlap() -> None:
    """Long ones, behind which the next issues at once, and short ones."""
    cases, close = [], 0
    for seed, op in enumerate((VectorOp.SUM, VectorOp.ADD, VectorOp.DOT, VectorOp.MAX)):
        build = Builder(GEOMETRIES[0], seed)
        for _ in range(2):
            build.vector(op, cb=2, oh=5, ow=6)
            for _ in range(3):
                build.follow()
        cases.append((build.program(), build.act))
        spans = timeline(GEOMETRIES[0], build.code).spans["vector"]
        close += sum(other.issue == one.end + 1 < one.done for one, other in pairwise(spans))
    assert close >= 8
    CompiledBench(GEOMETRIES[0]).each(cases, expect_equal)


def test_an_array_instruction_waits_for_reads_alone() -> None:
    """It fills again the accumulators of a drain as soon as they are read, before the results are written."""
    cases = []
    for seed in range(3):
        build = Builder(GEOMETRIES[0], seed)
        oh, ow = build.array()
        (first,) = build.code["array"]
        for _ in range(2):
            build.vector(VectorOp.DRAIN, cb=1, oh=oh, ow=ow)
            build.code["vector"][-1] = dataclasses.replace(build.code["vector"][-1], a_base=first.acc_base)
        build.array(wait=False)
        again = {**wait_reads(0, 2), "acc_base": first.acc_base}
        build.code["array"][-1] = dataclasses.replace(build.code["array"][-1], **again)
        cases.append((build.program(), build.act))
        times = timeline(GEOMETRIES[0], build.code)
        drained, again = times.spans["vector"][1], times.spans["array"][1]
        assert again.issue == drained.read + ORDER < drained.done
    CompiledBench(GEOMETRIES[0]).each(cases, expect_equal)


def test_the_watchdog_stops_a_run_and_the_next_run_is_right() -> None:
    config = GEOMETRIES[0]
    program, act = random_program(config, 3, 3)
    stuck = dataclasses.replace(program.code["vector"][-1], after_array=4000)
    hopeless = dataclasses.replace(program, code={**program.code, "vector": [*program.code["vector"][:-1], stuck]})

    def check(case, before, registers, after) -> None:
        if case is hopeless:
            assert registers["run"] == 0b110
            assert registers["cycles"] == program.cycles + 200
            assert registers["vector_done"] == len(program.code["vector"]) - 1
        else:
            expect_equal(case, before, registers, after)

    CompiledBench(config).each([(program, act), (hopeless, act), (program, act)], check)


class Intruder(CompiledBench):
    """Writes the words of activation memory that a program leaves alone, one after the other all through its run."""

    words: list[tuple[int, int]]
    waited = 0
    written = 0
    free_at = 0

    def run(self, core: CoreModel, program: DeviceProgram) -> None:
        array, vector = program.input_free
        core.write(Space.CONTROL, Control.INPUT_FREE, array | vector << 16)
        core.start()
        self.core_cycles, self.free_at, self.written = 0, 0, 0
        core.set("host_space", Space.ACT)
        core.set("host_wstrb", 15)
        while core.get("running") and self.written < len(self.words):
            address, word = self.words[self.written]
            core.set("host_addr", address)
            core.set("host_wdata", word)
            core.set("host_we", 1)
            self._step(core)
            core.set("host_we", 0)
            self.written += 1
            for _ in range(3):
                self._step(core)
            while core.get("host_waiting"):
                self.waited += 1
                self._step(core)
        while core.get("running"):
            self._step(core)

    def _step(self, core: CoreModel) -> None:
        core.step()
        self.core_cycles += 1
        if not self.free_at and core.get("input_free"):
            self.free_at = self.core_cycles


@pytest.mark.parametrize("config", [GEOMETRIES[0], GEOMETRIES[3]], ids=lambda c: c.name)
def test_words_that_come_during_a_run_cost_it_no_cycle(config: HwConfig) -> None:
    """They land, the run is the emulator's to the cycle, and where it writes they wait for it."""
    bench, rng = Intruder(config), np.random.default_rng(1)
    stride = host_stride(config.word)

    def cases() -> Iterator[tuple[DeviceProgram, np.ndarray]]:
        for seed in range(3):
            program, act = random_program(config, seed, 6)
            array, vector = len(program.code["array"]) // 2, len(program.code["vector"]) // 2 + 1
            touched = [footprint.array_reads(i, config.word) for i in program.code["array"]]
            for i in program.code["vector"]:
                touched += [footprint.vector_a(i), footprint.vector_b(i), footprint.vector_writes(i)]
            left = np.setdiff1d(np.arange(config.act_words), np.concatenate(touched))
            used = np.unique(np.concatenate([footprint.vector_writes(i) for i in program.code["vector"]]))
            left = left[np.isin(left // config.act_depth, used // config.act_depth)]
            addresses = (left[:, None] * stride + np.arange(stride)).ravel()
            rng.shuffle(addresses)
            bench.words = [(int(address), int(rng.integers(1 << 32))) for address in addresses]
            yield dataclasses.replace(program, input_free=(array, vector)), act

    def check(program: DeviceProgram, before: np.ndarray, registers: dict[str, int], after: np.ndarray) -> None:
        assert bench.written > 20
        host = to_host(before.view(np.uint8), config.word)
        for address, word in bench.words[: bench.written]:
            host[address] = word
        expect_equal(program, from_host(host, config.word).view(np.int8), registers, after)
        spans = timeline(config, program.code).spans
        waited_for = zip(("array", "vector"), program.input_free, strict=True)
        assert bench.free_at == LATE + max(spans[unit][count - 1].done for unit, count in waited_for if count)

    bench.each(cases(), check)
    assert bench.waited > 20
