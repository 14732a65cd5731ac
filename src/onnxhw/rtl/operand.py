"""How a unit takes its operand from an activation word, and how the place of its sums travels with it."""

from typing import Any

from amaranth import Module, Mux, Signal, Value

from ..config import bits_for
from ..isa.timing import ACT_READ
from .delay import delay


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
