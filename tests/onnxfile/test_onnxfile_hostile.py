"""Every code of reading has hostile files that give it, and nothing hostile gives anything else."""

import logging
from pathlib import Path

import error_codes
import hostile_base
import hostile_models
import pytest

from onnxhw.errors import InvalidModelError
from onnxhw.onnxfile.limits import LimitError, Limits
from onnxhw.onnxmodel.read import read


@pytest.mark.parametrize("case", hostile_models.CASES, ids=lambda case: f"{case.code}-{case.name}")
def test_code(case: hostile_base.Case, tmp_path: Path) -> None:
    source = case.build(tmp_path)
    with pytest.raises(InvalidModelError) as caught:
        read(source, Limits.from_flags(case.flags))
    assert caught.value.code == case.code
    if case.flags:
        assert isinstance(caught.value, LimitError)
        assert f"--limit {case.flags[0].partition('=')[0]}=" in caught.value.hint


def test_the_base_of_all_cases_is_valid(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert read(hostile_base.base().SerializeToString()).warnings == ()
    assert not caplog.records


MEMORY = {"E3171"}
"""Where the machine has no memory left."""
TEXT = {"E3033", "E3034", "E3035"}
"""Of files that are text, whose cases are in test_textual.py."""


def test_every_code_of_reading_has_a_case() -> None:
    raised = {
        use.code
        for use in error_codes.uses()
        if use.code.startswith("E3") and ("onnxfile/" in use.file or use.file.endswith("onnxmodel/read.py"))
    }
    assert raised - MEMORY - TEXT == {case.code for case in hostile_models.CASES}


def test_the_script_writes_every_case(tmp_path: Path) -> None:
    hostile_models.main(tmp_path)
    rows = (tmp_path / "index.tsv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == len(hostile_models.CASES)


def test_raising_the_limit_as_the_hint_says_helps() -> None:
    """What is over a limit is not invalid: with the flag it is read."""
    data = hostile_base.base().SerializeToString()
    flags = ["nodes=5", "subgraph_depth=0", "values=10", "total_bytes=30", "file_bytes=100"]
    while True:
        try:
            read(data, Limits.from_flags(flags))
            break
        except LimitError as error:
            flags.append(error.hint.split("--limit ")[1].split(",")[0])
    assert len(flags) >= 10
