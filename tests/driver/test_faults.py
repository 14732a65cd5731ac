"""A small fault campaign; and one against a device that is broken on purpose, which must show."""

import pytest
from faults import Campaign, Fault, compiled, linked

from onnxhw.driver import device_model


@pytest.fixture(scope="module")
def campaign():
    return Campaign(compiled())


@pytest.mark.parametrize(
    "fault",
    [
        Fault("host killed", 0, 8),
        Fault("host killed in a batch", 0, 20, inferences=True),
        Fault("flip 1e-4", 1e-4, 60),
        Fault("flip 1e-2", 1e-2, 100),
        Fault("drop 1e-3", 1e-3, 30),
        Fault("insert 1e-3", 1e-3, 30),
        Fault("duplicate 1e-3", 1e-3, 30),
        Fault("burst 1e-3", 1e-3, 30),
        Fault("break 1e-3", 1e-3, 30),
    ],
    ids=lambda fault: fault.name,
)
def test_no_fault_goes_undetected(campaign, fault):
    figures = campaign.run(fault, campaign.emulated(), seed=1)
    assert figures.injected >= fault.faults
    assert (figures.undetected, figures.wrong, figures.hangs) == (0, 0, 0)
    assert figures.detected > 0 or not fault.rate
    assert max(figures.recovery) < 0.1, "the next session begins within a tenth of a second of line time"


@pytest.fixture(scope="module")
def of_linked():
    return Campaign(linked())


@pytest.mark.parametrize(
    "fault", [Fault("host killed", 0, 6), Fault("flip 1e-4", 1e-4, 30), Fault("burst 1e-3", 1e-3, 20)]
)
def test_no_fault_goes_undetected_with_an_image_of_external_memory(of_linked, fault):
    figures = of_linked.run(fault, of_linked.emulated(), seed=1)
    assert figures.injected >= fault.faults
    assert (figures.undetected, figures.wrong, figures.hangs) == (0, 0, 0)
    assert max(figures.recovery) < 0.1


def test_the_campaign_sees_a_device_that_takes_damaged_frames(campaign, monkeypatch):
    monkeypatch.setattr(device_model, "crc32c", _Anything())
    figures = campaign.run(Fault("flip 1e-4", 1e-4, 100), campaign.emulated(), seed=1)
    assert figures.undetected + figures.wrong > 0


class _Anything(int):
    """A CRC that is equal to every other."""

    def __call__(self, data, before=0):
        return self

    __hash__ = None

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False


def test_the_campaign_sees_a_device_that_keeps_what_a_killed_host_has_left(campaign, monkeypatch):
    monkeypatch.setattr(device_model.DeviceModel, "_forget_inputs", lambda self: None)
    fault = Fault("host killed in a batch", 0, 20, inferences=True)
    assert campaign.run(fault, campaign.emulated(), seed=1).wrong > 0


def test_the_campaign_sees_a_device_that_runs_twice(campaign):
    device = campaign.emulated()
    original = device.core.write

    def twice(space, address, words, step=1):
        original(space, address, words, step)
        if (space, address) == (0, 0):
            original(space, address, words, step)

    device.core.write = twice
    assert campaign.run(Fault("flip 1e-4", 1e-4, 100), device, seed=1).undetected > 0
