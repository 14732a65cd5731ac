"""A device with a USB link behind a USB host that drives and samples D+ and D-, in every tick of the device's clock."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from usb_host import bus as usb_bus
from usb_host.bus import BULK, ProtocolError, UsbBus, noise
from usb_host.host import RESET, StalledError
from usb_host.line import UsbLine
from usb_host.model import IDS, UsbModel, usb_libraries
from usb_host.packets import Pid

from onnxhw import golden
from onnxhw.compiler import compile_graph
from onnxhw.driver.client import Client
from onnxhw.driver.transport import SimulationTransport
from onnxhw.engines.cxxrtl.rtl_device import Libraries
from onnxhw.errors import LinkError
from onnxhw.ir.graph import Graph
from onnxhw.isa.link import USB_BAUD
from onnxhw.isa.memory import Space
from onnxhw.partition import load
from onnxhw.presets import preset
from onnxhw.program import DeviceProgram
from onnxhw.serve.board import SimulatedBoard

pytestmark = [pytest.mark.rtl, pytest.mark.slow]
pytest.importorskip("luna", reason="the gateware of the USB link needs luna-usb")

CLOCK = 12_000_000
"""The core's: every cycle costs time."""
NETWORK = Path(__file__).resolve().parents[3] / "examples" / "digits.onnx"
CONFIG = preset("mini")


@pytest.fixture(scope="module")
def libraries() -> Libraries:
    return usb_libraries(CONFIG, clock_hz=CLOCK)


@pytest.fixture
def model(libraries: Libraries) -> Iterator[UsbModel]:
    with UsbModel(libraries, clock_hz=CLOCK) as made:
        yield made


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load(NETWORK)


@pytest.fixture(scope="module")
def program(graph: Graph) -> DeviceProgram:
    return compile_graph(graph, CONFIG)


def inputs(program: DeviceProgram, count: int, seed: int = 0) -> list[dict[str, np.ndarray]]:
    rng, name = np.random.default_rng(seed), program.inputs[0].tensor
    return [{name: rng.integers(-128, 128, program.tensors[name].shape).astype(np.int8)} for _ in range(count)]


def client_of(line: UsbLine) -> Client:
    return Client(SimulationTransport(line, USB_BAUD))


def test_a_host_finds_a_serial_port(model: UsbModel) -> None:
    """Enumerated at the times of USB 2.0, debouncing but for a hundredth; every answer within its time."""
    line = UsbLine(model, reset=RESET)
    port = line.port
    assert (port.vendor, port.product) == IDS
    assert (port.manufacturer, port.name) == ("onnxhw", "onnxhw")
    counters = line.bus.counters
    assert counters.errors == counters.naks == 0
    assert counters.frames >= 20
    low, high = counters.answer
    assert usb_bus.ANSWER[0] <= low <= high <= 12.5
    # A request that no serial port knows is refused, and the next one is answered.
    with pytest.raises(StalledError):
        line.host.control(0xC0, 0x55, length=4)
    with pytest.raises(StalledError):
        line.host.descriptor(3, 9, length=255, language=0x0409)
    assert line.host.descriptor(1, length=18)[8:12] == bytes([0x09, 0x12, 1, 0])


def test_inferences_equal_golden_and_the_serial_line(model: UsbModel, graph: Graph, program: DeviceProgram) -> None:
    """The same program and inputs through the pins of both links: outputs, cycles and counters are equal."""
    batch = inputs(program, 3)
    usb = client_of(UsbLine(model))
    assert usb.head().usb
    with SimulatedBoard(CONFIG) as board:
        serial = Client(SimulationTransport(board, board.baud))
        assert not serial.head().usb
        found = []
        for client in (usb, serial):
            client.load(program)
            found.append(client.run_all(batch))
            assert client.counters.retries == client.counters.timeouts == 0
    for x, over_usb, over_serial in zip(batch, *found, strict=True):
        wanted = golden.run(graph, x)
        assert over_usb.outputs.keys() == over_serial.outputs.keys() != set()
        for name, tensor in over_usb.outputs.items():
            assert np.array_equal(tensor, wanted[name])
            assert np.array_equal(tensor, over_serial.outputs[name])
        assert over_usb.cycles == over_serial.cycles == program.cycles
        assert over_usb.counters == over_serial.counters


def test_a_frame_takes_what_usb_allows(model: UsbModel) -> None:
    """Both directions together at most 19 packets of 64 bytes in a millisecond; a tensor gets most of them."""
    line = UsbLine(model)
    client = client_of(line)
    words = np.random.default_rng(1).integers(0, 1 << 32, 4096, dtype=np.uint32)
    client.write(Space.ACT, 0, words[:1])
    start, frames = line.seconds(), line.bus.counters.frames
    client.write(Space.ACT, 0, words)
    wrote = line.seconds() - start
    assert np.array_equal(client.read(Space.ACT, 0, len(words)), words)
    both = line.seconds() - start
    counters = line.bus.counters
    assert 15 <= counters.most_bulk <= BULK
    assert abs((counters.frames - frames) - 1e3 * both) <= 1
    # 4 * 4096 bytes with their frames and acknowledgements, of 19 * 64 in a millisecond.
    assert 0.75 <= 4 * len(words) / wrote / (BULK * 64_000) <= 1
    assert 0.75 <= 4 * len(words) / (both - wrote) / (BULK * 64_000) <= 1


