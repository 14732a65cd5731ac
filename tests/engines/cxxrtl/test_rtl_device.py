"""The device in two designs, core and what is around it, against the whole one: pin by pin, cycle by cycle."""

import numpy as np
import pytest

from onnxhw.config import HwConfig
from onnxhw.driver.client import Client
from onnxhw.driver.transport import SimulationTransport
from onnxhw.emu import run
from onnxhw.engines.cxxrtl.build import build, elaborate
from onnxhw.engines.cxxrtl.design import Design
from onnxhw.engines.cxxrtl.rtl_device import INPUTS, OUTPUTS, WIDTHS, RtlDevice, device_libraries
from onnxhw.program import DeviceProgram
from onnxhw.rtl.core import Core
from onnxhw.rtl.top import LinkedCore

pytestmark = [pytest.mark.rtl, pytest.mark.slow, pytest.mark.usefixtures("compiler")]

BAUD = 1_000_000
CLOCK = 8 * BAUD


class Recorder:
    """A `ByteLine` that keeps what the pins did in every cycle."""

    def __init__(self, model: RtlDevice) -> None:
        self.model, self.trace = model, bytearray()

    def exchange(self, data: bytes) -> bytes:
        taken, received = self.model.advance(400, data, trace=self.trace)
        data = data[taken:]
        while data:
            taken, more = self.model.advance(8000, data, trace=self.trace)
            data, received = data[taken:], received + more
        return received

    def seconds(self) -> float:
        return self.model.cycles / CLOCK


def test_the_ports_are_those_of_the_core(tiny: HwConfig) -> None:
    core = Core(tiny)
    core._MustUse__silence = True
    assert {name: member.shape for name, member in core.signature.members.items()} == WIDTHS
    assert {*INPUTS, *OUTPUTS} == set(WIDTHS)


def test_two_designs_in_step_are_the_device(tiny: HwConfig, tiny_program: DeviceProgram) -> None:
    """A session with a program, inferences, and rests between them, replayed at the pins of the whole device."""
    rng = np.random.default_rng(7)
    with RtlDevice(device_libraries(tiny, clock_hz=CLOCK, baud=BAUD), clock_hz=CLOCK, baud=BAUD) as model:
        line = Recorder(model)
        client = Client(SimulationTransport(line, BAUD))
        client.load(tiny_program)
        for _ in range(3):
            x = {"x": rng.integers(-128, 128, (1, 4, 2, 3)).astype(np.int8)}
            wanted, got = run(tiny_program, x), client.run(x)
            assert np.array_equal(got.outputs["y"], wanted.outputs["y"])
            assert got.cycles == wanted.cycles
            model.advance(3000, trace=line.trace)
        assert model.slept > model.cycles // 2, "the core sleeps while only the line works"
        assert model.framing_errors == 0
        cycles = model.cycles
    assert len(line.trace) == cycles

    whole = build(lambda: elaborate(LinkedCore(tiny, clock_hz=CLOCK, baud=BAUD)), label="device tiny, whole")
    with Design(whole.path) as device:
        differ = []
        for cycle, pins in enumerate(line.trace):
            device.set("rx", pins >> 1)
            if device.get("tx") != pins & 1:
                differ.append(cycle)
            device.step()
    assert differ == []
    levels = np.frombuffer(bytes(line.trace), np.uint8) & 1
    assert np.count_nonzero(np.diff(levels)) > 500, "the device has answered"


def test_a_line_at_another_speed_is_noise(tiny: HwConfig) -> None:
    """The gateware sees what a board would see, and answers nothing that is right; then the speed is put right."""
    with RtlDevice(device_libraries(tiny, clock_hz=CLOCK, baud=BAUD), clock_hz=CLOCK, baud=BAUD) as model:
        model.baud = 460_800
        model.advance(8000, b"\x55" * 20)
        model.baud = BAUD
        model.advance(8000)
        client = Client(SimulationTransport(Recorder(model), BAUD))
        assert client.head().fingerprint == tiny.fingerprint
