"""The options of commands that talk to a device."""

from collections.abc import Callable

import click

from .options import Command

VARIABLE = "ONNXHW_DEVICE"
"""Environment variable that names the device unless ``--device`` does."""


def device_options(command: Command) -> Command:
    """``--device``, ``--baud`` and ``--timeout-scale``."""
    options: tuple[Callable[[Command], Command], ...] = (
        click.option(
            "--timeout-scale", type=click.FloatRange(min=1), default=1.0, metavar="X",
            help="Wait X times longer: a simulated board on another machine.",
        ),
        click.option(
            "--baud", type=click.IntRange(min=300, max=12_000_000), metavar="N",
            help="Speed of the serial line; default: tries the usual ones.",
        ),
        click.option(
            "-d", "--device", default="auto", show_default=True, envvar=VARIABLE, metavar="ADDRESS",
            help=f"auto, serial:PORT, tcp:HOST:PORT, sim: or emu: (also from {VARIABLE}).",
        ),
    )  # fmt: skip
    for option in options:
        command = option(command)
    return command
