"""Networks of `scripts/fuzz_segments.py`: one that was wrong, and what it says of one that is."""

import fuzz_segments
import pytest

from onnxhw import golden

OPERANDS = 119
"""The number of a network whose product found both operands on chip, in one bank."""

EDGES = 57, 16, 20
"""Numbers of images whose first columns read padding in host words that ended the row before, one for each array."""


def test_a_network_that_was_wrong_is_equal(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz_segments.main(1, OPERANDS) == 0
    assert "0 without room, 0 wrong" in capsys.readouterr().out


@pytest.mark.parametrize("number", EDGES)
def test_images_that_were_wrong_are_equal(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz_segments.main(1, number, images=True) == 0
    assert "0 without room, 0 wrong" in capsys.readouterr().out


def test_some_networks_have_their_weights_in_pieces() -> None:
    found = [fuzz_segments.configuration(number).name for number in range(11)]
    assert found[0] == found[10] == "pieces"
    assert found[5] == "dense pieces"
    assert set(found) - {"pieces", "dense pieces"} == {config.name for config in fuzz_segments.CONFIGS}


def test_what_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    right = golden.run
    monkeypatch.setattr(golden, "run", lambda *given: {name: values ^ 1 for name, values in right(*given).items()})
    assert fuzz_segments.main(1, OPERANDS) == 8
    assert f"dense: --first {OPERANDS}: " in capsys.readouterr().out
