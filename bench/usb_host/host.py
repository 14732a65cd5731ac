"""`UsbHost`: what an operating system does with a device that is plugged in: it is asked what it is, and used as a
serial port."""

import struct
from dataclasses import dataclass

from onnxhw.driver.faults import UnpluggedError

from .bus import PACKET, ProtocolError, UsbBus
from .packets import Pid

ADDRESS = 5
TRIES = 3
"""Times that a transaction without a valid answer is tried before the host gives up (4.10 of xHCI, 8.6 of USB 2.0:
three)."""
DEBOUNCE, RESET, RECOVERY, SETTLE = 0.1, 0.01, 0.01, 0.002
"""Seconds that USB 2.0 names: TATTDB and TDRST at least, TRSTRCY, and 2 ms after SET_ADDRESS (7.1.7.3, 7.1.7.5,
9.2.6.3)."""
CDC, CDC_DATA, BULK = 0x02, 0x0A, 0x02
"""Class codes of the interfaces of a serial port, and the kind of its endpoints for bytes."""


class StalledError(Exception):
    """The device refuses a request."""


@dataclass(frozen=True)
class Port:
    """A serial port that was found: ids, what the device calls itself, its bulk endpoints and their packet's size."""

    vendor: int
    product: int
    manufacturer: str
    name: str
    serial: str
    out_endpoint: int
    in_endpoint: int


