"""Delay lines."""

from amaranth import Module, Signal, Value


def delay(m: Module, value: Value, cycles: int, *, name: str, reset: bool = True) -> Value:
    """`value` as it was `cycles` cycles ago; 0 until then. Data that a valid bit guards needs no reset."""
    for i in range(cycles):
        stage = Signal(value.shape(), name=f"{name}_{i + 1}", reset_less=not reset)
        m.d.sync += stage.eq(value)
        value = stage
    return value


def early_delay(m: Module, value: Value, cycles: int, early: Value, *, name: str) -> Value:
    """A bit as it was `cycles` cycles ago, `early` cycles less; 0 until then. `early` is less than `cycles`, stands two
    cycles before the bit rises, and until the next cycle."""
    most = min(cycles, 1 << len(early))
    from_here, out = Signal(most, name=f"{name}_from"), Value.cast(0)
    m.d.sync += from_here.eq(1 << early)
    for at in range(cycles):
        stage = Signal(name=f"{name}_{at + 1}")
        m.d.sync += stage.eq(out | (value & from_here[at]) if at < most else out)
        out = stage
    return out
