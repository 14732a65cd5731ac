"""The arguments of the campaign; what it finds is tested beside the driver."""

import external_faults
import faults
import pytest

from onnxhw.driver.device_model import DeviceModel


def test_a_campaign_without_faults_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert external_faults.main(["--count=1", "--case=line lost in a batch"]) == 0
    monkeypatch.setattr(external_faults, "CASES", {})
    assert external_faults.main([]) == 1


def test_its_line_has_the_rate_that_the_figures_are_for() -> None:
    line = next(external_faults.modelled(external_faults.CONFIG, 0)).line
    assert isinstance(line, DeviceModel)
    assert line.info.baud == external_faults.BAUD == 1_000_000 != faults.BAUD