class UsbHost:
    """The host's software: control transfers and bulk transactions, with their data toggles and repeats.

    Members: `bus`; `port`, once `enumerate` has found it.
    """

    def __init__(self, bus: UsbBus) -> None:
        self.bus = bus
        self.port: Port | None = None
        self._address = 0
        self._toggles = {"out": 0, "in": 0}

    # -- control transfers -----------------------------------------------------------------------

    def control(
        self, kind: int, request: int, value: int = 0, index: int = 0, *, length: int = 0, content: bytes = b""
    ) -> bytes:
        """A control transfer (8.5.3): what it brings, or sends `content`. `StalledError`, `UnpluggedError` after three
        errors."""
        size = len(content) or length
        setup = struct.pack("<BBHHH", kind, request, value, index, size)
        self._until_ack(Pid.SETUP, 0, setup)
        found, toggle = b"", 1
        if kind & 0x80 and size:
            while len(found) < size:
                part = self._data(0, toggle)
                found, toggle = found + part, toggle ^ 1
                if len(part) < PACKET:
                    break
            self._until_ack(Pid.OUT, 1, b"")
            return found[:size]
        for at in range(0, len(content), PACKET):
            self._until_ack(Pid.OUT, toggle, content[at : at + PACKET])
            toggle ^= 1
        if self._data(0, 1):
            raise ProtocolError("a status stage with data")
        return b""

    def _until_ack(self, pid: Pid, toggle: int, content: bytes) -> None:
        errors = 0
        while True:
            answer = self.bus.send(self._address, 0, pid, toggle, content)
            if answer is Pid.ACK:
                return
            if pid is Pid.SETUP and answer is not None:
                raise ProtocolError(f"{answer.name} for an answer to SETUP")
            if answer is Pid.STALL:
                raise StalledError
            errors = self._failed(errors) if answer is None else errors

    def _data(self, endpoint: int, toggle: int) -> bytes:
        errors = 0
        while True:
            answer = self.bus.receive(self._address, endpoint)
            if answer is None:
                errors = self._failed(errors)
            elif answer.pid is Pid.STALL:
                raise StalledError
            elif answer.pid is (Pid.DATA1 if toggle else Pid.DATA0):
                return answer.data
            elif answer.pid is not Pid.NAK and self.bus.damage is None:
                raise ProtocolError(f"{answer.pid.name} where the other was due")

    def _failed(self, errors: int) -> int:
        """One more error; the third ends it, as the cable's end would."""
        if errors + 1 == TRIES:
            raise UnpluggedError("E9102", "the port failed: the USB device does not answer")
        return errors + 1

    # -- enumeration -----------------------------------------------------------------------------

    def enumerate(self, *, debounce: float = DEBOUNCE, reset: float = RESET, recovery: float = RECOVERY) -> Port:
        """Wait for a device, reset it, ask what it is and configure it: the serial port that it is.

        As Linux does: the first 64 bytes of the device's description at address 0, another reset, an address, then
        everything. `ProtocolError` for a device that is no serial port; `UnpluggedError`.
        """
        self.bus.attach(debounce, patience=1.0)
        self._address = 0
        self.bus.reset(reset, recovery)
        first = self.descriptor(1, length=64)
        if len(first) < 8 or first[7] not in (8, 16, 32, 64):
            raise ProtocolError(f"endpoint 0 has packets of {first[7:8].hex()} bytes")
        self.bus.reset(reset, recovery)
        self.control(0x00, 5, ADDRESS)
        self._address = ADDRESS
        self.bus.idle(SETTLE)
        device = self.descriptor(1, length=18)
        configuration = self.descriptor(2, length=9)
        configuration = self.descriptor(2, length=int.from_bytes(configuration[2:4], "little"))
        maker, name, serial = (self.text(number) for number in device[14:17])
        out_endpoint, in_endpoint = _bulk_endpoints(configuration)
        self.control(0x00, 9, configuration[5])
        if self.control(0x80, 8, length=1) != configuration[5:6]:
            raise ProtocolError("the device is not in the configuration that was set")
        self._toggles = {"out": 0, "in": 0}
        vendor, product = struct.unpack("<HH", device[8:12])
        self.port = Port(vendor, product, maker, name, serial, out_endpoint, in_endpoint)
        self.open()
        return self.port

    def open(self, baud: int = 115_200) -> None:
        """What opening the port sends: SET_CONTROL_LINE_STATE, which a device may refuse, and SET_LINE_CODING."""
        for request, value, content in ((0x22, 3, b""), (0x20, 0, struct.pack("<IBBB", baud, 0, 0, 8))):
            try:
                self.control(0x21, request, value, content=content)
            except StalledError:
                if request == 0x20:
                    raise ProtocolError("SET_LINE_CODING is refused") from None

    def descriptor(self, kind: int, number: int = 0, *, length: int, language: int = 0) -> bytes:
        """A descriptor, at most `length` bytes."""
        found = self.control(0x80, 6, kind << 8 | number, language, length=length)
        if len(found) < 2 or found[1] != kind or len(found) > length:
            raise ProtocolError(f"descriptor {kind} begins with {found[:2].hex()} and has {len(found)} bytes")
        return found

    def text(self, number: int) -> str:
        """A string descriptor, in the first language that the device has; empty for number 0."""
        if not number:
            return ""
        language = int.from_bytes(self.descriptor(3, 0, length=255)[2:4], "little")
        return self.descriptor(3, number, length=255, language=language)[2:].decode("utf-16-le")

    # -- bytes -----------------------------------------------------------------------------------

    def write(self, content: bytes) -> bool:
        """One bulk transaction of at most `PACKET` bytes; whether the device has taken it. `UnpluggedError` after
        three errors."""
        assert self.port is not None
        errors = 0
        while True:
            answer = self.bus.send(self._address, self.port.out_endpoint, Pid.OUT, self._toggles["out"], content)
            if answer is Pid.STALL:
                raise ProtocolError("the endpoint for bytes is halted")
            if answer is not None:
                self._toggles["out"] ^= int(answer is Pid.ACK)
                return answer is Pid.ACK
            errors = self._failed(errors)

    def read(self) -> bytes:
        """One bulk transaction; empty if there is nothing. `UnpluggedError` after three errors."""
        assert self.port is not None
        errors = 0
        while True:
            answer = self.bus.receive(self._address, self.port.in_endpoint)
            if answer is None:
                errors = self._failed(errors)
                continue
            if answer.pid is Pid.STALL:
                raise ProtocolError("the endpoint for bytes is halted")
            if answer.pid is not (Pid.DATA1 if self._toggles["in"] else Pid.DATA0):
                return b""  # nothing, or what an acknowledgement that was lost has brought already
            self._toggles["in"] ^= 1
            return answer.data


def _bulk_endpoints(configuration: bytes) -> tuple[int, int]:
    """Numbers of the bulk endpoints (to the device, from it) of a configuration with a CDC function;
    `ProtocolError`."""
    at, interface, kinds, found = 0, 0, set(), {}
    while at < len(configuration):
        length, kind = configuration[at], configuration[at + 1] if at + 1 < len(configuration) else 0
        part = configuration[at : at + length]
        if length < 2 or len(part) != length:
            raise ProtocolError(f"a descriptor of {length} bytes at byte {at} of {len(configuration)}")
        if kind == 4:
            interface = part[5]
            kinds.add(interface)
        if kind == 5 and interface == CDC_DATA:
            if part[3] & 3 != BULK or int.from_bytes(part[4:6], "little") != PACKET:
                raise ProtocolError(f"endpoint {part[2]:#x} is no bulk endpoint with packets of {PACKET} bytes")
            found["in" if part[2] & 0x80 else "out"] = part[2] & 15
        at += length
    if not {CDC, CDC_DATA} <= kinds or found.keys() != {"in", "out"}:
        raise ProtocolError(f"no serial port: interfaces of classes {sorted(kinds)}, endpoints {found}")
    return found["out"], found["in"]
