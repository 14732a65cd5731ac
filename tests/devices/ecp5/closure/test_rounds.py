"""Rounds of closing timing with a router that is told how well it does."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from placed_netlist import Netlist, between, delays_of, detour

from onnxhw.devices.ecp5 import closure
from onnxhw.devices.ecp5.closure import CONSTRAINTS, DELAYS, MOVED, REPORT, close_timing
from onnxhw.devices.ecp5.closure.placed import PlacedDesign
from onnxhw.devices.family import ROUTED
from onnxhw.devices.report import ClockResult, RouteReport
from onnxhw.devices.sdf import Pin
from onnxhw.errors import ToolError

FIRST = 525 + 240 + between((5, 5), (8, 10)) + between((8, 10), (15, 5))
"""The path of `detour` as it is."""
LPF = 'LOCATE COMP "clk" SITE "G2";\n'
KEPT = ("top.config", ROUTED, REPORT)
DIRECT = 525 + 240 + between((5, 5), (5, 5)) + between((5, 5), (15, 5))
"""The path of `detour` with its table beside one of the registers."""


def sdf_of(record: dict, wires: Mapping[tuple[str, str], float]) -> str:
    delays = delays_of(PlacedDesign(record), wires)
    lines = [f"(INTERCONNECT {a.cell}/{a.port} {b.cell}/{b.port} (0:0:{ps}) (0:0:{ps}))"
             for b, (a, ps) in delays.wires.items()]  # fmt: skip
    for pin, paths in delays.paths.items():
        lines += [f"(INSTANCE {pin.cell})", *(f"(IOPATH {a.port} {pin.port} (0:0:{ps}) (0:0:{ps}))" for a, ps in paths)]
    for pin, (clock, ps) in delays.setups.items():
        lines += [f"(INSTANCE {pin.cell})", f"(SETUPHOLD (posedge {pin.port}) (posedge {clock}) (0:0:{ps}) (0:0:0))"]
    return "\n".join(lines)


class Router:
    """Leaves what nextpnr would, with a report that is wrong; the wire to the table takes longer by `more` picoseconds
    in the run of that number. `clocked` are the registers that had their clock, run by run, `asked` the routes that
    were there."""

    def __init__(self, more: Mapping[int, float] | None = None) -> None:
        self.more, self.clocked, self.asked = more or {}, list[set[str]](), list[dict[str, str]]()
        self.constraints, self.settings = "", list[dict[str, str]]()

    def __call__(self, folder: Path) -> None:
        run = len(self.clocked)
        record = json.loads((folder / MOVED).read_text())
        cells = record["modules"]["top"]["cells"]
        for cell in cells.values():  # the placer has put it there
            if at := cell["attributes"].pop("BEL", None):
                cell["attributes"]["NEXTPNR_BEL"] = at
        self.clocked.append({name for name, cell in cells.items() if cell["connections"].get("CLK")})
        self.settings.append(record["modules"]["top"]["settings"])
        self.constraints = (folder / CONSTRAINTS).read_text()
        if self.more.get(run, 0) < 0 and "idle" not in self.clocked[-1]:  # in a round
            raise ToolError("E7102", "no way to a pin")
        place = PlacedDesign(record).places
        wires = {("t0", "A"): between(place["start"], place["t0"]) + self.more.get(run, 0)}
        nets = record["modules"]["top"]["netnames"]
        self.asked.append({name: net["attributes"].get("ROUTING", "") for name, net in nets.items()})
        report = {"fmax": {"clk": {"achieved": 1.0, "constraint": 1e6 / 3600}}, "critical_paths": [], "utilization": {}}
        (folder / REPORT).write_text(json.dumps(report))
        for net in nets.values():
            net["attributes"]["ROUTING"] = f"of run {run}"
        (folder / ROUTED).write_text(json.dumps(record))
        (folder / DELAYS).write_text(sdf_of(record, wires))
        (folder / "top.config").write_text(f"run {run}")
        (folder / "log").write_text("")


def routed(folder: Path) -> Netlist:
    """`detour` as it was routed first, with a register far from every late path."""
    netlist = detour()
    netlist.register("idle", "X5/Y4/SLICEA.FF0", "idle", CE="out")
    netlist.register("near", "X5/Y5/SLICEC.FF0", "near", CE="out")  # in the tile of a late one
    netlist.routes = {net: "first" for net in netlist.bits}
    (folder / ROUTED).write_text(json.dumps(netlist.record()))
    (folder / DELAYS).write_text(sdf_of(netlist.record(), {}))
    (folder / "top.config").write_text("first")
    (folder / REPORT).write_text("first")
    return netlist


def close(folder: Path, router: Router, period: float) -> bool:
    report = RouteReport(clocks={"clk": ClockResult(1e6 / FIRST, 1e6 / period)})
    said: list[str] = []
    found = close_timing(folder, LPF, report, router, KEPT, said.append)
    assert said
    assert {path.name for path in folder.iterdir()} == {*KEPT, DELAYS}, "nothing is left of the rounds"
    return found


def table_of(folder: Path) -> str:
    record = json.loads((folder / ROUTED).read_text())
    return str(record["modules"]["top"]["cells"]["t0"]["attributes"]["NEXTPNR_BEL"])


def test_a_round_that_meets_the_clock_is_the_last(tmp_path: Path) -> None:
    routed(tmp_path)
    before, router = table_of(tmp_path), Router({0: 3570 - DIRECT})  # met, though not the goal
    assert close(tmp_path, router, 3600.0)
    assert len(router.clocked) == 2, "a round, and the whole design"
    assert table_of(tmp_path) != before
    assert (tmp_path / "top.config").read_text() == "run 1"


def test_in_a_round_only_registers_of_tiles_with_late_ones_have_their_clock(tmp_path: Path) -> None:
    routed(tmp_path)
    router = Router()
    close(tmp_path, router, 3600.0)
    assert router.clocked == [{"start", "end", "near"}, {"start", "end", "near", "idle"}]
    assert {settings["placer"] for settings in router.settings} == {"sa"}, "which puts carry cells where they are"
    assert router.constraints == f'{LPF}FREQUENCY NET "clk" {1e6 / 3600.25:.6f} MHZ;\n'


def test_what_is_routed_stays_but_for_what_leads_from_a_moved_cell(tmp_path: Path) -> None:
    netlist = routed(tmp_path)
    router = Router()
    close(tmp_path, router, 3600.0)
    first, last = router.asked
    assert first == {net: "" if net == "n0" else "first" for net in netlist.bits}
    assert last == {net: "first" if net == "clk" else "of run 0" for net in netlist.bits}, "the clock lacked registers"
    nets = json.loads((tmp_path / ROUTED).read_text())["modules"]["top"]["netnames"]
    assert {net["attributes"]["ROUTING"] for net in nets.values()} == {"of run 1"}


def test_a_wire_that_goes_round_loses_its_branch_alone(tmp_path: Path) -> None:
    netlist = routed(tmp_path)
    root, branch = "X8/Y10/F0_SLICE;;1", "X15/Y5/CE0_SLICE;X8/Y10/0_0_F0_SLICE->7_-5_CE0_SLICE;1"
    netlist.routes["n0"] = f"{branch};{root}"
    (tmp_path / ROUTED).write_text(json.dumps(netlist.record()))
    (tmp_path / DELAYS).write_text(sdf_of(netlist.record(), {("end", "CE"): 5000.0}))
    late = 525 + 240 + between((5, 5), (8, 10)) + 5000
    report, router = RouteReport(clocks={"clk": ClockResult(1e6 / late, 1e6 / 4400)}), Router()
    place = table_of(tmp_path)
    assert close_timing(tmp_path, LPF, report, router, KEPT, lambda _: None)
    assert router.asked[0] == {net: root if net == "n0" else "first" for net in netlist.bits}
    assert table_of(tmp_path) == place


def test_the_report_tells_what_the_delays_do(tmp_path: Path) -> None:
    routed(tmp_path)
    assert close(tmp_path, Router(), 3600.0)
    report = json.loads((tmp_path / REPORT).read_text())
    place = PlacedDesign(json.loads((tmp_path / ROUTED).read_text())).places["t0"]
    total = 525 + between((5, 5), place) + 240 + between(place, (15, 5))
    assert report["fmax"]["clk"]["achieved"] == pytest.approx(1e6 / total)
    (path,) = report["critical_paths"]
    assert (path["from"], path["to"]) == ("posedge clk", "posedge clk")
    assert [(part["type"], part["to"]["cell"], part["to"]["port"]) for part in path["path"]] == [
        ("clk-to-q", "start", "Q"), ("routing", "t0", "A"), ("logic", "t0", "F"), ("routing", "end", "CE"),
        ("setup", "end", "CE"),
    ]  # fmt: skip
    assert sum(part["delay"] for part in path["path"]) == pytest.approx(total / 1000)
    assert path["path"][-2]["to"]["loc"] == [15, 5]


@pytest.mark.parametrize("more", [3000.0, -1.0])
def test_what_became_worse_or_cannot_be_routed_is_undone(tmp_path: Path, more: float) -> None:
    routed(tmp_path)
    files = {path.name: path.read_text() for path in tmp_path.iterdir()}
    router = Router(dict.fromkeys(range(10), more))
    assert not close(tmp_path, router, 3600.0)
    assert len(router.clocked) == len(closure.GOALS), "each with another goal"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


def test_what_was_late_in_a_round_that_brought_nothing_is_not_done_again(tmp_path: Path) -> None:
    routed(tmp_path)
    first, router = Router(), Router({0: 3000.0})
    assert close(tmp_path, first, 3600.0)
    tile = table_of(tmp_path).split("/SLICE")[0]
    routed(tmp_path)
    assert close(tmp_path, router, 3600.0)
    assert table_of(tmp_path).split("/SLICE")[0] != tile
    assert (tmp_path / "top.config").read_text() == "run 2"


def test_what_is_nearer_but_misses_the_clock_is_kept(tmp_path: Path) -> None:
    routed(tmp_path)
    router = Router({0: 300.0, **dict.fromkeys(range(1, 1 + len(closure.GOALS)), -1.0)})
    assert close(tmp_path, router, DIRECT + 200)
    last = len(router.clocked) - 1
    assert last > 1
    assert (tmp_path / "top.config").read_text() == f"run {last}", "the whole design, behind rounds in vain"


def test_what_is_nearer_by_its_own_clock_alone_is_not_kept(tmp_path: Path) -> None:
    """A clock that was met and is missed then counts, too."""
    routed(tmp_path)
    files = {path.name: path.read_text() for path in tmp_path.iterdir()}

    class Other(Router):
        def __call__(self, folder: Path) -> None:
            super().__call__(folder)
            report = json.loads((folder / REPORT).read_text())
            report["fmax"]["q"] = {"achieved": 10.0, "constraint": 100.0}  # of which the delays have no end
            (folder / REPORT).write_text(json.dumps(report))

    assert not close(tmp_path, Other(), 3600.0)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


@pytest.mark.parametrize("what", ["off the clock network", "a fault in a tile", "an exchanged input", "other figures"])
def test_what_is_not_as_it_is_understood_is_left(tmp_path: Path, what: str) -> None:
    netlist, first = routed(tmp_path), FIRST
    if what == "off the clock network":
        netlist.clocks = set()
    elif what == "a fault in a tile":
        netlist.register("other", "X5/Y5/SLICED.FF0", "other", CE="out", CLK="clk2")
    elif what == "an exchanged input":
        netlist.table("chain", "X6/Y5/SLICEA.K0", "sum", mode="CCU2", A="q")
        netlist.routes["q"] = "X6/Y5/A0_SLICE;X6/Y5/0_0_C0->0_0_A0_SLICE;1"
    else:
        first += 1  # of clocks at both edges nextpnr would say so
    (tmp_path / ROUTED).write_text(json.dumps(netlist.record()))
    router = Router()
    report = RouteReport(clocks={"clk": ClockResult(1e6 / first, 1e6 / 3600)})
    assert not close_timing(tmp_path, LPF, report, router, KEPT, lambda _: None)
    assert not router.clocked


@pytest.mark.parametrize("what", ["a fault in a tile", "an exchanged input"])
def test_a_result_with_a_fault_is_not_kept(tmp_path: Path, what: str) -> None:
    netlist = routed(tmp_path)
    netlist.table("chain", "X6/Y5/SLICEA.K0", "sum", mode="CCU2", A="q")
    (tmp_path / ROUTED).write_text(json.dumps(netlist.record()))
    files = {path.name: path.read_text() for path in tmp_path.iterdir()}

    class Faulty(Router):
        def __call__(self, folder: Path) -> None:
            super().__call__(folder)
            record = json.loads((folder / ROUTED).read_text())
            top = record["modules"]["top"]
            if what == "a fault in a tile":
                top["cells"]["near"]["connections"]["CLK"] = [999]
            else:
                top["netnames"]["q"]["attributes"]["ROUTING"] = "X6/Y5/A0_SLICE;X6/Y5/0_0_C0->0_0_A0_SLICE;1"
            (folder / ROUTED).write_text(json.dumps(record))

    router = Faulty()
    assert not close(tmp_path, router, 3600.0)
    assert len(router.clocked) == 2, "the round was good"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


def test_where_nothing_can_be_changed_nothing_is_routed(tmp_path: Path) -> None:
    netlist = routed(tmp_path)
    router = Router()
    assert not close(tmp_path, router, 1e5)
    netlist.cells["t0"]["parameters"]["MODE"] = "CCU2"
    (tmp_path / ROUTED).write_text(json.dumps(netlist.record()))
    assert not close(tmp_path, router, 3600.0)
    assert not router.clocked


def test_the_delays_of_the_last_round_count(tmp_path: Path) -> None:
    """What a round is judged by is what the router says, not what was estimated."""
    routed(tmp_path)
    found = closure.Closure(tmp_path, LPF, RouteReport(clocks={"clk": ClockResult(0.0, 1e6 / 3600)}))
    assert found.round(3500.0, Router({0: 50.0}), tmp_path, lambda _: None)
    place = found.design.places["t0"]
    assert found.worst == 525 + between((5, 5), place) + 50 + 240 + between(place, (15, 5))
    arc = found.timing.number[Pin("t0", "A")]
    assert found.timing.arrival[arc] == 525 + between((5, 5), place) + 50
