"""The complete device through its serial pins: the real core, the real client, a hand-written program."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.sim import Simulator
from link_bench import INPUT_WORDS, SPAN, Bench, MemoryCore
from pin_line import PinLine

from onnxhw.config import HwConfig
from onnxhw.driver.client import Client
from onnxhw.driver.inferences import Inferences
from onnxhw.driver.link import Request
from onnxhw.driver.transport import SimulationTransport
from onnxhw.emu import run
from onnxhw.engines.cxxrtl.build import build, elaborate
from onnxhw.engines.cxxrtl.design import Design
from onnxhw.errors import LinkError
from onnxhw.fixed import Scale
from onnxhw.ir.graph import Port
from onnxhw.isa import Array, Load, Vector, VectorOp, input_port
from onnxhw.isa.link import COMPLETE, LOADED, REGISTERS, RESULT_WORDS, Command, Info
from onnxhw.isa.memory import ENDED, Control, Space
from onnxhw.isa.timeline import timeline
from onnxhw.program import DeviceProgram, Entry, Place, from_host
from onnxhw.program.input_regions import input_regions, input_stream, latency
from onnxhw.program.storage import PackedInput
from onnxhw.rtl.autorun import Standalone
from onnxhw.rtl.top import LinkedCore

CLOCK, BAUD = 8_000_000, 1_000_000
CONFIG = HwConfig("tiny", rows=4, cols=4, word=4, lanes=2, act_banks=2, act_depth=32, weight_depth=16, acc_depth=16,
                  param_depth=16, tables=1, load_ucode=16, array_ucode=32, vector_ucode=64)  # fmt: skip


class SimulatedPins:
    """Pins of a component with rx and tx, in pysim."""

    def __init__(self, device) -> None:
        self.device, self.tx = device, 1
        self.sim = Simulator(device)
        self.sim.add_clock(1 / CLOCK)
        self.sim.add_testbench(self._look, background=True)
        self.cycles = 0
        self.sim.run_until(0.1 / CLOCK)

    async def _look(self, ctx) -> None:
        self.context = ctx
        await ctx.tick()

    def step(self, rx: int) -> int:
        self.context.set(self.device.rx, rx)
        self.cycles += 1
        self.sim.run_until((self.cycles + 0.1) / CLOCK)
        return self.context.get(self.device.tx)


class CompiledPins:
    """The same, compiled."""

    def __init__(self, device) -> None:
        text = elaborate(device)
        self.design, self.tx = Design(build(lambda: text, label="linked core").path), 1

    def step(self, rx: int) -> int:
        self.design.set("rx", rx)
        self.design.step()
        return self.design.get("tx")


def connect(device, kind=SimulatedPins):
    pins = kind(device)
    return pins, Client(SimulationTransport(PinLine(pins, clock_hz=CLOCK, baud=BAUD), BAUD))


def small_program(use_table):
    """1x1 convolution of (1, 4, 2, 3) with per-channel parameters, perhaps a table."""
    rng = np.random.default_rng(3)
    places = {"x": Place(0, 0, 3, (1, 4, 2, 3)), "y": Place(40, 0, 3, (1, 4, 2, 3))}
    image = {"oh_n": 2, "ow_n": 3}
    code = {
        "load": [Load(tiles=1)],
        "array": [Array(**image, a_oh=3, a_ow=1, in_h=2, in_w=3)],
        "vector": [Vector(after_array=1, op=VectorOp.DRAIN, per_channel=1, exact=1, a_oh=3, a_ow=1, **image,
                          use_table=int(use_table), o_base=40, o_oh=3, o_ow=1, groups=2, zy=3)],
    }  # fmt: skip
    params = [Scale(1 << 24, 31, bias).pack() for bias in (0, -700, 5000, 12)]
    port = {"shape": (1, 4, 2, 3), "dtype": "int8"}
    return DeviceProgram(
        config=CONFIG, model="small", code=code,
        weights=rng.integers(0, 256, (4, 4)).astype(np.uint8), params=np.array(params, np.uint64).reshape(2, 2),
        tables=rng.integers(-128, 128, (int(use_table), 256)).astype(np.int8),
        tensors={name: Entry(name, place, 1.0, 0) for name, place in places.items()},
        inputs=[Port("input", tensor="x", **port)], outputs=[Port("output", tensor="y", **port)],
        layers=[], cycles=timeline(CONFIG, code).cycles, macs=96,
    )  # fmt: skip


def check_runs(client, program, inferences):
    """Outputs, cycles and counters equal the emulator's."""
    rng = np.random.default_rng(4)
    for _ in range(inferences):
        x = rng.integers(-128, 128, (1, 4, 2, 3)).astype(np.int8)
        wanted, got = run(program, {"x": x}), client.run({"x": x})
        assert np.array_equal(got.outputs["y"], wanted.outputs["y"])
        assert got.cycles == wanted.cycles == program.cycles
        assert got.counters == wanted.counters
        assert got.latency == latency(program)
        assert len(np.unique(wanted.outputs["y"])) > 5
    assert client.counters.retries == 0


