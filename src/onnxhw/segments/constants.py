"""`ConstantRing`: room for the constants of segments in one memory of the core, one behind the other."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Held:
    """Words ``first .. end - 1`` of a memory, which hold the constants `key`."""

    key: bytes
    first: int
    end: int


class ConstantRing:
    """Contiguous room in a memory of `size` words; at its end it begins anew.

    Members
    -------
    used : by word, the number of completed instructions after which it may be written again.
    arrived : by word, the number of the move that brings it, from 1 on.
    """

    def __init__(self, size: int) -> None:
        self.size, self.next = size, 0
        self.used, self.arrived = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.held: list[Held] = []

    def find(self, key: bytes) -> int | None:
        """The first word of constants that are still there."""
        return next((each.first for each in self.held if each.key == key), None)

    def take(self, key: bytes, words: int) -> int:
        """The first word of new room for them; what was there is lost."""
        first = self.next if self.next + words <= self.size else 0
        end = first + words
        self.held = [each for each in self.held if each.end <= first or end <= each.first]
        self.held.append(Held(key, first, end))
        self.next = end
        return first
