"""Programs in segments over a USB link: the core, its external memory that checks its controller, and a USB host."""

import pytest
from linked_program import DEEP, LATE, LINKED, is_right, program, sample
from usb_host.line import UsbLine
from usb_host.model import UsbModel, usb_libraries

from onnxhw.driver.client import Client
from onnxhw.driver.transport import SimulationTransport
from onnxhw.isa.link import USB_BAUD
from onnxhw.program.input_regions import latency
from onnxhw.program.throughput import throughput_of
from onnxhw.program.traffic import Rates

pytestmark = [pytest.mark.rtl, pytest.mark.slow]
pytest.importorskip("luna", reason="the gateware of the USB link needs luna-usb")

CLOCK, COUNT = 12_000_000, 6
BOUNDS = {(4, 9): "link", DEEP: "core", LATE: "core"}


def test_inputs_and_outputs_overlap_runs() -> None:
    """Cycles and results are as ever, and a batch takes what is predicted, never less, and at most what is before the
    first run and behind the last more."""
    with UsbModel(usb_libraries(LINKED, clock_hz=CLOCK), clock_hz=CLOCK) as model:
        line = UsbLine(model)
        client = Client(SimulationTransport(line, USB_BAUD))
        for which, bound in BOUNDS.items():
            one = program(*which)
            client.load(one)
            client.run_all([sample(0, *which)] * 2)
            begin = line.seconds()
            results = client.run_all([sample(seed, *which) for seed in range(COUNT)])
            spent = 1e3 * (line.seconds() - begin)
            assert all(is_right(result.outputs, seed, *which) for seed, result in enumerate(results))
            assert {result.cycles for result in results} == {one.cycles}
            assert results[0].latency == latency(one)
            found = throughput_of([one], Rates(USB_BAUD, CLOCK))
            assert found.bound == bound
            # Nothing goes on beside the first input's way, the last run and the way of its outputs.
            assert COUNT * found.period < spent < COUNT * found.period + found.core + found.line
