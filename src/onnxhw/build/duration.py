"""How long place and route takes: from earlier runs on this machine, else from those of ``bench/routed``."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log
from statistics import median

from ..board import Board, boards
from ..config import HwConfig
from ..devices import family_of, find_family
from ..devices.family import Family
from ..presets import PRESETS
from .cache import Cache, key_of

KIND = "duration"
"""The kind of cache entry that tells the seconds of each stage of an earlier run."""
REFERENCE = {
    ("ulx3s-25f", "ulx3s-25f"): 492,
    ("ulx3s-85f-dense", "ulx3s-85f"): 970,
    ("ulx3s-85f", "ulx3s-85f"): 2677,
}
"""Seconds of all stages by preset and board, on the two cores of a cloud machine that did nothing else. The `seconds`
of bench/routed are those of one run, which may have had other work beside it."""
SLOWER = {"gowin": 2274 / 186}
"""By family, how many times as long a design of as many LUT4 takes as on an ECP5: `tang-20k` took 2,274 s on
`tang-nano-20k`, mostly for its wires, and a design of that size takes 186."""
SMALL = (6_000, 100)
"""LUT4 and seconds below the smallest of them: about what reading and packing take alone."""


@dataclass(frozen=True)
class DurationEstimate:
    """Seconds of a whole run with one seed, and of its stages where an earlier run has shown them.

    `source` says where they are from: "an earlier run" of the same preset on the same board, "earlier runs" of others
    on this machine, or "another machine".
    """

    seconds: float
    source: str
    stages: Mapping[str, float]

    @property
    def text(self) -> str:
        """In words: ``about 8 minutes (as in an earlier run)``."""
        return f"about {duration_text(self.seconds)} ({self.source})"


def duration_text(seconds: float) -> str:
    """A duration for people: ``40 seconds``, ``8 minutes``, ``1.5 hours``."""
    if seconds < 100:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def store(preset: str, board: str, stages: Mapping[str, float]) -> None:
    """Note the seconds of each stage of a run with one seed; those of an older run are forgotten."""
    data = json.dumps({"stages": dict(stages)}, sort_keys=True).encode()
    Cache(KIND).store(_key(preset, board), {"seconds.json": data}, label=f"{preset} on {board}")


def expected(config: HwConfig, board: Board) -> DurationEstimate:
    """How long a run will take, about."""
    if stages := _load(config.name, board.name):
        return DurationEstimate(sum(stages.values()), "as an earlier run took", stages)
    known = {**boards(), board.name: board}
    seen = [
        sum(stages.values()) / _scaled(PRESETS[name], family_of(known[place]))
        for name, place in _seen()
        if place in known and (stages := _load(name, place))
    ]
    seconds = _scaled(config, family_of(board))
    if seen:
        return DurationEstimate(seconds * median(seen), "from earlier runs of other presets", {})
    return DurationEstimate(seconds, "as on another machine", {})


def _seen() -> Iterable[tuple[str, str]]:
    """Presets and boards of the earlier runs."""
    for entry in Cache(KIND).entries():
        preset, _, board = entry.label.partition(" on ")
        if preset in PRESETS:
            yield preset, board


def _scaled(config: HwConfig, family: Family) -> float:
    """Seconds for a design of this size on the machine of `REFERENCE`: a straight line between their logarithms."""
    ecp5 = find_family("ecp5")
    known = sorted((ecp5.estimate(PRESETS[name]).lut, seconds) for (name, _), seconds in REFERENCE.items())
    points = [(log(luts), log(seconds)) for luts, seconds in (SMALL, *known)]
    x = log(max(SMALL[0], family.estimate(config).lut))
    pairs = list(pairwise(points))
    (x0, y0), (x1, y1) = next((pair for pair in pairs if x <= pair[1][0]), pairs[-1])
    return SLOWER.get(family.name, 1.0) * exp(y0 + (x - x0) * (y1 - y0) / (x1 - x0))


def _key(preset: str, board: str) -> str:
    return key_of({"preset": preset, "board": board})


def _load(preset: str, board: str) -> dict[str, float]:
    """The stages of an earlier run, empty if there was none or the note is no such thing."""
    found = Cache(KIND).load(_key(preset, board))
    try:
        stages = json.loads(found["seconds.json"])["stages"] if found else {}
        return {str(name): float(seconds) for name, seconds in stages.items() if float(seconds) >= 0}
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}
