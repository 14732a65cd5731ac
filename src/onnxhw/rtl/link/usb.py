"""The link's bytes over USB: a full-speed device that is a serial port (CDC-ACM), so that no driver is needed.

USB itself is luna-usb's gateware (`usb_function`). This is the layer around it: pins, and the crossing between the
clocks.
"""

from types import SimpleNamespace
from typing import Any

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import AsyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from ...errors import ToolError
from .uart import Received

DEPTH = 16
"""Bytes of each crossing: more than pass while the two clocks tell each other of one, so bytes follow without gaps."""
NAME = "onnxhw"
"""What the device calls itself and its manufacturer."""


class UsbSerial(wiring.Component):
    """Bytes to and from a USB host, at the pins of its D+ and D-.

    Domains: "sync" of `i` and `o`; "usb_io" of 48 MHz within 0.25 % (USB 2.0, 7.1.11); "usb", a quarter of that with
    edges at the same times.

    A host's driver hands on what it has received with a packet that is not full. So a packet ends with a byte 0 behind
    which no other waits, which is the end of a frame when the link has no more to say; after a full one comes an empty
    one.

    Parameters
    ----------
    vendor, product : the device's ids.

    Members
    -------
    i, o : streams of bytes to and from the host. `error` is never set: packets arrive right or not at all. A bus reset
        loses bytes on their way, which the frames' CRC tells.
    dp_i, dm_i : D+ and D-, asynchronous. dp_o, dm_o, oe : what the device drives, while `oe`.
    pullup : connects 1.5 kOhm at D+ with 3.3 V, by which a host sees that a device is there.
    """

    def __init__(self, *, vendor: int, product: int) -> None:
        self.vendor, self.product = vendor, product
        pins = {"dp_i": In(1), "dm_i": In(1), "dp_o": Out(1), "dm_o": Out(1), "oe": Out(1), "pullup": Out(1)}
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(Received)), **pins})

    def elaborate(self, platform: Any) -> Module:
        try:
            from .usb_function import UsbFunction
        except ImportError as error:
            what = f"a device with a USB link needs luna-usb: {error}"
            raise ToolError("E7120", what, hint="pip install 'onnxhw[synth]'") from None
        m = Module()
        bus = SimpleNamespace(
            d_p=SimpleNamespace(i=self.dp_i, o=self.dp_o, oe=self.oe),
            d_n=SimpleNamespace(i=self.dm_i, o=self.dm_o, oe=Signal(name="oe_n")),
            pullup=SimpleNamespace(o=self.pullup),
        )
        m.submodules.function = usb = UsbFunction(bus=bus, vendor=self.vendor, product=self.product, name=NAME)

        m.submodules.to_host = to_host = AsyncFIFOBuffered(width=8, depth=DEPTH, w_domain="sync", r_domain="usb")
        m.d.comb += [
            to_host.w_data.eq(self.i.payload),
            to_host.w_en.eq(self.i.valid),
            self.i.ready.eq(to_host.w_rdy),
            usb.tx.payload.eq(to_host.r_data),
            usb.tx.valid.eq(to_host.r_rdy),
            usb.tx.last.eq((to_host.r_data == 0) & (to_host.r_level <= 1)),
            to_host.r_en.eq(usb.tx.ready),
        ]
        m.submodules.from_host = from_host = AsyncFIFOBuffered(width=8, depth=DEPTH, w_domain="usb", r_domain="sync")
        m.d.comb += [
            from_host.w_data.eq(usb.rx.payload),
            from_host.w_en.eq(usb.rx.valid),
            usb.rx.ready.eq(from_host.w_rdy),
            self.o.payload.data.eq(from_host.r_data),
            self.o.valid.eq(from_host.r_rdy),
            from_host.r_en.eq(self.o.ready),
        ]
        return m
