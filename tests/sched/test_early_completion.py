"""Instructions that are counted as completed early: as early as may be, never earlier, and fewer cycles for it."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from onnxhw import engines
from onnxhw.config import HwConfig
from onnxhw.errors import InternalError, UsageError
from onnxhw.ir.graph import Graph
from onnxhw.isa.early_instructions import EarlyArray, EarlyVector, early_of, most_early
from onnxhw.isa.instructions import Array, Vector
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.program import DeviceProgram
from onnxhw.sched import check, schedule
from onnxhw.sched.early_completion import limits
from onnxhw.sched.input_release import check_window, input_free

EARLY = (Unit.ARRAY, Unit.VECTOR)


@pytest.fixture(scope="module", params=["fast 8x8", "4x4", "8x8 depthwise"])
def hw(request: pytest.FixtureRequest) -> HwConfig:
    room = {"act_depth": 512, "weight_depth": 4096, "acc_depth": 64, "acc_bits": 24, "early_completion": 15}
    kinds = {
        "fast 8x8": {"rows": 8, "cols": 8, "word": 8, "lanes": 4, "load_rows": 8, "inner_product": "fast"},
        "4x4": {"rows": 4, "cols": 4, "word": 4, "lanes": 4},
        "8x8 depthwise": {"rows": 8, "cols": 8, "word": 8, "lanes": 8, "load_rows": 8, "depthwise": 16},
    }
    return HwConfig(request.param, **{**room, **kinds[request.param]})


@pytest.fixture
def net(new_net: Any) -> Any:
    """Dense layers of a row, a residual sum, a convolution with a window and pooling."""
    net = new_net(5)
    x = net.input(24, 1, 1)
    for channels in (32, 32, 8, 32):
        x = net.conv(x, channels, (1, 1))
    x = net.add(x, net.conv(x, 32, (1, 1)))
    y = net.max_pool(net.conv(net.input(3, 6, 5), 8, pads=(1, 1, 1, 1)), (2, 2), strides=(2, 2))
    y = net.conv(net.global_average(y), 32, (1, 1))
    net.result = net.graph(net.conv(net.add(x, y), 12, (1, 1)))
    return net


@pytest.fixture
def graph(net: Any) -> Graph:
    return net.result


@pytest.fixture
def program(graph: Graph, hw: HwConfig) -> DeviceProgram:
    return schedule(graph, hw)


def other(program: DeviceProgram, unit: Unit, index: int, early: int) -> DeviceProgram:
    """The program with one instruction as early as that, and the cycles that this gives."""
    code = {name: list(instructions) for name, instructions in program.code.items()}
    code[unit][index] = code[unit][index].but(early=early)
    return dataclasses.replace(program, code=code, cycles=timeline(program.config, code).cycles)


def early_ones(program: DeviceProgram) -> Iterator[tuple[Unit, int, int]]:
    """Unit, index and `early` of each that is."""
    for unit in EARLY:
        for index, instruction in enumerate(program.code[unit]):
            if early := early_of(instruction):
                yield unit, index, early


def test_dense_layers_take_fewer_cycles(graph: Graph, hw: HwConfig, program: DeviceProgram) -> None:
    patient = schedule(graph, dataclasses.replace(hw, early_completion=0))
    assert program.cycles <= patient.cycles - 60
    assert all(type(i) in (Array, Vector) for unit in EARLY for i in patient.code[unit])
    assert {unit for unit, _, _ in early_ones(program)} == set(EARLY)
    assert early_of(program.code[Unit.VECTOR][-1]) == 0


def test_what_is_early_by_a_cycle_more_is_refused(program: DeviceProgram) -> None:
    assert check(program).cycles == program.cycles
    for unit, index, early in early_ones(program):
        if early < 15:
            with pytest.raises(InternalError, match=rf"E1216 .*{unit}.*{early + 1} cycles early, {early} are safe"):
                check(other(program, unit, index, early + 1))


def test_what_nobody_waits_for_is_not_early(program: DeviceProgram) -> None:
    last = len(program.code[Unit.VECTOR]) - 1
    with pytest.raises(InternalError, match=r"E1216 .*1 cycles early, 0 are safe"):
        check(other(program, Unit.VECTOR, last, 1))
    assert limits(program.code, program.config)[Unit.VECTOR][last] == 0


def test_limits_keep_to_the_configuration(graph: Graph, hw: HwConfig) -> None:
    least = dataclasses.replace(hw, early_completion=2)
    program = schedule(graph, least)
    assert {early for _, _, early in early_ones(program)} <= {1, 2}
    assert {most_early(unit, least) for unit in EARLY} == {2}
    assert most_early(Unit.DEPTHWISE, hw) == most_early(Unit.LOAD, hw) == 0
    with pytest.raises(UsageError, match="early_completion must be at most 15, not 16"):
        dataclasses.replace(hw, early_completion=16)


@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
def test_the_hardware_computes_the_same_and_nothing_could_be_earlier(
    net: Any, graph: Graph, hw: HwConfig, program: DeviceProgram
) -> None:
    """Each instruction a cycle earlier than it may be, by itself: of the array's and of the vector unit's some give
    another result. Not all: where something else holds the consumer up, or takes the results in another order."""
    values = net.values()
    with engines.open("golden", hw, graph=graph) as golden:
        want = golden.run(program, values, True)
    wrong = dict.fromkeys(EARLY, 0)
    with engines.open("cxxrtl", hw) as hardware:
        got = hardware.run(program, values, True)
        assert got.cycles == program.cycles
        for name, tensor in want.tensors.items():
            assert np.array_equal(got.tensors[name], tensor), name
        assert got.counters == engines.open("emulator", hw).run(program, values).counters
        for unit, index, early in early_ones(program):
            if early < most_early(unit, hw):
                found = hardware.run(other(program, unit, index, early + 1), values)
                wrong[unit] += any(
                    not np.array_equal(found.outputs[name], tensor) for name, tensor in want.outputs.items()
                )
    assert wrong[Unit.ARRAY], wrong
    assert wrong[Unit.VECTOR] or hw.lanes == hw.word, wrong  # there they take so few cycles that these are the limit


def test_forms_of_instructions(hw: HwConfig, program: DeviceProgram) -> None:
    assert {type(i) for i in program.code[Unit.ARRAY]} == {EarlyArray}
    assert {type(i) for i in program.code[Unit.VECTOR]} == {EarlyVector}
    for kind in (EarlyArray, EarlyVector):
        spec = next(spec for spec in kind.specs() if spec.name == "early")
        waits = next(spec for spec in kind.specs() if spec.name in ("after_vector", "o_base"))
        assert spec.offset // 32 == waits.offset // 32  # a word that changes anyway
        assert kind.decode(kind(early=9).encode()) == kind(early=9)
        assert kind.parse("array early=9") == kind(early=9)


def test_inputs_are_not_free_before_what_is_written_over_them_is_there(program: DeviceProgram) -> None:
    """An instruction that is counted early and writes where an input lay: the next one is over later than it."""
    ready = {entry.ready: name for name, entry in program.tensors.items()}
    early = [index for unit, index, _ in early_ones(program) if unit == Unit.VECTOR and index + 1 in ready]
    index, name = early[0], ready[early[0] + 1]
    inputs = [dataclasses.replace(port, tensor=name) for port in program.inputs[:1]]
    times = timeline(program.config, program.code)
    alone = {**program.code, Unit.VECTOR: program.code[Unit.VECTOR][: index + 1], Unit.ARRAY: [], Unit.DEPTHWISE: []}
    written = dataclasses.replace(program, inputs=inputs, outputs=[], code=alone)
    assert input_free(written, times) == (0, index + 2)
    short = dataclasses.replace(written, input_free=(0, index + 1))
    with pytest.raises(InternalError, match=r"E1212 .*writes where an input lies after it has been counted"):
        check_window(short, times)
