"""What ``explore`` shows and writes: progress with an estimate, the front, a file per point of it."""

import json
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...board import Board
from ...build.duration import duration_text
from ...cluster import TaskPool
from ...config import HwConfig
from ...errors import DoesNotFitError, UsageError
from ...explore.campaign import Campaign, Found, Progress, Reference
from ...explore.point import DesignPoint, mean
from ...explore.report import page
from ...explore.search import SearchState
from ...explore.stages import BuildState
from ...explore.workload import Workload
from .outdir import staged
from .output import Output
from .workers import workers_text

PRESETS = "Presets of the board", "Presets of the board (in segments: forecasts, within some 20 %)"
"""Title of their table, without and with forecasts among them."""
RESULTS = "front.json", "report.html"
PRESET = re.compile(r"(front|failed)-\d+\.json")
"""Files that a search writes."""
BLOCK_RAM_BYTES = 18 * 1024 // 8
"""Of a block RAM of the families there are."""


def design(board: Board, config: HwConfig, clock_hz: int) -> Any:
    """The top level that `synth` makes of a configuration."""
    from ...compiler.cost import line_rate
    from .synthesis import top

    return top(board, config, clock_hz, line_rate(board, clock_hz), board.link)


def refuse_results(study: Path, folder: Path) -> None:
    """`UsageError` E2561 for a study file that a search's results would take the place of."""
    place, name = os.path.split(os.path.realpath(study))
    if place == os.path.realpath(folder) and (name in RESULTS or PRESET.fullmatch(name)):
        what = "the study would be overwritten by a result of the same name"
        raise UsageError("E2561", what, where=str(study), hint="name another --study")


def require_models(paths: Sequence[Path]) -> dict[str, Path]:
    """Models by the names of their files; `UsageError` E2805 if two have the same."""
    found = {path.stem: path for path in paths}
    if len(found) < len(paths):
        what = "two models have the same name, by which results tell them apart"
        raise UsageError("E2805", what, where=", ".join(map(str, paths)), hint="rename one")
    return found


def needs_external(output: Output, workload: Workload, board: Board) -> bool:
    """Whether a search is among configurations with external memory though nobody said so: the board has some, and its
    block RAMs hold fewer bytes than the weights are. Says so."""
    have, needed = board.resources.ebr * BLOCK_RAM_BYTES, workload.weight_bytes
    if board.external is None or needed <= have:
        return False
    output.message(f"{needed:,} bytes of weights, {have:,} of block RAM: configurations with external memory (--sdram)")
    return True


def require_objectives(objectives: Sequence[str], external: bool) -> None:
    """`UsageError` E2806 for bytes of a memory that a search's configurations have not, or that are not counted with
    external memory: every point would be as good as another."""
    wrong, other = ("traffic", "moved") if external else ("moved", "traffic")
    if wrong in objectives:
        what = f"objective {wrong} says nothing of configurations {'with' if external else 'without'} external memory"
        raise UsageError("E2806", what, hint=f"--objective {other}")


def require_front(found: Found, board: Board) -> None:
    """`DoesNotFitError` E5108 if no configuration that was asked runs the models, with the reason of the nearest."""
    if found.front:
        return
    nearest = min(found.points, key=lambda point: point.excess)
    hint = "more --points, or a larger board: onnxhw boards MODEL"
    if board.external is not None and nearest.config.external is None:
        hint = f"--sdram: configurations with the board's external memory; {hint}"
    what = f"none of {len(found.points)} configurations runs the models; the nearest: {nearest.refused}"
    raise DoesNotFitError("E5108", what, where=f"board {board.name}", hint=hint)


class ExploreProgress(Progress):
    """Tells how far a campaign is: on a terminal always, else now and then."""

    EVERY = 15.0
    """Seconds between two lines where there is no terminal."""

    def __init__(self, output: Output, pool: TaskPool) -> None:
        self.output, self.pool, self.start, self.told = output, pool, time.monotonic(), 0.0
        self.live: Any = None

    def __enter__(self) -> "ExploreProgress":
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        if console.is_terminal and self.output.verbosity >= 0:
            self.live = console.status("searching")
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live:
            self.live.stop()

    def compared(self, done: int, wanted: int) -> None:
        """Presets of the board."""
        self._tell(f"{done} of {wanted} presets of the board scheduled", done == wanted)

    def searched(self, state: SearchState, seconds: float) -> None:
        """Points, with an estimate of the time that is left."""
        self._tell(self.text(state, time.monotonic() - self.start), state.scheduled == state.wanted)

    def confirmed(self, done: int, wanted: int) -> None:
        """Points of the front. One that gets slower lets others in, so `wanted` grows, mostly by one."""
        self._tell(f"{done} of {wanted} points of the front confirmed", False)

    def built(self, state: BuildState) -> None:
        """Results of tools, with an estimate of the time that is left once there is one."""
        counts = ", ".join(f"{state.done(stage)} of {wanted} {stage}" for stage, wanted in state.wanted.items())
        left = state.seconds_left(self.pool.workers)
        rest = f", about {duration_text(left)} left" if left else ""
        self._tell(f"{counts}, {workers_text(self.pool)}{rest}", True)

    def _tell(self, text: str, now: bool) -> None:
        """Show a line; where there is no terminal only if it is to be `now` or the last one is a while ago."""
        if self.live:
            self.live.update(text)
        elif now or time.monotonic() - self.told >= self.EVERY:
            self.told = time.monotonic()
            self.output.message(text)

    def text(self, state: SearchState, seconds: float) -> str:
        """How far, and how much longer at this pace."""
        fresh = state.scheduled - state.reused
        left = (state.wanted - state.scheduled) * seconds / fresh if fresh else 0.0
        rest = f", about {duration_text(left)} left" if left else ""
        before = f" ({state.reused} of earlier runs)" if state.reused else ""
        return (
            f"{state.scheduled} of {state.wanted} points with cycles{before}, {state.asked} asked, "
            f"{workers_text(self.pool)}{rest}"
        )


