"""States that stay on the device from run to run: what advances them, once, and what ends them."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from link_parts import Line
from linked_program import BAUD, CLOCK, LINKED
from linked_program import program as other_program
from linked_states import LostAnswers, are_right, expected, frame, program

from onnxhw.driver.client import Client
from onnxhw.driver.device import Device
from onnxhw.driver.device_model import DeviceModel
from onnxhw.driver.emulated_core import EmulatedCore
from onnxhw.driver.faults import StateUnknownError
from onnxhw.driver.flash_image import flash_image
from onnxhw.driver.load_requests import load_requests
from onnxhw.driver.transport import SimulationTransport
from onnxhw.errors import LinkError
from onnxhw.isa.flash import HEADER_BYTES
from onnxhw.isa.link import Command, Info
from onnxhw.program.traffic import core_bytes, load_bytes


def make() -> DeviceModel:
    return DeviceModel(Info.of(LINKED, clock_hz=CLOCK, baud=BAUD), EmulatedCore(LINKED))


@pytest.fixture
def line() -> Line:
    return Line(make())


def connect(line: Line) -> Client:
    return Client(SimulationTransport(line, BAUD))


def outputs(client: Client, *seeds: int) -> list[dict]:
    return [result.outputs for result in client.run_all([frame(seed) for seed in seeds], program())]


def test_a_state_goes_from_run_to_run_and_from_batch_to_batch(line: Line) -> None:
    client = connect(line)
    client.load(program())
    assert are_right(outputs(client, 0, 1, 2), 0, 1, 2)
    assert are_right(outputs(client, 3), 0, 1, 2, 3)
    assert (client.states()["h"] == expected(0, 1, 2, 3)[-1]["h"]).all()
    client.clear_state()
    assert (client.states()["h"] == program().states[0].initial).all()
    assert are_right(outputs(client, 3, 4), 3, 4)


def test_the_host_sends_no_state_and_initial_values_with_a_load(line: Line) -> None:
    client, one = connect(line), program()
    assert client.to_load(one) == load_bytes(one)
    client.load(one)
    plain = replace(one, states=())
    assert load_bytes(one) - load_bytes(plain) == core_bytes(one) - core_bytes(plain) > one.states[0].initial.size
    commands = [(request.command, request.space) for request in load_requests(one, image=False)]
    assert commands[-1][0] == Command.COMMIT
    assert line.device.core.runs == 0


def test_a_run_whose_answer_is_lost_does_not_advance_the_state_twice(line: Line) -> None:
    """Of three inferences eight answers are lost, from each of them on: RUN is sent again, and not performed
    again."""
    client = connect(line)
    client.load(program())
    everything, sent = LostAnswers(0, 0), []
    for first in range(24):
        client.clear_state()
        before, lost = line.device.core.runs, LostAnswers(first, 8)
        line.there, line.back = lost.there, lost.back
        assert are_right(outputs(client, 0, 1, 2), 0, 1, 2)
        line.there, line.back = everything.there, everything.back
        assert line.device.core.runs == before + 3
        sent.append(lost.runs)
    assert min(sent) >= 3
    assert max(sent) >= 5


def test_behind_a_run_that_the_watchdog_stops_the_state_is_refused(line: Line) -> None:
    client, one = connect(line), program()
    short = replace(one, cycles=one.cycles - 1)
    client.load(short)
    with pytest.raises(LinkError, match="E9108"):
        client.run(frame(0))
    with pytest.raises(LinkError, match=r"E9121 .*does not hold"):
        client.run(frame(0), one)
    with pytest.raises(LinkError, match=r"E912[14]"):
        client.run(frame(0), short)
    with pytest.raises(LinkError, match=r"E9121 .*does not hold"):
        client.clear_state(one)
    client.load(one)
    assert are_right(outputs(client, 5, 6), 5, 6)


def test_behind_a_line_that_was_lost_the_state_is_refused_until_it_is_cleared(line: Line) -> None:
    """The device may have run, or not: nobody knows."""
    client = connect(line)
    client.load(program())
    assert are_right(outputs(client, 0), 0)
    line.back = lambda data: b""
    with pytest.raises(LinkError, match="E9103"):
        outputs(client, 1)
    line.back = lambda data: data
    for _ in range(2):
        with pytest.raises(LinkError, match=r"E9124 .*nobody knows how many runs"):
            outputs(client, 1)
    client.clear_state()
    assert are_right(outputs(client, 1, 2), 1, 2)


def test_a_clear_that_fails_leaves_nothing_to_go_on_with(line: Line) -> None:
    client = connect(line)
    client.load(program())
    line.back = lambda data: b""
    with pytest.raises(LinkError, match="E9103"):
        client.clear_state()
    line.back = lambda data: data
    with pytest.raises(LinkError, match="E9124"):
        outputs(client, 0)
    client.clear_state()
    assert are_right(outputs(client, 0), 0)


def test_inputs_that_are_refused_change_nothing(line: Line) -> None:
    client = connect(line)
    client.load(program())
    assert are_right(outputs(client, 0), 0)
    with pytest.raises(Exception, match="E2151"):
        client.run({"x": frame(0)["x"][:, :1]})
    assert are_right(outputs(client, 1), 0, 1)


def test_another_host_begins_anew_and_the_first_one_is_told(line: Line) -> None:
    one = connect(line)
    one.load(program())
    assert are_right(outputs(one, 0, 1), 0, 1)
    two = connect(line)
    two.link.session = one.link.session % 255 + 1
    assert are_right(outputs(two, 2), 2)
    with pytest.raises(LinkError, match="E9120"):
        outputs(one, 3)
    with pytest.raises(LinkError, match="E9124"):
        outputs(one, 3)
    one.clear_state()
    assert are_right(outputs(one, 3, 4), 3, 4)


def test_the_first_run_of_a_session_finds_nothing_of_the_one_before_it_had_lost(line: Line) -> None:
    """The line was lost between two batches, by a question: somebody else may have been there."""
    client = connect(line)
    client.load(program())
    assert are_right(outputs(client, 0), 0)
    line.back = lambda data: b""
    with pytest.raises(LinkError, match="E9103"):
        client.status()
    line.back = lambda data: data
    with pytest.raises(LinkError, match="E9124"):
        outputs(client, 1)


def test_what_ends_residency_ends_the_state(line: Line) -> None:
    """A reset, another program, and a load that breaks off: the next load begins it anew."""
    client, one = connect(line), program()
    ends: list[Callable[[], object]] = [
        client.reset,
        lambda: client.load(other_program()),
        lambda: client.link.perform(load_requests(one, image=True)[:-1]),
    ]
    for end in ends:
        client.load(one)
        assert are_right(outputs(client, 0, 1), 0, 1)
        end()
        assert not client.holds(one)
        with pytest.raises(LinkError, match="E9121"):
            outputs(client, 2)
    client.load(one)
    assert are_right(outputs(client, 2), 2)


def test_a_device_that_loads_from_flash_has_the_initial_state(line: Line) -> None:
    """Its first run may be the start button's."""
    line.device.exchange(flash_image(program())[HEADER_BYTES:])
    client = connect(line)
    assert client.holds(program())
    assert (client.states(program())["h"] == program().states[0].initial).all()


def test_a_device_does_not_load_again_by_itself(line: Line) -> None:
    with Device(connect(line), "here") as device:
        device.load(program())
        assert are_right([device.run_int8(frame(0), program()).outputs], 0)
        line.back = lambda data: b""
        with pytest.raises(LinkError, match="E9103"):
            device.run_int8(frame(1), program())
        line.back = lambda data: data
        with pytest.raises(StateUnknownError, match="E9124"):
            device.run_int8(frame(1), program())
        device.clear_state()
        assert are_right([device.run_int8(frame(1), program()).outputs], 1)
        device.load(other_program())
        device.clear_state(program())
        assert are_right([device.run_int8(frame(seed), program()).outputs for seed in (2, 3)], 2, 3)
