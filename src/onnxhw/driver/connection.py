"""From an address to the client of a device that has answered."""

import math
import warnings
from collections.abc import Sequence
from contextlib import suppress

from ..config import HwConfig
from ..errors import LineRateWarning, LinkError, UsageError
from ..isa.link import SLOWER, Info, line_rates
from . import discover
from .address import SIMULATED, Address, open_transport, parse
from .client import Client
from .faults import NoAnswerError, typed
from .simulated_time import PacedTransport, follow
from .transport import SerialTransport, Transport

RATES = (3_000_000, 1_000_000, 2_000_000, 1_500_000, 115_200)
"""Line speeds that are tried if none is asked for: what `synth` builds for a board with an FT231X, what it built before
it could choose, and what slower clocks and adapters have."""
MOST_RATES = 1 + len(SLOWER)
"""Rates of a device: as many breaks bring it around."""
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
            return _ask(base, base, str(address), rates[:1], fixed=True)
        line = follow(base, address.rest if address.scheme == "serial" else str(address))
        if isinstance(line, PacedTransport) and not baud:
            rates = (line.clock.board.baud,)  # known, and slow to be asked at others
        return _ask(base, line, str(address), rates, fixed=bool(baud))
    except BaseException:
        with suppress(Exception):
            base.close()
        raise


def _ask(base: Transport, line: Transport, where: str, rates: tuple[int, ...], *, fixed: bool) -> Opened:
    """The device at the first of the speeds at which it answers; `fixed`: the caller has chosen it.

    A serial line on which nothing answers asks for the device's next rate by a break (`isa.link.line_rates`). A device
    that answers at a slower rate, perhaps one that an earlier host has left, is brought to the first that bears.
    """
    found = _answering(base, line, where, rates)
    if isinstance(base, SerialTransport) and line is base:
        turns = 0
        while found is None and (turns := turns + 1) < MOST_RATES:
            base.send_break()
            found = _answering(base, line, where, rates if fixed else SLOWER)
        if found is not None and not fixed:
            found = _fastest(base, where, found)
    if found is not None:
        return found[0], where
    tried = ", ".join(f"{rate:,}" for rate in rates)
    raise NoAnswerError(
        "E9155",
        f"nothing answers at {tried} baud",
        where=where,
        hint="is an onnxhw bitstream on the board? `onnxhw program DIR` puts one there; if it was built for another "
        "speed, try --baud (manifest.json has it)",
    )


Answer = tuple[Client, Info]
"""A client and the head of what its device says of itself."""


def _answering(base: Transport, line: Transport, where: str, rates: Sequence[int]) -> Answer | None:
    """Who answers, at the first of the speeds at which somebody does."""
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
        return client, info
    return None


def _fastest(line: SerialTransport, where: str, found: Answer) -> Answer | None:
    """The device at the first of its rates at which it answers; a warning if that is not its first."""
    rates = line_rates(found[1].baud)
    if found[1].usb or line.baud not in rates[1:]:
        return found
    for _ in rates[rates.index(line.baud) + 1 :]:
        line.send_break()
    answer: Answer | None = None
    for rate in rates:
        line.send_break()
        if answer := _answering(line, line, where, [rate]):
            break
    if line.baud != rates[0]:
        what = f"the line has {line.baud:,} baud, for the device does not answer at {rates[0]:,}: adapter, hub or cable"
        warnings.warn(LineRateWarning("W9158", f"{what} ({where})"), stacklevel=2)
    return answer


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
