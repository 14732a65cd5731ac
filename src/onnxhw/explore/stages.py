"""What synthesis and place and route make of points: tasks for a pool, found again in the caches of their machine."""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any, TypeVar

from ..board import Board
from ..build import flow
from ..config import HwConfig
from ..devices.report import WORDS
from ..errors import DoesNotFitError, ToolError

T = TypeVar("T")

Design = Callable[[Board, HwConfig, int], Any]
"""Makes the top level of a configuration for a board and a clock in Hz; can be pickled."""


def synthesized(design: Design, board: Board, config: HwConfig) -> dict[str, Any]:
    """LUT4, flip-flops, multipliers and block RAMs of a point by synthesis, and the seconds that it took."""

    def run() -> dict[str, Any]:
        counts = flow.synthesized(
            design(board, config, board.core_hz), board, clock_hz=board.core_hz, label=f"{config.name} on {board.name}"
        )
        return {kind: counts[word] for kind, word in WORDS.items()}

    return _result_or_failure(run)


def routed(design: Design, board: Board, config: HwConfig, seed: int) -> dict[str, Any]:
    """What a point takes on the device and how fast it is, placed and routed with one seed for the board's clock."""
    hz = board.core_hz

    def run() -> dict[str, Any]:
        built = flow.build(
            design(board, config, hz), board, clock_hz=hz, options=flow.FlowOptions(seeds=(seed,)),
            require_timing=False, label=f"{config.name} on {board.name} at {hz / 1e6:g} MHz",
        )  # fmt: skip
        taken = {kind: built.report.resources[kind][0] for kind in WORDS}
        return taken | {
            "mhz": round(built.report.fmax_mhz, 1), "timing_met": built.timing_met, "key": built.key,
            "critical_path": built.report.path,
        }  # fmt: skip

    return {"seed": seed} | _result_or_failure(run)


def _result_or_failure(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a tool has made and the "seconds" that it took; or "failed", in words, if it found no place for the design
    or gave it up, which says nothing of other points."""
    start = time.monotonic()
    try:
        made = run()
    except (DoesNotFitError, ToolError) as error:
        if error.code not in flow.OF_ONE_DESIGN:
            raise
        made = {"failed": error.text()}
    return made | {"seconds": round(time.monotonic() - start, 1)}


def spread(points: Sequence[T], count: int) -> list[T]:
    """`count` of the points of a front, at equal distances, the first and the last among them."""
    if count >= len(points):
        return list(points)
    if count <= 1:
        return list(points[:count])
    return [points[round(at * (len(points) - 1) / (count - 1))] for at in range(count)]


def best_seed(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of the routes of one point the fastest, with the clocks of all by seed; the first one if all have failed."""
    able = [each for each in found if "failed" not in each]
    if not able:
        return found[0]
    best = max(able, key=lambda each: (each["mhz"], -each["seed"]))
    return {**best, "mhz_by_seed": {str(each["seed"]): each.get("mhz") for each in found}}


@dataclass
class BuildState:
    """How many results of each stage there are, of how many, and the seconds that they took. Several threads may add.
    """

    wanted: Mapping[str, int]
    made: dict[str, dict[str, float]] = field(default_factory=dict)
    """Seconds by stage and key."""
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, stage: str, key: str, seconds: float) -> None:
        """Count a result; the same again changes nothing."""
        with self.lock:
            self.made.setdefault(stage, {})[key] = seconds

    def done(self, stage: str) -> int:
        """Results of a stage."""
        return len(self.made.get(stage, ()))

    def seconds_left(self, workers: int) -> float:
        """As long as results of a stage took on average, those that are missing take; a stage without results: none."""
        with self.lock:
            seconds = {stage: list(found.values()) for stage, found in self.made.items()}
        alone = sum((self.wanted[stage] - len(found)) * mean(found) for stage, found in seconds.items())
        return alone / max(1, workers)


def text_of_stage(stage: str, config: HwConfig, seed: int = 0) -> str:
    """Under which key a study keeps a result of a stage."""
    return json.dumps([stage, config.fingerprint, seed])
