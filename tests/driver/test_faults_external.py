"""The campaign of `bench/external_faults.py`, a little of it; and against devices that are broken on purpose."""

import external_faults
import pytest
from external_faults import CASES, CONFIG, Campaign, Found, modelled

from onnxhw.driver.device_model import DeviceModel
from onnxhw.driver.load_requests import image_writes, load_crc


@pytest.fixture(scope="module")
def program():
    return external_faults.deep()


def campaign(program, name, count, seed=1):
    found, made = Found(name), Campaign(program, modelled(CONFIG, seed), seed)
    for _ in range(count):
        CASES[name](made, found)
    return found


@pytest.mark.parametrize("name", CASES)
def test_no_fault_goes_undetected(program, name):
    found = campaign(program, name, 2)
    assert (found.undetected, found.wrong) == (0, 0)
    assert 0 < found.slowest < 0.4


def test_the_campaign_sees_a_device_that_claims_what_it_has_lost(program, monkeypatch):
    """Behind a restart it says that its image is there."""
    crc, begin = load_crc(list(image_writes(program))), DeviceModel.__init__

    def claims(self, *args):
        begin(self, *args)
        self.image, self.image_crc = True, crc

    monkeypatch.setattr(DeviceModel, "__init__", claims)
    found = campaign(program, "power lost while loading", 2)
    assert found.undetected >= 2
    assert found.wrong > 0
