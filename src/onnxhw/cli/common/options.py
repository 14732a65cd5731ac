"""Options that several commands share."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ...board_tables import BAUD as RATES
from .output import Output

if TYPE_CHECKING:
    from .read_options import ReadOptions

Command = TypeVar("Command", bound=Callable[..., Any])
VARIABLE = "ONNXHW_DEVICE"
"""Environment variable that names the device unless ``--device`` does."""
BAUD = click.IntRange(RATES[0], RATES[-1])
"""Speeds of a serial line."""


def with_options(command: Command, *options: Callable[[Command], Command]) -> Command:
    """The command with options, in the order in which the help shows them."""
    for option in reversed(options):
        command = option(command)
    return command


class SubcommandCommand(click.Command):
    """A command with an optional argument of its own that also has `subcommands`: a first word that is one's name means
    it. (A file of that name can be given as ``./NAME``.)"""

    def __init__(self, *args: Any, subcommands: Sequence[click.Command] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.subcommands = {command.name: command for command in subcommands}

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and (found := self.subcommands.get(args[0])):
            return found.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def _set(field: str, value: object) -> Callable[[click.Context, click.Parameter, bool], None]:
    def callback(ctx: click.Context, parameter: click.Parameter, given: bool) -> None:
        if given:
            setattr(ctx.find_object(Output), field, value)

    return callback


def common(command: Command) -> Command:
    """``--json``, ``-v``, ``-q``: they set the fields of `Output` and reach no command."""
    return with_options(command, *(
        click.option(*flags, is_flag=True, expose_value=False, is_eager=True, callback=_set(field, value), help=text)
        for flags, field, value, text in (
            (("--json",), "json", True, "One JSON document on stdout."),
            (("-v", "--verbose"), "verbosity", 1, "Details; a traceback if something unexpected happens."),
            (("-q", "--quiet"), "verbosity", -1, "Errors only, and what --json prints."),
        )
    ))  # fmt: skip


board_option = click.option(
    "-b", "--board", metavar="NAME|FILE", default="ulx3s", show_default=True,
    help="Board, e.g. ulx3s or ulx3s-25f (see `onnxhw boards`), or a board file (.toml).",
)  # fmt: skip


def device_options(command: Command) -> Command:
    """``--device``, ``--baud`` and ``--timeout-scale``."""
    return with_options(
        command,
        click.option(
            "-d", "--device", default="auto", show_default=True, envvar=VARIABLE, metavar="ADDRESS",
            help=f"auto, serial:PORT, tcp:HOST:PORT, sim: or emu: (also from {VARIABLE}).",
        ),
        click.option(
            "--baud", type=BAUD, metavar="N",
            help="Speed of the serial line; default: tries the usual ones.",
        ),
        click.option(
            "--timeout-scale", type=click.FloatRange(min=1), default=1.0, metavar="X",
            help="Wait X times longer: a simulated board on another machine.",
        ),
    )  # fmt: skip


class Frequency(click.FloatRange):
    """A clock in MHz; neither infinite nor NaN, which `click.FloatRange` takes."""

    name = "frequency"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        return found if math.isfinite(found) else self.fail(f"{value} is not a frequency", param, ctx)


preset_option = click.option(
    "-p", "--preset", metavar="NAME",
    help="Hardware configuration, or a .json file with one (as `explore` writes them); default: the board's own.",
)  # fmt: skip
cluster_options: tuple[Callable[[Command], Command], ...] = (
    click.option("--workers", type=click.IntRange(min=0), metavar="N",
                 help="Processes of this machine; default: one per processor; 0: all in this process."),
    click.option("--scheduler", default="", metavar="ADDRESS",
                 help="A Dask scheduler (tcp://HOST:8786) whose workers do the work."),
    click.option("--dashboard", is_flag=True, help="Show the local cluster's dashboard in a browser."),
)  # fmt: skip
"""``--workers``, ``--scheduler``, ``--dashboard``: what `onnxhw.cluster.pool` takes."""


def reading_options(command: Command) -> Command:
    """``--shape``, ``--limit``, ``--untrusted``, ``--exact-softmax``: the command gets `ReadOptions` as `reading`."""

    @functools.wraps(command)
    def with_reading(
        *args: Any, shapes: tuple[str, ...], limits: tuple[str, ...], untrusted: bool, exact_softmax: bool,
        **options: Any,
    ) -> Any:  # fmt: skip
        from .read_options import ReadOptions

        return command(*args, reading=ReadOptions(shapes, limits, untrusted, exact_softmax), **options)

    return with_options(  # type: ignore[return-value]  # functools.wraps hides that it is a Command
        with_reading,
        click.option("--shape", "shapes", multiple=True, metavar="NAME=N",
                     help="Size of a dimension: its symbol, or INPUT:AXIS."),
        click.option("--limit", "limits", multiple=True, metavar="NAME=N", help="Change a limit on the model's size."),
        click.option("--untrusted", is_flag=True, help="Read the model in a process of bounded memory and time first."),
        click.option("--exact-softmax", is_flag=True,
                     help="A Softmax before operations of the hardware runs on the host, in float32, not on the "
                     "hardware."),
    )  # fmt: skip


def state_options(command: Command) -> Command:
    """``--persist`` and ``--initial``: they go into the `ReadOptions` of `reading_options`, which stands before."""

    @functools.wraps(command)
    def with_states(
        *args: Any, reading: "ReadOptions", persist: tuple[str, ...], initial: tuple[str, ...], **options: Any
    ) -> Any:
        return command(*args, reading=replace(reading, persist=persist, initial=initial), **options)

    return with_options(  # type: ignore[return-value]  # functools.wraps hides that it is a Command
        with_states,
        click.option("--persist", multiple=True, metavar="OUTPUT=INPUT",
                     help="The output is the next run's input: it stays in external memory, and the host neither sends "
                     "nor receives it."),
        click.option("--initial", multiple=True, metavar="INPUT=FILE",
                     help="An .npy of what the first run finds there; default: 0."),
    )  # fmt: skip


def prefer_option(default: str) -> Callable[[Command], Command]:
    """``--prefer``."""
    return click.option(
        "--prefer", type=click.Choice(["speed", "hardware"]), default=default, show_default=True,
        help="Where a part of a model in parts runs: where line, core and host take least time, or on the hardware.",
    )  # fmt: skip


no_cache_option = click.option("--no-cache", is_flag=True, help="Build again even if a cached result exists.")


def preprocess_options(command: Command) -> Command:
    """``--scale``, ``--mean``, ``--std``, ``--layout``: the command gets a `Preprocess` named `preprocess`."""

    @functools.wraps(command)
    def with_preprocess(*args: Any, scale: str, mean: str | None, std: str | None, layout: str, **options: Any) -> Any:
        from ...preprocess import Preprocess

        numbers = [_numbers(flag, text) for flag, text in (("--scale", scale), ("--mean", mean), ("--std", std))]
        if len(numbers[0]) != 1:
            raise click.BadParameter("one number, e.g. 1/255", param_hint="--scale")
        return command(*args, preprocess=Preprocess(numbers[0][0], numbers[1], numbers[2], layout), **options)

    return with_options(  # type: ignore[return-value]  # functools.wraps hides that it is a Command
        with_preprocess,
        click.option("--layout", type=click.Choice(["nchw", "nhwc"]), default="nchw", show_default=True,
                     help="Of the model's inputs."),
        click.option("--scale", default="1", metavar="X", show_default=True,
                     help="Multiply inputs by this first, e.g. 1/255."),
        click.option("--mean", metavar="X", help="Then subtract this: one number, or one per channel, with commas."),
        click.option("--std", metavar="X", help="Divide by this: one number, or one per channel."),
    )  # fmt: skip


def _numbers(flag: str, text: str | None) -> tuple[float, ...]:
    """Numbers with commas between them; each may be a fraction."""
    try:
        return tuple(
            float(Fraction(part.strip())) if "/" in part else float(part) for part in (text or "").split(",") if part
        )
    except (ValueError, ZeroDivisionError, OverflowError):
        raise click.BadParameter(f"{text!r} is not a list of numbers", param_hint=flag) from None


out_option = click.option(
    "-o", "--out", "out", type=click.Path(path_type=Path, file_okay=True), metavar="DIR",
    help="Output directory; default: build/MODEL-PRESET.",
)  # fmt: skip


def examples(text: str) -> str:
    """Help text that leads with examples, kept line by line."""
    lines = text.strip("\n").rstrip()  # an empty line would end what is kept
    return f"\b\nExamples:\n{lines}\n"
