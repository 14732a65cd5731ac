"""The networks of `bench/large.py`, and the one that is planned in a moment."""

import large
import networks
import pytest

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
