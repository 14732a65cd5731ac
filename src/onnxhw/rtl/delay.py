"""Delay lines."""

from amaranth import Module, Signal, Value


def delay(m: Module, value: Value, cycles: int, *, name: str, reset: bool = True) -> Value:
    """`value` as it was `cycles` cycles ago; 0 until then. Data that a valid bit guards needs no reset."""
    for i in range(cycles):
        stage = Signal(value.shape(), name=f"{name}_{i + 1}", reset_less=not reset)
        m.d.sync += stage.eq(value)
        value = stage
    return value
