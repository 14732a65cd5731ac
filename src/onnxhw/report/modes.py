"""How well a layer uses the mode that it runs in, and where the rest of its time goes.

A layer is judged on the array or the depthwise unit if it has instructions there, else on the vector unit. Its
*window* is the time that
the unit spends on the layer's instructions, each from the end of the one before; so windows of different layers do
not overlap. What the mode could do at best in that time, per cycle:

    array      R * C multiply-accumulates
    depthwise  3 * 3 * D multiply-accumulates
    weights    k * C multiply-accumulates: one per weight that is loaded, as in a dense layer of batch 1. Only where
               fewer pixels than R / k meet a weight tile; else the load hides under the streaming
    vector     one group of Q lanes (or one position of a window; where Q = W two cycles for a plane of one position)
    moves      one pixel through the array, where a layer multiplies by constants to move values (no MACs of the model)
"""

from bisect import bisect_left
from dataclasses import dataclass
from math import ceil

from ..config import WINDOW, HwConfig
from ..isa.instructions import Array, Depthwise
from ..isa.timeline import Timeline
from ..isa.timing import pixels, sums, tiles
from ..isa.units import STREAMING, Unit
from ..program.model import DeviceProgram, Layer
from .busy_cycles import busy, free, order_wait

SHARE, ENOUGH = 0.01, 0.6
"""A layer with more of the run's cycles than `SHARE` that uses less than `ENOUGH` of its mode is given a reason."""
MENTIONED = 0.05
"""Losses below this share of a layer's window are left out of its reason."""

LOSSES = {
    "edge": "on rows, columns or lanes without a channel (edge tiles)",
    "strip": "on pixels of depthwise strips where no window ends (borders, strides)",
    "drain": "waiting while the vector unit works (drain-bound)",
    "memory": "waiting while words pass between external memory and the core",
    "latency": "waiting for pipelines to empty between dependent steps",
    "weights": "waiting for weight tiles",
    "short": "on tiles of fewer pixels than the accumulator's latency",
    "fetch": "fetching instructions",
    "input": "waiting for what it reads",
}
"""Where cycles go that the mode could have used, in words that follow a percentage."""


@dataclass(frozen=True)
class ModeUse:
    """A layer in its mode.

    `peak`: what the mode does per cycle. `window`: cycles that the unit spent on the layer. `least`: whole cycles that
    the mode needs at its peak for the layer's multiply-accumulates (or for what it streams, where that is less:
    channels that meet only weights of 0 are not streamed); `losses`: the others, by cause, so that
    ``window == least + sum(losses.values())``.
    """

    mode: str
    peak: int
    window: int
    least: int
    losses: dict[str, int]

    @property
    def share(self) -> float:
        """What the layer uses of its mode, 0 to 1."""
        return self.least / self.window if self.window else 0.0

    def reason(self) -> str:
        """The largest losses in words, with their share of the window."""
        large = sorted(self.losses.items(), key=lambda item: -item[1])
        parts = [f"{100 * n / self.window:.0f} % {LOSSES[name]}" for name, n in large if n > MENTIONED * self.window]
        return "; ".join(parts)


