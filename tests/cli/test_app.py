"""From a command line to words on the right stream and the right exit status."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from onnxhw import __version__, errors
from onnxhw.board import find
from onnxhw.cli import app as application
from onnxhw.cli import main
from onnxhw.cli.common.crash import crash
from onnxhw.cli.common.output import Output


@pytest.fixture
def raising(monkeypatch):
    """Make the command `boards` raise what the test chooses."""

    def install(error: BaseException) -> None:
        @click.command()
        @click.option("--json", is_flag=True)
        def command(json: bool) -> None:
            raise error

        monkeypatch.setattr(application.Commands, "get_command", lambda self, ctx, name: command)

    return install


def test_what_a_library_makes_of_an_interrupt_is_an_interrupt(monkeypatch, capfd):
    """Python itself makes a RuntimeError of an exception in `__set_name__`."""

    @click.command()
    def command() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt as error:
            raise RuntimeError("Error calling __set_name__") from error

    monkeypatch.setattr(application.Commands, "get_command", lambda self, ctx, name: command)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            application.run(["boards"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert "E1901" not in capfd.readouterr().err


def test_characters_that_do_not_print_are_written_out(raising, capsys):
    raising(errors.UsageError("E2900", "no \x1b[31mred\x07", where="a\nb", hint="\x1b]0;title\x07 \u202e ü"))
    assert main(["boards"]) == 2
    text = capsys.readouterr().err
    assert "no \\x1b[31mred\\x07" in text
    assert "\\x1b]0;title\\x07 \\u202e ü" in text


def test_help_leads_with_examples_and_lists_every_command(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert text.index("Examples:") < text.index("Options:")
    for name in application.COMMANDS:
        assert f"  {name} " in text
    assert "Exit status: 0 ok, 1 bug of ours, 2 usage" in text


@pytest.mark.parametrize("name", application.COMMANDS)
def test_every_command_has_examples_json_and_verbosity(name, capsys):
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert "Examples:" in text
    assert f"onnxhw {name}" in text
    for option in ("--json", "--verbose", "--quiet"):
        assert option in text, option


@pytest.mark.parametrize("name", application.COMMANDS)
def test_examples_are_lines_of_their_own_and_name_what_there_is(name, capsys):
    """Options of the command, and folders as `compile` and `synth` name them where the board is the default."""
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    command = application.app.get_command(click.Context(application.app), name)
    options = {word for parameter in command.params for word in parameter.opts}
    lines = shown.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
    folder = f"build/model-{find('ulx3s').preset}"
    assert lines
    for line in lines:
        words = line.strip().partition("   ")[0].split()
        assert words[:2] == ["onnxhw", name]
        assert {word for word in words if word.startswith("-")} <= options
        assert {word for word in words if word.startswith("build/")} <= {folder, "build/model-mini"}


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"onnxhw, version {__version__}\n"


def test_no_command_shows_the_help(capsys):
    assert main([]) == 2
    words = capsys.readouterr()
    assert words.err.startswith("Usage: onnxhw ")
    assert "Examples:" in words.err
    assert words.out == ""


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("complie", "did you mean 'compile'?"),
        ("simulat", "did you mean 'simulate'?"),
        ("xyzzy", "compile, simulate, synth"),
    ],
)
def test_mistyped_command(typed, words, capsys):
    assert main([typed]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"E2900 usage: no command named '{typed}'" in captured.err
    assert words in captured.err


def test_mistyped_option_is_a_usage_error_with_a_suggestion(capsys):
    assert main(["doctor", "--jsn"]) == 2
    text = capsys.readouterr().err
    assert "E2901 usage: No such option" in text
    assert "--json" in text


@pytest.mark.parametrize(
    "kind",
    [
        "InternalError",
        "UsageError",
        "InvalidModelError",
        "UnsupportedError",
        "DoesNotFitError",
        "TimingError",
        "ToolError",
        "MismatchError",
        "LinkError",
    ],
)
def test_exit_status_is_the_errors_own(kind, raising, capsys):
    error = getattr(errors, kind)("E0000", "what happened", where="layer 'x'", hint="do this")
    raising(error)
    assert main(["boards"]) == error.exit_status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"E0000 {error.kind}: layer 'x': what happened\n  hint: do this\n"


def test_an_error_with_json_is_one_document_on_stdout(raising, capsys):
    raising(errors.DoesNotFitError("E5000", "too large", hint="smaller"))
    assert main(["boards", "--json"]) == 5
    record = json.loads(capsys.readouterr().out)
    assert record == {
        "error": {
            "code": "E5000",
            "kind": "does not fit",
            "what": "too large",
            "where": "",
            "hint": "smaller",
            "exit_status": 5,
        }
    }


def test_ctrl_c(raising, capsys):
    raising(KeyboardInterrupt())
    assert main(["boards"]) == 130
    assert capsys.readouterr().err.strip() == "interrupted; nothing was written half"


def test_an_unexpected_exception_is_one_message_and_a_file_to_report(raising, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    raising(ZeroDivisionError("oops"))
    assert main(["boards"]) == 1
    text = capsys.readouterr().err
    (file,) = tmp_path.iterdir()
    assert "E1901 internal error: ZeroDivisionError: oops" in text
    assert f"please report it with the file {file}" in text
    assert "Traceback" not in text
    assert "Traceback" in file.read_text()
    assert "arguments: boards" in file.read_text()


def test_the_traceback_shows_when_asked_for(raising, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("ONNXHW_DEBUG", "1")
    raising(ZeroDivisionError("oops"))
    assert main(["boards"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_sigterm_unwinds_like_ctrl_c(monkeypatch):
    @click.command()
    def command() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(application.Commands, "get_command", lambda self, ctx, name: command)
    before = signal.getsignal(signal.SIGTERM)
    assert main(["boards"]) == 130
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_module_is_the_command_and_starts_without_heavy_imports():
    code = (
        "import sys, onnxhw.cli; s = onnxhw.cli.main(['--help']); "
        "sys.exit(s or any(m in sys.modules for m in ('onnx', 'amaranth', 'numpy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
    run = subprocess.run([sys.executable, "-m", "onnxhw", "--version"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, f"onnxhw, version {__version__}\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_device_is_one_message():
    words = [sys.executable, "-m", "onnxhw", "boards", "--json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 2, "the message and its hint"
    assert "E2912" in done.stderr


def test_a_stage_on_a_terminal_tells_how_long_it_has_taken(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(time, "monotonic", iter(range(0, 10_000, 7)).__next__)
    output = Output()
    with output.stage("read [net].onnx"):
        words = ""
        while "..." not in words:
            words += capsys.readouterr().err
        with output.stage("inner"):
            output.message("half of [it]")
        output.message("the rest")
    words += capsys.readouterr().err
    assert "inner ..." not in words
    assert re.search(r"\x1b\[2Kinner +[0-9.]+ s\n", words)
    assert re.search(r"\x1b\[2Kthe rest\n", words)
    assert re.search(r"read \[net\]\.onnx \.\.\. [1-9][0-9]* s", words)
    assert re.search(r"\x1b\[2Khalf of \[it\]\n", words), "a line of its own"


@pytest.mark.parametrize(
    "arguments",
    [
        ["compile", "model.onnx", "-o", "LONG"],
        ["simulate", "LONG"],
        ["report", "LONG"],
        ["run", "LONG", "-i", "x.npz"],
        ["opset", "--write", "LONG"],
    ],
)
def test_a_name_that_is_too_long_is_a_mistake_of_use(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["x" * 300 if word == "LONG" else word for word in arguments]) == 2
    assert capsys.readouterr().err.startswith("E2916 usage: ")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("command", [["synth", "model.onnx"], ["serve"]])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0"])
def test_a_clock_is_a_frequency(command, value, capsys):
    assert main([*command, "--freq", value]) == 2
    assert capsys.readouterr().err.startswith("E2901 usage: Invalid value for '--freq'")


def test_a_crash_with_arguments_of_no_encoding_is_told_of(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert str(tmp_path) in crash(ValueError("bad"), ["boards", "\udcff.onnx"], 0).hint
    (file,) = tmp_path.iterdir()
    assert "arguments: boards \\udcff.onnx" in file.read_text()


ROWS = {"a": [], "b": [{}], "c": {"d": [{"e": None}]}, "f": [{"g": 'x"\n\u2028'}, {"h": 0.1}]}


@pytest.mark.parametrize("record", [{}, [], [1, {"a": 2}], ROWS])
def test_a_json_result_is_one_document_with_a_line_per_row(record, capsys):
    Output(json=True).data(record)
    text = capsys.readouterr().out
    assert json.loads(text) == record
    if isinstance(record, dict) and record:
        assert [line.strip(" ,") for line in text.splitlines()].count('{"h": 0.1}') == 1


COMMANDS_WITH_PATHS = [
    ("check", ""), ("compile", "m.onnx", "-o", ""), ("simulate", "m.onnx", "-i", ""), ("run", "", "-i", "x.npz"),
    ("run", "m.onnx", "-i", "x.npz", "--output", ""), ("run", "m.onnx", "-i", "x.npz", "--output="), ("report", ""),
    ("quantize", "m.onnx", "-c", ""), ("boards", ""), ("synth", "m.onnx", "--preset", ""), ("serve", "--link", ""),
]  # fmt: skip


@pytest.mark.parametrize("arguments", COMMANDS_WITH_PATHS, ids=" ".join)
def test_an_empty_argument_is_named_as_empty(arguments, tmp_path, monkeypatch, capsys):
    """It would be the current folder, or the default."""
    monkeypatch.chdir(tmp_path)
    assert main([*arguments]) == 2
    said = capsys.readouterr().err
    assert "E2901" in said
    assert "empty argument" in said or "--output has no value" in said
    assert f"onnxhw {arguments[0]} --help" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["check", "compile", "simulate", "run", "report", "program", "boards", "synth"])
@pytest.mark.parametrize("name", ["absent", "absent.onnx", "absent.ohw", "absent.json"])
def test_what_is_not_there_is_said_not_to_be(command, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([command, name, *(["-i", "x.npz"] if command == "run" else [])]) in (2, 3)
    said = capsys.readouterr().err
    assert name in said
    assert "No such file or directory" in said or "does not exist" in said
    assert "no output directory" not in said


def test_a_file_per_command_and_the_rest_in_a_folder():
    files = {path.stem for path in Path(application.__file__).parent.glob("*.py")}
    assert files == {"__init__", "app", *application.COMMANDS}
