"""Linked programs on the model of the device: the image of external memory, what is there already, what is lost."""

from dataclasses import replace

import numpy as np
import pytest
from heuristics import Net
from link_parts import Line
from linked_program import BAUD, CLOCK, LINKED, is_right, program, sample

from onnxhw.compiler import compile_graph
from onnxhw.driver.client import Client
from onnxhw.driver.device import Device
from onnxhw.driver.device_model import DeviceModel
from onnxhw.driver.emulated_core import EmulatedCore
from onnxhw.driver.link import Request
from onnxhw.driver.transport import SimulationTransport
from onnxhw.emu.emulator import Emulator
from onnxhw.errors import LinkError
from onnxhw.isa.link import IMAGE, LOADED, REGISTERS, Command, Info
from onnxhw.isa.memory import Space
from onnxhw.isa.units import Unit
from onnxhw.program.input_regions import latency
from onnxhw.program.traffic import core_bytes, image_bytes, load_bytes


def make() -> DeviceModel:
    return DeviceModel(Info.of(LINKED, clock_hz=CLOCK, baud=BAUD), EmulatedCore(LINKED))


@pytest.fixture
def device() -> DeviceModel:
    return make()


def connect(device: DeviceModel) -> Client:
    return Client(SimulationTransport(Line(device), BAUD))


def flags(client: Client) -> int:
    return int(client.read(REGISTERS, 0, 1)[0]) & (LOADED | IMAGE)


def test_results_cycles_latency_and_counters_of_a_batch(device):
    """Those of the emulator that runs the program from its lists of instructions, not from memories."""
    client, one = connect(device), program()
    moved = {Space(each.space) for each in one.code[Unit.MOVE]}
    assert {Space.WEIGHT, Space.ACT, Space.ARRAY_UCODE, Space.VECTOR_UCODE, Space.LOAD_UCODE} <= moved
    assert len(one.params)  # they stay on chip, and come with the program
    client.load(one)
    emulator = Emulator(one)
    for seed, result in enumerate(client.run_all([sample(seed) for seed in range(3)])):
        wanted = emulator.run(sample(seed))
        assert is_right(result.outputs, seed)
        assert (one.cycles, latency(one)) == (wanted.cycles, wanted.latency)
        found = result.cycles, result.latency, result.counters
        assert found == ((wanted.cycles, None, {}) if seed else (wanted.cycles, wanted.latency, wanted.counters))
        assert wanted.counters["move_done"] == len(one.code[Unit.MOVE])
    seen = client.snapshot()
    assert seen.counters == wanted.counters
    assert seen.done == seen.counts == tuple(len(one.code[unit]) for unit in Unit)


def test_what_is_there_is_not_sent_again(device):
    one, client = program(), connect(device)
    assert client.to_load(one) == load_bytes(one) == image_bytes(one) + core_bytes(one)
    client.load(one)
    late = connect(device)
    with Device(late, "again") as again:
        again.load(one)
        assert late.counters.sent < 200, "a handshake and what the device says it holds"
        assert is_right(again.run_int8(sample(4)).outputs, 4)
    # The image outlives the rest of the program.
    client = connect(device)
    client.reset()
    assert (flags(client), client.holds(one), client.to_load(one)) == (IMAGE, False, core_bytes(one))
    before = client.counters.sent
    client.load(one)
    assert client.counters.sent - before < core_bytes(one) + 200 < load_bytes(one)
    assert is_right(client.run(sample(5)).outputs, 5)


def test_a_program_that_differs_in_its_image_alone_is_another(device):
    one, client = program(), connect(device)
    client.load(one)
    external = one.external.copy()
    external[-1] ^= 1
    other = replace(one, external=external)
    assert not client.holds(other)
    assert client.to_load(other) == load_bytes(other)
    with pytest.raises(LinkError, match=r"E9121 .*does not hold this program"):
        client.run(sample(0), other)
    assert client.holds(one), "nothing was written"