@pytest.mark.parametrize("seed", range(3))
def test_unplugged_at_any_time(model: UsbModel, graph: Graph, program: DeviceProgram, seed: int) -> None:
    """The cable is pulled off while a program is loaded and run, in the middle of whatever there is: E9102. Once it is
    back, a new client gets right results of the device, which was not reset."""
    rng = random.Random(seed)
    line = UsbLine(model)
    batch = inputs(program, 2, seed)
    for _ in range(3):
        line.unplug(rng.uniform(0, 0.008))
        with pytest.raises(LinkError, match="E9102"):
            while True:
                broken = client_of(line)
                broken.load(program)
                broken.run_all(batch)
        with pytest.raises(LinkError, match="E9102"):
            line.exchange(b"\0")
        line.replug()
        client = client_of(line)
        if not client.holds(program):
            client.load(program)
        for result, x in zip(client.run_all(batch, program), batch, strict=True):
            wanted = golden.run(graph, x)
            assert all(np.array_equal(tensor, wanted[name]) for name, tensor in result.outputs.items())
        assert client.counters.retries == 0


def test_unplugged_while_it_is_enumerated(model: UsbModel) -> None:
    """A control transfer that was cut off is forgotten: the next host finds the same port."""
    line = UsbLine(model)
    wanted, start = line.port, line.seconds()
    line.replug()
    took = line.seconds() - start
    rng = random.Random(7)
    for _ in range(8):
        line.unplug(rng.uniform(0.3, 1) * took)
        with pytest.raises(LinkError, match="E9102"):
            line.replug_within()
        line.replug()
        assert line.port == wanted


def test_a_request_ends_the_one_before(model: UsbModel) -> None:
    """A host that gives up in the middle of a request and begins another: SETUP is always taken (8.5.3)."""
    line = UsbLine(model)
    host, bus = line.host, line.bus
    whole = host.descriptor(2, length=255)
    for request in (b"\x80\x06\x00\x02\x00\x00\xff\x00", b"\x00\x09\x01\x00\x00\x00\x00\x00",
    b"\x80\x08\0\0\0\0\x01\0"):
        for packets in range(3):
            assert bus.send(host._address, 0, Pid.SETUP, 0, request) is Pid.ACK
            for _ in range(packets if request[0] & 0x80 else 0):
                bus.receive(host._address, 0)
            assert host.descriptor(2, length=255) == whole
    assert host.control(0x80, 8, length=1) == b"\x01"


@pytest.mark.parametrize("seed", [0])
def test_a_bad_cable_changes_no_result(libraries: Libraries, graph: Graph, program: DeviceProgram, seed: int) -> None:
    """Packets of both sides damaged or cut off: the CRCs and the data toggles see to it that each arrives once."""
    with UsbModel(libraries, clock_hz=CLOCK) as model:
        bus = UsbBus(model)
        line = UsbLine(model, bus)
        client = client_of(line)
        bus.damage = noise(seed, 0.03)
        client.load(program)
        batch = inputs(program, 12, seed)
        for result, x in zip(client.run_all(batch), batch, strict=True):
            wanted = golden.run(graph, x)
            assert all(np.array_equal(tensor, wanted[name]) for name, tensor in result.outputs.items())
        assert bus.counters.faults > 20
        assert bus.counters.errors > 10
        assert client.counters.retries == 0


def test_a_host_that_does_not_read_loses_nothing(model: UsbModel) -> None:
    """Its answers wait in the device; that the client asks again meanwhile changes nothing."""
    line = UsbLine(model)
    client = client_of(line)
    words = np.arange(200, dtype=np.uint32)
    client.write(Space.ACT, 0, words)
    read, host = line.host.read, line.host
    quiet = line.seconds() + 0.005

    def late() -> bytes:
        if line.seconds() > quiet:
            return read()
        line.bus.idle(0.0005)
        return b""

    host.read = late  # type: ignore[method-assign]
    assert np.array_equal(client.read(Space.ACT, 0, 200), words)
    assert client.counters.timeouts > 0
    assert np.array_equal(client.read(Space.ACT, 100, 100), words[100:])


def test_the_model_refuses_a_late_answer(model: UsbModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usb_bus, "ANSWER", (2.0, 6.5))
    with pytest.raises(ProtocolError, match="an answer after"):
        UsbLine(model)
