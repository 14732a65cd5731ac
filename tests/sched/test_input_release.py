"""When inputs in external memory are free; those of activation memory are in `test_checker`."""

from dataclasses import replace

import numpy as np
import pytest
from linked_program import DEEP, LATE, is_right, program, sample

from onnxhw.emu.emulator import Emulator
from onnxhw.emu.machine import Machine
from onnxhw.emu.order import steps, time_order
from onnxhw.errors import InternalError
from onnxhw.isa.timeline import Timeline, timeline
from onnxhw.isa.units import Unit
from onnxhw.program import DeviceProgram
from onnxhw.program.external_tensors import external_span, external_tensor, external_words
from onnxhw.sched import check
from onnxhw.sched.input_release import check_window, input_free

NETWORKS = {"three": (4, 9), "deep": DEEP, "late": LATE}


def times(one: DeviceProgram) -> Timeline:
    return timeline(one.config, one.code)


def released(one: DeviceProgram) -> int:
    """The cycle in which inputs are free."""
    spans = times(one).spans
    counts = zip((Unit.ARRAY, Unit.VECTOR), one.input_free, strict=True)
    return max(spans[unit][count - 1].done for unit, count in counts if count)


@pytest.mark.parametrize("name", NETWORKS)
def test_one_instruction_earlier_is_refused(name: str) -> None:
    one = program(*NETWORKS[name])
    array, vector = one.input_free
    assert one.input_free != (0, 0)
    check(one)
    for earlier in ((array - 1, vector), (array, vector - 1)):
        if min(earlier) >= 0 and earlier != (0, 0):
            with pytest.raises(InternalError, match=r"E1212 .*move.* free after .* array and .* vector"):
                check_window(replace(one, input_free=earlier), times(one))
    with pytest.raises(InternalError, match=r"E1212 .*inputs are free after"):
        check_window(replace(one, input_free=(len(one.code[Unit.ARRAY]) + 1, vector)), times(one))
    check_window(replace(one, input_free=(0, 0)), times(one))


def test_inputs_are_free_once_nothing_reads_them() -> None:
    deep, late = program(*DEEP), program(*LATE)
    assert released(deep) < deep.cycles // 20
    assert late.cycles // 2 < released(late) < late.cycles


@pytest.mark.parametrize("name", NETWORKS)
def test_inputs_that_are_overwritten_once_they_are_free_change_no_result(name: str) -> None:
    which = NETWORKS[name]
    one, rng = program(*which), np.random.default_rng(0)
    word, (port,), (result,) = one.config.word, one.inputs, one.outputs
    runs = list(external_words(one.tensors[port.tensor], sample(0, *which)[port.tensor], word))

    def right(free: tuple[int, int]) -> bool:
        machine = Machine(one.config)
        machine.load(one)
        for first, words in runs:
            machine.external[first : first + len(words)] = words
        done = dict.fromkeys(Unit, 0)
        for unit, index in steps(one.code, time_order(times(one))):
            if done[Unit.ARRAY] >= free[0] and done[Unit.VECTOR] >= free[1]:
                for first, words in runs:
                    machine.external[first : first + len(words)] = rng.integers(0, 1 << 32, len(words), dtype=np.uint32)
            machine.execute(one.code[unit][index])
            done[unit] += 1
        first, count = external_span(one.tensors[result.tensor], word)
        made = external_tensor(one.tensors[result.tensor], machine.external[first : first + count], word)
        return is_right({result.tensor: made}, 0, *which)

    assert is_right(Emulator(one).run(sample(0, *which)).outputs, 0, *which)
    assert right(one.input_free)
    assert not right((0, 0))


def test_an_output_that_is_an_input_leaves_no_window() -> None:
    """The next inputs must then come after the outputs have been read."""
    one = program()
    (source,), (result,) = one.inputs, one.outputs
    there = replace(one.tensors[result.tensor], external=one.tensors[source.tensor].external)
    shared = replace(one, tensors={**one.tensors, result.tensor: there})
    assert input_free(shared, times(shared)) == (0, 0)
    with pytest.raises(InternalError, match=r"E1212 .*an output lies where an input does"):
        check_window(shared, times(shared))


def test_an_input_elsewhere_leaves_none_either() -> None:
    one = program()
    (source,) = one.inputs
    inside = replace(one, tensors={**one.tensors, source.tensor: replace(one.tensors[source.tensor], external=())})
    assert input_free(inside, times(inside)) == (0, 0)
    with pytest.raises(InternalError, match=r"E1212 .*does not lie in external memory"):
        check_window(inside, times(inside))
