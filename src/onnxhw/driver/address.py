"""`Address`: where a device is, as one word of text.

    auto                     the one known board that is connected and answers
    serial:/dev/ttyUSB0      a serial port (a bare path or COM3 is one, too)
    tcp:localhost:4000       a TCP port, such as that of a simulated board
    sim:  sim:ulx3s          the complete gateware, simulated in this process
    emu:  emu:mini           the emulator behind the link's frames, in this process
"""

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from ..board import boards
from ..config import HwConfig
from ..errors import UsageError
from ..isa.link import Info
from ..presets import PRESETS, SDRAM, preset
from .emulated_core import EmulatedCore
from .transport import ByteLine, SerialTransport, SimulationTransport, Transport

FORMS = "auto, serial:PORT, tcp:HOST:PORT, sim:BOARD, emu:PRESET"
BARE_PORT = re.compile(r"/.*|COM\d+", re.IGNORECASE)
SIMULATED = ("sim", "emu")
"""Schemes of devices within this process."""
BOARD_CLASS = "onnxhw.serve.board:SimulatedBoard"
"""``module:class`` of the simulated gateware, imported when asked for, since it is above this package."""

EMULATED_HZ = 100_000_000
"""What the emulator calls its clock."""


@dataclass(frozen=True)
class Address:
    """A device's scheme ("auto", "serial", "tcp" or one of `SIMULATED`) and what follows its colon."""

    scheme: str
    rest: str = ""

    def __str__(self) -> str:
        return self.scheme if self.scheme == "auto" else f"{self.scheme}:{self.rest}"


def parse(text: str) -> Address:
    """The address of a text; `UsageError` E2550 if it is none."""
    if text == "auto":
        return Address("auto")
    if BARE_PORT.fullmatch(text):
        return Address("serial", text)
    scheme, colon, rest = text.partition(":")
    if scheme in SIMULATED:
        return Address(scheme, rest)
    if scheme == "serial" and rest:
        return Address(scheme, rest)
    if scheme == "tcp" and colon:
        host, _, port = rest.rpartition(":")
        if host and port.isdecimal() and 0 < int(port) < 65536:
            return Address(scheme, rest)
        raise UsageError("E2550", f"tcp needs a host and a port, not {rest!r}", hint="for example tcp:localhost:4000")
    raise UsageError("E2550", f"{text!r} is no device", hint=f"devices: {FORMS}")


def open_transport(
    address: Address, *, baud: int, timeout_scale: float = 1.0, config: HwConfig | None = None
) -> Transport:
    """The transport of an address other than "auto"; errors are those of the transports.

    `config` is what a simulated device without a name of its own shall be.
    """
    if address.scheme == "serial":
        return SerialTransport(address.rest, baud, timeout_scale)
    if address.scheme == "tcp":
        from .network import SocketTransport

        host, _, port = address.rest.rpartition(":")
        return SocketTransport(host.strip("[]"), int(port), baud, timeout_scale)
    chosen = simulated_config(address.rest, config)
    if address.scheme == "emu":
        from .device_model import DeviceModel

        info = Info.of(chosen, clock_hz=EMULATED_HZ, baud=baud)
        return SimulationTransport(DeviceModel(info, EmulatedCore(chosen)), baud)
    module, _, name = BOARD_CLASS.partition(":")
    make: Callable[..., ByteLine] = getattr(importlib.import_module(module), name)
    return SimulationTransport(make(chosen, baud=baud), baud)


def simulated_config(name: str, config: HwConfig | None) -> HwConfig:
    """The configuration of a simulated device: that of the named preset or board, else `config`, else "mini".

    `UsageError` E2551 for a name that is neither.
    """
    if not name:
        return config or preset("mini")
    if name.removesuffix(SDRAM) in PRESETS:
        return preset(name)
    known = {alias: board for board in boards().values() for alias in (board.name, *board.aliases)}
    if name not in known:
        hint = f"presets: {', '.join(PRESETS)}; boards: {', '.join(sorted(known))}"
        raise UsageError("E2551", f"no preset or board named {name!r}", hint=hint)
    board = known[name]
    if config is not None and board.offers(config.name):
        return config
    return board.configuration()