def test_a_write_to_external_memory_forgets_the_image(device):
    """By whatever host: it may be the self-test."""
    one, client = program(), connect(device)
    client.load(one)
    connect(device).write(Space.EXTERNAL, len(one.external) + 8, [1])
    client = connect(device)
    assert flags(client) == 0
    with pytest.raises(LinkError, match=r"E9121 .*does not hold this program"):
        client.run(sample(0), one)


def test_a_load_that_ends_anywhere_leaves_nothing_that_runs():
    """The line dies, or the host, at any of its bytes; what comes after loads the rest and runs right."""
    whole, sent = Line(make()), bytearray()
    whole.there = lambda data: (sent.extend(data), data)[1]
    one = program()
    Client(SimulationTransport(whole, BAUD)).load(one)
    found = set()
    # Without the last delimiter it is complete: the next session sends one.
    for cut in [*range(0, len(sent), 211), *range(len(sent) - 4, len(sent) - 1)]:
        device = make()
        device.exchange(bytes(sent[:cut]))
        client = connect(device)
        assert not client.holds(one)
        with pytest.raises(LinkError, match="E9121"):
            client.run(sample(0), one)
        with pytest.raises(LinkError, match=r"E9121 .*no complete program"):
            client.link.perform([Request(Command.RUN, count=1)])
        assert device.core.runs == 0
        found.add((flags(client), client.to_load(one)))
        if cut % 5 == 0:
            client.load(one)
            assert is_right(client.run(sample(1)).outputs, 1)
    assert found == {(0, load_bytes(one)), (IMAGE, core_bytes(one))}


def test_a_device_that_was_restarted_has_nothing(device):
    """What its memory may still hold does not count: refreshes have stopped."""
    one, line = program(), Line(device)
    client = Client(SimulationTransport(line, BAUD))
    client.load(one)
    line.device = make()
    with pytest.raises(LinkError, match="E9120"):
        client.run(sample(0))
    with pytest.raises(LinkError, match=r"E9121 .*does not hold this program"):
        client.run(sample(0))
    assert client.to_load(one) == load_bytes(one)
    client.load(one)
    assert is_right(client.run(sample(0)).outputs, 0)


def test_a_run_that_the_watchdog_stops_leaves_no_program(device):
    """Moves have changed the memories that hold it; the image is as it was."""
    one, client = program(), connect(device)
    client.load(replace(one, cycles=one.cycles - 1))
    with pytest.raises(LinkError, match=rf"E9108 .*after {one.cycles - 1} cycles.*depthwise, vector, move"):
        client.run(sample(0))
    assert flags(client) == IMAGE
    before = client.counters.sent
    client.load(one)
    assert client.counters.sent - before < core_bytes(one) + 200
    assert is_right(client.run(sample(0)).outputs, 0)


def test_microcode_that_the_host_changes_in_external_memory_is_seen(device):
    """The model decodes what is there, not what was."""
    one, client = program(), connect(device)
    client.load(one)
    client.run(sample(0))
    (move, *_) = (each for each in one.code[Unit.MOVE] if each.space == int(Unit.VECTOR.microcode))
    device.core.write(Space.EXTERNAL, move.external, [0] * move.word_n)
    with pytest.raises(LinkError, match="E9108"):
        client.run(sample(0))
    client.link.perform([Request(Command.RESET, address=3)])
    client.load(one)
    assert is_right(client.run(sample(0)).outputs, 0)


def test_a_program_without_moves_beside_an_image(device):
    """It is loaded and runs as ever, and the image stays for the one that needs it."""
    net = Net(4, 3)
    small = net.graph("small", net.conv("x", 4, 1))
    client, one, plain = connect(device), program(), compile_graph(small, LINKED)
    client.load(one)
    client.load(plain)
    assert (client.holds(plain), client.holds(one), client.to_load(one)) == (True, False, core_bytes(one))
    x = {"x": np.arange(36, dtype=np.int8).reshape(1, 4, 3, 3)}
    made, wanted = client.run(x), Emulator(plain).run(x)
    assert all(np.array_equal(values, wanted.outputs[name]) for name, values in made.outputs.items())
    assert (made.cycles, made.latency, made.counters) == (wanted.cycles, wanted.latency, wanted.counters)
    client.load(one)
    assert is_right(client.run(sample(0)).outputs, 0)
