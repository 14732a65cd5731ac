"""`CameraTop`: a device with a camera on a board."""

from collections.abc import Mapping
from typing import Any

from amaranth import Elaboratable, Module, Signal
from amaranth.build import Attrs, Pins, Resource, Subsignal

from ...config import HwConfig
from ..top import HEARTBEAT_BITS, park_esp32
from .device import CameraDevice

INPUTS, OUTPUTS = ("d", "pclk", "vsync", "href"), ("xclk", "reset", "pwdn", "sioc")
"""Pins of the camera, with `siod`, which goes both ways."""
CLASS_LEDS, ANSWER_LED, HEARTBEAT_LED = 6, 6, 7


def camera_resource(pins: Mapping[str, str]) -> Resource:
    """The camera's pins: of each the names on the connector ``(pins["connector"], 0)``, those of d lowest first.

    SIO_D is pulled up, for there may be no resistor at the camera.
    """
    connector = (pins["connector"], 0)
    inputs = [Subsignal(name, Pins(pins[name], dir="i", conn=connector)) for name in INPUTS]
    outputs = [Subsignal(name, Pins(pins[name], dir="o", conn=connector)) for name in OUTPUTS]
    siod = Subsignal("siod", Pins(pins["siod"], dir="io", conn=connector), Attrs(PULLMODE="UP"))
    return Resource("camera", 0, *inputs, *outputs, siod, Attrs(IO_TYPE="LVCMOS33"))


class CameraTop(Elaboratable):
    """A `CameraDevice` on a board: the camera at `pins` (`camera_resource`), text on serial line 0.

    LEDs, where the board has them: 0 to 5 the class of the last answer in binary, dark before the first; 6 changes with
    each answer; 7 the heartbeat. An "esp32" that shares the board is left in its normal state.

    Parameters
    ----------
    clock_hz : frequency of domain "sync".
    """

    def __init__(self, config: HwConfig, pins: Mapping[str, str], *, clock_hz: int, baud: int) -> None:
        self.config, self.clock_hz, self.pins = config, clock_hz, pins
        self.device = CameraDevice(config, clock_hz=clock_hz, baud=baud)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.device = device = self.device
        platform.add_resources([camera_resource(self.pins)])
        camera = platform.request("camera", 0)
        m.d.comb += [getattr(device, name).eq(getattr(camera, name).i) for name in INPUTS]
        m.d.comb += [
            camera.xclk.o.eq(device.xclk), camera.reset.o.eq(device.reset_n), camera.pwdn.o.eq(0),
            camera.sioc.o.eq(device.sioc), camera.siod.o.eq(0), camera.siod.oe.eq(~device.siod),
            platform.request("uart", 0).tx.o.eq(device.tx),
        ]  # fmt: skip
        heartbeat, answers = Signal(HEARTBEAT_BITS), Signal()
        m.d.sync += [heartbeat.eq(heartbeat + 1), answers.eq(answers ^ device.tells)]
        lights = {number: device.answered & device.number[number] for number in range(CLASS_LEDS)}
        for number, light in (lights | {ANSWER_LED: answers, HEARTBEAT_LED: heartbeat[-1]}).items():
            if ("led", number) in platform.resources:
                m.d.comb += platform.request("led", number).o.eq(light)
        if ("esp32", 0) in platform.resources:
            park_esp32(m, platform)
        return m
