"""`DesignPoint`: a configuration with its exact cycles and predicted resources, and the objectives made of them."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import exp, isfinite, log
from typing import Any

from ..board import Board
from ..config import HwConfig
from ..devices import family_of
from ..devices.family import FILL
from ..errors import DoesNotFitError, InternalError, UnsupportedError
from .clock import predicted_mhz
from .sizing import fitted, less_microcode, limited, with_spare_block_rams
from .workload import LEAST, MemoryNeeds, Workload, measured


@dataclass(frozen=True)
class DesignPoint:
    """A configuration for a board.

    `cycles`, `traffic`, `moved`: per model, of one inference: exact cycles from the last input on, as `compile`
    predicts them, bytes between core and on-chip memories, and bytes between core and external memory. `lut`, `ff`,
    `mhz` are predicted; `dsp` and `ebr` are exact. `refused` says why it is no solution; `excess` by how much, as a sum
    of shares, for the search. A refused point may be without cycles. With `forecast` cycles and bytes moved are those
    of a plan that is quick to find, within some 20 %: of networks in segments, until the point is in the front.
    """

    config: HwConfig
    cycles: tuple[int, ...] = ()
    traffic: tuple[int, ...] = ()
    lut: int = 0
    ff: int = 0
    dsp: int = 0
    ebr: int = 0
    mhz: float = 0.0
    refused: str = ""
    excess: float = 0.0
    moved: tuple[int, ...] = ()
    forecast: bool = False

    def record(self) -> dict[str, Any]:
        """As plain data; `from_record` reads it back."""
        record = {name: value for name, value in vars(self).items() if name != "config"}
        return {**record, "config": json.loads(self.config.to_json())}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "DesignPoint":
        """Inverse of `record`; `KeyError`, `TypeError`, `ValueError` or `UsageError` for anything else."""
        plain = {each.name: record[each.name] for each in dataclasses.fields(cls)}
        config = HwConfig.from_json(json.dumps(plain.pop("config")))
        lists = [tuple(plain.pop(name)) for name in ("cycles", "traffic", "moved")]
        point = cls(config, lists[0], lists[1], moved=lists[2], **plain)
        counts = [*chain(*lists), point.lut, point.ff, point.dsp, point.ebr]
        if not all(type(count) is int and count >= 0 for count in counts) or 0 in point.cycles:
            raise ValueError("cycles, bytes and resources are whole numbers")
        if not (isinstance(point.refused, str) and isinstance(point.forecast, bool)):
            raise TypeError("refused is text, and forecast true or false")
        if not (isfinite(point.mhz) and isfinite(point.excess) and point.excess >= 0 and point.mhz >= bool(counts[0])):
            raise ValueError("mhz and excess are numbers of at least 0")
        if not all(len(each) in (0, len(point.cycles)) for each in lists):
            raise ValueError("cycles and bytes are as many as models")
        return point

    @property
    def failed(self) -> bool:
        """Whether it is refused because of a bug of the compiler."""
        return self.refused.startswith("E1")

    @property
    def latency_us(self) -> float:
        """Microseconds of an inference at the predicted clock; of several models the geometric mean."""
        return mean(self.cycles) / self.mhz


def mean(values: tuple[int, ...]) -> float:
    """The geometric mean: a network counts as much as another, whatever its size. 0 if one is."""
    if 0 in values:
        return 0.0
    return values[0] if len(values) == 1 else exp(sum(map(log, values)) / len(values))


OBJECTIVES: dict[str, Callable[[DesignPoint], float]] = {
    "latency": lambda point: point.latency_us,
    "cycles": lambda point: mean(point.cycles),
    "lut": lambda point: point.lut,
    "ebr": lambda point: point.ebr,
    "dsp": lambda point: point.dsp,
    "clock": lambda point: -point.mhz,
    "traffic": lambda point: mean(point.traffic),
    "moved": lambda point: sum(point.moved),
}
"""What can be made small. "clock" is the negative of the predicted one."""
DEFAULT_OBJECTIVES = ("latency", "lut", "ebr")


@dataclass(frozen=True)
class Judge:
    """What is known of a board: whether a configuration fits it, as predicted; `fill`: the part of its logic that a
    point may take."""

    board: Board
    fill: float = field(default=FILL)

    def resources(self, point: DesignPoint) -> DesignPoint:
        """The point with its resources, and with what of them is too much."""
        family = family_of(self.board)
        taken = family.estimate(point.config)
        have = self.board.resources
        limits = {"LUT4": self.fill * have.lut4, "flip-flops": self.fill * have.ff, "multipliers": have.dsp,
                  "block RAMs": have.ebr}  # fmt: skip
        over = {kind: count / limits[kind] - 1 for kind, count in taken.counts().items() if count > limits[kind]}
        names = ", ".join(f"{100 * share:.0f} % too many {kind}" for kind, share in over.items())
        return dataclasses.replace(
            point, lut=taken.lut, ff=taken.ff, dsp=taken.dsp, ebr=taken.ebr, mhz=predicted_mhz(self.board, taken.lut),
            refused=point.refused or names, excess=point.excess + sum(over.values()),
        )  # fmt: skip


def evaluate(
    workload: Workload, config: HwConfig, judge: Judge, *, fit: bool = True, exact: bool = True
) -> DesignPoint:
    """The point of a configuration; with `fit` its memories are cut to what the programs need first, unless there is
    external memory: then after it, if all programs are on the chip alone. Without `exact` networks in segments have
    a forecast.

    A configuration that does not fit the board whatever the programs are is not scheduled, and one whose weights or
    parameters alone are too many only so far. One whose microcode is too long is scheduled once more, for less. One of
    which the compiler makes a program that it cannot prove is refused, too: others may do (`DesignPoint.failed`).
    """
    estimate, most = family_of(judge.board).estimate, judge.board.resources.ebr
    cut = fit and config.external is None
    least = workload.least(config) if cut else LEAST
    first = judge.resources(DesignPoint(fitted(config, least, estimate) if cut else config))
    if first.refused:
        return first
    config = limited(config, least, estimate, most) if cut else config
    try:
        point, needs = _scheduled(workload, config, judge, fit=fit, exact=exact)
        less = less_microcode(config, needs, estimate, most) if cut and point.ebr > most else None
        room = fitted(config, less, estimate) if less else config
        if less is None or judge.resources(DesignPoint(room)).refused:
            return point
        limits: dict[str, Any] = {name: getattr(room, name) for name in less.record() if name.endswith("_ucode")}
        try:
            return _scheduled(workload, dataclasses.replace(config, **limits), judge, fit=fit, exact=exact)[0]
        except DoesNotFitError:
            return point
    except _RefusedError as refused:
        return refused.point
    except (DoesNotFitError, UnsupportedError, InternalError) as error:
        share = error.share if isinstance(error, DoesNotFitError) else 1.0
        return dataclasses.replace(first, refused=f"{error.code} {error.what}", excess=share)


class _RefusedError(Exception):
    """`point` is too large whatever its programs are."""

    def __init__(self, point: DesignPoint) -> None:
        super().__init__(point.refused)
        self.point = point


def _scheduled(
    workload: Workload, config: HwConfig, judge: Judge, *, fit: bool, exact: bool
) -> tuple[DesignPoint, MemoryNeeds]:
    """The point of a configuration by its schedules, and what their programs need; errors as `measure`, and
    `_RefusedError`."""
    estimate, most = family_of(judge.board).estimate, judge.board.resources.ebr

    def require(needs: MemoryNeeds) -> None:
        if fit and config.external is None:
            point = judge.resources(DesignPoint(fitted(config, needs, estimate)))
            if point.ebr > most:
                raise _RefusedError(point)

    found = measured(workload, config, exact, require)
    if fit and not any(found.moved):
        config = with_spare_block_rams(fitted(config, found.needs, estimate), estimate, most)
    point = DesignPoint(config, found.cycles, found.traffic, moved=found.moved, forecast=found.forecast)
    return judge.resources(point), found.needs
