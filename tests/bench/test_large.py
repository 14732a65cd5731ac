"""The networks of `bench/large.py`, and the one that is planned in a moment."""

import large
import networks
import pytest

from onnxhw.board import find
from onnxhw.errors import UsageError
from onnxhw.ir.verify import verify
from onnxhw.presets import preset
from onnxhw.segments import Techniques

MACS = {"ad": 264_192, "resnet8": 75_777_280}
"""Counted by hand."""
QUANTIZED = {"mobilenetv1": 568_740_352, "mobilenetv2": 300_774_272, "mobilenetv3": 56_510_400,
             "efficientnet-lite0": 385_187_552, "squeezenet": 349_151_936, "resnet18": 1_814_073_344}  # fmt: skip
"""Of MobileNetV1 its paper has 569 million, of V2 300, of V3-small 56, of EfficientNet-B0, which has squeeze-and-excite
besides, 390, and of SqueezeNet 1.1 its authors 349; of ResNet-18 torchvision counts 1,814."""


@pytest.mark.parametrize("name", MACS)
def test_networks_are_those_of_the_papers(name: str) -> None:
    graph = large.NETWORKS[name]()
    verify(graph)
    assert graph.macs() == MACS[name]


@pytest.mark.parametrize("name", QUANTIZED)
def test_networks_that_onnxruntime_quantizes_are_those_of_the_papers(name: str) -> None:
    graph = large.graph_of(name)
    verify(graph)
    assert graph.macs() == QUANTIZED[name]


def test_goals_are_of_networks() -> None:
    assert set(large.NETWORKS) < set(large.GOALS) < {*large.NETWORKS, *networks.FULL}


def test_the_autoencoder_is_one_program_and_equal() -> None:
    graph = large.graph_of("ad")
    record, plan, program, _ = large.measure("ad", graph, preset("ulx3s-85f+sdram"), Techniques())
    assert large.different(graph, plan, program, 1) == 0
    assert record["moved_bytes"] + record["resident_bytes"] >= record["macs"]  # every weight once, or it is there
    assert record["segments"] == len(plan.segments)
    assert record["cycles"] == program.cycles > record["moved_bytes"] / 2
    assert record["cycles"] > record["moving"] > record["moved_bytes"] / 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--preset=mini"], "E2190"),
        (["--preset=nosuch"], "E2104"),
        (["--mhz=200"], "E2373"),
        (["--mhz=1"], "E2373"),
    ],
)
def test_a_configuration_that_cannot_be_is_told_before_a_network_is_made(
    arguments: list[str], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "graph_of", None)
    with pytest.raises(UsageError, match=code) as raised:
        large.main(["ad", *arguments])
    assert raised.value.exit_status == 2


@pytest.mark.parametrize("mhz", [None, 50.0, 100.0])
def test_the_memory_is_that_of_the_clock(mhz: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    board, found = find(large.BOARD), []

    def forecast(graph: object, config: large.HwConfig) -> dict[str, int]:
        found.append(config.external)
        return {}

    monkeypatch.setattr(large, "forecast", forecast)
    monkeypatch.setattr(large, "graph_of", lambda name, form: None)
    assert large.main(["ad", "--forecast", *([] if mhz is None else [f"--mhz={mhz}"])]) == 0
    hz = board.core_hz_of("ulx3s-85f+sdram") if mhz is None else int(mhz * 1e6)
    assert found == [board.external_memory(hz)]
    assert board.external_memory(50_000_000) != board.external_memory(100_000_000)


@pytest.mark.parametrize(
    ("record", "wrong"),
    [
        ({}, False),
        ({"differences": 0, "rtl_cycles": [7, 7], "rtl_differences": 0}, False),
        ({"differences": 1}, True),
        ({"rtl_cycles": [7, 7], "rtl_differences": 2}, True),
        ({"rtl_cycles": [7, 8], "rtl_differences": 0}, True),
    ],
)
def test_what_differs_is_told_by_the_exit_status(record, wrong):
    assert large.differs({"cycles": 7, **record}) is wrong
