"""`page`: the report of a study as one HTML page that needs no other file."""

import math
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape

from .. import __version__
from .point import DesignPoint

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 460.0, 320.0, 64.0, 40.0, 12.0
"""Of a picture and its margins, in its own units."""
TICKS = 5
"""About so many marks on an axis."""


def page(record: Mapping[str, Any], points: Sequence[DesignPoint]) -> str:
    """The page of the record of ``explore --json`` and of all points of the study, in the order of asking."""
    fit = [point for point in points if point.cycles and not point.refused]
    front, presets = record["front"], [row for row in record["presets"] if row["cycles"]]
    routed = [row for row in front if "mhz" in row.get("routed", {})]
    pictures = [
        scatter("microseconds", what, [
            ("point", [(point.latency_us, getattr(point, field)) for point in fit]),
            ("front", [(row["latency_us"], row[field]) for row in front]),
            ("preset", [(row["latency_us"], row[field]) for row in presets]),
            ("routed", [(row["routed"]["latency_us"], row["routed"][field]) for row in routed]),
        ])
        for what, field in (("LUT4", "lut"), ("block RAMs", "ebr"))
    ]  # fmt: skip
    best = [min(point.latency_us for point in fit[: at + 1]) for at in range(len(fit))]
    pictures.append(scatter("points that fit", "fewest microseconds", [("front", list(enumerate(best, 1)))]))
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    blank = {"synthesized": dict[str, Any](), "routed": dict[str, Any]()}
    built = [{**blank, **row} for row in front if row.get("synthesized") or row.get("routed")]
    names = {"synthesized": ("lut", "ff"), "routed": ("lut", "mhz", "latency_us")}
    for row in built:
        for stage, fields in names.items():
            row[stage] = {**dict.fromkeys((*fields, "failed")), **row[stage]}
    title = f"{', '.join(record['models'])} on {record['board']}"
    text = resources.files(__package__).joinpath("report.html.j2").read_text(encoding="utf-8")
    return environment.from_string(text).render(
        title=title, r=record, pictures=pictures, built=built, version=__version__
    )


def scatter(across: str, up: str, series: Sequence[tuple[str, Sequence[tuple[float, float]]]]) -> Markup:
    """A picture of points by class, as SVG; the axis across is logarithmic where values differ by more than ten."""
    every = [point for _, points in series for point in points]
    if not every:
        return Markup("")
    xs, ys = zip(*every, strict=True)
    logarithmic = min(xs) > 0 and max(xs) > 10 * min(xs)
    scale = math.log10 if logarithmic else float
    left, right = scale(min(xs)), scale(max(xs))
    low, high = 0.0, max(ys) * 1.05 or 1.0

    def x_of(value: float) -> float:
        return LEFT + (WIDTH - LEFT - TOP) * ((scale(value) - left) / ((right - left) or 1.0))

    def y_of(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - low) / (high - low)

    parts = [f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(up)} by {escape(across)}">']
    for tick in ticks(low, high):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - TOP}" y1="{y_of(tick):.1f}" y2="{y_of(tick):.1f}"/>')
        parts.append(f'<text x="4" y="{y_of(tick) + 4:.1f}">{tick:,g}</text>')
    for tick in (min(xs), *(value for value in _across(left, right, logarithmic)), max(xs)):
        parts.append(f'<text text-anchor="middle" x="{x_of(tick):.1f}" y="{HEIGHT - 24:.1f}">{tick:,.4g}</text>')
    for kind, points in series:
        size = 2 if kind == "point" else 4
        parts += [
            f'<circle class="{kind}" cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="{size}"><title>{x:,.6g}, {y:,.6g}</title>'
            "</circle>"
            for x, y in points
        ]
    parts.append(
        f'<text x="{LEFT}" y="{HEIGHT - 6}">{escape(across)}</text><text x="4" y="10">{escape(up)}</text></svg>'
    )
    return Markup("".join(parts))


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high`, about `TICKS` of them."""
    step = 10 ** math.floor(math.log10((high - low) / TICKS))
    step *= next(times for times in (1, 2, 5, 10) if (high - low) / (times * step) <= TICKS)
    return [step * n for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _across(left: float, right: float, logarithmic: bool) -> list[float]:
    """Two marks between the ends."""
    between = [left + (right - left) * part / 3 for part in (1, 2)] if right > left else []
    return [10**value if logarithmic else value for value in between]
