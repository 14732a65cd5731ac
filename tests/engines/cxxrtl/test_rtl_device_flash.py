"""A device that loads its program from SPI flash, behind its pins: flash memory, external memory and serial line."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from linked_program import BAUD, CLOCK, LINKED, is_right, program, sample
from rtl_line import RtlLine

from onnxhw.config import HwConfig
from onnxhw.driver.client import Client
from onnxhw.driver.flash_image import flash_image
from onnxhw.driver.transport import SimulationTransport
from onnxhw.emu import run
from onnxhw.engines.cxxrtl.rtl_device import RtlDevice, device_libraries
from onnxhw.isa.flash import HEADER_BYTES, byte_cycles
from onnxhw.program import DeviceProgram

pytestmark = [pytest.mark.rtl, pytest.mark.slow, pytest.mark.usefixtures("compiler")]

OFFSET = 0x10000


@contextmanager
def powered_up(image: bytes, config: HwConfig = LINKED) -> Iterator[RtlDevice]:
    """A device whose flash memory holds an image, after reset."""
    libraries = device_libraries(config, clock_hz=CLOCK, baud=BAUD, boot_offset=OFFSET)
    with RtlDevice(libraries, clock_hz=CLOCK, baud=BAUD, flash=bytes(OFFSET) + image + b"\xff" * 256) as device:
        yield device


def seen(device: RtlDevice, name: str) -> int:
    return int(device.around.item(name).curr[0]) & 1


def until(device: RtlDevice, name: str, level: int, cycles: int) -> int:
    """Cycles until a pin has a level, at most so many."""
    while seen(device, name) != level and device.cycles < cycles:
        device.advance(16)
    assert seen(device, name) == level
    return device.cycles


def connect(device: RtlDevice) -> Client:
    return Client(SimulationTransport(RtlLine(device, CLOCK), BAUD))


def test_from_power_up_to_the_first_run_and_a_host_after_it() -> None:
    """It is loaded as fast as flash is read, and runs once; a host finds the program and sends inputs alone."""
    image = flash_image(program())
    with powered_up(image) as device:
        reading = len(image) * byte_cycles(CLOCK)
        began = until(device, "running", 1, 2 * reading)
        assert reading < began < 1.03 * reading
        until(device, "running", 0, 3 * reading)
        assert not seen(device, "boot_failed")
        client = connect(device)
        assert client.holds(program())
        assert client.info().standalone
        state = client.snapshot()
        assert (state.ended, state.cycles) == (True, program().cycles)
        assert is_right(client.run(sample(3), program()).outputs, 3)
        sent = client.counters.sent
        assert sent < len(image) / 2


@pytest.mark.parametrize("at", [HEADER_BYTES + 20, -3], ids=["first frames", "last frame"])
def test_a_damaged_image_is_not_run(at: int) -> None:
    """The failure is shown, and a host loads the program as ever."""
    image = bytearray(flash_image(program()))
    image[at] ^= 0x10
    with powered_up(bytes(image)) as device:
        until(device, "boot_failed", 1, 3 * len(image) * byte_cycles(CLOCK))
        assert not seen(device, "running")
        client = connect(device)
        assert not client.holds(program())
        client.load(program())
        assert is_right(client.run(sample(4)).outputs, 4)


def test_an_image_that_is_cut_short_is_not_run() -> None:
    """Its last frames are missing: the program is never complete."""
    image = flash_image(program())[:-60]
    with powered_up(image) as device:
        until(device, "boot_failed", 1, 3 * len(image) * byte_cycles(CLOCK))
        assert not seen(device, "running")


def test_a_program_on_the_chip_alone(tiny: HwConfig, tiny_program: DeviceProgram) -> None:
    """Of a device without external memory, whose weights or microcode no bitstream can hold."""
    image = flash_image(tiny_program)
    with powered_up(image, tiny) as device:
        until(device, "running", 1, 2 * len(image) * byte_cycles(CLOCK))
        until(device, "running", 0, 3 * len(image) * byte_cycles(CLOCK))
        client = connect(device)
        assert client.holds(tiny_program)
        assert client.snapshot().cycles == tiny_program.cycles
        x = {"x": np.random.default_rng(7).integers(-128, 128, (1, 4, 2, 3)).astype(np.int8)}
        assert np.array_equal(client.run(x, tiny_program).outputs["y"], run(tiny_program, x).outputs["y"])
