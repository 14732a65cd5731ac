"""Latencies that others have published for the MLPerf Tiny networks, to read ours against.

Closed division (the reference weights, any equivalent computation) unless the device's name says otherwise. SCALE-Sim
and NNgen are no entries here: `bench/compare` runs them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .topologies import TOPOLOGIES


@dataclass(frozen=True)
class Peer:
    """One device. `ms`: milliseconds per inference by short name of the task (`TOPOLOGIES`), where published."""

    device: str
    ms: dict[str, float]


PEERS = (
    Peer("Cortex-M4, 120 MHz (reference)", {"ic": 704, "kws": 182, "vww": 601, "ad": 10.05}),
    Peer("Cortex-M7, 280 MHz (best)", {"ic": 40.8, "kws": 11.3, "vww": 23.8, "ad": 1.08}),
    Peer("Cortex-M85, 480 MHz", {"ic": 8.48, "kws": 3.46, "vww": 13.4, "ad": 0.53}),
    Peer("Syntiant NDP120, 98.7 MHz", {"ic": 5.12, "kws": 1.48, "vww": 4.10}),
    Peer("GreenWaves GAP9, 370 MHz", {"ic": 0.616, "kws": 0.476, "vww": 1.125, "ad": 0.176}),
    Peer("FPGA XC7Z020, 211 DSPs, 143 MHz", {"ic": 0.411, "kws": 0.324, "vww": 9.49}),
    Peer("FPGA XC7Z045, 525 to 564 DSPs", {"ic": 0.147, "vww": 0.720}),
    Peer("FPGA ZCU106, 994 DSPs", {"vww": 0.373}),
    Peer("Snapdragon sensing hub (best of any)", {"ic": 0.096, "kws": 0.065, "vww": 0.114, "ad": 0.068}),
    Peer("hls4ml and FINN, PYNQ-Z2 (open division, few bits)", {"ic": 1.51, "kws": 0.0175, "ad": 0.0187}),
)
"""MLPerf Tiny results, to three or four digits."""


def of_task(task: str) -> dict[str, float]:
    """Milliseconds by device for one task; empty for a model that is not one of MLPerf Tiny."""
    return {peer.device: peer.ms[task] for peer in PEERS if task in peer.ms}


def table(ours: Sequence[Peer]) -> tuple[tuple[str, ...], list[tuple[str | float | None, ...]]]:
    """Columns and rows: ours first, then the others."""
    rows = [(peer.device, *(peer.ms.get(task) for task in TOPOLOGIES)) for peer in (*ours, *PEERS)]
    return ("device", *(f"{task.upper()} ms" for task in TOPOLOGIES)), rows
