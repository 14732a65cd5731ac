"""The campaign's arguments; breaks that change the device's rate; and a device and hosts that are broken on purpose."""

import random
import runpy
import sys
from collections.abc import Iterator

import faults
import pytest
import serial_lines
from faults import Campaign, Fault, compiled
from serial_lines import FRAMING_ERROR, Ear, ModelLine, PinnedLine, levels, reopened

from onnxhw.board import find
from onnxhw.cli.common import interrupts
from onnxhw.driver import connection
from onnxhw.driver.client import Client
from onnxhw.driver.faults import NoAnswerError
from onnxhw.driver.transport import SimulationTransport
from onnxhw.errors import LinkError

SHORT, LONG = faults.CASES[-2:]
FEW = 9


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    return Campaign(compiled())


def breaks(campaign: Campaign, case: Fault, count: int = FEW, seed: int = 1) -> faults.Figures:
    fault = Fault(case.name, 0, count, low=case.low)
    return campaign.run(fault, campaign.emulated(), seed)


# -- arguments ---------------------------------------------------------------------------------


def test_a_campaign_without_faults_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "CASES", ())
    said: list[str] = []
    assert faults.main([], said.append) == 1
    assert said[-1] == "\n0 faults injected; undetected, wrong results and hangs: 0"


def test_a_campaign_with_a_bad_fault_fails() -> None:
    said: list[str] = []
    assert [faults.conclude(3, bad, said.append) for bad in (0, 1)] == [0, 1]
    assert said[-1] == "\n3 faults injected; undetected, wrong results and hangs: 1"


