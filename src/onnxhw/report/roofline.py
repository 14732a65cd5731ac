"""`roofline`: which limit each layer of a program is under.

Two limits beside the multipliers matter on this machine where everything is on chip: bytes of weights per cycle (k * C)
and results per cycle (the Q lanes that requantize). A network in segments has a third one, bytes that pass between
external memory and the core. So there are two or three rooflines over the same axis of multiply-accumulates per cycle;
a point is a layer, at what it did in its window (see `modes`). A layer may lie a little beyond the second roof, where
its last results are drained in the window of the next.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..config import WINDOW
from ..isa.units import Unit
from ..program.model import DeviceProgram, Layer, runs_of
from .busy_cycles import busy
from .figure import COLOURS, figure
from .profile import LayerRow, Profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEAR = 0.09, 0.03
"""Points closer than these parts of the picture, across and up, share a label."""


@dataclass(frozen=True)
class Point:
    """A layer: its number, multiply-accumulates per byte of weights loaded, per result and per byte moved from and to
    external memory (0: none is), and per cycle."""

    number: int
    row: LayerRow
    per_weight: float
    per_result: float
    per_moved: float
    rate: float


def points(program: DeviceProgram, profile: Profile) -> list[Point]:
    """The layers that multiply and accumulate, numbered from 1 in the order of `profile.layers`."""
    found = []
    for number, (layer, row) in enumerate(zip(program.layers, profile.layers, strict=True), 1):
        weights = _work(program, layer, Unit.LOAD) * program.config.weight_word
        results = _work(program, layer, Unit.VECTOR) * program.config.lanes
        macs = row.of_mode * row.window * row.peak
        if layer.macs and row.window and weights and results:
            moved = macs / row.moved_bytes if row.moved_bytes else 0.0
            found.append(Point(number, row, macs / weights, macs / results, moved, row.of_mode * row.peak))
    return found


@dataclass(frozen=True)
class Panel:
    """One roof beside the array's: `slope` of what `title` names per cycle, and the layers, each at its
    multiply-accumulates per one of them (`label`)."""

    title: str
    label: str
    slope: int
    placed: list[tuple[float, Point]]


def panels(program: DeviceProgram, found: list[Point]) -> list[Panel]:
    """The rooflines of a program's points."""
    config = program.config
    made = [
        Panel(f"weights: {config.weight_word} bytes per cycle", "MACs per byte of weights loaded", config.weight_word,
              [(p.per_weight, p) for p in found]),
        Panel(f"results: {config.lanes} per cycle", "MACs per result (idle lanes counted)", config.lanes,
              [(p.per_result, p) for p in found]),
    ]  # fmt: skip
    moved = [(p.per_moved, p) for p in found if p.per_moved]
    if config.external is not None and moved:
        slope = config.external.data_bits // 8
        made.append(Panel(f"external memory: {slope} bytes per cycle", "MACs per byte moved", slope, moved))
    return made


def roofline(program: DeviceProgram, profile: Profile) -> "Figure":
    """The picture; `UsageError` E2606 without matplotlib."""
    config, found = program.config, points(program, profile)
    drawings = panels(program, found)
    made = figure(4.2 + 4.15 * len(drawings), max(5.6, 1.4 + 0.19 * len(found)))
    *drawn, names = made.subplots(1, len(drawings) + 1, width_ratios=(*[4] * len(drawings), 2.1))
    depthwise = WINDOW**2 * config.depthwise_lanes if config.depthwise else 0
    for axes, panel in zip(drawn, drawings, strict=True):
        if axes is not drawn[0]:
            axes.sharey(drawn[0])
        _panel(axes, panel.placed, panel.slope, config.macs_per_cycle, depthwise)
        axes.set_xlabel(panel.label)
        axes.set_title(panel.title, fontsize=10)
    drawn[0].set_ylabel("MACs per cycle")
    made.suptitle(f"{program.model} on {config.name}: {profile.cycles:,} cycles, "
                  f"{100 * profile.utilization:.1f} % of the array")  # fmt: skip
    lines = [f"{p.number:2}  {_short(p.row.name)}  {100 * p.row.of_mode:.0f} %" for p in found]
    names.axis("off")
    names.text(0, 1, "\n".join(["layer, share of its mode", *lines]), va="top", fontsize=8, family="monospace")
    return made


def _work(program: DeviceProgram, layer: Layer, unit: Unit) -> int:
    return sum(busy(program.code[unit][index], program.config) for index in layer.indices(unit))


def _panel(axes: Any, placed: list[tuple[float, Point]], slope: int, peak: int, depthwise: int) -> None:
    xs = [x for x, _ in placed] or [1.0]
    low, high = min([*xs, peak / slope]) / 2.5, max([*xs, peak / slope]) * 2.5
    axes.loglog([low, peak / slope, high], [low * slope, peak, peak], color="#444", linewidth=1.5)
    axes.annotate(f"array: {peak}", (high, peak), (-3, 4), textcoords="offset points", ha="right", fontsize=8)
    if depthwise:
        green = COLOURS[Unit.DEPTHWISE]
        axes.plot([depthwise / slope, high], [depthwise, depthwise], color=green, linewidth=1, linestyle="--")
        axes.annotate(f"depthwise: {depthwise}", (high, depthwise), (-3, -10), textcoords="offset points", ha="right",
                      fontsize=8, color=green)  # fmt: skip
    total = sum(point.row.cycles for _, point in placed) or 1
    for x, point in placed:
        size = 20 + 600 * point.row.cycles / total
        axes.scatter(x, point.rate, s=size, color=COLOURS[point.row.mode], alpha=0.65, linewidth=0)
    for mode in dict.fromkeys(point.row.mode for _, point in placed):
        axes.scatter([], [], s=40, color=COLOURS[mode], alpha=0.65, linewidth=0, label=mode)
    bottom = min([*(point.rate for _, point in placed), low * slope]) / 2
    for x, y, text in _labels(placed, np.log10(high / low), np.log10(2 * peak / bottom)):
        axes.annotate(text, (x, y), ha="center", va="center", fontsize=7.5)
    axes.set_xlim(low, high)
    axes.set_ylim(bottom, 2 * peak)
    axes.grid(True, which="major", color="#ddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(loc="lower right", fontsize=8)


def _labels(placed: list[tuple[float, Point]], wide: float, high: float) -> list[tuple[float, float, str]]:
    """Numbers of points that lie together, as one text at the first of them, in a picture of so many decades."""
    groups: list[tuple[float, float, list[int]]] = []
    for x, point in placed:
        for gx, gy, numbers in groups:
            if abs(np.log10(x / gx)) < NEAR[0] * wide and abs(np.log10(point.rate / gy)) < NEAR[1] * high:
                numbers.append(point.number)
                break
        else:
            groups.append((x, point.rate, [point.number]))
    runs = [(x, y, runs_of(numbers)) for x, y, numbers in groups]
    return [(x, y, ", ".join(f"{a}" if b == a + 1 else f"{a}-{b - 1}" for a, b in found)) for x, y, found in runs]


def _short(name: str) -> str:
    return name if len(name) <= 18 else name[:17] + "…"
