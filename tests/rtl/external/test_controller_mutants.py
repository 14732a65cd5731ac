"""The memory's model finds mutations of its controller, those that lose rows and turn the bus too early included."""

import external_mutants as mutants
import pytest
from external_bench import SMALL, contents

from onnxhw.engines.cxxrtl.sdram_model import SdramModel, SdramNumbers

NUMBERS = SdramNumbers.of(SMALL)


@pytest.fixture(scope="module")
def right():
    """Traces of the right controller, short and long."""
    return {cycles: mutants.traced(SMALL, cycles).pins() for cycles in (mutants.SHORT, mutants.LONG)}


def answers(trace):
    """The first violation's rule, what DQ shows, whether that is known, rows lost."""
    with SdramModel(NUMBERS) as memory:
        dq, known = memory.run(trace)
        rule = memory.violation.split(": ")[1] if memory.violation else ""
        return rule, dq, known, memory.counts.lost


def test_at_least_twenty():
    assert len(mutants.CONSTANTS) + len(mutants.PINS) >= 40


def test_the_right_controller_violates_nothing(right):
    for trace in right.values():
        rule, _, known, lost = answers(trace)
        assert rule == ""
        assert known.sum() > 100
        assert lost == 0


@pytest.mark.parametrize("name", mutants.PINS)
def test_other_levels_of_pins_are_found(name, right):
    change, finds = mutants.PINS[name]
    trace = right[mutants.LONG if name in mutants.LONG_ONES else mutants.SHORT]
    _, wanted, wanted_known, _ = answers(trace)
    changed = trace.copy()
    change(changed)
    assert (changed != trace).any()
    rule, dq, known, lost = answers(changed)
    if finds == "words":
        assert rule == ""
        assert (wanted_known & (~known | (dq != wanted))).any()
    elif finds == "lost":
        assert lost
        assert (wanted_known & ~known).any()
    else:
        assert rule == finds


@pytest.mark.parametrize("name", mutants.CONSTANTS)
def test_other_constants_are_found(name):
    external, finds = mutants.CONSTANTS[name]
    cycles = mutants.LONG if name in mutants.LONG_ONES else mutants.SHORT
    found = mutants.traced(external, cycles)
    rule, dq, known, lost = answers(found.pins())
    if finds == "lost":
        assert lost
    elif finds == "words":
        wanted = [word for word in contents(SMALL, mutants.workload(cycles)) if word is not None]
        assert rule or [int(word) for word in dq[known]] != wanted
    else:
        assert rule == finds
