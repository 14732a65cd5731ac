"""Where the cycles of a program go: per layer, and per unit by cause.

All from `onnxhw.isa.timing.timeline`, whose cycles are exact, so the figures are not estimates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from ..config import HwConfig
from ..isa.instructions import UNITS, Array, Load, Ordered, Vector
from ..isa.timing import Span, Timeline, load_steps, pixels, tiles, timeline, vector_cycles
from ..program.model import Program


@dataclass(frozen=True)
class LayerRow:
    """One layer.

    `start`, `end`: first issue and last completion. `cycles`: by how much the layer moved the end of
    the work so far; overlapped work is not counted twice, so the column adds up to the run.
    `utilization`: MACs / (window x peak MACs per cycle), where the window is the array's time from the end of the
    layer before to the layer's own end, waiting included. `wait_*`: cycles the array waited for weights, and cycles
    its instructions and those of the vector unit waited for other units.
    """

    name: str
    kind: str
    macs: int
    start: int
    end: int
    cycles: int
    utilization: float
    array_busy: int
    vector_busy: int
    wait_weights: int
    wait_array: int
    wait_vector: int


@dataclass(frozen=True)
class UnitRow:
    """The cycles of one unit by what it did; they add up to the run.

    `busy`: steps, pixels or groups. `weights`: the array without its next weight tile (for the load unit:
    shadow registers still in use). `short`: tiles with fewer pixels than the accumulator's latency.
    `fetch`: its next instruction was being fetched. `order`: waiting for other units. `drain`: latency of the
    pipeline until the next vector instruction may issue, and the cycle between issue and first step.
    `tail`: after its last instruction.
    """

    unit: str
    instructions: int
    busy: int
    weights: int
    short: int
    fetch: int
    order: int
    drain: int
    tail: int

    @property
    def total(self) -> int:
        """Cycles of the run."""
        return sum(getattr(self, cause) for cause in CAUSES)


CAUSES = tuple(field.name for field in fields(UnitRow))[2:]
"""Names of the columns of a `UnitRow` that are cycles, `busy` first."""


@dataclass(frozen=True)
class Profile:
    """A program's timeline and its two summaries."""

    timeline: Timeline
    layers: list[LayerRow]
    units: list[UnitRow]
    cycles: int
    utilization: float


def profile(program: Program) -> Profile:
    """The profile of a program."""
    times = timeline(program.config, program.code)
    peak = program.config.macs_per_cycle
    utilization = program.macs / (times.cycles * peak) if times.cycles else 0.0
    units = [_unit(unit, program.code.get(unit, []), times, program.config) for unit in UNITS]
    return Profile(times, _layers(program, times), units, times.cycles, utilization)


def busy(instruction: Ordered, config: HwConfig) -> int:
    """Cycles of an instruction's own work: load steps, array pixels, vector groups and window positions."""
    if isinstance(instruction, Load):
        return instruction.tiles * load_steps(instruction, config)
    if isinstance(instruction, Array):
        return tiles(instruction) * pixels(instruction)
    assert isinstance(instruction, Vector)
    return vector_cycles(instruction)


def order_wait(spans: Sequence[Span], index: int, unit: str) -> int:
    """Cycles for which an instruction, fetched and with its unit free, waited for other units."""
    span = spans[index]
    return span.issue - max(span.ready, _free(spans, index, unit))


def _free(spans: Sequence[Span], index: int, unit: str) -> int:
    """First cycle in which the unit could take the instruction, as far as the one before lets it."""
    if index == 0:
        return 0
    return spans[index - 1].done if unit == "vector" else spans[index - 1].end


def _unit(unit: str, code: Sequence[Ordered], times: Timeline, config: HwConfig) -> UnitRow:
    spans = times.spans[unit]
    sums = dict.fromkeys(CAUSES, 0)
    for index, (instruction, span) in enumerate(zip(code, spans, strict=True)):
        free = _free(spans, index, unit)
        order = order_wait(spans, index, unit)
        work = busy(instruction, config)
        inside = span.end - span.issue  # from the issue to the last step
        sums["order"] += order
        sums["fetch"] += span.issue - free - order
        sums["busy"] += work
        if unit == "array":
            sums["weights"] += span.stalled
            sums["short"] += inside - work - span.stalled
        elif unit == "load":
            sums["weights"] += inside - work
        else:
            sums["drain"] += span.done - span.issue - work
    end = _free(spans, len(spans), unit)
    sums["tail"] = times.cycles - end
    return UnitRow(unit, len(code), **sums)


def _layers(program: Program, times: Timeline) -> list[LayerRow]:
    rows: list[LayerRow] = []
    frontier = array_end = 0
    peak = program.config.macs_per_cycle
    for number, layer in enumerate(program.layers):
        picked = {unit: [(program.code[unit][i], i) for i in layer.indices(unit)] for unit in UNITS}
        spans = [times.spans[unit][i] for unit in UNITS for _, i in picked[unit]]
        start = min((span.issue for span in spans), default=frontier)
        end = max((span.done for span in spans), default=frontier)
        if number == len(program.layers) - 1:
            end = max(end, times.cycles)
        cycles = max(0, end - frontier)
        frontier = max(frontier, end)
        array_before, array_end = (
            array_end,
            max([array_end, *(times.spans["array"][i].end for _, i in picked["array"])]),
        )
        window = array_end - array_before
        rows.append(
            LayerRow(
                layer.name,
                layer.kind,
                layer.macs,
                start,
                end,
                cycles,
                layer.macs / (window * peak) if window else 0.0,
                sum(busy(instruction, program.config) for instruction, _ in picked["array"]),
                sum(busy(instruction, program.config) for instruction, _ in picked["vector"]),
                sum(times.spans["array"][i].stalled for _, i in picked["array"]),
                sum(order_wait(times.spans["array"], i, "array") for _, i in picked["array"]),
                sum(order_wait(times.spans["vector"], i, "vector") for _, i in picked["vector"]),
            )
        )
    return rows
