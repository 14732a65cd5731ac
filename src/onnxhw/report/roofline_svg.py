"""The rooflines of a program as inline SVG for its page: a point per layer, with its numbers where one points at it.

Both axes are logarithmic. Of many layers only those with most of the run's cycles are named, by their number in the
table of layers; all others have theirs in the title.
"""

from html import escape
from math import floor, log10

from ..config import WINDOW
from ..program.model import DeviceProgram
from .profile import Profile
from .roofline import Panel, Point, panels, points

WIDTH, GAP, TOP, PLOT, BOTTOM, LEFT = 1000.0, 34.0, 22.0, 260.0, 40.0, 40.0
NAMED = 12
"""Points of a panel that have their number beside them."""
MODES = {"array": "c0", "weights": "c1", "depthwise": "c2", "vector": "c4", "moves": "c5"}
"""Colour of a point by the mode of its layer (`modes`)."""


def rooflines(program: DeviceProgram, profile: Profile) -> str:
    """The drawing; empty if no layer multiplies."""
    found = points(program, profile)
    if not found:
        return ""
    made = panels(program, found)
    wide = (WIDTH - LEFT - GAP * (len(made) - 1)) / len(made)
    peak = program.config.macs_per_cycle
    low = min([*(point.rate for point in found), peak / 100]) / 1.5
    height = TOP + PLOT + BOTTOM
    parts = [f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="Rooflines of the layers">']
    depthwise = WINDOW**2 * program.config.depthwise_lanes if program.config.depthwise else 0
    for number, panel in enumerate(made):
        drawing = _Drawing(panel, LEFT + number * (wide + GAP), wide, (low, 1.4 * peak), peak)
        parts += drawing.parts(depthwise, named=number == 0, whole=profile.cycles)
    return "".join([*parts, "</svg>"])


class _Drawing:
    """One panel, `wide` from `left` on; `rates`: the range of the vertical axis."""

    def __init__(self, panel: Panel, left: float, wide: float, rates: tuple[float, float], peak: int) -> None:
        self.panel, self.left, self.wide, self.rates, self.peak = panel, left, wide, rates, peak
        knee, xs = peak / panel.slope, [x for x, _ in panel.placed]
        self.sizes = min([*xs, knee]) / 2, max([*xs, knee]) * 2

    def x(self, value: float) -> float:
        return self.left + self.wide * _share(value, self.sizes)

    def y(self, value: float) -> float:
        return TOP + PLOT * (1 - _share(value, self.rates))

    def parts(self, depthwise: int, named: bool, whole: int) -> list[str]:
        panel, (low, high) = self.panel, self.sizes
        foot = max(low, self.rates[0] / panel.slope)
        roof = [(foot, foot * panel.slope), (self.peak / panel.slope, self.peak), (high, self.peak)]
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in roof)
        found = [
            f'<rect class="lane" x="{self.left:.1f}" y="{TOP:g}" width="{self.wide:.1f}" height="{PLOT:g}"/>',
            *self._axes(named),
            f'<polyline class="roof" points="{path}"/>',
            f'<text class="label" x="{self.left:.1f}" y="{TOP - 8:g}">{escape(panel.title)}</text>',
            f'<text class="tick" text-anchor="end" x="{self.left + self.wide - 4:.1f}" '
            f'y="{self.y(self.peak) - 4:.1f}">array: {self.peak}</text>',
            f'<text class="tick" text-anchor="middle" x="{self.left + self.wide / 2:.1f}" '
            f'y="{TOP + PLOT + 32:g}">{escape(panel.label)}</text>',
        ]
        if depthwise:
            y = self.y(depthwise)
            found.append(f'<line class="roof thin" x1="{self.x(max(low, depthwise / panel.slope)):.1f}" '
                         f'x2="{self.left + self.wide:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')  # fmt: skip
        shown = sorted(panel.placed, key=lambda each: -each[1].row.cycles)
        found += [self._point(x, point, whole) for x, point in shown]  # the largest first: the others lie above it
        found += [
            f'<text class="label" x="{self.x(x) + 5:.1f}" y="{self.y(point.rate) - 5:.1f}">{point.number}</text>'
            for x, point in shown[:NAMED]
        ]
        return found

    def _point(self, x: float, point: Point, whole: int) -> str:
        row = point.row
        radius = 2.5 + 30 * (row.cycles / max(whole, 1)) ** 0.5
        title = (
            f"{point.number} {row.name}: {point.rate:.1f} MACs per cycle, {x:,.1f} {self.panel.label}, "
            f"{row.cycles:,} cycles, {100 * row.of_mode:.0f} % of its mode ({row.mode})"
        )
        return (
            f'<circle class="{MODES.get(row.mode, "c7")}" cx="{self.x(x):.1f}" cy="{self.y(point.rate):.1f}" '
            f'r="{radius:.1f}"><title>{escape(title)}</title></circle>'
        )

    def _axes(self, named: bool) -> list[str]:
        found = []
        for value in _decades(self.sizes):
            x, foot = self.x(value), TOP + PLOT
            found.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP:g}" y2="{foot:g}"/>')
            found.append(f'<text class="tick" text-anchor="middle" x="{x:.1f}" y="{foot + 14:g}">{value:g}</text>')
        for value in _decades(self.rates):
            y, end = self.y(value), self.left + self.wide
            found.append(f'<line class="grid" x1="{self.left:.1f}" x2="{end:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
            if named:
                x = self.left - 5
                found.append(f'<text class="tick" text-anchor="end" x="{x:.1f}" y="{y + 4:.1f}">{value:g}</text>')
        return found


def _share(value: float, ends: tuple[float, float]) -> float:
    """Where a value lies on a logarithmic axis, from 0 to 1."""
    low, high = ends
    return log10(max(value, low) / low) / log10(high / low)


def _decades(ends: tuple[float, float]) -> list[float]:
    """The powers of ten within."""
    low, high = ends
    powers = range(floor(log10(low)), floor(log10(high)) + 1)
    return [10.0**power for power in powers if low <= 10.0**power <= high]
