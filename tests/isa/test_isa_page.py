"""The printed page says everything that is declared, and the committed one is fresh."""

from pathlib import Path

import pytest
from isa_page import attribute_docs, markdown, prose, table

from onnxhw.isa import UNITS, VectorOp, move_timing
from onnxhw.isa.external_instructions import EXTERNAL, Move
from onnxhw.isa.memory import Control, Space

PAGE = Path(__file__).parents[2] / "docs" / "isa.md"


def test_the_page_is_fresh() -> None:
    if not PAGE.parent.is_dir():
        pytest.skip("no docs folder: an installed package")
    assert PAGE.read_text() == markdown(), "run: make docs"


def test_every_field_has_its_row() -> None:
    page = markdown()
    for kind in (*UNITS.values(), Move):
        section = page.split(f"## `{kind.UNIT}`")[1].split("\n## ")[0]
        for spec in kind.specs():
            low = -(1 << (spec.bits - 1)) if spec.signed else 0
            row = f"| `{spec.name}` | {spec.offset} | {spec.bits} | "
            assert row in section
            assert f"| {low} .. {low + (1 << spec.bits) - 1} |" in section.split(row)[1].split("\n")[0]
            assert spec.doc in section


def test_fields_that_external_memory_adds_have_theirs() -> None:
    section = markdown().split("## With external memory")[1].split("\n## ")[0]
    for unit, kind in UNITS.items():
        known = {spec.name for spec in kind.specs()}
        (added,) = [spec for spec in EXTERNAL[unit].specs() if spec.name not in known]
        assert f"| `{unit}` | `{added.name}` | {added.offset} | {added.bits} | " in section
    page = markdown()
    for name in ("BEGIN", "OFFER", "TO_BUFFER", "WRITTEN", "STORED", "RUN_BEGINS"):
        assert f"| `{name}` | {getattr(move_timing, name)} | " in page


def test_every_name_is_there() -> None:
    page = markdown()
    for member in (*VectorOp, *Space, *Control):
        assert f"| {member.value} | `{member.name}` |" in page
    assert "`array_latency`" in page


def test_loops_are_code() -> None:
    for kind in (*UNITS.values(), Move):
        lines = prose(kind)
        inside = lines[lines.index("```python") + 1 : lines.index("```")]
        assert any(line.strip().startswith("for ") for line in inside)
        assert not any(line.lstrip().startswith("for ") for line in lines[lines.index("```") :])


def test_attribute_docs_reads_what_stands_below() -> None:
    assert attribute_docs(VectorOp)["DRAIN"] == "`v = acc + bias`, from the accumulators"


def test_a_bar_does_not_end_a_cell() -> None:
    assert table(["a"], [["x|y"]]) == ["| a |", "| --- |", "| x\\|y |", ""]
