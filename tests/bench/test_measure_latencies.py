"""The benchmark's table of latencies: ours at the clock that was routed, the others' as published."""

import dataclasses

import pytest

from onnxhw.bench.measure import BenchmarkRow, latencies
from onnxhw.bench.peers import PEERS, of_task, table
from onnxhw.bench.topologies import TOPOLOGIES


def row(task, preset, cycles, fmax=None):
    return BenchmarkRow(task, task, preset, "random", 1, cycles_predicted=cycles, fmax_mhz=fmax)


def test_latency_is_cycles_over_the_routed_clock():
    (ours,) = latencies([row("ic", "a", 50_000, 125.0), row("kws", "a", 10_000, 125.0)])
    assert ours.device == "onnxhw a (routed, 125.0 MHz)"
    assert ours.ms == {"ic": 0.4, "kws": 0.08}


def test_what_is_not_routed_says_so():
    (ours,) = latencies([row("ic", "a", 50_000), row("vww", "a", None)])
    assert (ours.device, ours.ms) == ("onnxhw a (not routed, at 100 MHz)", {"ic": 0.5})
    for_board = dataclasses.replace(row("ic", "a", 50_000), waiting={"clock_mhz": 125.0})
    (ours,) = latencies([for_board])
    assert (ours.device, ours.ms) == ("onnxhw a (not routed, at 125 MHz)", {"ic": 0.4})
    (ours,) = latencies([row("ic", "virtual", 50_000)])
    assert ours.device == "onnxhw virtual (for no device, at 100 MHz)"


def test_a_line_per_preset_and_none_for_files():
    assert [peer.device.split()[1] for peer in latencies([row("ic", "a", 5), row("ic", "b", 5), row("", "c", 5)])] == [
        "a",
        "b",
    ]


def test_peers_name_the_tasks_of_the_benchmark():
    columns, rows = table([])
    assert columns == ("device", "IC ms", "KWS ms", "VWW ms", "AD ms")
    assert len(rows) == len(PEERS) == len({peer.device for peer in PEERS})
    for peer, cells in zip(PEERS, rows, strict=True):
        assert peer.ms.keys() <= TOPOLOGIES.keys()
        assert cells == (peer.device, *(peer.ms.get(task) for task in TOPOLOGIES))
    assert of_task("kws")["Cortex-M85, 480 MHz"] == 3.46
    assert of_task("") == {}


@pytest.mark.parametrize("task", TOPOLOGIES)
def test_every_task_has_peers(task):
    assert len(of_task(task)) >= 5