@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
def test_programs_through_the_loader_equal_the_emulator():
    """Two programs one after the other, without the serial line, which takes most of the cycles."""
    bench = Bench(Info.of(CONFIG, clock_hz=CLOCK, baud=BAUD), CONFIG)
    client = Client(SimulationTransport(bench.line, BAUD))
    for use_table in (True, False):
        program = small_program(use_table)
        client.load(program)
        check_runs(client, program, 2)


@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
def test_inputs_that_a_killed_host_has_left_are_forgotten():
    """It has sent the next ones during a run, and not their RUN."""
    bench = Bench(Info.of(CONFIG, clock_hz=CLOCK, baud=BAUD), CONFIG)
    first, program = Client(SimulationTransport(bench.line, BAUD)), replace(small_program(False), input_free=(1, 1))
    first.load(program)
    killed, left = Inferences(program, CLOCK, 5), np.full((1, 4, 2, 3), 77, np.int8)
    first.link.perform([killed.start(0), *killed.load({"x": left}), *killed.load({"x": left})])
    assert first.read(REGISTERS, 0, 1) == [LOADED | COMPLETE]
    second = Client(SimulationTransport(bench.line, BAUD))
    second.link.session = first.link.session % 255 + 1
    assert second.holds(program)
    assert second.read(REGISTERS, 0, 1) == [LOADED], "they are of another session"
    second.run_all([], program)
    check_runs(second, program, 2)


LAYOUTS = [
    Entry("x", Place(0, 0, 3, (1, 4, 2, 3)), 1.0, 0),
    Entry("x", Place(0, 8, 4, (1, 7, 2, 3)), 1.0, 0),
    Entry("x", Place(0, 20, 20, (1, 4, 1, 20)), 1.0, -3, storage=PackedInput(4, 20, 9, 25, 3), model=(1, 3, 2, 5)),
]


