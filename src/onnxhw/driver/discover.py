"""The serial ports of this machine, and which boards may be behind them."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..board import boards
from ..errors import ToolError
from .transport import permission_hint


@dataclass(frozen=True)
class SerialPort:
    """A serial port.

    `usb` is ``"0403:6015"`` or empty, `serial` the adapter's serial number, `product` what it calls itself. `boards`
    are the names of the boards that have such an adapter. `hint` is what hinders its use: permission or latency.
    """

    device: str
    usb: str = ""
    serial: str = ""
    product: str = ""
    boards: tuple[str, ...] = field(default=())
    hint: str = ""

    @property
    def address(self) -> str:
        """For `Device.open`."""
        return f"serial:{self.device}"


def ports() -> list[SerialPort]:
    """All serial ports, those with a known board's adapter first. `ToolError` E7301 without pyserial."""
    try:
        from serial.tools import list_ports
    except ImportError:
        raise ToolError("E7301", "finding serial ports needs pyserial", hint="pip install 'onnxhw[host]'") from None
    found = [_port(entry) for entry in list_ports.comports()]
    return sorted(found, key=lambda port: (not port.boards, port.device))


def _port(entry: Any) -> SerialPort:
    usb = "" if entry.vid is None else f"{entry.vid:04x}:{entry.pid:04x}"
    known = tuple(board.name for board in boards().values() if usb and usb in (board.usb.lower(), board.usb_id))
    product = entry.product or (entry.description if entry.description not in (None, "n/a") else "")
    return SerialPort(
        entry.device, usb, entry.serial_number or "", product or "", known, hint(entry.device) if known else ""
    )


def hint(device: str) -> str:
    """What hinders the use of a port, empty if nothing: no permission, or a latency timer that makes requests slow."""
    if os.path.exists(device) and not os.access(device, os.R_OK | os.W_OK):
        return permission_hint(device)
    timer = latency_timer(device)
    if timer is not None and timer > 1:
        path = _timer_path(device)
        return f"each small request costs {timer} ms: `echo 1 | sudo tee {path}`"
    return ""


def latency_timer(device: str) -> int | None:
    """Milliseconds for which a USB adapter collects bytes before it sends them on (Linux, FTDI); None if unknown."""
    try:
        return int(_timer_path(device).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _timer_path(device: str) -> Path:
    return SYSFS / Path(os.path.realpath(device)).name / "latency_timer"


SYSFS = Path("/sys/bus/usb-serial/devices")
