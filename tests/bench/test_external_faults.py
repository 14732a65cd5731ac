"""The arguments of the campaign; what it finds is tested beside the driver."""

import external_faults
import faults
import pytest

from onnxhw.driver.device_model import DeviceModel


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--count", value) for value in ("0", "-1", "nan", "1e3", "x")),
        *(("--seed", value) for value in ("-1", "x")),
        ("--case", "nosuch"),
    ],
)
def test_a_wrong_argument_is_one_sentence(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        external_faults.main([f"{option}={value}"])
    assert ended.value.code == 2
    assert f"error: argument {option}: " in capsys.readouterr().err.splitlines()[-1]


def test_a_campaign_without_faults_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert external_faults.main(["--count=1", "--case=line lost in a batch"]) == 0
    monkeypatch.setattr(external_faults, "CASES", {})
    assert external_faults.main([]) == 1


def test_its_line_has_the_rate_that_the_figures_are_for() -> None:
    line = next(external_faults.modelled(external_faults.CONFIG, 0)).line
    assert isinstance(line, DeviceModel)
    assert line.info.baud == external_faults.BAUD == 1_000_000 != faults.BAUD