class LayerModes:
    """The layers of a program in their modes."""

    def __init__(self, program: DeviceProgram, times: Timeline) -> None:
        self.program, self.times, self.config = program, times, program.config
        streams = [
            (span.end - busy(instruction, self.config) + 1, span.end + 1)
            for instruction, span in zip(program.code.get(Unit.VECTOR, []), times.spans[Unit.VECTOR], strict=True)
        ]
        self._streams = _Spans([start for start, _ in streams], [end for _, end in streams])
        moves = times.spans.get(Unit.MOVE, ())
        self._moves = _Spans([span.issue for span in moves], [span.done for span in moves])

    def use(self, layer: Layer) -> ModeUse:
        """A layer's use of its mode."""
        unit = next((unit for unit in STREAMING if layer.indices(unit)), None)
        return self._streamed(layer, unit) if unit else self._on_vector(layer)

    def _streamed(self, layer: Layer, unit: Unit) -> ModeUse:
        """On the array or the depthwise unit."""
        spans = self.times.spans[unit]
        losses = dict.fromkeys(("edge", "strip", "drain", "memory", "latency", "weights", "short", "fetch"), 0)
        window = work = steps = 0
        modes: dict[str, int] = {}
        for index in layer.indices(unit):
            instruction, span = self.program.code[unit][index], spans[index]
            assert isinstance(instruction, (Array, Depthwise))
            before, own = free(spans, index, unit), busy(instruction, self.config)
            order = order_wait(spans, index, unit)
            drained = self._streams.within(span.issue - order, span.issue)
            moved = min(order - drained, self._moves.within(span.issue - order, span.issue))
            losses["drain"] += drained
            losses["memory"] += moved
            losses["latency"] += order - drained - moved
            losses["fetch"] += span.issue - before - order
            losses["weights"] += span.stalled
            losses["short"] += span.end - span.issue - own - span.stalled
            if isinstance(instruction, Depthwise):
                rows, cols = sums(instruction)
                losses["strip"] += own - tiles(instruction) * rows * cols
            window += span.end - before
            work += own
            steps += tiles(instruction) * self.config.tile_words
            mode = _mode(instruction, self.config)
            modes[mode] = modes.get(mode, 0) + own
        mode = max(modes, key=lambda name: modes[name]) if layer.macs else "moves"
        peak = {
            Unit.ARRAY: self.config.macs_per_cycle,
            Unit.DEPTHWISE: WINDOW**2 * self.config.depthwise_lanes,
            "weights": self.config.weight_word,
            "moves": 1,
        }[mode]
        if mode == "weights":
            _hide(losses, window - steps)
            work = min(window, steps)
        useful = work - losses["strip"]
        least = min(useful, ceil(layer.macs / peak)) if layer.macs else useful
        losses["edge"] = useful - least
        return ModeUse(mode, peak, window, least, losses)

    def _on_vector(self, layer: Layer) -> ModeUse:
        spans = self.times.spans[Unit.VECTOR]
        losses = dict.fromkeys(("memory", "input", "fetch", "latency"), 0)
        window = work = 0
        for index in layer.indices(Unit.VECTOR):
            span, before = spans[index], free(spans, index, Unit.VECTOR)
            own, order = busy(self.program.code[Unit.VECTOR][index], self.config), order_wait(spans, index, Unit.VECTOR)
            moved = self._moves.within(span.issue - order, span.issue)
            losses["memory"] += moved
            losses["input"] += order - moved
            losses["fetch"] += span.issue - before - order
            passed = free(spans, index + 1, Unit.VECTOR)
            losses["latency"] += passed - span.issue - own
            window += passed - before
            work += own
        return ModeUse(Unit.VECTOR, 1, window, work, losses)


@dataclass(frozen=True)
class _Spans:
    """Spans of cycles ``start .. end - 1`` in order, of which none overlap."""

    starts: list[int]
    ends: list[int]

    def within(self, start: int, end: int) -> int:
        """Cycles of ``start .. end - 1`` that lie in one of them."""
        total = 0
        for index in range(bisect_left(self.ends, start + 1), len(self.starts)):
            if self.starts[index] >= end:
                break
            total += min(end, self.ends[index]) - max(start, self.starts[index])
        return total


def _hide(losses: dict[str, int], left: int) -> None:
    """Where loading is the work: of the array's waits only `left` cycles are losses, for the others hide behind it."""
    left = max(0, left)
    for cause in ("fetch", "latency", "memory", "drain"):
        losses[cause] = min(losses[cause], left)
        left -= losses[cause]
    losses["short"], losses["weights"] = 0, left


def _mode(instruction: Array | Depthwise, config: HwConfig) -> str:
    if isinstance(instruction, Depthwise):
        return Unit.DEPTHWISE
    return "weights" if pixels(instruction) < config.tile_words else Unit.ARRAY
