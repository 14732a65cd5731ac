"""The networks of `bench/large.py`, and the one that is planned in a moment."""

import large
import pytest

from onnxhw.config import preset
from onnxhw.ir.verify import verify

MACS = {"ad": 264_192, "resnet8": 75_777_280, "mobilenetv2": 300_774_272}
"""Counted by hand: of MobileNetV2 its paper has 300 million."""


@pytest.mark.parametrize("name", MACS)
def test_networks_are_those_of_the_papers(name: str) -> None:
    graph = large.NETWORKS[name]()
    verify(graph)
    assert graph.macs() == MACS[name]


def test_every_network_has_a_goal() -> None:
    assert set(large.NETWORKS) == set(large.GOALS)


def test_the_autoencoder_is_one_program_and_equal() -> None:
    record, plan, program, _ = large.measure("ad", preset("ulx3s-85f+sdram"))
    assert large.different(large.ad(), plan, program, 1) == 0
    assert record["moved_bytes"] + record["resident_bytes"] >= record["macs"]  # every weight once, or it is there
    assert record["segments"] == len(plan.segments)
    assert record["cycles"] == program.cycles > record["moved_bytes"] / 2
    assert record["cycles"] > record["moving"] > record["moved_bytes"] / 2
