"""`bisect` finds the first wrong element and the instruction that made it."""

from collections.abc import Callable

import numpy as np
import pytest
from small_networks import NETWORKS, SMALL
from small_networks import inputs as sample

from onnxhw import bisect, engines
from onnxhw.compiler import compile_graph
from onnxhw.config import HwConfig
from onnxhw.emu import Emulator
from onnxhw.engines.software import EmulatorEngine
from onnxhw.errors import MismatchError
from onnxhw.ir.graph import Graph
from onnxhw.isa.timeline import timeline
from onnxhw.program import DeviceProgram, Result

Make = Callable[[int], dict[str, np.ndarray]]


class Faulty(EmulatorEngine):
    """An emulator that damages one lane of what one vector instruction writes."""

    name = "faulty"

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at
        self.damaged: tuple[int, int] | None = None

    def run(self, program: DeviceProgram, inputs: dict[str, np.ndarray], trace: bool = False) -> Result:
        emulator = Emulator(program)
        machine, execute = emulator.machine, emulator.machine.execute
        culprit = program.code["vector"][self.at]

        def wrong(instruction: object) -> None:
            execute(instruction)
            if instruction is culprit:
                lane = culprit.lane_group * program.config.lanes
                machine.act[culprit.o_base, lane] ^= 1
                self.damaged = (culprit.o_base, lane)

        machine.execute = wrong
        return emulator.run(inputs, trace)


@pytest.mark.parametrize("part", [0, 1, 2, 3])
def test_names_the_instruction(part: int, small: HwConfig, graph: Graph, program: DeviceProgram, inputs: Make) -> None:
    at = len(program.code["vector"]) * part // 4
    faulty = Faulty(at)
    found = bisect.compare(program, inputs(part), EmulatorEngine(), faulty)
    assert found is not None
    assert (found.word, found.lane) == faulty.damaged
    assert found.different == 1
    assert found.expected == found.got ^ 1
    assert (found.culprits[-1].unit, found.culprits[-1].index) == ("vector", at)
    span = timeline(small, program.code).spans["vector"][at]
    assert found.culprits[-1].cycles == (span.issue, span.done)
    assert found.cycles[0] <= span.issue
    assert found.cycles[1] == span.done
    entry = program.tensors[found.tensor]
    assert entry.ready > at
    # Against the golden model the verdict is the same.
    golden = engines.open("golden", small, graph=graph)
    assert bisect.compare(program, inputs(part), golden, Faulty(at)).record() == {
        **found.record(), "rungs": ["golden", "faulty"],
    }  # fmt: skip
    with pytest.raises(MismatchError, match=rf"E8401 .*faulty differs from emulator.*vector\[{at}\]") as caught:
        bisect.check(program, inputs(part), EmulatorEngine(), Faulty(at))
    assert caught.value.exit_status == 8


def test_equal_rungs_have_no_difference(small: HwConfig, graph: Graph, program: DeviceProgram, inputs: Make) -> None:
    assert bisect.compare(program, inputs(0), engines.open("golden", small, graph=graph), EmulatorEngine()) is None
    bisect.check(program, inputs(0), EmulatorEngine(), EmulatorEngine())


def test_a_part_of_a_tensor_in_segments() -> None:
    """The part that is made first, not the output in external memory that follows from it."""
    graph = NETWORKS["inverted"]()
    program = compile_graph(graph, SMALL)
    golden, faulty = engines.open("golden", SMALL, graph=graph), Faulty(len(program.code["vector"]) // 2)
    found = bisect.compare(program, sample(graph), golden, faulty)
    assert found is not None
    entry = program.tensors[found.tensor]
    assert entry.part is not None
    assert (found.word, found.layer) == (faulty.damaged[0], entry.op) if faulty.damaged else None
    assert bisect.compare(program, sample(graph), golden, EmulatorEngine()) is None


def test_an_output_in_external_memory_has_no_word() -> None:
    graph = NETWORKS["inverted"]()
    program = compile_graph(graph, SMALL)

    class Outputs(EmulatorEngine):
        """With another last element of each output."""

        def run(self, program: DeviceProgram, inputs: dict[str, np.ndarray], trace: bool = False) -> Result:
            made = super().run(program, inputs, trace)
            for values in made.outputs.values():
                values.reshape(-1)[-1] ^= 1
            return made

    found = bisect.compare(program, sample(graph), engines.open("golden", SMALL, graph=graph), Outputs())
    assert found is not None
    assert (found.word, found.lane, found.culprits) == (None, None, [])
    assert "external memory" in found.error().what
