"""What nextpnr found out about a routed design: resources, clocks, and the critical path in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .path import CellNames, describe_path, remedy

KINDS = ("lut", "ff", "dsp", "ebr", "lutram", "pll")
"""Our names of the resources."""
WORDS = {"lut": "LUT4", "ff": "flip-flops", "dsp": "multipliers", "ebr": "block RAMs"}
"""What messages call those that a design is measured by (`family.check_fit`)."""


@dataclass(frozen=True)
class ClockResult:
    """One clock: the frequency reached and the one asked for, in MHz."""

    achieved: float
    wanted: float

    @property
    def met(self) -> bool:
        """Whether the design may run at this clock."""
        return self.achieved >= self.wanted


@dataclass(frozen=True)
class RouteReport:
    """Resources as ``{kind: (used, available)}``, clocks by net, the critical path of the worst clock and what would
    make it shorter, in words."""

    resources: dict[str, tuple[int, int]] = field(default_factory=dict)
    clocks: dict[str, ClockResult] = field(default_factory=dict)
    path: str = ""
    remedy: str = ""

    @property
    def worst(self) -> str:
        """The clock net that misses its frequency most, or has least to spare."""
        return min(self.clocks, key=lambda net: self.clocks[net].achieved / self.clocks[net].wanted, default="")

    @property
    def fmax_mhz(self) -> float:
        """The frequency of the worst clock; 0 if there is none."""
        return self.clocks[self.worst].achieved if self.clocks else 0.0

    @property
    def margin(self) -> float:
        """The worst clock's frequency over the one asked for; 0 if there is none."""
        return self.clocks[self.worst].achieved / self.clocks[self.worst].wanted if self.clocks else 0.0

    @property
    def timing_met(self) -> bool:
        """Whether every clock is met; false if there is no clock at all."""
        return bool(self.clocks) and all(clock.met for clock in self.clocks.values())

    def record(self) -> dict[str, Any]:
        """As plain data, to be kept; `from_record` reads it back."""
        clocks = {net: [clock.achieved, clock.wanted] for net, clock in self.clocks.items()}
        resources = {kind: list(both) for kind, both in self.resources.items()}
        return {"resources": resources, "clocks": clocks, "path": self.path, "remedy": self.remedy}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "RouteReport":
        """Inverse of `record`."""
        found = {kind: (int(used), int(have)) for kind, (used, have) in record["resources"].items()}
        resources = {kind: found[kind] for kind in KINDS if kind in found}  # JSON that was kept has them sorted
        clocks = {net: ClockResult(float(got), float(want)) for net, (got, want) in record["clocks"].items()}
        return cls(resources, clocks, str(record["path"]), str(record["remedy"]))


def read_report(record: Mapping[str, Any], kinds: Mapping[str, str], names: CellNames) -> RouteReport:
    """What `RouteReport` keeps of the JSON that ``nextpnr --report`` writes; `kinds` are nextpnr's names of `KINDS`."""
    utilization = record["utilization"]
    resources = {
        kind: (int(utilization[name]["used"]), int(utilization[name]["available"]))
        for kind, name in kinds.items()
        if name in utilization
    }
    clocks = {net: ClockResult(entry["achieved"], entry["constraint"]) for net, entry in record["fmax"].items()}
    report = RouteReport(resources, clocks)
    ends = f"posedge {report.worst}"
    for candidate in record["critical_paths"]:
        if candidate["from"] == ends and candidate["to"] == ends:
            path = candidate["path"]
            return RouteReport(resources, clocks, describe_path(path, names), remedy(path, names))
    return report
