"""A device whose line may have several rates: breaks choose them, and the host finds the first that the line bears."""

import termios

import pytest

from onnxhw.driver import connection
from onnxhw.driver.device import Device
from onnxhw.driver.transport import SerialTransport
from onnxhw.errors import LineRateWarning
from onnxhw.isa.link import line_rates

SPEEDS = {3_000_000: termios.B3000000, 1_000_000: termios.B1000000, 115_200: termios.B115200}


@pytest.fixture
def line(board, pty_board, monkeypatch):
    """A function that puts a device on a line which bears some rates; the device is at its rate `at`."""
    monkeypatch.setattr(SerialTransport, "latency", 0.001)

    def make(borne, at=0, first=3_000_000):
        rates = line_rates(first)
        place = pty_board(board(baud=first), speed=0)
        place.at, place.breaks = at, 0

        def choose(number):
            place.at = number % len(rates)
            place.speed = SPEEDS[rates[place.at]] if rates[place.at] in borne else 0

        def send_break(self):
            place.breaks += 1
            choose(place.at + 1)

        choose(at)
        monkeypatch.setattr(SerialTransport, "send_break", send_break)
        return place

    return make


def test_rates_of_a_line():
    assert line_rates(3_000_000) == (3_000_000, 1_000_000, 115_200)
    assert line_rates(1_000_000) == (1_000_000, 115_200)
    assert line_rates(115_200) == (115_200,)
    assert line_rates(9_600) == (9_600,)
    assert max(map(len, map(line_rates, (3_000_000, 1_000_001, 2)))) == connection.MOST_RATES


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("borne", [(3_000_000, 1_000_000, 115_200), (1_000_000, 115_200), (115_200,)])
def test_the_first_rate_that_the_line_bears(line, borne, at, recwarn):
    """Wherever an earlier host has left the device; and with a word if it is not the first."""
    place = line(borne, at)
    with Device.open(place.path) as device:
        assert device.client.transport.baud == borne[0]
        assert device.info.baud == 3_000_000
        assert device.client.status() == 0
    warned = [str(each.message) for each in recwarn if issubclass(each.category, LineRateWarning)]
    wanted = f"W9158 the line has {borne[0]:,} baud, for the device does not answer at 3,000,000: adapter, hub or cable"
    assert warned == ([] if borne[0] == 3_000_000 else [f"{wanted} (serial:{place.path})"])
    assert bool(place.breaks) == (borne[0] < 3_000_000 or at > 0)


def test_a_rate_that_is_asked_for_is_kept(line, recwarn):
    place = line(tuple(SPEEDS))
    with Device.open(place.path, baud=1_000_000) as device:
        assert device.client.transport.baud == 1_000_000
    with Device.open(place.path, baud=115_200) as device:
        assert device.client.transport.baud == 115_200
    assert place.breaks == 2
    assert not [each for each in recwarn if issubclass(each.category, LineRateWarning)]
    with Device.open(place.path) as device:
        assert device.client.transport.baud == 3_000_000
