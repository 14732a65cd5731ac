"""What the tests of a folder share: a cache of bitstreams of their own, and tools that stand still."""

from types import SimpleNamespace

import pytest

from onnxhw.board import find
from onnxhw.build import flow
from onnxhw.build.cache import Cache
from onnxhw.devices import family_of
from onnxhw.devices.family import ROUTED
from onnxhw.devices.report import ClockResult, RouteReport


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """An empty cache of bitstreams."""
    return Cache("bitstream", tmp_path_factory.mktemp("cache"))


@pytest.fixture
def tools(monkeypatch):
    """Tools that stand still and leave their files: the names of those that have run, with seeds; whether synthesis
    fails, and MHz by seed."""
    ran, family = SimpleNamespace(names=[], fails=False, mhz={1: 101.0}), family_of(find("ulx3s-12f"))

    def synthesize(_, directory, stage):
        ran.names.append("synthesize")
        (directory / "top.rpt").write_text("synthesis")
        if ran.fails:
            raise ValueError("no luck")
        return {}

    def place_and_route(directory, board, seed, words, stage):
        ran.names.append(f"route {seed}")
        (directory / f"nextpnr-{seed}.log").write_text("the log")
        (directory / family.routed).write_text("routed")
        (directory / ROUTED).write_text("{}")
        return RouteReport(clocks={"clk": ClockResult(ran.mhz[seed], 100.0)})

    monkeypatch.setattr(flow, "tool_versions", lambda family: {})
    monkeypatch.setattr(flow, "elaborate", lambda *_: {"top.il": "design"})
    monkeypatch.setattr(flow, "synthesize", synthesize)
    monkeypatch.setattr(flow, "check_fit", lambda counts, board: None)
    monkeypatch.setattr(flow, "place_and_route", place_and_route)
    monkeypatch.setattr(flow, "pack", lambda *_: b"bits")
    monkeypatch.setattr(type(family), "locate", lambda *_: [])
    return ran
