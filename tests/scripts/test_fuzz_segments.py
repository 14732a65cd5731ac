"""Networks of `scripts/fuzz_segments.py`: one that was wrong, and that it is seen if it is again."""

import fuzz_segments
import pytest

OPERANDS = 119
"""The number of a network whose product finds both operands on chip."""


def test_a_network_that_was_wrong_is_equal(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz_segments.main(1, OPERANDS) == 0
    assert "0 without room, 0 wrong" in capsys.readouterr().out


def test_what_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("onnxhw.sched.alloc._possible", lambda needs, config: True)
    assert fuzz_segments.main(1, OPERANDS) == 8
    assert f"dense: --first {OPERANDS}: E1210" in capsys.readouterr().out
