"""From an address to the client of a device that has answered."""

import math
from contextlib import suppress

from ..config import HwConfig
from ..errors import LinkError, UsageError
from . import discover
from .address import SIMULATED, Address, open_transport, parse
from .client import Client
from .faults import NoAnswerError, typed
from .simulated_time import PacedTransport, follow
from .transport import SerialTransport, Transport

RATES = (3_000_000, 1_000_000, 2_000_000, 1_500_000, 115_200)
"""Line speeds that are tried if none is asked for: what `synth` builds for a board with an FT231X, what it built before
it could choose, and what slower clocks and adapters have."""
SIMULATED_BAUD = 1_000_000
"""What the lines of emulated devices and of simulated boards (``onnxhw serve``) have unless asked otherwise."""


Opened = tuple[Client, str]
"""A client whose device has answered, and its address."""


def open_client(
    address: str, baud: int | None, timeout_scale: float, config: HwConfig | None, likely: int | None = None
) -> Opened:
    """Open the address and ask what is there; see `Device.open`."""
    if not (0 < timeout_scale < math.inf and (baud is None or baud > 0)):
        what = f"speed and timeout scale must be positive and finite, not baud={baud}, timeout_scale={timeout_scale}"
        raise UsageError("E2556", what, where=address)
    where = parse(address)
    if where.scheme == "auto":
        return _only(baud, timeout_scale, likely)
    return _open(where, baud, timeout_scale, config, likely)


def _open(address: Address, baud: int | None, scale: float, config: HwConfig | None, likely: int | None) -> Opened:
    """Open and ask; at several speeds if it is a serial port and none is given, the `likely` one first."""
    rates = RATES if likely is None else (likely, *(rate for rate in RATES if rate != likely))
    rates = (baud,) if baud else rates if address.scheme == "serial" else (SIMULATED_BAUD,)
    base = open_transport(address, baud=rates[0], timeout_scale=scale, config=config)
    try:
        if address.scheme in SIMULATED:
            return _ask(base, base, str(address), rates[:1])
        line = follow(base, address.rest if address.scheme == "serial" else str(address))
        if isinstance(line, PacedTransport) and not baud:
            rates = (line.clock.board.baud,)  # known, and slow to be asked at others
        return _ask(base, line, str(address), rates)
    except BaseException:
        with suppress(Exception):
            base.close()
        raise


def _ask(base: Transport, line: Transport, where: str, rates: tuple[int, ...]) -> Opened:
    """The device at the first of the speeds at which it answers."""
    for rate in rates:
        if rate != base.baud and isinstance(base, SerialTransport):
            base.set_baud(rate)
            line.baud = rate
        client = Client(line)
        try:
            with typed(where):
                info = client.head()
        except NoAnswerError:
            continue
        if info.usb or not isinstance(base, SerialTransport):
            line.baud = info.baud  # for timeouts: the transport itself has no speed
        return client, where
    tried = ", ".join(f"{rate:,}" for rate in rates)
    raise NoAnswerError(
        "E9155",
        f"nothing answers at {tried} baud",
        where=where,
        hint="is an onnxhw bitstream on the board? `onnxhw program DIR` puts one there; if it was built for another "
        "speed, try --baud (manifest.json has it)",
    )


def _only(baud: int | None, scale: float, likely: int | None) -> Opened:
    """The one known board that answers."""
    ports = discover.ports()
    known = [port for port in ports if port.boards]
    if not known:
        seen = f"; other ports: {', '.join(port.device for port in ports)}" if ports else ""
        hint = "connect it and look at `onnxhw devices`, or name its port: serial:/dev/ttyUSB0"
        raise LinkError("E9156", f"no known board is connected{seen}", hint=hint)
    found: list[Opened] = []
    failed: list[LinkError] = []
    for port in known:
        try:
            found.append(_open(Address("serial", port.device), baud, scale, None, likely))
        except LinkError as error:
            failed.append(error)
    if len(found) == 1:
        return found[0]
    for client, _ in found:
        client.close()
    if found:
        names = ", ".join(address for _, address in found)
        raise LinkError("E9157", f"{len(found)} boards answer: {names}", hint="name one of them")
    raise failed[0]
