"""What synthesis and place and route make of points: tasks for a pool, found again in the caches of their machine."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..board import Board
from ..build import flow
from ..config import HwConfig

T = TypeVar("T")

Design = Callable[[Board, HwConfig, int], Any]
"""Makes the top level of a configuration for a board and a clock in Hz; can be pickled."""


def synthesized(design: Design, board: Board, config: HwConfig) -> dict[str, Any]:
    """LUT4, flip-flops, multipliers and block RAMs of a point by synthesis, and the seconds that it took."""
    start = time.monotonic()
    counts = flow.synthesized(
        design(board, config, board.core_hz), board, clock_hz=board.core_hz, label=f"{config.name} on {board.name}"
    )
    names = {"LUT4": "lut", "flip-flops": "ff", "multipliers": "dsp", "block RAMs": "ebr"}
    return {name: counts[kind] for kind, name in names.items()} | {"seconds": round(time.monotonic() - start, 1)}


def routed(design: Design, board: Board, config: HwConfig, seed: int) -> dict[str, Any]:
    """What a point takes on the device and how fast it is, placed and routed with one seed for the board's clock."""
    start, hz = time.monotonic(), board.core_hz
    built = flow.build(
        design(board, config, hz), board, clock_hz=hz, options=flow.FlowOptions(seeds=(seed,)), require_timing=False,
        label=f"{config.name} on {board.name} at {hz / 1e6:g} MHz",
    )  # fmt: skip
    taken = {kind: built.report.resources[kind][0] for kind in ("lut", "ff", "dsp", "ebr")}
    return taken | {
        "mhz": round(built.report.fmax_mhz, 1), "timing_met": built.timing_met, "seed": seed, "key": built.key,
        "critical_path": built.report.path, "seconds": round(time.monotonic() - start, 1),
    }  # fmt: skip


def spread(points: Sequence[T], count: int) -> list[T]:
    """`count` of the points of a front, at equal distances, the first and the last among them."""
    if count >= len(points):
        return list(points)
    if count <= 1:
        return list(points[:count])
    return [points[round(at * (len(points) - 1) / (count - 1))] for at in range(count)]


def best_seed(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of the routes of one point the fastest, with the clocks of all by seed."""
    best = max(found, key=lambda each: (each["mhz"], -each["seed"]))
    return {**best, "mhz_by_seed": {str(each["seed"]): each["mhz"] for each in found}}


def text_of_stage(stage: str, config: HwConfig, seed: int = 0) -> str:
    """Under which key a study keeps a result of a stage."""
    return json.dumps([stage, config.fingerprint, seed])
