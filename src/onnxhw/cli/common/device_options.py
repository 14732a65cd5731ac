"""The options of commands that talk to a device."""

import click

from .options import Command, with_options

VARIABLE = "ONNXHW_DEVICE"
"""Environment variable that names the device unless ``--device`` does."""


def device_options(command: Command) -> Command:
    """``--device``, ``--baud`` and ``--timeout-scale``."""
    return with_options(
        command,
        click.option(
            "-d", "--device", default="auto", show_default=True, envvar=VARIABLE, metavar="ADDRESS",
            help=f"auto, serial:PORT, tcp:HOST:PORT, sim: or emu: (also from {VARIABLE}).",
        ),
        click.option(
            "--baud", type=click.IntRange(min=300, max=12_000_000), metavar="N",
            help="Speed of the serial line; default: tries the usual ones.",
        ),
        click.option(
            "--timeout-scale", type=click.FloatRange(min=1), default=1.0, metavar="X",
            help="Wait X times longer: a simulated board on another machine.",
        ),
    )  # fmt: skip
