"""`Search`: points asked of Optuna in fixed batches and told in the order of asking.

What is asked next depends only on the seed and on the points told before, never on which worker was quicker: a study
is the same with one worker and with fifty, and one that is resumed asks again what it had asked.
"""

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..cluster import Waiting
from ..errors import UsageError
from .front import front
from .point import OBJECTIVES, DesignPoint
from .space import PARAMETERS, Values

if TYPE_CHECKING:
    import optuna

BATCH = 32
"""Points asked at a time. With `AHEAD` batches under way, 50 workers have work while the slowest point ends."""
AHEAD = 3
"""Batches under way: the points of one are told before the third after it is asked."""
POPULATION = 64
"""Of NSGA-II: two batches; fronts of some dozens of points fit."""
ASKED = 40
"""Times as many points may be asked as are wanted with cycles: of the choices for a small board most are too large for
it, which is known without scheduling them."""
ENOUGH = 8
"""Variations of presets that fit, after which no more are asked: a few to breed from, not a search of their own."""
WORST = 1e30
"""Objectives of a point without cycles."""
EXCESS = "excess"
"""The constraint of a trial that says by how much it is no solution."""


def text_of(values: Values) -> str:
    """A choice as text, equal for equal choices."""
    return json.dumps(dict(values), sort_keys=True)


@dataclass
class SearchState:
    """How far a search is: points `asked`, points with cycles out of `wanted`, and those `reused` of an earlier run."""

    wanted: int
    asked: int = 0
    scheduled: int = 0
    reused: int = 0


@dataclass(frozen=True)
class _Trial:
    trial: "optuna.Trial"
    key: str
    wait: Waiting[DesignPoint]


@dataclass
class Search:
    """A search for small `objectives` (names of `OBJECTIVES`) among the choices of `parameters`.

    `submit` has the point of a choice computed and keeps it in `known`, by `text_of` the choice; points that are there
    at the beginning are not computed again. `progress` is told how far the search is, after each point.
    """

    submit: Callable[[Values], Waiting[DesignPoint]]
    objectives: Sequence[str]
    seed: int = 0
    known: dict[str, DesignPoint] = field(default_factory=dict)
    progress: Callable[[SearchState], None] = lambda state: None
    parameters: Mapping[str, tuple[int | str, ...]] = field(default_factory=lambda: PARAMETERS)

    def run(
        self, wanted: int, first: Sequence[Values] = (), variations: Sequence[Values] = ()
    ) -> list[DesignPoint]:
        """Points in the order of asking, each once, until `wanted` of them have cycles; `first` are asked first, then
        `variations` until `ENOUGH` of these fit.

        `UsageError` E2801 without Optuna.
        """
        study, told, state = self._study(), dict[str, DesignPoint](), SearchState(wanted)
        queue, varied, fit = deque([*first, *variations]), set(map(text_of, variations)), 0
        batches, under_way, before = deque[list[_Trial]](), dict[str, Waiting[DesignPoint]](), set(self.known)
        while state.scheduled < wanted and (batches or state.asked < ASKED * wanted):
            while len(batches) < AHEAD and state.asked < ASKED * wanted:
                batches.append([self._ask(study, under_way, queue) for _ in range(BATCH)])
            for each in batches.popleft():
                if state.scheduled == wanted:
                    break
                point = each.wait()
                each.trial.set_constraint(EXCESS, point.excess)
                study.tell(each.trial, values_of(point, self.objectives))
                state.asked += 1
                fit += each.key in varied and bool(point.cycles) and not point.refused
                if fit == ENOUGH:
                    queue.clear()
                if each.key not in told:
                    told[each.key] = point
                    state.scheduled += bool(point.cycles)
                    state.reused += bool(point.cycles and each.key in before)
                self.progress(state)
        return list(told.values())

    def _ask(
        self, study: "optuna.Study", under_way: dict[str, Waiting[DesignPoint]], queue: deque[Values]
    ) -> _Trial:
        if queue:
            study.enqueue_trial(dict(queue.popleft()))
        trial = study.ask(_distributions(self.parameters))
        key = text_of(trial.params)
        if key not in self.known and key not in under_way:
            under_way[key] = self.submit(trial.params)
        return _Trial(trial, key, lambda: self._point(key, under_way))

    def _point(self, key: str, under_way: dict[str, Waiting[DesignPoint]]) -> DesignPoint:
        if key not in under_way:
            return self.known[key]
        found = under_way.pop(key)()
        self.known[key] = found
        return found

    def _study(self) -> "optuna.Study":
        module = require_optuna()
        module.logging.set_verbosity(module.logging.ERROR)
        sampler = module.samplers.NSGAIISampler(population_size=POPULATION, seed=self.seed)
        study: optuna.Study = module.create_study(directions=["minimize"] * len(self.objectives), sampler=sampler)
        return study


def values_of(point: DesignPoint, objectives: Sequence[str]) -> tuple[float, ...]:
    """The objectives of a point; `WORST` each where there are no cycles."""
    return tuple(OBJECTIVES[name](point) if point.cycles else WORST for name in objectives)


def best(points: Sequence[DesignPoint], objectives: Sequence[str]) -> list[DesignPoint]:
    """The front of the points that fit."""
    return front([(values_of(point, objectives), point) for point in points if point.cycles and not point.refused])


def require_optuna() -> Any:
    """The module; `UsageError` E2801 without it."""
    try:
        import optuna
    except ImportError as error:
        raise UsageError("E2801", "optuna is not installed", hint="pip install 'onnxhw[explore]'") from error
    return optuna


def _distributions(parameters: Mapping[str, tuple[int | str, ...]]) -> dict[str, Any]:
    make = require_optuna().distributions.CategoricalDistribution
    return {name: make(choices) for name, choices in parameters.items()}
