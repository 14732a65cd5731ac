"""A small campaign of flipped microcode; and one against a device that does not recover, which must show."""

from collections import Counter

import microcode
import numpy as np
import pytest
from microcode import DETECTED, LOST, campaign
from serial_lines import PinnedLine

from onnxhw.config import HwConfig
from onnxhw.driver.client import Client
from onnxhw.driver.transport import SimulationTransport
from onnxhw.engines.cxxrtl.rtl_device import RtlDevice, device_libraries
from onnxhw.program import DeviceProgram

pytestmark = [pytest.mark.rtl, pytest.mark.slow, pytest.mark.usefixtures("compiler")]

BAUD = 1_000_000
CLOCK = 8 * BAUD
FLIPS = 30


def found(config: HwConfig, program: DeviceProgram, flips: int) -> Counter[str]:
    x = np.random.default_rng(0).integers(-128, 128, (1, 4, 2, 3)).astype(np.int8)
    with RtlDevice(device_libraries(config, clock_hz=CLOCK, baud=BAUD), clock_hz=CLOCK, baud=BAUD) as pins:
        return campaign(Client(SimulationTransport(PinnedLine(pins, CLOCK), BAUD)), program, {"x": x}, flips, seed=1)


def test_flipped_microcode_never_leaves_the_device_unreachable(tiny: HwConfig, tiny_program: DeviceProgram) -> None:
    outcomes = found(tiny, tiny_program, FLIPS)
    assert outcomes.total() == FLIPS
    assert outcomes[LOST] == 0
    assert outcomes[DETECTED["E9108"]] > 0, "no flip has stopped a unit: the campaign shows nothing"


def test_the_campaign_sees_a_device_that_does_not_recover(
    tiny: HwConfig, tiny_program: DeviceProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here because the words are never put right."""
    real, calls = microcode.commit, 0

    def commit(client: Client, space: int, at: int, word: int, counts: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls % 2:
            real(client, space, at, word, counts)

    monkeypatch.setattr(microcode, "commit", commit)
    assert found(tiny, tiny_program, FLIPS // 3)[LOST] > 0
