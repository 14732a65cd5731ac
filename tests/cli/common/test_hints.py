"""Hints name options that the command has, or the command that has them."""

import ast
import json
from pathlib import Path

import click
import pytest

import onnxhw
from onnxhw.cli import app as application
from onnxhw.cli import main
from onnxhw.cli.common.hints import OPTION, for_command
from onnxhw.errors import UsageError

SOURCE = Path(onnxhw.__file__).parent
GROUP = application.app
CONTEXT = click.Context(GROUP)
OPTIONS = {
    name: {flag for one in GROUP.get_command(CONTEXT, name).params for flag in (*one.opts, *one.secondary_opts)}
    for name in application.COMMANDS
}


def hints():
    """File, line and text of every hint in the source."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            given = [one.value for one in node.keywords if one.arg == "hint"] if isinstance(node, ast.Call) else []
            if isinstance(node, ast.Assign) and any(getattr(one, "id", "").endswith("HINT") for one in node.targets):
                given.append(node.value)
            for one in given:
                texts = [part.value for part in ast.walk(one) if isinstance(part, ast.Constant)]
                yield path.relative_to(SOURCE), node.lineno, " ".join(text for text in texts if isinstance(text, str))


def test_every_option_of_a_hint_is_one_of_the_command():
    found = [(path, line, text) for path, line, text in hints() if set(OPTION.findall(text)) - {"--help"}]
    assert len(found) > 10  # `--help` is click's, of every command
    for path, line, text in found:
        name = path.stem if path.parent == Path("cli") else ""
        if name in OPTIONS and "onnxhw " not in text:
            assert set(OPTION.findall(text)) <= OPTIONS[name], f"{path}:{line}"
        else:
            assert any(set(OPTION.findall(text)) <= one for one in OPTIONS.values()), f"{path}:{line}"


@pytest.mark.parametrize("command", OPTIONS)
def test_a_hint_of_all_commands_names_who_has_its_options(command):
    for hint in ("raise it with --limit nodes=9", "give --shape N=1", "leave --baud out", "use --nothing", "no option"):
        said, wanted = for_command(hint, command, GROUP), set(OPTION.findall(hint))
        owners = [name for name, options in OPTIONS.items() if wanted <= options]
        if command in owners or not owners:
            assert said == hint
        else:
            assert said == f"{hint} (an option of onnxhw {owners[0]})"


def test_a_place_that_cannot_be_written_names_no_option(capsys):
    assert main(["opset", "--write", "/dev/full", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "E2903"
    assert " -" not in error["hint"]


def test_the_command_line_says_who_has_an_option(monkeypatch, capsys):
    def refuse(*_):
        raise UsageError("E2903", "too large", hint="raise it with --limit nodes=9")

    monkeypatch.setattr("onnxhw.cli.common.outdir.write_atomically", refuse)
    assert main(["opset", "--write", "x", "--json"]) == 2
    owner = next(name for name, options in OPTIONS.items() if "--limit" in options)
    assert json.loads(capsys.readouterr().out)["error"]["hint"].endswith(f"nodes=9 (an option of onnxhw {owner})")


@pytest.mark.parametrize("models", [",", " ", " , ,"])
def test_bench_without_a_model_is_a_usage_error(models, capsys):
    assert main(["bench", "--models", models, "--no-rtl", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "E2901"
