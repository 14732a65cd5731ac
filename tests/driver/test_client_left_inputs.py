"""Inputs that a batch has left in the device without a run are never those of a later run."""

import itertools

import numpy as np
import pytest
from link_parts import BAUD, Line

from onnxhw import golden
from onnxhw.driver import client as clients
from onnxhw.driver.client import Client
from onnxhw.driver.transport import SimulationTransport
from onnxhw.errors import LinkError
from onnxhw.golden import host


class KilledError(Exception):
    """The host is gone."""


class Mortal(Line):
    """A line whose host is killed when `frames` more have reached the device."""

    def __init__(self, device, frames: int) -> None:
        super().__init__(device)
        self.frames = frames

    def exchange(self, data):
        pieces = bytes(data).split(b"\0")
        for piece in pieces[:-1]:
            if piece and not self.frames:
                raise KilledError
            self.frames -= bool(piece)
            self.device.exchange(piece + b"\0")
        return self.device.exchange(b"")


@pytest.fixture
def images(digits_graph, digits_test):
    """Int8 inputs, and what the golden model makes of them."""
    x = np.load(digits_test)["input"][:3]
    return [host.prepare(digits_graph, {"input": one[None]}) for one in x]


@pytest.fixture
def check(digits_graph, digits_program, images):
    """Runs of a client are the golden model's, each of its own input; three tell which one would be late."""

    def make(client):
        for feeds, result in zip(images, client.run_all(images, digits_program), strict=True):
            wanted = golden.run(digits_graph, feeds)
            assert all(np.array_equal(values, wanted[name]) for name, values in result.outputs.items())

    return make


def connect(line):
    return Client(SimulationTransport(line, BAUD))


def test_a_host_that_is_killed_behind_any_frame(board, digits_program, images, check):
    device, frames, left = board(), 0, 0
    connect(Line(device)).load(digits_program)
    while True:
        try:
            connect(Mortal(device, frames)).run_all(images[::-1], digits_program)
            break
        except KilledError:
            left += device.complete
            check(connect(Line(device)))
        frames += 1
    assert frames > 10
    assert left > 2, "some of them had left whole inputs"


def test_a_batch_that_fails_between_inputs_and_their_run(board, digits_program, images, check, monkeypatch):
    """The same client goes on, without loading again."""
    monkeypatch.setattr(clients, "AT_ONCE", 1)
    device = board()
    client = connect(Line(device))
    client.load(digits_program)

    def fail(done, of):
        raise KilledError

    with pytest.raises(KilledError):
        client.run_all(images[::-1], progress=fail)
    assert device.complete
    assert client.run_all([]) == []
    check(client)


@pytest.mark.parametrize("reads", [0, 1])
def test_another_host_between_two_batches(board, digits_program, images, check, reads):
    """It is killed; the first one hears of it at a READ, not at a run, and may have met the device anew before that."""
    device = board()
    first = connect(Line(device))
    first.load(digits_program)
    check(first)
    for frames in itertools.takewhile(lambda _: not device.complete, itertools.count()):
        other = connect(Mortal(device, frames))
        other.link.session = first.link.session % 255 + 1
        with pytest.raises(KilledError):
            other.run_all(images[::-1], digits_program)
    with pytest.raises(LinkError, match="E9120"):
        first.read(1, 0, 1)
    for _ in range(reads):
        first.read(1, 0, 1)
    check(first)


def test_loading_forgets_inputs_already(board, digits_program, images):
    """The first batch behind it has no frame more than the second, whose bytes are counted elsewhere."""
    client = connect(Line(board()))
    client.load(digits_program)
    counts = []
    for _ in range(2):
        before = client.counters.frames
        client.run_all(images)
        counts.append(client.counters.frames - before)
    assert counts[0] == counts[1]
