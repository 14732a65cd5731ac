"""What commands that talk to a device share: opening it, and bars for long work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...config import HwConfig
from ...driver.device import Device
from ...program.model import DeviceProgram
from ...program.traffic import BITS, load_bytes
from .output import Output

LONG = 2.0
"""Seconds of loading for which a person wants to know beforehand."""


def open_device(
    output: Output, address: str, baud: int | None, timeout_scale: float, config: HwConfig | None = None,
    likely_baud: int | None = None,
) -> Device:  # fmt: skip
    """The device, once it has answered; `config` is what a simulated one shall be, `likely_baud` the speed at which it
    is asked first if `baud` is None."""
    with output.stage(f"open {address}"):
        device = Device.open(
            address, baud=baud, timeout_scale=timeout_scale, config=config, likely_baud=likely_baud
        )
    if hint := device.hint():
        output.message(f"{device.address}: {hint}")
    return device


def announce_load(output: Output, device: Device, program: DeviceProgram) -> None:
    """Say how many bytes are to be sent before a program can run, and how long that takes, if it is `LONG` or more."""
    baud = device.client.transport.baud
    if BITS * load_bytes(program) < LONG * baud:
        return
    if size := device.to_load(program):
        output.message(f"loading {program.model}: {size / 1e6:.1f} MB, {BITS * size / baud:.0f} s at {baud:,} baud")


@contextmanager
def bar(output: Output, name: str) -> Iterator[Callable[[int, int], None] | None]:
    """A function to tell how much is done, of how much: a bar on a terminal; otherwise None, and a line at the end."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal or output.verbosity < 0:
        with output.stage(name):
            yield None
        return
    with Progress(console=console) as shown:
        task = shown.add_task(name, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
