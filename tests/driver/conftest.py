"""Boards for the driver's tests: the device model behind the emulator, in the process or behind a pseudo-terminal."""

import pytest
from pty_board import PtyBoard, count_idle_time

from onnxhw.cli.common.selftest_network import network
from onnxhw.compiler import compile_graph
from onnxhw.driver.client import Client
from onnxhw.driver.device import Device
from onnxhw.driver.device_model import DeviceModel
from onnxhw.driver.emulated_core import EmulatedCore
from onnxhw.driver.transport import SimulationTransport
from onnxhw.isa.link import Info
from onnxhw.presets import preset

from ..serve.conftest import boards_folder  # noqa: F401, a fixture

MINI = preset("mini")
BAUD = 1_000_000


@pytest.fixture(scope="session")
def selftest_graph():
    """The network of the self-test."""
    return network()


@pytest.fixture(scope="session")
def selftest_program(selftest_graph):
    """It, compiled for the smallest preset."""
    return compile_graph(selftest_graph, MINI)


@pytest.fixture(scope="session")
def digits_graph(digits):
    """The example network."""
    from onnxhw.partition import load

    return load(digits)


@pytest.fixture(scope="session")
def digits_program(digits_graph):
    """It, compiled for the smallest preset."""
    return compile_graph(digits_graph, MINI)


@pytest.fixture
def board():
    """A function that makes a model of a device; `Info.of`'s arguments may be given."""

    def make(core=None, config=MINI, baud=BAUD, **info):
        return DeviceModel(Info.of(config, clock_hz=100_000_000, baud=baud, **info), core or EmulatedCore(config))

    return make


@pytest.fixture
def opened():
    """A function that makes a `Device` of a model."""

    def make(model):
        return Device(Client(SimulationTransport(model, BAUD)), "the test's board")

    return make


@pytest.fixture
def pty_board(monkeypatch):
    """A function that puts a model behind a pseudo-terminal; timeouts there count `PtyBoard.idle`."""
    pytest.importorskip("serial")
    boards = []
    count_idle_time(monkeypatch, boards)

    def make(model, speed=None):
        boards.append(PtyBoard(model, speed))
        return boards[-1]

    yield make
    for one in boards:
        one.unplug()
