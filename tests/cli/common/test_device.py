"""What is said of a program before it is loaded, and when nothing is."""

from dataclasses import replace

import numpy as np
import pytest
from linked_program import BAUD, CLOCK, LINKED, program

from onnxhw.cli.common.device import announce_load
from onnxhw.cli.common.output import Output
from onnxhw.driver.client import Client
from onnxhw.driver.device import Device
from onnxhw.driver.device_model import DeviceModel
from onnxhw.driver.emulated_core import EmulatedCore
from onnxhw.driver.transport import SimulationTransport
from onnxhw.isa.link import Info
from onnxhw.program.traffic import core_bytes

LARGE = replace(LINKED, external=replace(LINKED.external, rows=8192))  # type: ignore[type-var]


def test_megabytes_and_seconds_of_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    one = program()
    large = replace(one, config=LARGE, external=np.resize(one.external, 120_000))
    model = DeviceModel(Info.of(LARGE, clock_hz=CLOCK, baud=BAUD), EmulatedCore(LARGE))
    with Device(Client(SimulationTransport(model, BAUD)), "here") as device:
        announce_load(Output(), device, large)
        assert capsys.readouterr().err == "loading chain: 0.5 MB, 5 s at 1,000,000 baud\n"
        device.load(large)
        announce_load(Output(), device, large)
        assert capsys.readouterr().err == ""
        device.client.reset()
        assert device.to_load(large) == core_bytes(large)
        announce_load(Output(), device, one)  # which is short, and for another device
        assert capsys.readouterr().err == ""
