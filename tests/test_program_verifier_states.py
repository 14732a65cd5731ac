"""States of a program file are verified like the rest of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_networks import SMALL
from streaming_networks import cell, two

from onnxhw.compiler import compile_graph
from onnxhw.errors import UsageError
from onnxhw.ir.states import State
from onnxhw.presets import preset
from onnxhw.program import DeviceProgram, Program, container
from onnxhw.program_verifier import verify_program
from onnxhw.segments import PartCycles, link, make_plan


@pytest.fixture(scope="module")
def program() -> DeviceProgram:
    graph, states = two()
    return link(graph, make_plan(graph, SMALL, PartCycles(SMALL)), SMALL, states=states)


def test_a_file_keeps_them(program: DeviceProgram, tmp_path: Path) -> None:
    container.save(Program.of(program), tmp_path / "program.ohw")
    found = verify_program(container.load(tmp_path / "program.ohw").only())
    for one, other in zip(found.states, program.states, strict=True):
        values, wanted = vars(one), vars(other)
        assert np.array_equal(values.pop("initial"), wanted["initial"])
        assert values == {name: value for name, value in wanted.items() if name != "initial"}


def changed(state: State, **fields: str) -> State:
    return State(**{**vars(state), **fields})


def test_wrong_ones_are_refused(program: DeviceProgram) -> None:
    one, other = program.states
    graph, _ = cell()
    wide = program.tensors["sum"]
    cases: list[tuple[str, DeviceProgram]] = [
        ("read for two states", replace(program, states=(one, changed(other, read=one.read)))),
        ("or is an input, too", replace(program, states=(one, changed(other, read="x")))),
        ("has the name of an input", replace(program, states=(one, changed(other, input="x")))),
        ("of another state", replace(program, states=(one, changed(other, output=one.output)))),
        ("otherwise than it is read", replace(program, tensors={**program.tensors, "sum": replace(wide, scale=0.5)})),
        ("without external memory", replace(compile_graph(graph, preset("mini")), states=(one,))),
    ]
    for what, broken in cases:
        with pytest.raises(UsageError, match=f"E2460 .*{what}"):
            verify_program(broken)
