"""What nextpnr found out about a routed design: resources, clocks, and the critical path in words."""

from dataclasses import dataclass, field
from typing import Any

KINDS = {
    "lut": "TRELLIS_COMB",
    "ff": "TRELLIS_FF",
    "dsp": "MULT18X18D",
    "ebr": "DP16KD",
    "lutram": "TRELLIS_RAMW",
    "pll": "EHXPLLL",
}
"""Our names of the resources, and nextpnr's."""


@dataclass(frozen=True)
class Clock:
    """One clock: the frequency reached and the one asked for, in MHz."""

    achieved: float
    wanted: float

    @property
    def met(self) -> bool:
        """Whether the design may run at this clock."""
        return self.achieved >= self.wanted


@dataclass(frozen=True)
class RouteReport:
    """Resources as ``{kind: (used, available)}``, clocks by net, and the critical path of the worst clock."""

    resources: dict[str, tuple[int, int]] = field(default_factory=dict)
    clocks: dict[str, Clock] = field(default_factory=dict)
    path: str = ""

    @property
    def worst(self) -> str:
        """The clock net that misses its frequency most, or has least to spare."""
        return min(self.clocks, key=lambda net: self.clocks[net].achieved / self.clocks[net].wanted, default="")

    @property
    def fmax_mhz(self) -> float:
        """The frequency of the worst clock; 0 if there is none."""
        return self.clocks[self.worst].achieved if self.clocks else 0.0

    @property
    def timing_met(self) -> bool:
        """Whether every clock is met; false if there is no clock at all."""
        return bool(self.clocks) and all(clock.met for clock in self.clocks.values())

    def record(self) -> dict[str, Any]:
        """As plain data, to be kept; `from_record` reads it back."""
        clocks = {net: [clock.achieved, clock.wanted] for net, clock in self.clocks.items()}
        return {"resources": {k: list(v) for k, v in self.resources.items()}, "clocks": clocks, "path": self.path}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "RouteReport":
        """Inverse of `record`."""
        found = {kind: (int(used), int(have)) for kind, (used, have) in record["resources"].items()}
        resources = {kind: found[kind] for kind in KINDS if kind in found}  # JSON that was kept has them sorted
        clocks = {net: Clock(float(got), float(want)) for net, (got, want) in record["clocks"].items()}
        return cls(resources, clocks, str(record["path"]))


def describe_path(path: list[dict[str, Any]]) -> str:
    """A critical path in one sentence: where it starts and ends, and what its time is spent on."""
    if not path:
        return ""
    spent: dict[str, float] = {}
    for segment in path:
        spent[segment["type"]] = spent.get(segment["type"], 0.0) + float(segment["delay"])
    first, last = path[0]["from"], path[-1]["to"]
    levels = sum(segment["type"] == "logic" for segment in path)
    routing = spent.pop("routing", 0.0)
    logic = sum(spent.values())
    return (
        f"from {first['cell']} ({first['port']}) to {last['cell']} ({last['port']}): {logic + routing:.2f} ns, of "
        "which "
        f"{logic:.2f} in {levels} levels of logic and the cells at both ends, {routing:.2f} in wires"
    )


def read_report(record: dict[str, Any]) -> RouteReport:
    """What `RouteReport` keeps of the JSON that ``nextpnr-ecp5 --report`` writes."""
    utilization = record["utilization"]
    resources = {
        kind: (int(utilization[name]["used"]), int(utilization[name]["available"]))
        for kind, name in KINDS.items()
        if name in utilization
    }
    clocks = {net: Clock(entry["achieved"], entry["constraint"]) for net, entry in record["fmax"].items()}
    report = RouteReport(resources, clocks)
    ends = f"posedge {report.worst}"
    for candidate in record["critical_paths"]:
        if candidate["from"] == ends and candidate["to"] == ends:
            return RouteReport(resources, clocks, describe_path(candidate["path"]))
    return report
