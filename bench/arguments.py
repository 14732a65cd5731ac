"""Numbers on the command lines of benches: what is none, or out of range, ends in one sentence of argparse."""

from argparse import ArgumentTypeError
from collections.abc import Callable

MOST_MHZ = 1000
"""What no device reaches."""


def whole(least: int, most: int | None = None, why: str = "") -> Callable[[str], int]:
    """The type of a whole number of this range; `why` it ends there."""
    words = f"from {least:,} on" if most is None else f"from {least:,} to {most:,}"

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise ArgumentTypeError(f"must be a whole number {words}{why and f' ({why})'}, not {text!r}")
        return value

    return convert


def number(least: float, most: float) -> Callable[[str], float]:
    """The type of a number of this range."""

    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise ArgumentTypeError(f"must be a number from {least:g} to {most:g}, not {text!r}")
        return value

    return convert
