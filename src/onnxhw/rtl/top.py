"""The design around the core: `LinkedCore` with plain pins, and `Top` with the pins of a board."""

from typing import Any

from amaranth import Elaboratable, Module, Mux, Signal
from amaranth.lib import io, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ..config import HwConfig
from ..isa.link import USB_BAUD, Info, line_rates
from ..isa.memory import Space
from .autorun import Autorun, Standalone, StartLoaded
from .cells import FlashClock
from .core import Core
from .delay import delay
from .external.controller import Controller
from .external.controller import pins as external_pins
from .external.host import SdramHostPort
from .external.pads import BoardPads
from .link.commands import CommandEngine
from .link.flash_boot import FlashBoot
from .link.uart import LineRate, UartReceiver, UartTransmitter
from .link.usb import UsbSerial

BAUD = 1_000_000
"""The line's speed of a device without a board."""
USB_INPUTS = ("dp_i", "dm_i")
USB_OUTPUTS = ("dp_o", "dm_o", "oe", "pullup")
"""Pins of a device with a USB link."""
FLASH_OUTPUTS = ("cs", "sck", "copi")
"""Pins of a device that loads its program from SPI flash, with `flash_cipo`."""


class LinkedCore(wiring.Component):
    """Core, loader and serial line. Everything a simulation needs, and all that a board adds pins to.

    Parameters
    ----------
    clock_hz, baud : the clock of domain "sync" and the line's speed (at least 8 cycles per bit), the first of
        `isa.link.line_rates`.
    usb : ids of vendor and product: the line is USB instead, with domains "usb_io" and "usb" as of `UsbSerial`.
    standalone : counts of a program baked into the memories, or None. In a routed design the contents of
        the memories "autorun" and "description" can be replaced later (`Standalone.words`, `Info.to_words`).
    build_id : 64 bits that name the build, told to the host.
    core : another component with the host port of `Core`, for tests.
    boot_offset : where in SPI flash the image of a program lies that is loaded and started after reset
        (`onnxhw.isa.flash`), or None. Until it is, the line is not heard. `standalone` is None then.

    Members
    -------
    rx, tx : the line, asynchronous to the clock; with `usb` instead dp_i, dm_i, dp_o, dm_o, oe, pullup of `UsbSerial`.
    external : of a configuration with external memory, to its pads: `controller.pins`.
    flash_cs, flash_sck, flash_copi, flash_cipo, boot_failed : with `boot_offset`, as of `FlashBoot`.
    start : In(1), one cycle starts a run of the baked program (no effect if there is none), or of one from flash.
    running, busy, fault : a run is in progress; a command is performed; (one cycle) a frame
        was dropped.
    """

    def __init__(
        self,
        config: HwConfig,
        *,
        clock_hz: int,
        baud: int = BAUD,
        standalone: Standalone | None = None,
        build_id: int = 0,
        core: Any = None,
        usb: tuple[int, int] | None = None,
        boot_offset: int | None = None,
    ) -> None:
        baud = baud if usb is None else USB_BAUD
        self.config, self.clock_hz, self.baud, self.standalone = config, clock_hz, baud, standalone
        self.boot = None if boot_offset is None else FlashBoot(clock_hz=clock_hz, offset=boot_offset)
        alone = standalone is not None or self.boot is not None
        self.info = Info.of(
            config, clock_hz=clock_hz, baud=baud, build_id=build_id, standalone=alone, usb=usb is not None
        )
        self.core = core if core is not None else Core(config)
        self.usb = None if usb is None else UsbSerial(vendor=usb[0], product=usb[1])
        if usb is None:
            rates = line_rates(baud)
            self.receiver = UartReceiver(clock_hz=clock_hz, rates=rates)
            self.transmitter = UartTransmitter(clock_hz=clock_hz, rates=rates)
            self.rate = LineRate(clock_hz=clock_hz, rates=len(rates))
            line = {"rx": In(1, init=1), "tx": Out(1, init=1)}
        else:
            line = {name: In(1) for name in USB_INPUTS} | {name: Out(1) for name in USB_OUTPUTS}
        if config.external is not None:
            line |= {"external": Out(external_pins(config.external))}
        if self.boot is not None:
            line |= {f"flash_{name}": Out(1) for name in FLASH_OUTPUTS} | {"flash_cipo": In(1), "boot_failed": Out(1)}
        super().__init__({**line, "start": In(1), "running": Out(1), "busy": Out(1), "fault": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.core = core = self.core
        m.submodules.loader = loader = CommandEngine(self.info)
        if self.usb is None:
            m.submodules.receiver = receiver = self.receiver
            m.submodules.transmitter = transmitter = self.transmitter
            self._connect_line(m, receiver.o, transmitter.i, loader)
            m.submodules.rate = rate = self.rate
            m.d.comb += [receiver.rx.eq(self.rx), self.tx.eq(transmitter.tx), rate.line_break.eq(receiver.line_break)]
            m.d.comb += [receiver.rate.eq(rate.rate), transmitter.rate.eq(rate.rate)]
        else:
            m.submodules.usb = usb = self.usb
            self._connect_line(m, usb.o, usb.i, loader)
            m.d.comb += [getattr(usb, name).eq(getattr(self, name)) for name in USB_INPUTS]
            m.d.comb += [getattr(self, name).eq(getattr(usb, name)) for name in USB_OUTPUTS]
        m.d.comb += [
            core.host_space.eq(loader.host_space),
            core.host_addr.eq(loader.host_addr),
            core.host_wdata.eq(loader.host_wdata),
            core.host_wstrb.eq(loader.host_wstrb),
            core.host_we.eq(loader.host_we),
            core.host_re.eq(loader.host_re),
            loader.host_rdata.eq(core.host_rdata),
            loader.host_rvalid.eq(core.host_rvalid),
            loader.host_waiting.eq(core.host_waiting),
            loader.input_busy.eq(core.input_busy),
            loader.input_over.eq(core.input_over),
            loader.input_free.eq(core.input_free),
            loader.running.eq(core.running),
            self.running.eq(core.running),
            self.busy.eq(loader.busy),
        ]
        m.d.sync += self.fault.eq(loader.bad_frame)

        if self.config.external is not None:
            self._add_external(m, loader)

        # `autorun` has the host port in cycles in which the loader does not use it, whether it wants it or not.
        autorun: Any = Autorun(self.standalone) if self.boot is None else StartLoaded()
        m.submodules.autorun = autorun
        m.d.comb += [
            autorun.start.eq(self.start),
            autorun.loaded.eq(loader.loaded),
            loader.baked.eq(autorun.baked) if self.boot is None else autorun.busy.eq(loader.busy),
            autorun.granted.eq(~loader.host_we & ~loader.host_re),
        ]
        with m.If(autorun.granted):
            m.d.comb += [
                core.host_space.eq(autorun.space),
                core.host_addr.eq(autorun.addr),
                core.host_wdata.eq(autorun.data),
                core.host_we.eq(autorun.we),
            ]
        return m

    def _connect_line(self, m: Module, received: Any, sent: Any, loader: CommandEngine) -> None:
        """The line's bytes to the loader and its answers back; while a program comes from flash, its bytes instead, and
        answers go nowhere."""
        boot = self.boot
        if boot is None:
            wiring.connect(m, received, loader.i)
            wiring.connect(m, loader.o, sent)
            return
        m.submodules.boot = boot
        m.d.comb += [
            loader.i.payload.eq(Mux(boot.active, boot.o.payload, received.payload)),
            loader.i.valid.eq(Mux(boot.active, boot.o.valid, received.valid)),
            boot.o.ready.eq(loader.i.ready),
            received.ready.eq(loader.i.ready | boot.active),
            sent.payload.eq(loader.o.payload),
            sent.valid.eq(loader.o.valid & ~boot.active),
            loader.o.ready.eq(sent.ready | boot.active),
            boot.loaded.eq(loader.loaded),
            boot.bad_frame.eq(loader.bad_frame),
            boot.cipo.eq(self.flash_cipo),
            *(getattr(self, f"flash_{name}").eq(getattr(boot, name)) for name in FLASH_OUTPUTS),
            self.boot_failed.eq(boot.failed),
        ]

    def _add_external(self, m: Module, loader: CommandEngine) -> None:
        """The external memory: the loader's accesses to it do not reach the core, whose unit `move` has its own way.

        The loader lies at the line's pins and the controller at the memory's, so there is a register on the way to the
        host's port, the loader's own on the way back, and one before the port for what is read. No run sees them: slots
        are where they were. The loader looks at a register of `host_waiting` five cycles after an access, which is
        enough.
        """
        external, core = self.config.external, self.core
        assert external is not None
        m.submodules.external = controller = Controller(external)
        m.submodules.external_host = host = SdramHostPort(external)
        wiring.connect(m, controller.memory, wiring.flipped(self.external))
        wiring.connect(m, host.burst, controller.host)
        mine = (loader.host_space == Space.EXTERNAL) | (loader.host_space == Space.EXTERNAL_INPUT)
        waiting = Signal()
        m.d.sync += [
            host.addr.eq(loader.host_addr),
            host.wdata.eq(loader.host_wdata),
            host.we.eq(loader.host_we & mine),
            host.re.eq(loader.host_re & mine),
            host.last.eq(loader.host_last),
            host.r_data.eq(controller.r_data),
            host.r_valid.eq(controller.host_r_valid),
            waiting.eq(host.waiting),
        ]
        m.d.comb += [
            core.host_we.eq(loader.host_we & ~mine),
            core.host_re.eq(loader.host_re & ~mine),
            loader.host_rdata.eq(Mux(mine, host.rdata, core.host_rdata)),
            loader.host_rvalid.eq(core.host_rvalid | host.rvalid),
            loader.host_waiting.eq(core.host_waiting | waiting),
            loader.stopped.eq(core.stopped),
            controller.host_w_data.eq(host.w_data),
            host.w_next.eq(controller.host_w_next),
        ]
        connect_controller(m, core, controller)


def connect_controller(m: Module, core: Any, controller: Controller) -> None:
    """Connect the unit `move` of a core, and the begin of its runs, to the external memory's controller."""
    unit = core.external
    wiring.connect(m, unit.request, controller.request)
    # A cycle late: in the cycle behind `asks` the controller knows of the start by itself, and its `started` comes a
    # cycle early, for it lies at the memory's pins, and a run's start goes everywhere. The register tells the opposite,
    # or synthesis would find that the link has the same one, elsewhere on the chip.
    resting = Signal(init=1)
    m.d.sync += [resting.eq(~core.running), core.started.eq(controller.started)]
    m.d.comb += [
        controller.running.eq(~resting),
        controller.w_data.eq(unit.w_data),
        unit.w_next.eq(controller.w_next),
        unit.r_data.eq(controller.r_data),
        unit.r_valid.eq(controller.r_valid),
        controller.start.eq(core.asks),
        controller.clear.eq(core.clear),
    ]


HEARTBEAT_BITS = 25
"""The heartbeat's period is 2**25 cycles, a third of a second at 100 MHz."""
FAULT_BITS = 24
"""A fault lights its LED for 2**24 cycles."""
FAR = 2
"""Registers from the link to the LED's counter, which may lie in the opposite corner: with one wire of 70 rows and 69
columns a seed of the 85F reached 112.3 MHz."""


class Top(Elaboratable):
    """A `LinkedCore` on a board.

    Takes serial line 0 (with `usb` the USB pins, and holds the line idle) and, where the board has them, the LEDs of
    `leds` (heartbeat, a run is in progress, a frame is being performed, a frame was dropped lately), and button
    "button_fire" 0, else "button" 0, as start. An "esp32" that shares the board is left in its normal state
    (`park_esp32`).

    Parameters
    ----------
    clock_hz : frequency of domain "sync": the platform's default clock, or what `Family.clocked` makes of it.

    usb_resource : the platform's resource with the USB pins, where `usb` is given.

    external_resource : that with the external memory's pins, where the configuration has one.

    boot_resource : that with the SPI flash's pins, with `boot_offset`; the LED for dropped frames stays on if the
        program could not be loaded from there.

    Other parameters as of `LinkedCore`.
    """

    def __init__(
        self,
        config: HwConfig,
        *,
        clock_hz: int,
        baud: int = BAUD,
        standalone: Standalone | None = None,
        build_id: int = 0,
        usb: tuple[int, int] | None = None,
        usb_resource: str = "usb",
        external_resource: str = "sdram",
        boot_offset: int | None = None,
        boot_resource: str = "spi_flash",
    ) -> None:
        self.external_resource, self.boot_resource = external_resource, boot_resource
        self.config, self.clock_hz, self.usb_resource = config, clock_hz, usb_resource
        self.device = LinkedCore(
            config, clock_hz=clock_hz, baud=baud, standalone=standalone, build_id=build_id, usb=usb,
            boot_offset=boot_offset,
        )  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.device = device = self.device

        if device.usb is None:
            uart = platform.request("uart", 0)
            m.d.comb += [device.rx.eq(uart.rx.i), uart.tx.o.eq(device.tx)]
        else:
            self._add_usb(m, platform)

        if self.config.external is not None:
            m.submodules.external_pads = pads = BoardPads(self.config.external, self.external_resource)
            wiring.connect(m, device.external, pads.inner)

        heartbeat, fault = Signal(HEARTBEAT_BITS), Signal(FAULT_BITS)
        seen = delay(m, device.fault, FAR, name="fault_seen")
        m.d.sync += [heartbeat.eq(heartbeat + 1), fault.eq(Mux(seen, ~0, Mux(fault == 0, 0, fault - 1)))]
        wrong = fault[-1]
        if device.boot is not None:
            self._add_flash(m, platform)
            wrong = wrong | device.boot_failed
        for led, light in zip(leds(platform), (heartbeat[-1], device.running, device.busy, wrong), strict=False):
            m.d.comb += led.eq(light)

        button = next((name for name in ("button_fire", "button") if (name, 0) in platform.resources), "")
        if button:
            self._add_button(m, platform.request(button, 0).i)
        if ("esp32", 0) in platform.resources:
            park_esp32(m, platform)
        return m

    def _add_usb(self, m: Module, platform: Any) -> None:
        """The USB pins. A serial line that is there is held idle: a pin that a design does not use is an endless
        break."""
        device, pins = self.device, platform.request(self.usb_resource, 0)
        m.d.comb += [device.dp_i.eq(pins.d_p.i), device.dm_i.eq(pins.d_n.i)]
        if hasattr(pins, "pullup"):  # else the resistor is always connected
            m.d.comb += pins.pullup.o.eq(device.pullup)
        m.d.comb += [pins.d_p.o.eq(device.dp_o), pins.d_n.o.eq(device.dm_o)]
        m.d.comb += [pins.d_p.oe.eq(device.oe), pins.d_n.oe.eq(device.oe)]
        if ("uart", 0) in platform.resources:
            m.d.comb += platform.request("uart", 0).tx.o.eq(1)

    def _add_flash(self, m: Module, platform: Any) -> None:
        """The SPI flash that the device was configured from: neither held nor write-protected."""
        device, pins = self.device, platform.request(self.boot_resource, 0)
        m.submodules.flash_clock = clock = FlashClock()
        m.d.comb += [
            clock.sck.eq(device.flash_sck),
            pins.cs.o.eq(device.flash_cs),
            pins.copi.o.eq(device.flash_copi),
            device.flash_cipo.eq(pins.cipo.i),
            *(getattr(pins, name).o.eq(0) for name in ("hold", "wp") if hasattr(pins, name)),
        ]

    def _add_button(self, m: Module, pressed: Any) -> None:
        """A press (seen after 2**16 quiet cycles, against bouncing) starts a run."""
        button, quiet = Signal(), Signal(17, init=0)
        m.submodules.button = FFSynchronizer(pressed, button)
        with m.If(button):
            m.d.sync += quiet.eq(0)
        with m.Elif(~quiet[-1]):
            m.d.sync += quiet.eq(quiet + 1)
        m.d.comb += self.device.start.eq(button & quiet[-1])


def leds(platform: Any) -> list[Any]:
    """The outputs of a board's first four LEDs. Where it has RGB LEDs instead, they are the green ones of several, or
    green, blue and red of one."""
    several = [number for number in range(4) if ("led", number) in platform.resources]
    if several:
        return [platform.request("led", number).o for number in several]
    coloured = [platform.request("rgb_led", number) for number in range(4) if ("rgb_led", number) in platform.resources]
    if len(coloured) > 1:
        return [led.g.o for led in coloured]
    return [colour.o for led in coloured for colour in (led.g, led.b, led.r)]


def park_esp32(m: Module, platform: Any) -> None:
    """Let the ESP32 module of the ULX3S start and run its own program, as without a design in the FPGA.

    A pin that a design does not use is pulled low. A low "gpio0" at reset makes the module wait for a download, and
    later tells its usual program to take the FPGA over; a low "en" turns it off, and a low serial input is an
    endless break. So "gpio0" and the module's serial input (the FPGA's "tx") are driven high. "en" is never
    driven, only pulled up: a jumper on the board may hold it low.
    """
    directions = {"gpio0": "o", "tx": "o"} | dict.fromkeys(("en", "rx", "gpio5", "gpio16", "gpio17"), "-")
    pins = platform.request("esp32", 0, dir=directions)
    m.submodules.esp32_enable = enable = io.Buffer("o", pins.en)
    m.d.comb += [pins.gpio0.o.eq(1), pins.tx.o.eq(1), enable.o.eq(1), enable.oe.eq(0)]
