"""`bench/large_accuracy.py` of a reduced classifier."""

import large_accuracy
import networks
import pytest

from onnxhw import golden


@pytest.mark.parametrize("off", [False, True])
def test_a_classifier_agrees(off: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """And with a golden model that is a step off everywhere nothing does."""
    right = golden.run
    if off:
        monkeypatch.setattr(golden, "run", lambda *given: {k: v ^ 1 for k, v in right(*given).items()})
    model = networks.quantized(networks.SMALL["keywords"](), "qdq")
    found = large_accuracy.agreement("keywords", model, 2, 1, "ulx3s-85f+sdram")
    assert found.images == 2
    assert bool(found.differences) is off
    assert found.ort_same_class == 2
    assert found.steps <= 3
    assert int(found.layers.split()[-1]) > 3
    assert bool(found.begins) == (found.largest > 0) == (found.share > 0)


@pytest.mark.slow
def test_a_network_of_concats_is_equal() -> None:
    """One of them joins what is on chip from the segment before, whose operand is there, too."""
    model = networks.quantized(networks.SMALL["squeezenet"](), "qdq")
    assert large_accuracy.agreement("squeezenet", model, 1, 1, "ulx3s-85f+sdram").differences == 0
