"""docs/onnx-ir.md: every code exists, every test exists and names its code, and no code of ours is missing."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CODE = re.compile(r"[EW]\d{4}")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "onnx-ir.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| [A-Z]\d+ \|", line)
]
SOURCES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src" / "onnxhw").rglob("*.py")}
USED = {code for text in SOURCES.values() for code in re.findall(r'"([EW]\d{4})"', text)}
TESTS = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
CASES = "".join(
    (ROOT / "scripts" / f"hostile_{part}.py").read_text(encoding="utf-8") for part in ("models", "external")
)
"""The cases of `test_code`, which is about models that a script generates."""
OURS = ("E33", "E34", "E45", "W33", "W34")
OUTCOMES = ("error", "unsupported", "warned", "noted", "used", "accepted", "ignored", "refused", "unrolled")


def homes(test: str) -> list[str]:
    """The texts of the files that define a test."""
    return [text for text in TESTS.values() if re.search(rf"^def {test}\(", text, re.MULTILINE)]


def test_the_page_has_rows() -> None:
    assert len(ROWS) > 140
    assert len({row[0] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_a_row_is_true(row: list[str]) -> None:
    _, _, outcome, codes, tests = row
    assert outcome.startswith(OUTCOMES)
    names = tests.split(", ")
    found = [text for name in names for text in homes(name)]
    assert all(homes(name) for name in names), f"no such test: {tests}"
    for code in filter(None, codes.split(", ")):
        assert CODE.fullmatch(code)
        assert code in USED, f"{code} is raised nowhere"
        assert any(code in text for text in [*found, *([CASES] if "test_code" in names else [])]), f"{tests}: no {code}"


def test_every_code_of_the_specification_has_a_row() -> None:
    paged = {code for row in ROWS for code in CODE.findall(row[3])}
    assert {code for code in USED if code.startswith(OURS)} <= paged


def test_every_warning_has_a_row_in_the_manual() -> None:
    manual = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| (W\d{4}) \|", manual, re.MULTILINE)
    assert documented == sorted(set(documented))
    assert set(documented) == {code for code in USED if code.startswith("W")}
