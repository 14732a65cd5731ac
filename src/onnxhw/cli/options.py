"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from .output import Output

Command = TypeVar("Command", bound=Callable[..., Any])


def _set(field: str, value: object) -> Callable[[click.Context, click.Parameter, bool], None]:
    def callback(ctx: click.Context, parameter: click.Parameter, given: bool) -> None:
        if given:
            setattr(ctx.find_object(Output), field, value)

    return callback


def common(command: Command) -> Command:
    """``--json``, ``-v``, ``-q``: they set the fields of `Output` and reach no command."""
    for flags, field, value, text in (
        (("-q", "--quiet"), "verbosity", -1, "Errors only."),
        (("-v", "--verbose"), "verbosity", 1, "Details; a traceback if something unexpected happens."),
        (("--json",), "json", True, "One JSON document on stdout."),
    ):
        option = click.option(
            *flags, is_flag=True, expose_value=False, is_eager=True, callback=_set(field, value), help=text
        )
        command = option(command)
    return command


def board_option(required: bool = False) -> Callable[[Command], Command]:
    """``--board``."""
    return click.option(
        "-b",
        "--board",
        required=required,
        metavar="NAME",
        default=None if required else "ulx3s",
        show_default=not required,
        help="Board, e.g. ulx3s or ulx3s-25f (see `onnxhw boards`).",
    )


preset_option = click.option("-p", "--preset", metavar="NAME", help="Hardware configuration; default: the board's own.")

no_cache_option = click.option("--no-cache", is_flag=True, help="Build again even if a cached result exists.")


def out_option(default: str) -> Callable[[Command], Command]:
    """``-o DIR``."""
    return click.option(
        "-o",
        "--out",
        "out",
        type=click.Path(path_type=Path, file_okay=True),
        metavar="DIR",
        help=f"Output directory; default: {default}.",
    )


def examples(text: str) -> str:
    """Help text that leads with examples, kept line by line."""
    return f"\b\nExamples:\n{text.rstrip()}\n"
