"""Bytes on the line, as counted from a program, are those that the link sends and receives."""

from dataclasses import replace

import numpy as np
import pytest

from onnxhw.compiler import compile_graph
from onnxhw.driver.client import Client
from onnxhw.driver.device_model import PORTION, DeviceModel
from onnxhw.driver.emulated_core import EmulatedCore
from onnxhw.driver.transport import SimulationTransport
from onnxhw.isa.link import MAX_WORDS, Info
from onnxhw.presets import preset
from onnxhw.program.traffic import Rates, core_bytes, frames_bytes, image_bytes, load_bytes, traffic_of

BAUD, CLOCK = 3_000_000, 50_000_000


@pytest.mark.parametrize("words", [0, 1, MAX_WORDS, MAX_WORDS + 1, 5 * MAX_WORDS])
def test_frames_are_counted_as_they_are_encoded(words: int) -> None:
    from onnxhw.driver.framing import Frame
    from onnxhw.isa.link import Header

    sizes = [min(MAX_WORDS, words - at) for at in range(0, words, MAX_WORDS)] or [0]
    frames = [Frame(Header(0, 0, 0, 0, size), bytes(4 * size)) for size in sizes]
    assert frames_bytes(words) == sum(len(frame.encode()) for frame in frames)


@pytest.mark.parametrize("unaligned", [1, 0])
def test_bytes_of_an_inference_and_of_loading(digits_graph, unaligned: int) -> None:
    """Zeros all over, so that no frame needs a second byte of stuffing; headers and results have at most one run. The
    input lies as bytes in a row, or pixel by pixel."""
    program = compile_graph(digits_graph, replace(preset("mini"), unaligned=unaligned))
    line = DeviceModel(Info.of(program.config, clock_hz=CLOCK, baud=BAUD), EmulatedCore(program.config))
    client = Client(SimulationTransport(line, BAUD))
    client.head()
    before = client.counters.sent
    client.load(program)
    frames = load_bytes(program) // (4 * MAX_WORDS) + 20
    assert load_bytes(program) <= client.counters.sent - before <= load_bytes(program) + 2 * frames
    inputs = {port.tensor: np.zeros(program.tensors[port.tensor].shape, np.int8) for port in program.inputs}
    client.run(inputs)
    sent, received, start = client.counters.sent, client.counters.received, line.seconds()
    client.run(inputs)
    counted = traffic_of(program)
    assert (client.counters.sent - sent, client.counters.received - received) == (counted.sent, counted.received)
    rates = Rates(BAUD, CLOCK)
    waited, predicted = 1e3 * (line.seconds() - start), rates.line_ms(counted.alone)
    # On the simulated clock, whose core takes no time, and on which the host hears of answers in portions.
    assert predicted <= waited <= predicted + rates.line_ms(PORTION)
    received = client.counters.received
    client.run_all([inputs] * 3)
    assert client.counters.received - received == counted.received + 2 * counted.streamed


def test_bytes_of_a_linked_program() -> None:
    """Its image has a COMMIT of its own; inputs and outputs travel as whole words of external memory."""
    from linked_program import LINKED, program, sample

    one = program()
    line = DeviceModel(Info.of(LINKED, clock_hz=CLOCK, baud=BAUD), EmulatedCore(LINKED))
    client = Client(SimulationTransport(line, BAUD))
    assert (client.to_load(one), load_bytes(one)) == (load_bytes(one), image_bytes(one) + core_bytes(one))
    before = client.counters.sent
    client.load(one)
    frames = load_bytes(one) // (4 * MAX_WORDS) + 20
    assert load_bytes(one) <= client.counters.sent - before <= load_bytes(one) + 2 * frames
    inputs = {name: np.zeros_like(values) for name, values in sample(0).items()}
    client.run(inputs)
    before, received = client.counters.sent, client.counters.received
    client.run(inputs)
    counted = traffic_of(one)
    assert client.counters.sent - before == counted.sent
    assert counted.received <= client.counters.received - received <= counted.received + 4, "long answers without zeros"
    received = client.counters.received
    client.run_all([inputs] * 3)
    whole = counted.received + 2 * counted.streamed
    assert whole <= client.counters.received - received <= whole + 3 * 4
