"""The example network, compiled; the bitstream flow, replaced."""

import pytest

from onnxhw.build import flow
from onnxhw.build.bitstream import Bitstream
from onnxhw.build.stage import FlowEvent
from onnxhw.cli import main
from onnxhw.cli.common import synthesis
from onnxhw.devices.report import ClockResult, RouteReport


@pytest.fixture(scope="module")
def compiled(digits, tmp_path_factory):
    """The output directory of `compile` for the preset `mini`."""
    folder = tmp_path_factory.mktemp("compiled") / "out"
    assert main(["compile", str(digits), "--preset", "mini", "-o", str(folder), "-q"]) == 0
    return folder


@pytest.fixture
def built(monkeypatch):
    """Replaces the flow; the options it was called with, and what it shall do."""
    calls = []
    report = RouteReport(
        {"lut": (11203, 83640), "ff": (9053, 83640), "dsp": (16, 156), "ebr": (32, 208)},
        {"clk": ClockResult(101.25, 100.0)},
    )

    def build(design, board, *, clock_hz, options, progress, use_cache, label, recipe):
        calls.append({"design": design, "clock_hz": clock_hz, "options": options, "use_cache": use_cache})
        progress(FlowEvent("yosys", 1.5, True))
        if calls[0].get("raises"):
            raise calls[0]["raises"]
        return Bitstream(b"bits", "config", report, 3, "ab" * 20, clock_hz, board, {"yosys": "1"}, [], True)

    monkeypatch.setattr(flow, "build", build)
    monkeypatch.setattr(
        synthesis, "top",
        lambda board, config, clock_hz, baud, link, boots: (board.name, config.name, clock_hz, baud, boots),
    )
    return calls
