"""`Campaign`: a search on a pool, its study file, and the front whose cycles are confirmed."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ..board import Board
from ..build.cache import family_sources, sources
from ..cluster import TaskPool, Waiting
from ..config import HwConfig
from ..presets import preset
from .point import DesignPoint, Judge, evaluate, mean
from .search import Search, SearchState, best, text_of
from .space import SearchSpace, Values
from .stages import BuildState, Design, best_seed, routed, spread, synthesized, text_of_stage
from .study import StudyFile
from .workload import Workload


@dataclass(frozen=True)
class Task:
    """What the points of a study have in common."""

    workload: Workload
    space: SearchSpace
    judge: Judge

    def point(self, values: Values) -> tuple[DesignPoint, float]:
        """The point of a choice, with a forecast of networks in segments, and the processor seconds that it took."""
        config = self.space.with_line_buffer(self.space.config(values), self.workload.longest_strip)
        if config.external is None:
            config = self.space.with_activations(config, self.workload.activation_bytes)
        return _timed(lambda: evaluate(self.workload, config, self.judge, exact=False))

    def exactly(self, config: HwConfig, exact: bool = True) -> tuple[DesignPoint, float]:
        """The point of a configuration as it is; without `exact` with a forecast of networks in segments."""
        return _timed(lambda: evaluate(self.workload, config, self.judge, fit=False, exact=exact))


def _timed(make: Callable[[], DesignPoint]) -> tuple[DesignPoint, float]:
    start = time.process_time()
    return make(), time.process_time() - start


def point_of(task: Task, values: Values) -> tuple[DesignPoint, float]:
    """`Task.point`, for a worker."""
    return task.point(values)


def exactly(task: Task, config: HwConfig, exact: bool = True) -> tuple[DesignPoint, float]:
    """`Task.exactly`, for a worker."""
    return task.exactly(config, exact)


@lru_cache
def code() -> str:
    """A digest of everything that decides over a point."""
    return f"{sources('explore/point.py')}-{sources('explore/space.py')}"


def _digest(board: Board) -> str:
    """Of everything that a board's file says: what fits, and what tools make of a point, depends on it."""
    return hashlib.blake2b(repr(board).encode(), digest_size=8).hexdigest()


@dataclass
class Found:
    """What a campaign has found: every point in the order of asking, the front, confirmed, processor seconds of all
    points of the study, and those of them that a bug of the compiler took away."""

    points: list[DesignPoint]
    front: list[DesignPoint]
    seconds: float
    failed: list[DesignPoint]
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By fingerprint what synthesis ("synthesized") and place and route ("routed") made of points of the front."""


@dataclass(frozen=True)
class BuildPlan:
    """How many points of the front are synthesized and routed, each with how many seeds, and what makes designs."""

    design: Design
    synthesize: int = 0
    route: int = 0
    seeds: int = 1


class Progress:
    """Is told how far a campaign is; this one tells nobody."""

    def compared(self, done: int, wanted: int) -> None:
        """Of the board's presets, on the same models."""

    def searched(self, state: SearchState, seconds: float) -> None:
        """Of the search, and the processor seconds of all points."""

    def confirmed(self, done: int, wanted: int) -> None:
        """Of the points of the front that are scheduled once more."""

    def built(self, state: BuildState) -> None:
        """Of synthesis and place and route. Called from several threads."""


