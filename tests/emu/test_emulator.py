"""A program gives what it means, in every legal order of its instructions."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from legal_orders import random_order

from onnxhw.emu import Emulator, Machine, run
from onnxhw.emu.order import steps, time_order
from onnxhw.errors import InternalError, UsageError
from onnxhw.isa import Array, Load
from onnxhw.isa.instructions import follows
from onnxhw.isa.timeline import timeline
from onnxhw.isa.timing import vector_issue_interval
from onnxhw.presets import preset


def test_the_program_means_what_it_says(case) -> None:
    result = run(case.program, case.inputs)
    assert list(result.outputs) == ["y"]
    assert np.array_equal(result.outputs["y"], case.expected["y"])
    assert result.outputs["y"].shape == (1, 4, 6, 6)
    assert result.outputs["y"].dtype == np.int8
    assert result.tensors == {}
    assert result.cycles == case.program.cycles > 0


def test_every_tensor_is_captured_when_it_is_complete(case) -> None:
    tensors = run(case.program, case.inputs, trace=True).tensors
    assert sorted(tensors) == ["conv", "pool", "x", "y"]
    for name, values in {**case.inputs, **case.expected}.items():  # x although y lies over it
        assert np.array_equal(tensors[name], values), name


@pytest.mark.parametrize("seed", range(30))
def test_results_do_not_depend_on_the_order(case, seed: int) -> None:
    order = random_order(case.program.code, seed)
    result = run(case.program, case.inputs, trace=True, order=order)
    for name, values in case.expected.items():
        assert np.array_equal(result.tensors[name], values), (name, order)


def test_random_orders_reach_every_legal_one(case) -> None:
    """Load, array, vector of two tiles can be interleaved in five ways; the rest is in order."""
    assert len({tuple(random_order(case.program.code, seed)) for seed in range(30)}) == 5


def test_a_race_shows_in_some_order(case) -> None:
    """Without its ordering field a drain reads accumulators that are not there yet."""
    vector = case.program.code["vector"]
    vector[1] = dataclasses.replace(vector[1], after_array=0)
    orders = [random_order(case.program.code, seed) for seed in range(30)]
    results = [run(case.program, case.inputs, order=order) for order in orders]
    wrong = [not np.array_equal(result.outputs["y"], case.expected["y"]) for result in results]
    assert any(wrong)
    assert not all(wrong)


def test_an_emulator_runs_again(case) -> None:
    emulator = Emulator(case.program)
    zeros = {"x": np.zeros((1, 4, 6, 6), np.int8)}
    other = emulator.run(zeros).outputs["y"]
    assert not np.array_equal(other, case.expected["y"])
    assert np.array_equal(emulator.run(case.inputs).outputs["y"], case.expected["y"])
    assert np.array_equal(emulator.run(zeros).outputs["y"], other)


def test_memory_left_behind_does_not_matter(case) -> None:
    emulator = Emulator(case.program)
    emulator.machine.act[:] = 77
    emulator.machine.acc[:] = 12345
    assert np.array_equal(emulator.run(case.inputs).outputs["y"], case.expected["y"])


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (["array"], r"array\[0\] may not run yet"),  # its weights are not loaded
        (["load", "vector"], r"vector\[0\] may not run yet"),
        (["load"], r"the order ends before load\[1\]"),
        (["load", "load", "load"], r"load\[2\] may not run yet"),
        (["nobody"], r"nobody\[None\] may not run yet"),
    ],
)
def test_an_illegal_order_is_refused(case, order: list[str], words: str) -> None:
    with pytest.raises(InternalError, match=words) as caught:
        run(case.program, case.inputs, order=order)
    assert caught.value.code == "E1120"


def test_an_array_instruction_may_end_before_its_load() -> None:
    """A load of two tiles ends only when the array has taken the first; the first user completes before."""
    code = {
        "load": [Load(tiles=2)],
        "array": [Array(ow_n=1), Array(after_array=1, ow_n=2)],
        "vector": [],
    }
    times = timeline(preset("mini"), code)
    assert times.spans["load"][0].issue < times.spans["array"][0].issue
    order = time_order(times)
    assert order == ["load", "array", "array"]
    assert list(steps(code, order)) == [("load", 0), ("array", 0), ("array", 1)]


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({}, "the inputs must be x, not none"),
        ({"z": np.zeros((1, 4, 6, 6), np.int8)}, "the inputs must be x, not z"),
        ({"x": np.zeros((1, 4, 6, 6), np.float32)}, r"input 'x': must be int8 \(1, 4, 6, 6\), not float32"),
        ({"x": np.zeros((4, 6, 6), np.int8)}, r"not int8 \(4, 6, 6\)"),
    ],
)
def test_wrong_inputs_are_named(case, inputs, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        run(case.program, inputs)
    assert caught.value.code == "E2126"


def test_images_must_fit_the_machine(case) -> None:
    big = dataclasses.replace(case.program, weights=np.zeros((65, 4), np.uint8))
    with pytest.raises(InternalError, match=r"weights \(65, 4\) do not fit") as caught:
        Emulator(big)
    assert caught.value.code == "E1123"
    other = dataclasses.replace(case.program.config, acc_bits=24)
    with pytest.raises(InternalError, match="program for 'tiny' on a machine for 'tiny'"):
        Machine(other).load(case.program)


def test_counters_follow_the_timeline(case) -> None:
    counters = run(case.program, case.inputs).counters
    assert counters["load_done"] == 2
    assert counters["array_done"] == 2
    assert counters["vector_done"] == 4
    assert counters["busy_array"] == 2 * 9 * 18
    spans = timeline(case.program.config, case.program.code).spans
    # The second array instruction was fetched and free while the first ran; only weights can stall it.
    assert counters["stall_order_array"] == 0
    assert counters["stall_weights_array"] == sum(span.stalled for span in spans["array"])
    # The vector unit waits for the first tile from the moment its instruction and parameters are there.
    vector = spans["vector"]
    waits = [vector[0].issue - vector[0].ready]
    code = case.program.code["vector"]
    for (before, span), (one, other) in zip(pairwise(vector), pairwise(code), strict=True):
        free = max(before.end + 1, before.issue + vector_issue_interval()) if follows(one, other) else before.done
        waits.append(span.issue - max(span.ready, free))
    assert counters["stall_order_vector"] == sum(waits) > 0
    busy = {cycle for span in spans["vector"] for cycle in range(span.issue, span.done)}
    assert counters["busy_vector"] == len(busy)
