"""What nextpnr and Yosys count of a GW2A is told in the same terms, and a clock as the bound that it is."""

import hashlib
from pathlib import Path

from onnxhw.board import find
from onnxhw.devices import find_family
from onnxhw.devices.gowin import report as module
from onnxhw.devices.gowin.bound import MARGIN, PathBound
from onnxhw.devices.gowin.report import KINDS, NAMES, bounded, counts, shared
from onnxhw.devices.gowin.through import SUFFIX
from onnxhw.devices.report import ClockResult, RouteReport, read_report

USED = {"LUT4": (100, 20736), "ALU": (30, 15552), "RAM16SDP4": (2, 648), "DFF": (40, 15552), "BSRAM": (3, 46),
        "MULT18X18": (4, 48), "MULT9X9": (5, 96), "rPLL": (1, 2)}  # fmt: skip
RECORD = {
    "utilization": {name: {"used": used, "available": available} for name, (used, available) in USED.items()},
    "fmax": {"clk": {"achieved": 994.0, "constraint": 54.0}}, "critical_paths": [],
}  # fmt: skip


def test_what_shares_a_place_is_counted_once():
    report = shared(read_report(RECORD, KINDS, NAMES), RECORD["utilization"])
    assert report.resources == {"lut": (142, 20736), "ff": (40, 15552), "dsp": (7, 48), "ebr": (3, 46),
                                "lutram": (2, 648), "pll": (1, 2)}  # fmt: skip


def test_yosys_cells_are_counted_as_nextpnr_does():
    cells = {"LUT1": 1, "LUT2": 20, "LUT3": 30, "LUT4": 49, "ALU": 30, "RAM16SDP4": 2, "DFF": 30, "DFFSE": 10,
             "MULT18X18": 4, "MULT9X9": 5, "SDPB": 1, "SDPX9B": 2, "MUX2_LUT5": 7}  # fmt: skip
    named = {f"{kind}_{number}": kind for kind, count in cells.items() for number in range(count)}
    named |= {"behind_nothing" + SUFFIX: "LUT1"}
    assert counts(named) == {"LUT4": 142, "flip-flops": 40, "multipliers": 7, "block RAMs": 3}


def test_no_clock_is_claimed_beyond_the_slowest_path():
    report = read_report(RECORD, KINDS, NAMES)
    assert report.fmax_mhz == 994.0
    slow = bounded(report, PathBound(16.0, 9.0, "SDP ram", "DFF x", 5))
    assert slow.fmax_mhz == 1000 / (MARGIN * 16.0)
    assert not slow.timing_met
    assert slow.path.startswith("16.00 ns from SDP ram to DFF x: 7.00 ns in 5 levels of logic")
    assert "a bound, not an analysis by the vendor" in slow.path


def test_a_design_without_paths_has_no_clock():
    """Nothing shows that a clock is met where nothing was looked at."""
    assert bounded(RouteReport(clocks={"clk": ClockResult(994.0, 54.0)}), PathBound()).fmax_mhz == 0


def test_a_result_is_kept_for_the_bound_that_it_was_made_with():
    sources = b"".join(Path(each.__file__).read_bytes() for each in (module, module.bound))
    assert find_family("gowin").key(find("tang-nano-20k"))["bound"] == hashlib.sha256(sources).hexdigest()