@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("entry", LAYOUTS, ids=["words", "pixels", "packed"])
def test_latency_is_predicted_from_the_last_frame_on(entry):
    """Whether the last frame brings all words of the input, half of them or one; and memory is what the table says."""
    bench = Bench(Info.of(CONFIG, clock_hz=CLOCK, baud=BAUD), CONFIG)
    client, program = Client(SimulationTransport(bench.line, BAUD)), small_program(False)
    program.tensors["x"] = entry
    client.load(program)
    values = np.random.default_rng(6).integers(-128, 128, entry.shape).astype(np.int8)
    data, found = input_stream(program, {"x": values}).astype("<u4").tobytes(), input_regions(program)
    for after in (0, len(data) // 8, len(data) // 4 - 1):
        parts = [(at, data[4 * at : 4 * end]) for at, end in ((0, after), (after, len(data) // 4)) if end > at]
        writes = [Request(Command.WRITE, Space.INPUT, at, len(part) // 4, part) for at, part in parts]
        end = Request(Command.POLL, address=1, count=RESULT_WORDS, wait=0.01)
        *_, answer = client.link.perform([Request(Command.RUN, address=5), *writes, end])
        words = np.frombuffer(answer.payload, "<u4")
        assert (words[Control.RUN], words[Control.CYCLES]) == (ENDED, program.cycles)
        assert words[Control.LATENCY] == input_port.latency(found, CONFIG.word, program.cycles, after)
    place = entry.place
    image = from_host(client.read(Space.ACT, 0, 40), 4)[:, :, None].view(np.int8)
    assert np.array_equal(place.unpack(image[place.addresses(4)][..., 0], 4), entry.store(values))


@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
@pytest.mark.slow
def test_a_program_through_the_serial_pins_equals_the_emulator():
    program = small_program(False)
    _, client = connect(LinkedCore(CONFIG, clock_hz=CLOCK, baud=BAUD), CompiledPins)
    client.load(program)
    check_runs(client, program, 1)


@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
def test_another_configuration_is_refused_by_name():
    """The device's own description says what the board holds."""
    bench = Bench(Info.of(CONFIG, clock_hz=CLOCK, baud=BAUD), CONFIG)
    client = Client(SimulationTransport(bench.line, BAUD))
    client.check(CONFIG)
    # The same program for another configuration is refused, by name.
    other = replace(CONFIG, name="other", tables=2)
    with pytest.raises(LinkError, match=r"E9107 .*is for configuration 'tiny' .*needs 'other'"):
        client.check(other)


def test_commands_through_the_serial_pins():
    """The line alone, before a core made of memory."""
    core = MemoryCore()
    pins, client = connect(LinkedCore(CONFIG, clock_hz=CLOCK, baud=BAUD, core=core))
    words = np.array([0, 0xFFFFFFFF, 0x00FF00FF, 0x12345678], np.uint32)
    client.write(Space.ACT, 4, words)
    assert np.array_equal(client.read(Space.ACT, 4, 4), words)
    assert client.head().fingerprint == CONFIG.fingerprint
    assert client.counters.retries == 0
    # Half a frame and a break: the next command is answered at the first attempt.
    client.transport.write(b"\x05\x01\x02")
    for _ in range(300):
        pins.step(0)
    for _ in range(20):
        pins.step(1)
    assert np.array_equal(client.read(Space.ACT, 5, 1), words[1:2])
    assert client.counters.timeouts == 0


def test_standalone_starts_by_button_and_by_host():
    core = MemoryCore(run_cycles=50)
    standalone = Standalone((3, 4, 0, 5), budget=99, table=(7, 8, 9))
    device = LinkedCore(CONFIG, clock_hz=CLOCK, baud=BAUD, core=core, standalone=standalone)
    pins, client = connect(device)
    assert client.head().standalone
    assert client.read(Space.CONTROL, Control.LOAD_COUNT, 5).tolist() == [3, 4, 0, 5, 99]
    assert [pins.context.get(core.storage[Space.INPUT_TABLE * SPAN + at]) for at in range(4)] == [7, 8, 9, 0]
    assert pins.context.get(core.runs) == 0
    pins.context.set(device.start, 1)
    pins.step(1)
    pins.context.set(device.start, 0)
    for _ in range(100):
        pins.step(1)
    assert pins.context.get(core.runs) == 1
    for _ in range(100):  # a press during a run is forgotten
        pins.context.set(device.start, pins.context.get(core.running))
        pins.step(1)
    assert pins.context.get(core.runs) == 1
    inputs = Request(Command.WRITE, Space.INPUT, 0, INPUT_WORDS, bytes(4 * INPUT_WORDS))
    client.link.perform([Request(Command.RUN, address=1), inputs])
    assert pins.context.get(core.runs) == 2
    # Once a host has begun to write another program the button starts nothing.
    client.write(Space.TABLE, 0, [1])
    pins.context.set(device.start, 1)
    for _ in range(100):
        pins.step(1)
    assert pins.context.get(core.runs) == 2
    pins.context.set(device.start, 0)
    assert client.head().standalone


def test_standalone_can_start_at_reset():
    core = MemoryCore(run_cycles=50)
    standalone = Standalone((1, 0, 0, 0), budget=0, at_reset=True)
    pins = SimulatedPins(LinkedCore(CONFIG, clock_hz=CLOCK, baud=BAUD, core=core, standalone=standalone))
    for _ in range(1000):
        pins.step(1)
    assert pins.context.get(core.runs) == 1
