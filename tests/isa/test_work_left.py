"""The bound on a program's cycles that ends the computation of its times: never above them, and near enough to help."""

import random

import pytest

from onnxhw.isa import Array, Depthwise, Load, Vector
from onnxhw.isa.instructions import Ordered
from onnxhw.isa.timeline import timeline, timeline_below
from onnxhw.isa.units import Unit
from onnxhw.isa.work_left import WorkLeft
from onnxhw.presets import PRESETS

WINDOWS = PRESETS["ulx3s-85f"]


def _program(seed: int) -> dict[Unit, list[Ordered]]:
    """Instructions of all units that wait for each other."""
    rng = random.Random(seed)
    code: dict[Unit, list[Ordered]] = {unit: [] for unit in (Unit.LOAD, Unit.ARRAY, Unit.DEPTHWISE, Unit.VECTOR)}
    for _ in range(rng.randint(1, 14)):
        waits = {"after_vector": rng.randint(0, len(code[Unit.VECTOR]))}
        if rng.random() < 0.3:
            code[Unit.DEPTHWISE].append(Depthwise(oh_n=rng.randint(3, 9), ow_n=rng.randint(3, 9), **waits))
            code[Unit.LOAD].append(Load(tiles=1, depthwise=1))
        else:
            tiles = rng.randint(1, 6)
            code[Unit.ARRAY].append(Array(kt_n=tiles, oh_n=rng.randint(1, 3), ow_n=rng.randint(1, 40), **waits))
            code[Unit.LOAD].append(Load(tiles=tiles))
            code[Unit.VECTOR].append(Vector(ow_n=rng.randint(1, 90), after_array=len(code[Unit.ARRAY])))
    return code


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_never_above_the_cycles(seed: int) -> None:
    """Whatever prefix of each unit's instructions has ended."""
    program, rng = _program(seed), random.Random(seed)
    for weightless in (False, True):
        found, work = timeline(WINDOWS, program, weightless), WorkLeft(WINDOWS, program)
        for _ in range(20):
            ended = {unit: spans[: rng.randint(0, len(spans))] for unit, spans in found.spans.items()}
            assert work.least(ended) < found.cycles


@pytest.mark.parametrize("seed", range(20))
def test_times_are_told_below_the_limit_alone(seed: int) -> None:
    program = _program(seed)
    for weightless in (False, True):
        found = timeline(WINDOWS, program, weightless)
        assert timeline_below(WINDOWS, program, found.cycles + 1, weightless) == found
        assert timeline_below(WINDOWS, program, None, weightless) == found
        for limit in (found.cycles, found.cycles - 1, found.cycles // 2, 1):
            assert timeline_below(WINDOWS, program, limit, weightless) is None


def test_it_counts_the_work_of_each_unit() -> None:
    program = {
        Unit.ARRAY: [Array(kt_n=3, nt_n=2, oh_n=4, ow_n=5), Array(ow_n=7)],
        Unit.DEPTHWISE: [Depthwise(kw_n=2, oh_n=3, ow_n=3)],
        Unit.VECTOR: [Vector(ow_n=50), Vector(ow_n=30)],
    }  # fmt: skip
    work = WorkLeft(WINDOWS, program)
    assert work.left == {Unit.ARRAY: [127, 7, 0], Unit.DEPTHWISE: [18, 0], Unit.VECTOR: [80, 30, 0]}
    assert work.least({unit: [] for unit in Unit}) == 127
    ended = {unit: spans[:1] for unit, spans in timeline(WINDOWS, program, weightless=True).spans.items()}
    assert work.least(ended) == max(ended[unit][-1].end + work.left[unit][1] for unit in work.left)
    assert work.least(ended) > 127
