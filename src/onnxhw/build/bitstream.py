"""`Bitstream`: a finished bitstream with everything known about it, and its form in the cache."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..board import Board
from ..devices.family import BlockRamLocation
from ..devices.report import RouteReport
from .manifest import Manifest


@dataclass
class Bitstream:
    """A finished bitstream with everything known about it; `config` is the routed design's text (`Family.routed`)."""

    bitstream: bytes
    config: str
    report: RouteReport
    seed: int
    key: str
    clock_hz: int
    board: Board
    tools: dict[str, str]
    locations: list[BlockRamLocation] = field(default_factory=list)
    cached: bool = False

    @property
    def constrained(self) -> bool:
        """Whether a clock was constrained to `clock_hz`; without it nothing is known about the timing."""
        return any(
            abs(clock.wanted * 1e6 - self.clock_hz) < 0.01 * self.clock_hz for clock in self.report.clocks.values()
        )

    @property
    def timing_met(self) -> bool:
        """Whether the design may run at `clock_hz`."""
        return self.constrained and self.report.timing_met

    def manifest(self) -> Manifest:
        """The manifest's part about the bitstream."""
        resources = {kind: {"used": used, "available": have} for kind, (used, have) in self.report.resources.items()}
        clocks = {net: {"achieved_mhz": c.achieved, "wanted_mhz": c.wanted} for net, c in self.report.clocks.items()}
        manifest = Manifest(
            board=self.board.name, device=self.board.device, design=self.key, clock_hz=self.clock_hz, seed=self.seed,
            fmax_mhz=round(self.report.fmax_mhz, 2), timing_met=self.timing_met,
            critical_path=self.report.path, tools=dict(self.tools), resources=resources, clocks=clocks,
        )  # fmt: skip
        manifest.add_file("top.bit", self.bitstream)
        return manifest


def to_entry(result: Bitstream) -> dict[str, bytes]:
    """A result as files of a cache entry."""
    facts = {
        "seed": result.seed,
        "report": result.report.record(),
        "locations": [location.record() for location in result.locations],
    }
    return {
        "top.bit": result.bitstream,
        "top.config.gz": gzip.compress(result.config.encode(), mtime=0),
        "facts.json": json.dumps(facts, sort_keys=True).encode(),
    }


def from_entry(
    entry: Mapping[str, bytes], key: str, board: Board, clock_hz: int, versions: dict[str, str]
) -> Bitstream:
    """Inverse of `to_entry`."""
    facts = json.loads(entry["facts.json"])
    return Bitstream(
        bitstream=entry["top.bit"],
        config=gzip.decompress(entry["top.config.gz"]).decode(),
        report=RouteReport.from_record(facts["report"]),
        seed=facts["seed"],
        key=key,
        clock_hz=clock_hz,
        board=board,
        tools=versions,
        locations=[BlockRamLocation(*record) for record in facts["locations"]],
        cached=True,
    )
