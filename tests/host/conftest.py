"""Boards for the driver's tests: the device model behind the emulator, in the process or behind a pseudo-terminal."""

import contextlib
import os
import select
import termios
import threading
import tty

import pytest

from onnxhw.cli.selftest_network import network
from onnxhw.compiler import compile
from onnxhw.config import preset
from onnxhw.host.client import Client
from onnxhw.host.device import Device
from onnxhw.host.emulated import EmulatedCore
from onnxhw.host.model import DeviceModel
from onnxhw.host.transport import SimulationTransport
from onnxhw.isa.link import Info

MINI = preset("mini")
BAUD = 1_000_000


@pytest.fixture(scope="session")
def selftest_graph():
    """The network of the self-test."""
    return network()


@pytest.fixture(scope="session")
def selftest_program(selftest_graph):
    """It, compiled for the smallest preset."""
    return compile(selftest_graph, MINI)


@pytest.fixture(scope="session")
def digits_graph(digits):
    """The example network."""
    from onnxhw.frontend import load

    return load(digits)


@pytest.fixture(scope="session")
def digits_program(digits_graph):
    """It, compiled for the smallest preset."""
    return compile(digits_graph, MINI)


@pytest.fixture
def board():
    """A function that makes a model of a device; `Info.of`'s arguments may be given."""

    def make(core=None, config=MINI, **info):
        return DeviceModel(Info.of(config, clock_hz=100_000_000, baud=BAUD, **info), core or EmulatedCore(config))

    return make


@pytest.fixture
def opened():
    """A function that makes a `Device` of a model."""

    def make(model):
        return Device(Client(SimulationTransport(model, BAUD)), "the test's board")

    return make


class PtyBoard:
    """A model behind a pseudo-terminal; it hears nothing unless the line is at `speed`, if that is given."""

    def __init__(self, model, speed=None) -> None:
        self.model, self.speed = model, speed
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        self.path = os.ttyname(self.slave)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError):
                ready, _, _ = select.select([self.master], [], [], 0.002)
                data = os.read(self.master, 4096) if ready else b""
                if self.speed is not None and termios.tcgetattr(self.slave)[4] != self.speed:
                    continue
                out = self.model.exchange(data) if self.model else b""
                if out:
                    os.write(self.master, out)

    def unplug(self) -> None:
        """Both ends are gone."""
        self._over.set()
        self._thread.join()
        for end in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(end)


@pytest.fixture
def pty_board():
    """A function that puts a model behind a pseudo-terminal."""
    pytest.importorskip("serial")
    boards = []

    def make(model, speed=None):
        boards.append(PtyBoard(model, speed))
        return boards[-1]

    yield make
    for one in boards:
        one.unplug()
