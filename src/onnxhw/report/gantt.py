"""`gantt`: when each layer is on which unit, a row per layer."""

from typing import TYPE_CHECKING

from ..isa.instructions import Load
from ..isa.timing import load_steps, tiles
from ..isa.units import Unit, units_of
from ..program.model import DeviceProgram
from .figure import COLOURS, figure
from .profile import Profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THICK = 0.22
"""Height of a unit's bar in a row of height 1."""
WIDTH = 1000
"""A bar is at least this part of the picture wide, or it would not be seen."""


def gantt(program: DeviceProgram, profile: Profile) -> "Figure":
    """The picture; `UsageError` E2606 without matplotlib.

    A bar is a weight tile that is loaded, or an instruction of another unit, from its issue to its last step.
    """
    count = len(program.layers)
    made = figure(12.5, 1.6 + 0.26 * max(count, 4))
    axes = made.subplots()
    loads, least = _loads(program, profile), max(1, profile.cycles // WIDTH)
    units = units_of(program.config)
    for number, layer in enumerate(program.layers):
        for place, unit in enumerate(units):
            spans = [profile.timeline.spans[unit][index] for index in layer.indices(unit)]
            bars = [(span.issue, span.end - span.issue) for span in spans]
            if unit == Unit.LOAD:
                bars = [bar for index in layer.indices(unit) for bar in loads[index]]
            bars = [(start, max(length, least)) for start, length in bars]
            low = number + (place - len(units) / 2) * THICK
            axes.broken_barh(bars, (low, THICK), facecolors=COLOURS[unit], linewidth=0)
    for unit in units:
        axes.broken_barh([], (0, 0), facecolors=COLOURS[unit], label=f"{unit} unit")
    rows = profile.layers
    names = [row.name if len(row.name) <= 24 else row.name[:23] + "…" for row in rows]
    axes.set_yticks(range(count), names, fontsize=8)
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(count), [f"{100 * row.of_mode:.0f} % of {row.mode}" for row in rows], fontsize=8)
    right.tick_params(length=0)
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_xlim(0, max(profile.cycles, 1))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.set_xlabel("cycles")
    axes.grid(True, axis="x", color="#ddd", linewidth=0.6)
    axes.set_axisbelow(True)
    made.legend(loc="outside lower center", ncols=len(units), fontsize=8, frameon=False)
    axes.set_title(f"{program.model} on {program.config.name}: {profile.cycles:,} cycles, "
                   f"{100 * profile.utilization:.1f} % of the array")  # fmt: skip
    return made


def _loads(program: DeviceProgram, profile: Profile) -> list[list[tuple[int, int]]]:
    """Start and length of every weight tile's load, per load instruction."""
    starts = iter(profile.timeline.load_start)
    code = [instruction for instruction in program.code.get(Unit.LOAD, []) if isinstance(instruction, Load)]
    return [[(next(starts), load_steps(one, program.config)) for _ in range(tiles(one))] for one in code]