def write_results(folder: Path, campaign: Campaign, found: Found, known: Reference) -> dict[str, Any]:
    """Write front.json, report.html, a configuration per point of the front and per point that a bug of the compiler
    took away, and remove those of an earlier front; the record of ``--json``."""
    rows = [
        _row(point, folder / f"front-{number}.json", campaign, found) for number, point in enumerate(found.front, 1)
    ]
    failed = [
        {"preset": str(folder / f"failed-{number}.json"), "why": point.refused,
         "config": _named(point, f"failed-{number}")}
        for number, point in enumerate(found.failed, 1)
    ]  # fmt: skip
    record = {
        "board": campaign.task.space.board.name, "models": list(campaign.task.workload.names),
        "objectives": list(campaign.objectives), "seed": campaign.seed, "out": str(folder),
        "points": sum(bool(point.cycles) for point in found.points), "asked": len(found.points),
        "processor_seconds": round(found.seconds, 1), "front": rows,
        "failed": failed,
        "presets": [{"preset": name, **_figures(point, campaign)} for name, point in known.presets.items()],
    }  # fmt: skip
    with staged(folder) as stage:
        for row in [*rows, *failed]:
            (stage / Path(str(row["preset"])).name).write_text(json.dumps(row["config"], sort_keys=True) + "\n")
        (stage / "report.html").write_text(page(record, found.points), encoding="utf-8")
        (stage / "front.json").write_text(json.dumps(record, indent=2) + "\n")
    written = {Path(str(row["preset"])).name for row in [*rows, *failed]}
    for file in folder.iterdir():  # of a front that is no more
        if PRESET.fullmatch(file.name) and file.is_file() and file.name not in written:
            file.unlink()
    return record


def _row(point: DesignPoint, path: Path, campaign: Campaign, found: Found) -> dict[str, Any]:
    made = found.made.get(point.config.fingerprint, {})
    route = made.get("routed", {})
    if "mhz" in route:
        made = {**made, "routed": {**route, "latency_us": round(mean(point.cycles) / route["mhz"], 2)}}
    return {**_figures(point, campaign), **made, "preset": str(path), "config": _named(point, path.stem)}


def _named(point: DesignPoint, name: str) -> dict[str, Any]:
    """The configuration of a point under a name, as a preset's file has it."""
    return {**json.loads(point.config.to_json()), "name": name}


def _figures(point: DesignPoint, campaign: Campaign) -> dict[str, Any]:
    names = campaign.task.workload.names
    return {
        "cycles": sum(point.cycles), "model_cycles": dict(zip(names, point.cycles, strict=False)),
        "latency_us": round(point.latency_us, 2) if point.cycles else None,
        "mhz": round(point.mhz, 1), "lut": point.lut, "ff": point.ff, "dsp": point.dsp, "ebr": point.ebr,
        "traffic": round(mean(point.traffic)) if point.cycles else None,
        "moved": sum(point.moved) if point.cycles else None, "forecast": point.forecast, "refused": point.refused,
    }  # fmt: skip


def print_front(output: Output, record: dict[str, Any]) -> None:
    """The front and the hand-made presets for people."""
    columns: tuple[str, ...] = (
        "preset", "cycles", "us", "MHz", "LUT4", "FF", "DSP", "block RAM", "array", "lanes", "on-chip bytes",
        "external bytes",
    )  # fmt: skip

    def row(each: dict[str, Any]) -> tuple[object, ...]:
        config = each.get("config")
        array = f"{config['rows']} x {config['cols']} {config['inner_product']}" if config else ""
        return (each["preset"], each["cycles"] or None, each["latency_us"], round(each["mhz"]), each["lut"], each["ff"],
                each["dsp"], each["ebr"], array, config["lanes"] if config else None, each["traffic"],
                each["moved"])  # fmt: skip

    title = f"The front of {record['points']} points on {record['board']}"
    output.table(columns, [row(each) for each in record["front"]], title=f"{title} (logic and clock are predicted)")
    forecasts = any(each["forecast"] for each in record["presets"])
    output.table(columns, [row(each) for each in record["presets"]], title=PRESETS[forecasts])
    for each in record["presets"]:
        if each["refused"]:
            output.line(f"{each['preset']}: {each['refused']}")
    for each in record["front"]:
        for stage in ("synthesized", "routed"):
            if why := each.get(stage, {}).get("failed"):
                output.line(f"{each['preset']} is not {stage}: {why}")
    for each in record["failed"]:
        output.line(f"{each['preset']}: {each['why']}; this is a bug of ours: please report it with the model")
    columns = ("preset", "LUT4", "synthesized", "routed", "FF", "synthesized", "routed", "MHz", "routed", "seed", "us",
               "seconds")  # fmt: skip
    routes = [(row, row.get("synthesized", {}), row.get("routed", {})) for row in record["front"]]
    rows = [
        (row["preset"], row["lut"], made.get("lut"), route.get("lut"), row["ff"], made.get("ff"), route.get("ff"),
         round(row["mhz"], 1), route.get("mhz"), route.get("seed"), route.get("latency_us"),
         route.get("seconds", made.get("seconds")))
        for row, made, route in routes if made or route
    ]  # fmt: skip
    if rows:
        output.table(columns, rows, title="Predicted, synthesized and routed")
    if record["front"]:
        output.line(f"use one: --preset {record['front'][0]['preset']}")