@dataclass
class Campaign:
    """A search for the configurations that suit a workload."""

    task: Task
    objectives: Sequence[str]
    seed: int = 0

    def header(self) -> dict[str, Any]:
        """What decides over the points of a study file. Neither seed nor number: more points may be asked later."""
        return {
            "board": self.task.space.board.name, "board file": _digest(self.task.space.board),
            "models": self.task.workload.names,
            "digest": self.task.workload.digest, "parameters": list(self.task.space.parameters), "code": code(),
            "predictions": family_sources(self.task.space.board.family),
            "external": self.task.space.external is not None,
        }  # fmt: skip

    def run(
        self, pool: TaskPool, path: Path, wanted: int, first: Sequence[Values] = (), stages: BuildPlan | None = None,
        progress: Progress | None = None, variations: Sequence[Values] = (),
    ) -> Found:  # fmt: skip
        """Search until `wanted` points have cycles; goes on where the study file at `path` stands. Errors: those of
        `Search.run`, `StudyFile` and of the pool; every point that was there before one is kept."""
        study, shared, progress = StudyFile(path, self.header()), pool.share(self.task), progress or Progress()

        def submit(values: Mapping[str, int | str]) -> Callable[[], DesignPoint]:
            chosen = dict(values)
            waiting = pool.submit(point_of, shared, chosen, done=lambda made: study.add(text_of(chosen), chosen, *made))
            return lambda: waiting()[0]

        try:
            parameters = self.task.space.parameters
            search = Search(submit, self.objectives, self.seed, dict(study.points), parameters=parameters)
            search.progress = lambda state: progress.searched(state, study.seconds)
            points = search.run(wanted, first, variations)
            front = self.confirmed(pool, shared, study, points, progress)
            failed = {point.config.fingerprint: point for point in study.points.values() if point.failed}
            found = Found(points, front, study.seconds, list(failed.values()))
            if stages and (stages.synthesize or stages.route):
                found.made = self.build(pool, study, found.front, stages, progress)
            return found
        finally:
            study.close()

    def build(
        self, pool: TaskPool, study: StudyFile, points: Sequence[DesignPoint], stages: BuildPlan, progress: Progress
    ) -> dict[str, dict[str, Any]]:
        """Synthesize and route points of the front, spread over it; those that are routed are synthesized, too, and all
        tasks of both stages are under way at once. A point that a tool fails of has "failed" (`flow.OF_ONE_DESIGN`),
        and is tried again by the next run; other errors are `ToolError` E71xx."""
        board, made = self.task.space.board, dict[str, dict[str, Any]]()
        to_route = [point.config for point in spread(points, stages.route)]
        to_synthesize = list(dict.fromkeys([*(point.config for point in spread(points, stages.synthesize)), *to_route]))
        state = BuildState({"routed": len(to_route) * stages.seeds, "synthesized": len(to_synthesize)})
        waiting: list[tuple[str, HwConfig, list[Waiting[dict[str, Any]]]]] = []

        def note(stage: str, key: str, result: dict[str, Any]) -> None:
            if "failed" not in result:
                study.note(key, result)
            state.add(stage, key, result["seconds"])
            progress.built(state)

        def submit(stage: str, function: Callable[..., dict[str, Any]], *arguments: Any) -> Waiting[dict[str, Any]]:
            key = text_of_stage(stage, *arguments)
            if key in study.notes:
                state.add(stage, key, study.notes[key]["seconds"])
                return lambda: study.notes[key]
            return pool.submit(function, stages.design, board, *arguments, done=partial(note, stage, key))

        for config in to_route:
            seeds = range(1, stages.seeds + 1)
            waiting.append(("routed", config, [submit("routed", routed, config, seed) for seed in seeds]))
        for config in to_synthesize:
            waiting.append(("synthesized", config, [submit("synthesized", synthesized, config)]))
        progress.built(state)
        for stage, config, waits in waiting:
            results = [wait() for wait in waits]
            found = best_seed(results) if stage == "routed" else results[0]
            made.setdefault(config.fingerprint, {})[stage] = found
        return made

    def confirmed(
        self, pool: TaskPool, shared: Task, study: StudyFile, points: Sequence[DesignPoint], progress: Progress
    ) -> list[DesignPoint]:
        """The front, each of its points scheduled again for its own memories: a search for quicker programs that could
        have had more microcode may have gone another way. What is slower so may leave the front to another."""
        known = {point.config.fingerprint: point for point in points}
        sure: set[str] = set()
        while True:
            found = best(list(known.values()), self.objectives)
            open_ = [point.config for point in found if point.config.fingerprint not in sure]
            if not open_:
                return found
            wanted = len(sure) + len(open_)
            for config, confirmed in [(config, self._confirmed_point(pool, shared, study, config)) for config in open_]:
                known[config.fingerprint] = confirmed()
                sure.add(config.fingerprint)
                progress.confirmed(len(sure), wanted)

    @staticmethod
    def _confirmed_point(pool: TaskPool, shared: Task, study: StudyFile, config: HwConfig) -> Callable[[], DesignPoint]:
        key = config.fingerprint
        if key in study.points:
            return lambda: study.points[key]
        waiting = pool.submit(exactly, shared, config, done=lambda made: study.add(key, None, *made))
        return lambda: waiting()[0]


VARIATIONS = 1500
"""Of each preset that does not fit: a large array, whose memories are not those that the models need. Of the four
MLPerf Tiny networks on `ulx3s-85f` six of 1,480 of `ulx3s-85f-dense` fit, three times as quick as any that a search of
1,145 choices had found without; of those with two to four changes none. A refused one takes a tenth of a second."""


@dataclass(frozen=True)
class Reference:
    """What a board offers already: its presets as points by name, and the choices to begin a search with: the presets
    that are choices of the space, and the neighbours of the quickest of these that fits; and `variations` of those that
    do not, by turns. None with external memory, where what does not fit is cut into segments."""

    presets: Mapping[str, DesignPoint]
    choices: tuple[Values, ...]
    variations: tuple[Values, ...] = ()


def reference(pool: TaskPool, task: Task, progress: Progress | None = None) -> Reference:
    """The board's presets on the workload, as they are, with a forecast of networks in segments."""
    shared = pool.share(task)
    configs = [task.space.with_external(preset(name)) for name in task.space.board.presets]
    waiting = [(config, pool.submit(exactly, shared, config, False)) for config in configs]
    points: dict[str, DesignPoint] = {}
    for config, wait in waiting:
        points[config.name], _ = wait()
        if progress:
            progress.compared(len(points), len(configs))
    choices = {config.name: choice for config in configs if (choice := task.space.values(config))}
    able = [name for name in choices if points[name].cycles and not points[name].refused]
    quickest = min(able, key=lambda name: mean(points[name].cycles), default=None)
    near = task.space.neighbours(choices[quickest]) if quickest else []
    over = [name for name in choices if name not in able and task.space.external is None]
    turns = zip_longest(*(task.space.variations(choices[name], VARIATIONS) for name in over))
    return Reference(points, (*choices.values(), *near), tuple(each for turn in turns for each in turn if each))
