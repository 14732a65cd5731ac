"""States of linked programs: run after run what the golden model makes with its states fed back; and the proofs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_networks import SMALL
from streaming_networks import STREAMING

from onnxhw import golden
from onnxhw.config import HwConfig
from onnxhw.emu.emulator import Emulator
from onnxhw.engines.cxxrtl.engine import CxxrtlEngine
from onnxhw.errors import InternalError
from onnxhw.isa.external_instructions import Move
from onnxhw.isa.memory import Space
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.presets import preset
from onnxhw.program import DeviceProgram
from onnxhw.program.external_tensors import external_span, external_tensor
from onnxhw.sched import check
from onnxhw.segments import PartCycles, link, linker, make_plan

RUNS = 4
MINI = preset("mini+sdram")


def linked(name: str, config: HwConfig) -> tuple[DeviceProgram, golden.StatefulRuns]:
    """The program of a network, and what its runs must give."""
    graph, states = STREAMING[name]()
    plan = make_plan(graph, config, PartCycles(config))
    return link(graph, plan, config, states=states), golden.StatefulRuns(graph, states)


def sample(program: DeviceProgram, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shapes = {port.tensor: program.tensors[port.tensor].shape for port in program.inputs}
    return {name: rng.integers(-128, 128, shape).astype(np.int8) for name, shape in shapes.items()}


def in_place(program: DeviceProgram) -> set[str]:
    """The states of which both values lie in the same words."""
    lying = {name: entry.external for name, entry in program.tensors.items()}
    return {state.input for state in program.states if lying[state.made] == lying[state.read]}


@pytest.mark.parametrize("config", [SMALL, MINI], ids=lambda config: config.name)
@pytest.mark.parametrize("name", STREAMING)
def test_runs_are_those_of_the_golden_model_with_states_fed_back(name: str, config: HwConfig) -> None:
    """Every tensor that the program has as a whole, and external memory in the end; and the same again when cleared."""
    program, wanted = linked(name, config)
    assert check(program).cycles == program.cycles
    assert {state.input for state in program.states}.isdisjoint(port.name for port in program.inputs)
    assert {state.output for state in program.states}.isdisjoint(port.name for port in program.outputs)
    emulator, word = Emulator(program), config.word
    for _ in range(2):
        wanted.clear()
        emulator.clear_state()
        for seed in range(RUNS):
            inputs = sample(program, seed)
            tensors, made = wanted.run(inputs), emulator.run(inputs)
            assert all(np.array_equal(values, tensors[tensor]) for tensor, values in made.outputs.items())
            for state in program.states:
                entry = program.tensors[state.read]
                first, count = external_span(entry, word)
                found = external_tensor(entry, emulator.machine.external[first : first + count], word)
                assert np.array_equal(found, wanted.values[state.read])


def test_nothing_is_copied_where_all_loads_stand_before() -> None:
    """In `SMALL` the cell's old value is loaded in stripes, between which the new one is stored."""
    assert [in_place(linked(name, MINI)[0]) for name in STREAMING] == [{"old"}, {"h"}, {"h"}, {"sum"}]
    assert [in_place(linked(name, SMALL)[0]) for name in STREAMING] == [{"old"}, set(), set(), set()]


@pytest.mark.parametrize("name", ["cell", "late"])
def test_a_new_value_over_one_that_is_still_read_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linker, "states_in_place", lambda states, placed: list(states))
    with pytest.raises(InternalError, match=r"E1214 .*of a state, behind the store for the next run"):
        check(linked(name, SMALL)[0])


def test_a_state_that_is_not_stored_as_a_whole_is_refused() -> None:
    """The last move brings what was made to where it is found; without it the next run finds the old value."""
    program, _ = linked("cell", SMALL)
    state, moves = program.states[0], program.code[Unit.MOVE]
    first, count = external_span(program.tensors[state.read], SMALL.word)
    stores = [n for n, move in enumerate(moves) if isinstance(move, Move) and move.store and move.space == Space.ACT
              and first <= move.external < first + count]  # fmt: skip
    for at in (stores[0], stores[-1]):
        elsewhere = replace(moves[at], external=SMALL.external.host_words // 2)  # type: ignore[union-attr]
        code = {**program.code, Unit.MOVE: [*moves[:at], elsewhere, *moves[at + 1 :]]}
        broken = replace(program, code=code, cycles=timeline(program.config, code).cycles)
        with pytest.raises(InternalError, match=r"E1214 .*is not stored"):
            check(broken)


def test_a_state_that_an_input_lies_over_is_refused() -> None:
    program, _ = linked("cell", MINI)
    piece = program.tensors["x"].external[0]
    tensors = {**program.tensors, "h": replace(program.tensors["h"], external=(piece,))}
    with pytest.raises(InternalError, match=r"E1211 .*shares words with an input"):
        check(replace(program, tensors=tensors))


def test_a_state_of_few_channels_does_not_lie_packed() -> None:
    """A convolution over three channels reads its input packed, but what is made lies as it is."""
    graph, states = STREAMING["cell"](3, 8)
    config = preset("ulx3s-85f+sdram")
    plan = make_plan(graph, config, PartCycles(config))
    assert link(graph, plan, config).tensors["h"].external[0].storage is not None
    program = link(graph, plan, config, states=states)
    check(program)
    assert program.tensors["h"].external[0].storage is None


@pytest.mark.slow
@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
def test_the_rtl_gives_the_same_run_after_run() -> None:
    with CxxrtlEngine(SMALL) as engine:
        for name in STREAMING:
            program, wanted = linked(name, SMALL)
            engine.load(program)
            for _ in range(2):
                wanted.clear()
                engine.clear_state()
                for seed in range(RUNS):
                    inputs = sample(program, seed)
                    tensors, made = wanted.run(inputs), engine.run(program, inputs)
                    assert made.cycles == program.cycles
                    assert all(np.array_equal(values, tensors[each]) for each, values in made.outputs.items())
