"""Shifts by a signal as a choice of two per bit of it, which takes fewer lookup tables than one choice of all."""

from amaranth import Mux, Value


def shift_right(value: Value, unit: int, by: Value) -> Value:
    """A signed value shifted right by so many units; as wide as it was."""
    value = value.as_signed()
    for index, one in enumerate(by):
        value = Mux(one, value >> (unit << index), value).as_signed()
    return value


def rotate_right(value: Value, unit: int, by: Value) -> Value:
    """A value turned right by so many units; to the left, if the unit is negative."""
    for index, one in enumerate(by):
        value = Mux(one, value.rotate_right(unit << index), value)
    return value
