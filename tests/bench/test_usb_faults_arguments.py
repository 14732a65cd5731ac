"""The arguments of the campaign over USB, which end it before a device is made."""

import pytest
import usb_faults


class Nobody:
    """In place of a campaign, which would compile a device."""


def test_a_campaign_without_faults_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usb_faults, "UsbCampaign", Nobody)
    monkeypatch.setattr(usb_faults, "CASES", ())
    assert usb_faults.main([], [].append) == 1
