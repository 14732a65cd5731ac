"""docs/json.md has every field that the commands print, and none of its rows is of another command's making."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from onnxhw.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "json.md"
BY_NAME = {"nodes", "resources", "artifacts", "placement", "counters", "part_counters", "losses", "peers_ms", "top1"}
"""Fields whose value has keys that are data."""


def sections() -> dict[str, dict[str, str]]:
    """By heading: each field, and the heading its row refers to."""
    found: dict[str, dict[str, str]] = {}
    for text in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        name, rows = text.split("\n", 1)
        fields = found[name] = {}
        for row in rows.split("\n"):
            links = dict.fromkeys(re.findall(r"\(#(\w+)\)", row))
            for field in re.findall(r"`([\w.]+)`", row) if row.startswith("| `") else ():
                link = field if field in links else next(iter(links), "")
                fields.setdefault(field, link)
    return found


def keys(value: Any, before: str = "") -> set[str]:
    """The dotted names of a record; lists add nothing to a name."""
    if isinstance(value, list):
        return {key for each in value for key in keys(each, before)}
    if not isinstance(value, dict):
        return set()
    own = {f"{before}{key}" for key in value}
    return own.union(*(keys(inner, f"{before}{key}.") for key, inner in value.items() if not _named(key, inner)))


def _named(key: str, inner: Any) -> bool:
    return key in BY_NAME and (isinstance(inner, dict) or key == "part_counters")


def missing(record: Any, command: str) -> list[str]:
    page = sections()
    fields = page[command]

    def known(key: str) -> bool:
        if key in fields:
            return True
        parts = key.split(".")
        for at in range(1, len(parts)):
            link, rest = fields.get(".".join(parts[:at])), ".".join(parts[at:])
            if link and rest in page[link]:
                return True
        return False

    return sorted(key for key in keys(record) if not known(key))


@pytest.fixture(scope="module")
def folder(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, compiled."""
    out = tmp_path_factory.mktemp("page") / "out"
    assert main(["compile", str(digits), "-p", "mini", "-o", str(out), "-q"]) == 0
    return out


@pytest.mark.parametrize("command", ["check", "compile", "simulate", "run", "bench", "boards", "devices"])
def test_every_field_is_in_the_page(command: str, folder: Path, digits: Path, digits_test: Path, capsys: Any) -> None:
    arguments = {
        "check": [digits, "-p", "mini"],
        "compile": [digits, "-p", "mini", "-o", folder],
        "simulate": [folder, "-e", "emulator"],
        "run": [folder, "-d", "emu:", "-i", digits_test, "-n", 1, "--profile"],
        "bench": ["--models", digits, "--no-rtl", "-p", "mini"],
        "boards": [],
        "devices": [],
    }[command]
    assert main([command, *map(str, arguments), "--json", "-q"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert keys(record)
    assert missing(record, command) == []


def test_a_field_that_is_not_there_is_found() -> None:
    assert missing({"model": "x", "waiting": {"bytes": 1, "new": 2}, "more": 3}, "compile") == ["more", "waiting.new"]