@pytest.mark.parametrize("asked", [None, 1_000_000, 12_500_000])
def test_host_and_device_have_the_rate_that_was_asked_for(asked: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default that of the boards."""
    found: list[tuple[int, int]] = []

    def look(transport: SimulationTransport) -> Client:
        assert isinstance(transport.line, faults.FaultyLine)
        assert isinstance(transport.line.line, ModelLine)
        found.append((transport.baud, transport.line.line.model.info.baud))
        return Client(transport)

    monkeypatch.setattr(faults, "Client", look)
    said: list[str] = []
    wanted = [] if asked is None else [f"--baud={asked}"]
    assert faults.main(["--case=host killed in a batch", "--scale=1e-6", *wanted], said.append) == 0
    baud = asked or find("ulx3s-85f").baud
    assert set(found) == {(baud, baud)}


@pytest.mark.parametrize("name", ["faults", "external_faults", "usb_faults", "large"])
def test_errors_of_the_script_are_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "script_status", lambda main: 7)
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(f"{faults.NETWORK.parent.parent}/bench/{name}.py", run_name="__main__")
    assert ended.value.code == 7


# -- breaks ------------------------------------------------------------------------------------


def test_long_breaks_end_the_session_unless_they_bring_the_rate_around(campaign: Campaign) -> None:
    found = breaks(campaign, LONG, 15)
    assert found.injected >= 15
    assert (found.undetected, found.wrong, found.hangs) == (0, 0, 0)
    assert 0 < found.given_up < len(found.recovery)
    assert max(found.recovery) > 0.1, "a host has asked for the first rate by breaks"
    assert max(found.recovery) < 0.5


def test_short_breaks_end_no_session(campaign: Campaign) -> None:
    found = breaks(campaign, SHORT)
    assert found.injected >= FEW
    assert (found.undetected, found.wrong, found.hangs, found.given_up) == (0, 0, 0, 0)
    assert found.detected > 0


def test_a_line_with_one_rate_keeps_it() -> None:
    found = breaks(Campaign(compiled(), 115_200), LONG, 3)
    assert (found.undetected, found.wrong, found.hangs, found.given_up) == (0, 0, 0, 0)


def test_a_device_that_keeps_its_rate_is_seen(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = ModelLine.hold_low
    monkeypatch.setattr(ModelLine, "hold_low", lambda self, seconds: hold(self, min(seconds, 0.029)))
    assert breaks(campaign, LONG).undetected > 0


def test_a_device_that_changes_its_rate_too_soon_is_seen(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = ModelLine.hold_low
    monkeypatch.setattr(ModelLine, "hold_low", lambda self, seconds: hold(self, max(seconds, 0.031)))
    assert breaks(campaign, SHORT).undetected > 0


def test_a_host_that_stays_at_a_slower_rate_is_seen(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_fastest", lambda line, where, found: found)
    assert breaks(campaign, LONG, 15).undetected > 0


def test_a_host_that_sends_no_breaks_is_seen(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    line = campaign.emulated().line
    assert isinstance(line, ModelLine)
    line.hold_low(0.04)
    monkeypatch.setattr(serial_lines.ReopenedPort, "send_break", lambda self: None)
    with pytest.raises(NoAnswerError, match="E9155"):
        reopened(line, line.rates[0], None)


@pytest.mark.parametrize("seconds", [0.0299, 0.0301])
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_a_break_of_more_than_30_ms_brings_the_next_rate(campaign: Campaign, turn: int, seconds: float) -> None:
    line = campaign.emulated().line
    assert isinstance(line, ModelLine)
    for _ in range(turn):
        line.hold_low(0.04)
    start = line.seconds()
    line.hold_low(seconds)
    assert line.seconds() - start == pytest.approx(seconds, rel=1e-6)
    assert line.rate == line.rates[(turn + (seconds > 0.03)) % 3]


# -- a line of two rates -----------------------------------------------------------------------


@pytest.mark.parametrize("drift", [0.98, 1.0, 1.02])
def test_an_ear_at_the_rate_of_the_line_hears_what_was_sent(drift: float) -> None:
    data = [0, 255, 1, 128, *random.Random(0).randbytes(500)]
    ear = Ear()
    assert ear.hear([*levels(data, 1.0), (1, 20.0)], drift) == data
    assert not ear.busy


def test_an_ear_at_another_rate_hears_something_else() -> None:
    """A zero whose bits are three times as long has no stop bit; one whose bits are a third as long is three bits, and
    ones."""
    assert Ear().hear([*levels([0], 3.0), (1, 20.0)], 1.0) == [FRAMING_ERROR]
    assert Ear().hear([*levels([0], 1.0), (1, 60.0)], 3.0) == [0b11111100]


def test_an_ear_goes_on_in_the_middle_of_a_byte() -> None:
    ear, bits = Ear(), list(levels([0x5A, 0xA5], 1.0))
    assert ear.hear(bits[:7], 1.0) == []
    assert ear.busy
    assert ear.hear(bits[7:], 1.0) == [0x5A, 0xA5]


@pytest.fixture(scope="module")
def pinned(campaign: Campaign) -> Iterator[PinnedLine]:
    with faults.through_pins(campaign.config, 1_000_000) as device:
        assert isinstance(device.line, PinnedLine)
        yield device.line


@pytest.mark.rtl
@pytest.mark.slow
def test_the_gateware_changes_its_rate_as_the_model_does(pinned: PinnedLine) -> None:
    """At each of its rates, by a break just long enough, and none that is just too short."""

    def answers(baud: int) -> bool:
        pinned.baud = baud
        try:
            return Client(SimulationTransport(pinned, baud)).head().baud == 1_000_000
        except LinkError:
            return False

    assert answers(1_000_000)
    for seconds, rate in ((0.029, 1_000_000), (0.031, 115_200), (0.029, 115_200), (0.031, 1_000_000)):
        start = pinned.seconds()
        pinned.hold_low(seconds)
        assert 10 / 9 * seconds < pinned.seconds() - start < 1.4 * seconds
        assert [baud for baud in (1_000_000, 115_200) if answers(baud)] == [rate]
    pinned.hold_low(0.031)
    client = reopened(pinned, None, None)
    assert (client.transport.baud, pinned.baud) == (1_000_000, 1_000_000)
