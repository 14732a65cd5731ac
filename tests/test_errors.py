"""Error codes: documented, consistent with the exit status, and each with one meaning."""

from collections import defaultdict
from pathlib import Path

import error_codes
import pytest

from onnxhw import errors

SAME_MEANING = {"E2126", "E2303", "E3001", "E3171", "E3359", "E3400", "E4001", "E5201",
                *(f"E510{digit}" for digit in range(1, 7)), "E5190", "E7120", "E9102", "E9105", "E9106"}  # fmt: skip
"""Codes that more than one package raises, with the same meaning."""


@pytest.fixture(scope="module")
def uses():
    """Of the whole source: it takes seconds to read."""
    return error_codes.uses()


def test_the_source_has_codes(uses):
    assert len(uses) > 100


def test_every_code_has_a_row_and_every_row_a_code(uses):
    documented = error_codes.documented()
    assert len(documented) == len(set(documented))
    assert {use.code for use in uses} == set(documented)


def test_rows_are_sorted():
    documented = error_codes.documented()
    assert documented == sorted(documented)


def test_the_first_digit_is_the_exit_status(uses):
    compared, wrong = 0, []
    for use in uses:
        kind = getattr(errors, use.kind, None)
        if isinstance(kind, type) and issubclass(kind, errors.OnnxhwError):
            compared += 1
            wrong += [f"{use.file}:{use.line} {use.code}"] * (int(use.code[1]) != kind.exit_status)
    assert not wrong
    assert compared > 100


def test_a_code_belongs_to_one_package(uses):
    packages = defaultdict(set)
    for use in uses:
        packages[use.code].add(Path(use.file).parts[2])
    assert {code for code, found in packages.items() if len(found) > 1} <= SAME_MEANING


def test_exit_statuses_are_those_of_the_manual():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.OnnxhwError)]
    manual = (error_codes.ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    statuses = {kind.__name__: kind.exit_status for kind in kinds if kind is not errors.OnnxhwError}
    assert sorted(statuses.values()) == list(range(1, 10))
    for name, status in statuses.items():
        (row,) = [line for line in manual.splitlines() if f"`{name}`" in line]
        assert row.startswith(f"| {status} |")


@pytest.mark.parametrize("part", ["what", "where", "hint"])
@pytest.mark.parametrize("text", ["x" * 10**6, "a text " * 10**5, "\n" * 10**6, "é" * 300])
def test_nobody_s_text_fills_the_screen(part, text):
    error = errors.UsageError("E2552", **{"what": "is wrong", part: f"begins {text} ends"})
    assert len(getattr(error, part)) <= min(len(text), errors.LONGEST)
    assert getattr(error, part).startswith("begins ")
    assert getattr(error, part).endswith(" ends")
    assert getattr(error, part) in str(error)


@pytest.mark.parametrize("value", ["a" * 61, "a" * 10**6, list(range(1000)), {"a": "b" * 100}, 10**100])
def test_a_value_in_a_message_is_short(value):
    found = errors.short(value)
    assert len(found) == 60
    assert found.startswith(repr(value)[:30])
    assert found.endswith(repr(value)[-10:])
    assert errors.short(repr(value)[:50]) == repr(repr(value)[:50])
