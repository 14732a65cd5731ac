"""States on the simulated gateware, through its serial pins: answers that are lost, runs that are stopped, clearing."""

from collections.abc import Iterator

import pytest
from linked_program import BAUD, CLOCK, LINKED
from linked_states import LostAnswers, are_right, frame, program
from rtl_line import RtlLine

from onnxhw.driver.client import Client
from onnxhw.driver.inferences import Inferences
from onnxhw.driver.link import Request
from onnxhw.driver.transport import SimulationTransport
from onnxhw.engines.cxxrtl.rtl_device import RtlDevice, device_libraries
from onnxhw.errors import LinkError
from onnxhw.isa.link import Command

pytestmark = [pytest.mark.rtl, pytest.mark.slow, pytest.mark.usefixtures("compiler")]


@pytest.fixture(scope="module")
def model() -> Iterator[RtlDevice]:
    with RtlDevice(device_libraries(LINKED, clock_hz=CLOCK, baud=BAUD), clock_hz=CLOCK, baud=BAUD) as made:
        yield made


def connect(model: RtlDevice, line: RtlLine | None = None) -> Client:
    return Client(SimulationTransport(line or RtlLine(model, CLOCK), BAUD))


def right(client: Client, *seeds: int) -> bool:
    """Whether a batch from the initial state on gives what it must, in the cycles that it must take."""
    results = client.run_all([frame(seed) for seed in seeds], program())
    assert {result.cycles for result in results} == {program().cycles}
    return are_right([result.outputs for result in results], *seeds)


def test_a_run_whose_answer_is_lost_does_not_advance_the_state_twice(model: RtlDevice) -> None:
    line, lost = RtlLine(model, CLOCK), LostAnswers(6, 6)
    client = connect(model, line)
    client.load(program())
    line.there, line.back = lost.there, lost.back
    assert right(client, 0, 1, 2)
    assert lost.runs == 4, "one of three was sent again"


def test_a_state_goes_on_while_the_next_frame_travels(model: RtlDevice) -> None:
    client = connect(model)
    client.load(program())
    assert Inferences(program(), CLOCK, 0).early
    assert right(client, 0, 1, 2)
    results = client.run_all([frame(seed) for seed in (3, 4, 5)])
    assert are_right([result.outputs for result in results], *range(6))


def test_a_run_that_is_stopped_costs_program_and_state(model: RtlDevice) -> None:
    client = connect(model)
    client.load(program())
    assert right(client, 0)
    client.link.perform([Request(Command.RUN, count=1), Request(Command.RESET)])
    with pytest.raises(LinkError, match="E9121"):
        client.run(frame(1))
    with pytest.raises(LinkError, match="E9121"):
        client.clear_state()
    client.load(program())
    assert right(client, 1, 2)


def test_clearing_waits_for_the_end_of_another_hosts_run(model: RtlDevice) -> None:
    """What that run stores does not lie over the initial values."""
    client = connect(model)
    client.load(program())
    client.link.perform([Request(Command.RUN, count=1)])
    other = connect(model)
    other.clear_state(program())
    assert (other.states()["h"] == program().states[0].initial).all()
    assert right(other, 4, 5)
