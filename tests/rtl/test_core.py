"""The core equals the emulator: every word of activation memory, every counter, every cycle."""

import dataclasses

import numpy as np
import pytest
from core_bench import Bench
from programs import random_program

from onnxhw.config import HwConfig
from onnxhw.emu import Machine
from onnxhw.emu.counters import counters
from onnxhw.emu.order import by_time, steps
from onnxhw.isa.timing import timeline

SMALL = {"act_depth": 256, "weight_depth": 160, "acc_depth": 64, "param_depth": 512, "tables": 2}
GEOMETRIES = [
    HwConfig("4x4", rows=4, cols=4, word=4, lanes=2, acc_bits=24, **SMALL),
    HwConfig("4x4 two rows a cycle", rows=4, cols=4, word=4, lanes=4, acc_bits=24, load_rows=2, **SMALL),
    HwConfig("5x3", rows=5, cols=3, word=5, lanes=1, acc_bits=24, **SMALL),
    HwConfig("4x6 of 8 lanes", rows=4, cols=6, word=8, lanes=2, acc_bits=28, load_rows=4, **SMALL),
    HwConfig("3x5 of 8 lanes", rows=3, cols=5, word=8, lanes=4, acc_bits=32, load_rows=3, **SMALL),
    HwConfig("4x5 with depthwise unit", rows=4, cols=5, word=4, lanes=2, acc_bits=24, depthwise=9, **SMALL),
    HwConfig("6x4 with half a word", rows=6, cols=4, word=6, lanes=1, acc_bits=20, depthwise=9, load_rows=3, **SMALL),
    HwConfig("8x16", rows=8, cols=16, word=8, lanes=8, acc_bits=32, load_rows=2, **SMALL),
    HwConfig("fast 4x3", rows=4, cols=3, word=5, lanes=1, acc_bits=24, inner_product="fast", **SMALL),
    HwConfig("fast 6x5", rows=6, cols=5, word=8, lanes=4, acc_bits=24, load_rows=3, inner_product="fast", **SMALL),
    HwConfig("fast 8x4", rows=8, cols=4, word=8, lanes=2, acc_bits=20, load_rows=4, inner_product="fast", **SMALL),
    HwConfig("fast 4x4 whole tiles, depthwise unit", rows=4, cols=4, word=8, lanes=2, acc_bits=24, load_rows=4,
             inner_product="fast", depthwise=9, **SMALL),
    HwConfig("fast 6x3 depthwise unit", rows=6, cols=3, word=6, lanes=3, acc_bits=24, load_rows=2,
             inner_product="fast", depthwise=9, **SMALL),
    HwConfig("3x4 whole tiles, depthwise unit", rows=3, cols=4, word=4, lanes=4, acc_bits=24, load_rows=3,
             depthwise=9, **SMALL),
    HwConfig("fast 10x2", rows=10, cols=2, word=10, lanes=2, acc_bits=24, load_rows=2, inner_product="fast", **SMALL),
]  # fmt: skip


def expect_equal(program, before, registers, after) -> None:
    machine = Machine(program.config)
    machine.act[:] = before
    machine.load(program)
    times = timeline(program.config, program.code)
    for unit, index in steps(program.code, by_time(times)):
        machine.execute(program.code[unit][index])
    assert np.array_equal(after, machine.act)
    assert registers["run"] == 0b010
    assert registers["cycles"] == program.cycles
    expected = counters(program.code, times)
    assert {name: registers[name] for name in expected} == expected
    fingerprint = registers["fingerprint_high"] << 32 | registers["fingerprint_low"]
    assert f"{fingerprint:016x}" == program.config.fingerprint


@pytest.mark.rtl
@pytest.mark.parametrize("config", [*GEOMETRIES[:3], *GEOMETRIES[5:7], GEOMETRIES[11]], ids=lambda c: c.name)
def test_random_programs(config: HwConfig) -> None:
    Bench(config).each([random_program(config, seed, 5) for seed in range(2)], expect_equal)


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("config", GEOMETRIES, ids=lambda c: c.name)
def test_many_random_programs(config: HwConfig) -> None:
    Bench(config).each([random_program(config, seed, 8) for seed in range(10, 13)], expect_equal)


@pytest.mark.rtl
def test_the_watchdog_stops_a_run_and_the_next_run_is_right() -> None:
    config = GEOMETRIES[0]
    program, act = random_program(config, 3, 3)
    stuck = dataclasses.replace(program.code["vector"][-1], after_array=9999)
    hopeless = dataclasses.replace(program, code={**program.code, "vector": [*program.code["vector"][:-1], stuck]})

    def check(case, before, registers, after) -> None:
        if case is hopeless:
            assert registers["run"] == 0b110
            assert registers["cycles"] == program.cycles + 200
            assert registers["vector_done"] == len(program.code["vector"]) - 1
        else:
            expect_equal(case, before, registers, after)

    Bench(config).each([(program, act), (hopeless, act), (program, act)], check)
