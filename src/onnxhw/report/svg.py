"""Two drawings as inline SVG: the units over time, and activation memory over time.

Colours are CSS classes (``c0`` .. ``c7``), so that the page decides them for light and dark.
"""

from dataclasses import dataclass
from html import escape

from ..isa.units import Unit, units_of
from ..program.model import DeviceProgram
from .memory import lives
from .profile import Profile
from .trace import layer_of

COLOURS = 8
BARS = 4000
"""Bars of a unit beyond which neighbours are joined: a browser moves no more of them smoothly, and a network of 400
segments has ten times as many."""
WIDTH, LEFT, RIGHT = 1000.0, 64.0, 8.0
TRACK, STRIP, GAP = 26.0, 60.0, 8.0


def units(program: DeviceProgram, profile: Profile) -> str:
    """The units over the cycles of the run; a colour per layer, of moves none."""
    colour = {layer.name: number % COLOURS for number, layer in enumerate(program.layers)}
    names = units_of(program.config)
    height = len(names) * (TRACK + GAP) + 24
    tops = {unit: 4 + number * (TRACK + GAP) for number, unit in enumerate(names)}
    parts = [_open(height, f"Timeline of the units: {', '.join(names)}", profile.cycles)]
    parts += [_lane(y, TRACK) for y in tops.values()]
    parts.append(_axis(profile.cycles, height - 18))
    for unit, y in tops.items():
        parts.append(f'<text class="label" x="0" y="{y + TRACK / 2 + 4:.1f}">{unit}</text>')
        for bar in _bars(program, profile, unit):
            css = f"c{colour.get(bar.layer, 0)}"
            parts.append(_bar(bar.start, bar.end, profile.cycles, y, TRACK, css, bar.title))
    return "".join([*parts, "</svg>"])


@dataclass(frozen=True)
class _Bar:
    """Instructions of a layer, in cycles."""

    layer: str
    start: int
    end: int
    title: str
    count: int = 1


def _bars(program: DeviceProgram, profile: Profile, unit: Unit) -> list[_Bar]:
    """The bars of a unit: one per instruction, or if they are more than `BARS` one for those of a layer that follow
    each other closely."""
    owner, found = layer_of(program, unit), list[_Bar]()
    for index, span in enumerate(profile.timeline.spans[unit]):
        end = span.over if unit.overlaps else span.end
        what = program.code[unit][index].what
        stalled = f", {span.stalled:,} waiting for weights" if span.stalled else ""
        title = f"{owner[index]}: {what}[{index}], cycles {span.issue:,} to {end:,} ({end - span.issue:,}{stalled})"
        found.append(_Bar(owner[index], span.issue, end, title))
    return found if len(found) <= BARS else _joined(found, profile.cycles // (2 * int(WIDTH)))


def _joined(bars: list[_Bar], gap: int) -> list[_Bar]:
    """The bars, neighbours of a layer with no more than so many cycles between them as one."""
    found: list[_Bar] = []
    for bar in bars:
        last = found[-1] if found else None
        if last and last.layer == bar.layer and bar.start - last.end <= gap:
            end, count = max(last.end, bar.end), last.count + 1
            title = f"{bar.layer}: {count:,} instructions, cycles {last.start:,} to {end:,}"
            found[-1] = _Bar(bar.layer, last.start, end, title, count)
        else:
            found.append(bar)
    return found


def memory(program: DeviceProgram, profile: Profile) -> str:
    """Where each tensor lies in activation memory (upwards, a strip per bank) and for how long (to the right).

    All strips have the same scale: the highest word used in any bank.
    """
    colour = {layer.name: number % COLOURS for number, layer in enumerate(program.layers)}
    depth = program.config.act_depth
    boxes = [
        (life, number, bank, max(low, bank * depth) - bank * depth, min(high, (bank + 1) * depth) - bank * depth)
        for number, life in enumerate(lives(program, profile.timeline))
        for low, high in life.blocks
        for bank in range(low // depth, -(-high // depth))
    ]
    banks = sorted({bank for _, _, bank, _, _ in boxes}, reverse=True)
    top = max((high for *_, high in boxes), default=1)
    tops = {bank: 4 + row * (STRIP + GAP) for row, bank in enumerate(banks)}
    height = len(banks) * (STRIP + GAP) + 24
    parts = [_open(height, "Activation memory over time", profile.cycles), *(_lane(y, STRIP) for y in tops.values())]
    parts.append(_axis(profile.cycles, height - 18))
    for bank, y in tops.items():
        parts.append(f'<text class="label" x="0" y="{y + 12:.1f}">bank {bank}</text>')
        parts.append(f'<text class="tick" x="0" y="{y + 26:.1f}">to {top:,}</text>')
    for life, number, bank, low, high in boxes:
        shape = "x".join(str(n) for n in life.shape)
        title = f"{life.name} ({shape}): {life.words:,} words, cycles {life.born:,} to {life.dead:,}"
        tall = STRIP * (high - low) / top
        css = f"c{colour.get(program.tensors[life.name].op, number % COLOURS)} soft"
        parts.append(
            _bar(life.born, life.dead, profile.cycles, tops[bank] + STRIP * (1 - high / top), max(tall, 1), css, title)
        )
    return "".join([*parts, "</svg>"])


def _open(height: float, label: str, cycles: int) -> str:
    """`data-`: what `zoom.js` needs to draw a finer axis."""
    plot = f'data-cycles="{cycles}" data-left="{LEFT:g}" data-right="{RIGHT:g}"'
    return f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{escape(label)}" {plot}>'


def _lane(y: float, height: float) -> str:
    return f'<rect class="lane" x="{LEFT}" y="{y:.1f}" width="{WIDTH - LEFT - RIGHT}" height="{height:g}"/>'


def _x(cycle: float, cycles: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * cycle / max(cycles, 1)


def _bar(start: int, end: int, cycles: int, y: float, height: float, css: str, title: str) -> str:
    x = _x(start, cycles)
    width = max(_x(end, cycles) - x, 0.4)
    return (
        f'<rect class="{css}" x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{height:.1f}">'
        f"<title>{escape(title)}</title></rect>"
    )


def _axis(cycles: int, y: float) -> str:
    step = next(s for p in range(12) for s in (10**p, 2 * 10**p, 5 * 10**p) if cycles / s <= 8)
    marks = []
    for cycle in range(0, cycles + 1, step):
        x = _x(cycle, cycles)
        anchor = "end" if x > WIDTH - 40 else "middle"
        text = f"{cycle:,} cycles" if cycle == 0 else f"{cycle:,}"
        marks.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{y:.1f}"/>')
        marks.append(f'<text class="tick" text-anchor="{anchor}" x="{x:.1f}" y="{y + 14:.1f}">{text}</text>')
    return f'<g class="axis" data-y="{y:.1f}">{"".join(marks)}</g>'
