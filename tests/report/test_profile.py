"""The report's figures add up to the run, cycle by cycle."""

import dataclasses
import random

import pytest

from onnxhw.isa.instructions import UNITS, Array, Load, Vector
from onnxhw.isa.timeline import timeline
from onnxhw.isa.timing import FINISH, pixels, tiles
from onnxhw.report.busy_cycles import busy
from onnxhw.report.profile import CAUSES, profile


def random_program(program, seed):
    """Another program for `program`'s configuration: random sizes, random ordering on what came before."""
    draw = random.Random(seed)
    code = {unit: [] for unit in UNITS}
    for _ in range(12):
        done = {f"after_{unit}": draw.randint(0, len(code[unit])) for unit in UNITS}
        array = Array(kh_n=draw.randint(1, 3), oh_n=draw.randint(1, 9), ow_n=draw.randint(1, 3), **done)
        code["load"].append(Load(tiles=tiles(array)))
        code["array"].append(array)
        for _ in range(draw.randint(0, 2)):
            done = {f"after_{unit}": draw.randint(0, len(code[unit])) for unit in UNITS}
            code["vector"].append(
                Vector(oh_n=draw.randint(1, 9), kh_n=draw.randint(1, 3), groups=draw.randint(1, 3), **done)
            )
    return dataclasses.replace(program, code=code, cycles=timeline(program.config, code).cycles, layers=[])


@pytest.mark.parametrize("seed", range(30))
def test_every_cycle_of_a_unit_has_one_cause(program, seed):
    found = profile(random_program(program, seed))
    for row in found.units:
        assert row.total == found.cycles
        assert min(getattr(row, cause) for cause in CAUSES) >= 0, row


def test_busy_cycles_are_those_of_the_instructions(program):
    found = {row.unit: row for row in profile(program).units}
    array = program.code["array"]
    assert found["array"].busy == sum(tiles(i) * pixels(i) for i in array) == 9 * 64 + 9 * 64 + 2 * 4
    assert found["load"].busy == (9 + 9 + 2) * program.config.tile_words
    assert [busy(i, program.config) for i in program.code["vector"]] == [128, 128, 32 * (4 + 2 - 1), 8]


def test_layers_add_up_to_the_run(program):
    found = profile(program)
    assert sum(row.cycles for row in found.layers) == found.cycles == program.cycles
    assert [row.name for row in found.layers] == ["conv1", "pool1", "conv<2>"]
    assert all(0 <= row.utilization <= 1 for row in found.layers)
    assert found.layers[0].array_busy == 2 * 9 * 64
    assert found.layers[1].utilization == 0


def test_utilization_is_macs_over_peak(program):
    found = profile(program)
    assert found.utilization == program.macs / (found.cycles * 16)


def test_an_empty_program_has_a_profile(program):
    empty = dataclasses.replace(program, code={unit: [] for unit in UNITS}, layers=[], cycles=FINISH, macs=0)
    found = profile(empty)
    assert (found.cycles, found.utilization, found.layers) == (FINISH, 0.0, [])
    assert [row.tail for row in found.units] == [FINISH] * 3
