"""The ends of a routed design by nextpnr's delays: which is the latest, and over which cells and wires it comes."""

import json
from pathlib import Path
from typing import Any

import pytest
from late_ends import NotRoutedError, cells_of, late_ends, told

from onnxhw.devices.sdf import Delays, Pin, read
from onnxhw.devices.static_timing import StaticTiming

SDF = r"""
(INTERCONNECT unit.q\[0\]/Q table/A (300:350:400) (310:355:390))
(INTERCONNECT table/F late/DI (0:0:130) (0:0:120))
(INTERCONNECT other/Q table/B (0:0:9000) (0:0:9000))
(INTERCONNECT unit.q\[0\]/Q far/M (900:950:2500) (900:950:2400))
(INTERCONNECT pin/O near/M (0:0:8000) (0:0:8000))
(INSTANCE unit.q\[0\])
(IOPATH CLK Q (500:510:520) (500:510:525))
(SETUPHOLD (posedge M) (posedge CLK) (0:0:0) (0:0:0))
(INSTANCE other)
(IOPATH CLK Q (500:510:520) (500:510:525))
(INSTANCE table)
(IOPATH A F (200:218:236) (200:218:236))
(IOPATH B F (200:218:236) (200:218:236))
(INSTANCE late)
(SETUPHOLD (posedge DI) (posedge CLK) (0:10:20) (0:0:0))
(SETUPHOLD (negedge DI) (posedge CLK) (0:10:20) (0:0:0))
(INSTANCE far)
(SETUPHOLD (posedge M) (posedge CLK) (0:0:0) (0:0:0))
(INSTANCE near)
(SETUPHOLD (posedge M) (posedge CLK) (0:0:0) (0:0:0))
"""


def cell(kind: str, x: int, y: int, **pins: int) -> dict[str, Any]:
    place = {"NEXTPNR_BEL": f"X{x}/Y{y}/SLICEA.FF0"}
    return {"type": kind, "attributes": place, "connections": {pin: [bit] for pin, bit in pins.items()}}


CELLS = {
    "unit.q[0]": cell("TRELLIS_FF", 3, 4, Q=10, M=15, CLK=1),
    "other": cell("TRELLIS_FF", 3, 4, Q=11, CLK=2),  # of another clock
    "table": cell("TRELLIS_COMB", 5, 4, A=10, B=11, F=12),
    "late": cell("TRELLIS_FF", 5, 4, DI=12, CLK=1),
    "far": cell("TRELLIS_FF", 23, 10, M=10, CLK=1),
    "near": cell("TRELLIS_FF", 9, 9, M=14, CLK=1),
}


@pytest.fixture
def delays() -> Delays:
    return read(SDF.splitlines())


def test_the_latest_ends_come_first_and_only_ways_of_one_clock_count(delays: Delays) -> None:
    timing = StaticTiming(delays, CELLS)
    times = [(time, timing.pins[end]) for time, end in late_ends(timing, 0)]
    assert times == [(525 + 2500, Pin("far", "M")), (525 + 400 + 236 + 130 + 20, Pin("late", "DI"))]
    assert len(late_ends(timing, 525 + 400 + 236 + 130 + 20)) == 1


def test_a_way_tells_cells_places_and_wires(delays: Delays) -> None:
    timing = StaticTiming(delays, CELLS)
    assert list(told(timing, CELLS, timing.number[Pin("far", "M")])) == [
        " 0.53 TRELLIS_FF at (3, 4): unit.q[0] Q",
        " 3.02 TRELLIS_FF at (23, 10), wire 2.50 over 20, 6: far M",
    ]
    assert [line.split(": ")[1] for line in told(timing, CELLS, timing.number[Pin("late", "DI")])] == [
        "unit.q[0] Q", "table A", "late DI",
    ]  # fmt: skip


def test_a_long_chain_has_an_end(delays: Delays) -> None:
    length = 5000
    for n in range(length):
        delays.wires[Pin(f"c{n}", "A")] = Pin(f"c{n - 1}" if n else "unit.q[0]", "F" if n else "Q"), 100.0
        delays.paths[Pin(f"c{n}", "F")] = [(Pin(f"c{n}", "A"), 1.0)]
    delays.wires[Pin("near", "M")] = Pin(f"c{length - 1}", "F"), 0.0
    timing = StaticTiming(delays, CELLS)
    time, end = late_ends(timing, 0)[0]
    assert (time, timing.pins[end]) == (525 + 101.0 * length, Pin("near", "M"))


@pytest.mark.parametrize("text", ["x", "[]", "{}", '{"modules": {}}', '{"modules": {"a": {"attributes": {}}}}'])
def test_a_file_that_is_no_routed_design_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(NotRoutedError, match=r"a\.json is no netlist of nextpnr's"):
        cells_of(tmp_path / "a.json")


def test_a_netlist_without_places_is_refused(tmp_path: Path) -> None:
    cells = {"a": {"type": "LUT4", "attributes": {}, "connections": {}}}
    record = {"modules": {"chip": {"attributes": {"top": 1}, "cells": cells}}}
    (tmp_path / "a.json").write_text(json.dumps(record))
    with pytest.raises(NotRoutedError, match="has no placed cells"):
        cells_of(tmp_path / "a.json")
    cells["a"]["attributes"] = {"NEXTPNR_BEL": "X1/Y2/SLICEA.K0"}
    (tmp_path / "a.json").write_text(json.dumps(record))
    assert list(cells_of(tmp_path / "a.json")) == ["a"]
