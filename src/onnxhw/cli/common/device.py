"""What commands that talk to a device share: opening it, and bars for long work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...config import HwConfig
from ...driver.device import Device
from .output import Output


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
