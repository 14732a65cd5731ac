"""The command group and the way from an exception to an exit status."""

import difflib
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import click

from .. import __version__
from ..errors import OnnxhwError, UsageError
from .common.crash import crash
from .common.hints import for_command
from .common.interrupts import interruptible
from .common.output import Output
from .common.streams import CLOSED, to_nowhere, unread

COMMANDS = {
    "quantize": "Quantize a float model to int8 with calibration data.",
    "check": "Say where every node of a model runs, why, and whether it fits a board.",
    "compile": "Compile a model to a program for a board.",
    "simulate": "Run a model or program and compare it with the golden model.",
    "synth": "Make the bitstream and the program of a model.",
    "program": "Write the bitstream to a connected board.",
    "devices": "List serial ports, and what the boards behind them say.",
    "run": "Run a compiled model on a board: arrays in, arrays out.",
    "selftest": "Test a board: its link, its memories and a network of every instruction.",
    "serve": "A simulated board: the RTL behind a serial line.",
    "report": "Write and print the report of an output directory.",
    "explore": "Search the hardware configuration for models: cycles, logic, memory.",
    "boards": "List boards and presets; given a model, which of them fit.",
    "opset": "List the hardware's operators, or hold a model against operator set documents.",
    "conformance": "Run onnx's own backend test suite and print the score.",
    "bench": "Measure the benchmark models in one table.",
    "cache": "List or clear what has been built.",
    "doctor": "Check tools, versions and devices, with a fix for each fault.",
}
"""Commands in the order of the help; each lives in the module of its name, as `command`."""

EXAMPLES = """\b
Examples:
  onnxhw check model.onnx                       where does each node run, and why?
  onnxhw boards model.onnx                      which boards fit?
  onnxhw compile model.onnx --board ulx3s       program, manifest, report
  onnxhw simulate model.onnx --random 4         run the RTL, compare with the golden model
  onnxhw synth model.onnx --board ulx3s         bitstream and program
"""

FOOTER = """\b
Exit status: 0 ok, 1 bug of ours, 2 usage, 3 invalid model, 4 unsupported model, 5 does not fit,
6 timing not met, 7 tool missing or failed, 8 results differ, 9 link error, 130 interrupted, 141 nobody read its output.
"""


class PipeError(Exception):
    """A `BrokenPipeError` of a command, its cause; click would take any for one of stdout and end the process."""


class Commands(click.Group):
    """A group that imports a command only when it is asked for, and guesses at mistyped names."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise PipeError from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command = importlib.import_module(f"onnxhw.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in COMMANDS:
            near = difflib.get_close_matches(name, COMMANDS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"commands: {', '.join(COMMANDS)}"
            raise UsageError("E2900", f"no command named {name!r}", hint=hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=Commands,
    help=f"From an int8 ONNX model to a bit-exact accelerator on an FPGA.\n\n{EXAMPLES}",
    epilog=FOOTER,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, "-V", "--version", prog_name="onnxhw")
@click.pass_context
def app(context: click.Context) -> int:
    """The group; see `Commands`. Without a command its help on stderr, and a status that says so."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
    return 2


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status; messages have been printed. `KeyboardInterrupt` if interrupted."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    output = Output(json="--json" in args)
    if (empty := _empty(args)) is not None:
        return said(output, empty)
    if os.environ.get("ONNXHW_DEBUG"):
        output.verbosity = 1
    try:
        with interruptible() as interruption, output.warned():
            result = app.main(args, prog_name="onnxhw", obj=output, standalone_mode=False)
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except OnnxhwError as error:
        if "--" in error.hint:
            error.hint = for_command(error.hint, next((word for word in args if word in COMMANDS), ""), app)
        return said(output, error)
    except click.UsageError as error:
        return said(output, _usage(error))
    except click.ClickException as error:
        return said(output, UsageError("E2902", error.format_message()))
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except (PipeError, BrokenPipeError, SystemExit) as error:  # the last is the answer of click and rich to them
        if unread(sys.__stdout__ or sys.stdout):
            to_nowhere(sys.__stdout__ or sys.stdout)
            return CLOSED
        return said(output, crash(error.__cause__ or error, args, output.verbosity))  # a child's pipe, or a line's
    except MemoryError:
        what = "there is not enough memory"
        return said(output, UsageError("E2917", what, hint="end other programs, or allow this one more (ulimit -v)"))
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            where, hint = str(error.filename or ""), "choose a shorter name"
            return said(output, UsageError("E2916", "the file name is too long", where=where, hint=hint))
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            return said(output, crash(error, args, output.verbosity))
        to_nowhere(sys.stdout)  # it may be what cannot be written
        what = f"the result cannot be written: {error.strerror}"
        return said(output, UsageError("E2912", what, hint="make room, or write elsewhere"))
    except Exception as error:
        if interruption.raised:
            raise KeyboardInterrupt from error
        return said(output, crash(error, args, output.verbosity))


def _empty(args: Sequence[str]) -> UsageError | None:
    """The error of an argument without a character, as a script makes of a variable that is not set: no command takes
    one, and as a path it would be the current folder.
    """
    command = next((word for word in args if not word.startswith("-")), "")
    hint = f"onnxhw {command} --help" if command in COMMANDS else "onnxhw --help"
    for before, word in pairwise(("", *args)):
        if not word or (word.startswith("--") and word.endswith("=")):
            what = f"{word[:-1]} has no value" if word else f"an empty argument behind {before!r}"
            return UsageError("E2901", what, hint=hint)
    return None


def said(output: Output, error: OnnxhwError) -> int:
    """The exit status of an error that has been printed, as far as somebody takes what is printed."""
    try:
        output.error(error)
    except OSError:  # stdout, where --json puts it
        to_nowhere(sys.stdout)
        output.error(error)
    return error.exit_status


def _usage(error: click.UsageError) -> UsageError:
    """A usage error of click in our form, with the place to look."""
    command = error.ctx.command_path if error.ctx else "onnxhw"
    return UsageError("E2901", error.format_message().rstrip("."), hint=f"{command} --help")
