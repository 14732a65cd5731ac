"""nextpnr's report in our words."""

import json

from onnxhw.devices.ecp5.report import report as read_report
from onnxhw.devices.report import ClockResult, RouteReport

PATH = [
    {"type": "clk-to-q", "delay": 0.5, "from": {"cell": "a.x", "port": "CLK"}, "to": {"cell": "a.x", "port": "Q"}},
    {"type": "routing", "delay": 1.25, "from": {"cell": "a.x", "port": "Q"}, "to": {"cell": "l", "port": "A"}},
    {"type": "logic", "delay": 0.25, "from": {"cell": "l", "port": "A"}, "to": {"cell": "l", "port": "F"}},
    {"type": "routing", "delay": 0.75, "from": {"cell": "l", "port": "F"}, "to": {"cell": "b.y", "port": "DI"}},
    {"type": "setup", "delay": 0.0, "from": {"cell": "b.y", "port": "DI"}, "to": {"cell": "b.y", "port": "CLK"}},
]
RECORD = {
    "utilization": {"TRELLIS_COMB": {"used": 10, "available": 24288}, "DP16KD": {"used": 3, "available": 56}},
    "fmax": {"fast": {"achieved": 300.0, "constraint": 100.0}, "slow": {"achieved": 90.0, "constraint": 100.0}},
    "critical_paths": [
        {"from": "posedge fast", "to": "posedge fast", "path": []},
        {"from": "posedge slow", "to": "posedge slow", "path": PATH},
    ],
}


def test_the_worst_clock_decides():
    report = read_report(RECORD)
    assert report.resources == {"lut": (10, 24288), "ebr": (3, 56)}
    assert report.worst == "slow"
    assert report.fmax_mhz == 90.0
    assert not report.timing_met
    assert report.path.startswith("2.75 ns from register")
    assert report.remedy.startswith("mostly wires")


def test_a_design_without_clocks_has_not_met_its_timing():
    assert not RouteReport().timing_met
    assert RouteReport(clocks={"c": ClockResult(100.0, 100.0)}).timing_met


def test_record_reads_back():
    report = read_report(RECORD)
    again = RouteReport.from_record(json.loads(json.dumps(report.record(), sort_keys=True)))  # as the cache keeps it
    assert again == report
    assert list(again.resources) == list(report.resources)
