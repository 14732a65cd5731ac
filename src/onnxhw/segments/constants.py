"""`ConstantRing`: room for the constants of segments in one memory of the core."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]
NOBODY = -1
"""Whose a word is that nothing lies in."""


class ConstantRing:
    """Room in a memory of `size` words, one behind the other; at its end it begins anew. `resident`: where constants
    lie that were loaded with the program and stay; no others come below `bound`.

    Members
    -------
    used : by word, the number of completed instructions after which it may be written again.
    arrived : by word, the number of the move that brings it, from 1 on; 0: it is resident.
    """

    def __init__(self, size: int, resident: Mapping[bytes, int] | None = None, bound: int = 0) -> None:
        self.size, self.bound, self.next = size, bound, bound
        self.resident = resident or {}
        self.used, self.arrived = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._owner = np.full(size, NOBODY, np.int64)
        self._held: dict[bytes, tuple[int, Words]] = {}
        self._count = 0

    def empty(self) -> None:
        """Begin anew, with nothing that is still there."""
        self.next = self.bound
        self._held = {}

    def place(self, wanted: Sequence[tuple[bytes, int]], wraps: bool = False) -> dict[bytes, tuple[Words, bool]]:
        """Room for the constants of a segment, all at once: of each key its words, and whether they must be brought.

        `wanted` are keys and numbers of words, which fit the ring together. Those that must be brought lie one behind
        the other, with `wraps` over the end of the ring, too.
        """
        sizes = {key: words for key, words in wanted if key not in self.resident}
        found = {key: at for key in sizes if (at := self._still_present(key, wraps)) is not None}
        total = sum(words for key, words in sizes.items() if key not in found)
        room = self._room(total, found, wraps)
        if room is None:  # what is there is in the way
            found = {}
            room = self._room(sum(sizes.values()), found, wraps)
            assert room is not None
        placed = {key: (at, False) for key, at in found.items()}
        used = 0
        for key, words in sizes.items():
            if key not in found:
                placed[key] = room[used : used + words], True
                self._take(key, placed[key][0])
                used += words
        for key, words in wanted:
            if key in self.resident:
                placed[key] = self.resident[key] + np.arange(words), False
        return placed

    def stream(self, words: int) -> Words:
        """Room for words that come in front of one instruction and are not looked for again, in a row."""
        if self.next + words > self.size:
            self.next = self.bound
        assert self.next + words <= self.size
        found = self.next + np.arange(words)
        self._owner[found] = self._count
        self._count += 1
        self.next += words
        return found

    def _still_present(self, key: bytes, wraps: bool) -> Words | None:
        """The words of constants that are still there, in a row unless it `wraps`."""
        number, words = self._held.get(key, (NOBODY, np.zeros(0, np.int64)))
        if not len(words) or not bool((self._owner[words] == number).all()):
            return None
        return words if wraps or words[-1] - words[0] == len(words) - 1 else None

    def _room(self, words: int, found: Mapping[bytes, Words], wraps: bool) -> Words | None:
        """So many words behind the last ones, or behind what must stay."""
        stays = np.zeros(self.size, bool)
        for mine in found.values():
            stays[mine] = True
        for first in self._firsts(found):
            at = first + np.arange(words)
            if wraps and words <= self.size - self.bound:
                at = self.bound + (at - self.bound) % (self.size - self.bound)
            if int(at.max(initial=0)) < self.size and not stays[at].any():
                return at
        return None

    def _firsts(self, found: Mapping[bytes, Words]) -> Iterator[int]:
        ends = sorted(int(mine[-1]) + 1 for mine in found.values())
        yield self.next
        yield from (end for end in ends if end > self.next)
        yield self.bound
        yield from ends

    def _take(self, key: bytes, words: Words) -> None:
        self._owner[words] = self._count
        self._held[key] = self._count, words
        self._count += 1
        self.next = int(words[-1]) + 1
