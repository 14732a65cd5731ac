"""`UsbLine`: a simulated device behind a USB host, as bytes."""

from onnxhw.closeable import Closeable
from onnxhw.driver.faults import UnpluggedError

from .bus import PACKET, UsbBus
from .host import UsbHost
from .model import TICK_HZ, UsbModel

WRITE_TIMEOUT = 0.5
"""Simulated seconds in which the device must take bytes; a serial port has such a limit, too."""


class UsbLine(Closeable):
    """A ``ByteLine`` for `onnxhw.driver.transport.SimulationTransport`: what a serial port of the operating system is.

    The host asks for bytes again and again, in turn with those that it sends. The device is enumerated at once.

    `reset` are the seconds of a reset and of the time to recover from it, `debounce` those that a device must show
    itself: USB 2.0 asks for 10 ms each and 100 ms. Nothing happens in them, so they are shorter here unless asked for.

    Errors of `exchange`: `UnpluggedError` E9102 once the cable is off, until `replug`.
    """

    def __init__(
        self, model: UsbModel, bus: UsbBus | None = None, *, reset: float = 0.001, debounce: float = 0.001
    ) -> None:
        self.model, self.bus = model, bus or UsbBus(model)
        self.host = UsbHost(self.bus)
        self._times = {"debounce": debounce, "reset": reset, "recovery": reset}
        self.port = self.host.enumerate(**self._times)

    def close(self) -> None:
        """Release the design."""
        self.model.close()

    def exchange(self, data: bytes) -> bytes:
        received, patience = bytearray(), self.seconds() + WRITE_TIMEOUT
        if not data:
            received += self.host.read()
        while data:
            if self.host.write(data[:PACKET]):
                data, patience = data[PACKET:], self.seconds() + WRITE_TIMEOUT
            elif self.seconds() > patience:
                raise UnpluggedError("E9102", "the port failed: Write timeout", hint="is the board still plugged in?")
            received += self.host.read()
        return bytes(received)

    def seconds(self) -> float:
        return self.model.ticks / TICK_HZ

    def unplug(self, after: float = 0.0) -> None:
        """Pull the cable off, `after` so many seconds: in the middle of whatever there is then."""
        self.bus.unplug_at = self.bus.now + after * TICK_HZ

    def replug(self, pause: float = 0.001) -> None:
        """Plug the cable in again: a new enumeration; the device was not reset."""
        self.bus.plugged, self.bus.unplug_at = False, None
        self.model.run(ticks=round(pause * TICK_HZ))
        self.replug_within()

    def replug_within(self) -> None:
        """What a replugged cable begins with: a new enumeration, which `unplug` may cut off."""
        self.port = self.host.enumerate(**self._times)
