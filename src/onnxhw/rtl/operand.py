"""What the array and the depthwise unit share: ports, how they issue pixels tile by tile, how a unit takes its operand
from an activation word, and how the place of its sums travels with it."""

from typing import Any

from amaranth import Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.instructions import Array, Depthwise
from ..isa.timing import ACT_READ, array_latency, shadow_ready
from .delay import delay
from .loops import LoopNest
from .memory import read_request


def ports(kind: type[Array] | type[Depthwise], config: HwConfig) -> dict[str, Any]:
    """The members that both units have."""
    return {
        "valid": In(1),
        "bits": In(32 * kind.words()),
        "free": Out(1),
        "take": Out(1),
        "read": Out(read_request()),
        "word": In(8 * config.word),
        "loaded": In(1),
        "taken": Out(1),
        "weights": In(8 * config.weight_word),
        "done": Out(1),
        "streaming": Out(1),
        "starved": Out(1),
    }


def issue(
    m: Module, unit: Any, loops: LoopNest, outermost: Signal, depthwise: int, may_start: Value | None = None
) -> tuple[Signal, Signal, Signal]:
    """Take instructions and issue their pixels; a tile waits for its weights, and until it `may_start`.

    Returns the bits of the running instruction, whether it starts (the loops then begin) and whether this is its last
    pixel; `outermost` is ``last_LEVEL`` of the outermost loop.
    """
    bits = Signal.like(unit.bits, name="bits", reset_less=True)
    busy, starting = Signal(), Signal()
    active = Signal()  # the loops hold the running instruction
    ready = Signal()  # the next tile's weights stand in the shadow registers
    at_tile = Signal()
    last = Signal()
    able = Const(1) if may_start is None else may_start
    m.d.comb += [
        unit.streaming.eq(active & (~at_tile | (ready & able))),
        unit.starved.eq(active & at_tile & able & ~ready),
        unit.taken.eq(unit.streaming & at_tile),
        last.eq(unit.streaming & outermost),
        unit.free.eq(~busy),
        unit.take.eq(unit.valid & unit.free),
        loops.start.eq(starting),
        loops.step.eq(unit.streaming),
        unit.done.eq(delay(m, last, array_latency(unit.config, depthwise) - 1, name="done")),
    ]
    with m.If(unit.taken):
        m.d.sync += [ready.eq(0), at_tile.eq(0)]
    with m.If(delay(m, unit.loaded, shadow_ready(unit.config, depthwise) - 1, name="loaded")):
        m.d.sync += ready.eq(1)
    with m.If(unit.streaming & loops.last_oh):
        m.d.sync += at_tile.eq(1)
    m.d.sync += starting.eq(unit.take)
    with m.If(last):
        m.d.sync += [busy.eq(0), active.eq(0)]
    with m.If(unit.take):
        m.d.sync += [busy.eq(1), bits.eq(unit.bits)]
    with m.If(starting):
        m.d.sync += [active.eq(1), at_tile.eq(1)]
    return bits, starting, last


def operand(m: Module, word: Value, within: Value, pad: Value, group: Value, count: int) -> Signal:
    """`count` bytes, of the `group`, of the word read, or the pad value where not `within`.

    `within`, `pad` and `group` are those of the pixel being issued; the bytes are at their user `ACT_READ` + 1 cycles
    later.
    """
    groups = -(-len(word) // (8 * count))
    within_4 = delay(m, within, ACT_READ, name="within")
    pad_4 = delay(m, pad, ACT_READ, name="pad", reset=False)
    group_4 = delay(m, group, ACT_READ, name="group", reset=False)
    lanes = Signal(8 * count * groups)
    m.d.comb += lanes.eq(word)
    chosen = lanes.word_select(group_4[: bits_for(groups)], 8 * count)
    x_5 = Signal(8 * count, name="x", reset_less=True)
    m.d.sync += x_5.eq(Mux(within_4, chosen, pad_4.replicate(count)))
    return x_5


def arrive(m: Module, tag: Any, cycles: int) -> Any:
    """The place of sums `cycles` later; its member ``valid`` is reset."""
    later = Signal(tag.shape())
    m.d.comb += later.eq(delay(m, tag.as_value(), cycles, name="target", reset=False))
    m.d.comb += later.valid.eq(delay(m, tag.valid, cycles, name="valid"))
    return later
