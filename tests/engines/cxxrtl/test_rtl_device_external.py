"""External memory behind a simulated device, whose rows are lost within the time of a frame: between runs, while
loading, during runs and behind an abort they are refreshed."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from rtl_line import RtlLine

from onnxhw.config import HwConfig
from onnxhw.driver.client import Client
from onnxhw.driver.link import Request
from onnxhw.driver.transport import SimulationTransport
from onnxhw.emu import run
from onnxhw.engines.cxxrtl.rtl_device import RtlDevice, device_libraries
from onnxhw.external import ULX3S
from onnxhw.isa.external_instructions import Move, code_for
from onnxhw.isa.link import Command
from onnxhw.isa.memory import RUNNING, Control, Space
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.program import DeviceProgram
from onnxhw.program.input_regions import input_stream, latency

pytestmark = [pytest.mark.rtl, pytest.mark.slow, pytest.mark.usefixtures("compiler")]

BAUD = 1_000_000
CLOCK = 8 * BAUD
MEMORY = replace(ULX3S, rows=16, columns=32, refresh=300, power_up=50)
RETENTION = MEMORY.rows * MEMORY.refresh
"""Cycles without refreshes that lose a row: 60 bytes on the line take as long."""
Served = tuple[RtlDevice, Client]


@pytest.fixture(scope="module")
def config(tiny: HwConfig) -> HwConfig:
    return replace(tiny, name="tiny+external", external=MEMORY)


@pytest.fixture
def served(config: HwConfig) -> Iterator[Served]:
    with RtlDevice(device_libraries(config, clock_hz=CLOCK, baud=BAUD), clock_hz=CLOCK, baud=BAUD) as model:
        yield model, Client(SimulationTransport(RtlLine(model, CLOCK), BAUD))


def with_memory(config: HwConfig, program: DeviceProgram) -> DeviceProgram:
    """A program as a configuration with external memory has it."""
    code = code_for(config, program.code)
    return replace(program, config=config, code=code, cycles=timeline(config, code).cycles)


def rest(model: RtlDevice, cycles: int) -> None:
    end = model.cycles + cycles
    while model.cycles < end:
        model.advance(end - model.cycles)


def test_every_word_outlives_loading_runs_and_rests(
    served: Served, config: HwConfig, tiny_program: DeviceProgram
) -> None:
    (model, client), rng = served, np.random.default_rng(1)
    program = with_memory(config, tiny_program)
    words = rng.integers(0, 1 << 32, MEMORY.host_words, dtype=np.uint32)
    client.write(Space.EXTERNAL, 0, words)
    assert np.array_equal(client.read(Space.EXTERNAL, 0, len(words)), words)
    client.load(program)
    for _ in range(3):
        x = {"x": rng.integers(-128, 128, (1, 4, 2, 3)).astype(np.int8)}
        wanted, got = run(program, x), client.run(x)
        assert np.array_equal(got.outputs["y"], wanted.outputs["y"])
        assert (got.cycles, got.latency) == (wanted.cycles, wanted.latency)
        rest(model, 3 * RETENTION)
    assert np.array_equal(client.read(Space.EXTERNAL, 0, len(words)), words)


def test_the_host_has_it_during_a_run_and_behind_an_abort(
    served: Served, config: HwConfig, tiny_program: DeviceProgram
) -> None:
    """The run waits for an instruction that there is not, without a limit; then another one is as ever."""
    (model, client), rng = served, np.random.default_rng(2)
    program = with_memory(config, tiny_program)
    waiting = [replace(program.code["vector"][0], after_array=2)]
    x = {"x": rng.integers(-128, 128, (1, 4, 2, 3)).astype(np.int8)}
    stream = input_stream(program, x)
    begin = [
        Request(Command.WRITE, Space.INPUT, 0, len(stream), stream.astype("<u4").tobytes()),
        Request(Command.RUN, address=3),
    ]
    words = rng.integers(0, 1 << 32, MEMORY.host_words, dtype=np.uint32)
    client.load(replace(program, code={**program.code, "vector": waiting}, cycles=0))
    client.link.perform(begin)
    client.write(Space.EXTERNAL, 0, words)
    assert np.array_equal(client.read(Space.EXTERNAL, 0, len(words)), words)
    rest(model, 3 * RETENTION)
    assert client.control(Control.RUN) & RUNNING
    client.reset()
    assert not client.control(Control.RUN) & RUNNING
    rest(model, 3 * RETENTION)
    assert np.array_equal(client.read(Space.EXTERNAL, 0, len(words)), words)
    client.load(program)
    assert np.array_equal(client.run(x).outputs["y"], run(program, x).outputs["y"])
    assert np.array_equal(client.read(Space.EXTERNAL, 0, len(words)), words)


def test_the_host_has_it_during_a_run_with_moves_and_costs_no_cycle(
    served: Served, config: HwConfig, tiny_program: DeviceProgram
) -> None:
    """The inputs come through the input port, with RUN before them, and the start sequence behind them. The run soon
    says that it has done with them."""
    (model, client), rng = served, np.random.default_rng(3)
    half = MEMORY.host_words // 2
    plain = with_memory(config, tiny_program)
    moves = [
        Move(space=Space.ACT, chip=30, store=store, word_n=2, run_n=half // 4, e_run=4, block_n=80, after_move=number)
        for number, store in enumerate((0, 1, 0, 1))
    ]
    code = {**plain.code, Unit.MOVE: moves}
    program = replace(plain, code=code, cycles=timeline(config, code).cycles, input_free=(1, 0))
    words = rng.integers(0, 1 << 32, MEMORY.host_words, dtype=np.uint32)
    client.write(Space.EXTERNAL, 0, words)
    client.load(program)
    stream = input_stream(plain, {"x": np.zeros((1, 4, 2, 3), np.int8)}).astype("<u4")
    for _ in range(2):
        begin = Request(Command.WRITE, Space.INPUT, 0, len(stream), stream.tobytes())
        client.link.perform([Request(Command.RUN, address=5), begin])
        assert client.control(Control.RUN) & RUNNING
        changed = rng.integers(0, 1 << 32, half, dtype=np.uint32)
        client.write(Space.EXTERNAL_INPUT, half, changed)
        assert client.control(Control.RUN) & RUNNING
        while client.control(Control.RUN) & RUNNING:
            rest(model, 1000)
        assert client.control(Control.CYCLES) == program.cycles
        assert client.control(Control.LATENCY) == latency(program)
        assert np.array_equal(client.read(Space.EXTERNAL, half, half), changed)
