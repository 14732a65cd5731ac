"""The arguments of the campaign over USB, which end it before a device is made."""

import pytest
import usb_faults


class Nobody:
    """In place of a campaign, which would compile a device."""


@pytest.mark.parametrize(
    ("option", "value"),
    [*(("--scale", value) for value in ("nan", "inf", "0", "-1", "1e308", "x")), ("--case", "nosuch")],
)
def test_a_wrong_argument_is_one_sentence(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        usb_faults.main([f"{option}={value}"])
    assert ended.value.code == 2
    assert f"error: argument {option}: " in capsys.readouterr().err.splitlines()[-1]


def test_a_campaign_without_faults_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usb_faults, "UsbCampaign", Nobody)
    monkeypatch.setattr(usb_faults, "CASES", ())
    assert usb_faults.main([], [].append) == 1
