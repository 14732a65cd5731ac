"""Where the cycles of a program go: per layer, and per unit by cause.

All from `onnxhw.isa.timeline.timeline`, whose cycles are exact, so the figures are not estimates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from ..config import HwConfig
from ..isa.instructions import Ordered
from ..isa.timeline import Timeline, timeline
from ..isa.units import STREAMING, Unit, units_of
from ..program.model import DeviceProgram
from .busy_cycles import busy, free, order_wait
from .modes import ENOUGH, SHARE, LayerModes
from .moved_bytes import moved_bytes_by_layer


@dataclass(frozen=True)
class LayerRow:
    """One layer.

    `start`, `end`: first issue and last completion. `cycles`: by how much the layer moved the end of
    the work so far, layers taken in order (of a program in segments, where layers take turns, instruction by
    instruction); overlapped work is not counted twice, so the column adds up to the run, and a layer of the depthwise
    unit that runs beside those before and after it has few.
    `macs_executed`, `macs_nominal`: multiply-accumulates that the hardware makes, and those of the model: not executed
    are those of constant channels, and of channels that meet only weights of 0.
    `mode`, `peak`, `of_mode`, `window`, `losses`: what the layer runs in, what that does per cycle, what share of it
    the layer uses, the time that this is a share of and where the rest of it goes, see `modes`. `utilization`:
    executed MACs / (window x peak MACs per cycle of the array), waiting included. `array_busy`: cycles of the array's
    or the depthwise unit's work. `reason`: the largest losses in words, for a layer with more than `modes.SHARE` of the
    run's cycles and less than `modes.ENOUGH` of its mode; else empty. `wait_*`: cycles the array or the depthwise unit
    waited for weights, and cycles their instructions and those of the vector unit waited for other units.
    `moved_bytes`: that pass between external memory and the core for the layer (`moved_bytes.moved_bytes_by_layer`).
    """

    name: str
    kind: str
    macs_executed: int
    macs_nominal: int
    start: int
    end: int
    cycles: int
    utilization: float
    array_busy: int
    vector_busy: int
    wait_weights: int
    wait_array: int
    wait_vector: int
    mode: str
    peak: int
    of_mode: float
    window: int
    losses: dict[str, int]
    reason: str
    moved_bytes: int


@dataclass(frozen=True)
class UnitRow:
    """The cycles of one unit by what it did; they add up to the run.

    `busy`: steps, pixels or groups. `weights`: the array or the depthwise unit without its next weight tile (for the
    load unit: shadow registers still in use). `short`: tiles with fewer pixels than the accumulator's latency.
    `fetch`: its next instruction was being fetched. `order`: waiting for other units. `drain`: latency of the
    pipeline until the next vector instruction may issue, and the cycle between issue and first step.
    `tail`: after its last instruction.
    """

    unit: Unit
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
    moved_rest: int
    """Bytes that are moved for no layer."""


def profile(program: DeviceProgram) -> Profile:
    """The profile of a program."""
    times = timeline(program.config, program.code)
    peak = program.config.macs_per_cycle
    utilization = program.macs / (times.cycles * peak) if times.cycles else 0.0
    units = [_unit(unit, program.code.get(unit, []), times, program.config) for unit in units_of(program.config)]
    moved = moved_bytes_by_layer(program, times)
    layers = _layers(program, times, moved.layers)
    return Profile(times, layers, units, times.cycles, utilization, moved.rest)


def _unit(unit: Unit, code: Sequence[Ordered], times: Timeline, config: HwConfig) -> UnitRow:
    spans = times.spans[unit]
    sums = dict.fromkeys(CAUSES, 0)
    for index, (instruction, span) in enumerate(zip(code, spans, strict=True)):
        before = free(spans, index, unit)
        order = order_wait(spans, index, unit)
        work = busy(instruction, config)
        inside = span.end - span.issue  # from the issue to the last step
        sums["order"] += order
        sums["fetch"] += span.issue - before - order
        sums["busy"] += work
        if unit.ports.streams:
            sums["weights"] += span.stalled
            sums["short"] += inside - work - span.stalled
        elif unit == Unit.LOAD:
            sums["weights"] += inside - work
        else:
            sums["drain"] += free(spans, index + 1, unit) - span.issue - work
    end = free(spans, len(spans), unit)
    sums["tail"] = times.cycles - end
    return UnitRow(unit, len(code), **sums)


def _layers(program: DeviceProgram, times: Timeline, moved: Sequence[int]) -> list[LayerRow]:
    rows: list[LayerRow] = []
    frontier = 0
    judge, peak = LayerModes(program, times), program.config.macs_per_cycle
    progress = _progress(program, times) if program.in_segments else None
    for number, layer in enumerate(program.layers):
        picked = {unit: [(program.code[unit][i], i) for i in layer.indices(unit)] for unit in Unit}
        spans = [times.spans[unit][i] for unit in Unit for _, i in picked[unit]]
        start = min((span.issue for span in spans), default=frontier)
        end = max((span.done for span in spans), default=frontier)
        if number == len(program.layers) - 1:
            end = max(end, times.cycles)
        cycles = max(0, end - frontier) if progress is None else progress[number]
        frontier = max(frontier, end)
        use = judge.use(layer)
        judged = cycles > SHARE * times.cycles and use.share < ENOUGH
        rows.append(
            LayerRow(
                layer.name,
                layer.kind,
                layer.macs,
                layer.nominal,
                start,
                end,
                cycles,
                layer.macs / (use.window * peak) if use.window else 0.0,
                sum(busy(instruction, program.config) for unit in STREAMING for instruction, _ in picked[unit]),
                sum(busy(instruction, program.config) for instruction, _ in picked[Unit.VECTOR]),
                sum(times.spans[unit][i].stalled for unit in STREAMING for _, i in picked[unit]),
                sum(order_wait(times.spans[unit], i, unit) for unit in STREAMING for _, i in picked[unit]),
                sum(order_wait(times.spans[Unit.VECTOR], i, Unit.VECTOR) for _, i in picked[Unit.VECTOR]),
                use.mode,
                use.peak,
                use.share,
                use.window,
                use.losses,
                use.reason() if judged else "",
                moved[number],
            )
        )
    return rows


def _progress(program: DeviceProgram, times: Timeline) -> list[int]:
    """By how much each layer's instructions, taken as they complete, move the end of the work so far; what is left at
    the end is the last one's."""
    done = sorted(
        (times.spans[unit][index].done, number)
        for number, layer in enumerate(program.layers)
        for unit in layer.instructions
        for index in layer.indices(unit)
    )
    found, frontier, last = [0] * len(program.layers), 0, len(program.layers) - 1
    for end, number in done:
        found[number] += max(0, end - frontier)
        frontier, last = max(frontier, end), number
    if found:
        found[last] += times.cycles - frontier
    return found
