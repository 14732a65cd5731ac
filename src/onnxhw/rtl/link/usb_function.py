"""`UsbFunction`: luna-usb's serial device, with what it leaves out. It imports luna: import it when it is needed."""

from typing import Any

from amaranth import Elaboratable, Module, ResetInserter, Signal
from luna.gateware.usb.devices.acm import ACMRequestHandlers, USBSerialDevice
from luna.gateware.usb.request.standard import StandardRequestHandler
from luna.gateware.usb.usb2.control import USBControlEndpoint
from luna.gateware.usb.usb2.device import USBDevice
from luna.gateware.usb.usb2.endpoints.stream import USBStreamInEndpoint, USBStreamOutEndpoint
from luna.gateware.usb.usb2.request import StallOnlyRequestHandler
from usb_protocol.types import USBRequestType

from .usb_transceiver import Transceiver

PACKET = 64
"""Most bytes of a bulk packet at full speed (USB 2.0, 5.8.3)."""


class UsbFunction(USBSerialDevice):
    """A CDC-ACM device in domain "usb": streams `rx` from the host and `tx` to it, with luna's descriptors.

    It differs from luna's own in the state that is forgotten. There everything but address and configuration outlives
    a bus reset, so that a device that was unplugged takes the first packet for a repeated one, or answers the first
    request with the rest of the last. Here a bus reset puts all endpoints into their first state, a SET_CONFIGURATION
    those of the bytes (both directions begin with DATA0: USB 2.0, 9.1.1.5), and a SETUP ends the request before
    (8.5.3).

    `bus` has the pins as luna takes them: ``d_p`` and ``d_n`` with ``i``, ``o``, ``oe``, and ``pullup``.
    """

    def __init__(self, *, bus: Any, vendor: int, product: int, name: str) -> None:
        self.bus = bus
        super().__init__(
            bus=bus, idVendor=vendor, idProduct=product, manufacturer_string=name, product_string=name,
            max_packet_size=PACKET,
        )  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.transceiver = transceiver = Transceiver(io=self.bus)
        m.submodules.usb = usb = USBDevice(bus=transceiver)
        control = USBControlEndpoint(utmi=usb.utmi)
        token = control.interface.tokenizer
        setup = token.new_token & token.is_setup & (token.endpoint == 0)
        control.add_request_handler(ResetInserter({"usb": setup})(StandardRequestHandler(self.create_descriptors())))
        control.add_request_handler(ACMRequestHandlers())
        control.add_request_handler(StallOnlyRequestHandler(_unknown))
        usb.add_endpoint(_named("ControlEndpoint", ResetInserter({"usb": usb.reset_detected})(control)))

        begin = Signal()
        m.d.comb += [usb.connect.eq(1), begin.eq(usb.reset_detected | control.interface.config_changed)]
        status = USBStreamInEndpoint(endpoint_number=self._STATUS_ENDPOINT_NUMBER, max_packet_size=PACKET)
        receiver = USBStreamOutEndpoint(endpoint_number=self._DATA_ENDPOINT_NUMBER, max_packet_size=PACKET)
        sender = USBStreamInEndpoint(endpoint_number=self._DATA_ENDPOINT_NUMBER, max_packet_size=PACKET)
        for name, endpoint in (("Status", status), ("Receiver", receiver), ("Sender", sender)):
            usb.add_endpoint(_named(f"{name}Endpoint", ResetInserter({"usb": begin})(endpoint)))
        m.d.comb += [sender.stream.stream_eq(self.tx), self.rx.stream_eq(receiver.stream)]
        return m


def _named(name: str, endpoint: Any) -> Any:
    """The endpoint under a class's name of its own. luna calls submodules by it, and a second one of a class by the
    object's address, by which the same design would be another one for the bitstream cache each time."""

    def elaborate(self: Any, platform: Any) -> Any:
        return endpoint

    return type(name, (Elaboratable,), {"interface": endpoint.interface, "elaborate": elaborate})()


def _unknown(setup: Any) -> Any:
    """Requests that are answered with STALL."""
    return (setup.type == USBRequestType.VENDOR) | (setup.type == USBRequestType.RESERVED)
