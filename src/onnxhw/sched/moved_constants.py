"""`MovedConstants`: a memory of weights, parameters or tables that moves write while instructions read it."""

import numpy as np
import numpy.typing as npt

from ..isa.units import Unit
from .completion_order import AccessOrder, Counts, Unordered

Words = npt.NDArray[np.int64]
NOTHING, LOADED = -1, -2
"""Where a word is from if nobody has written it, or the host before the run; else a distance."""


class MovedConstants:
    """Words of `stride` host words each, of which the first `used` hold something. A word is whole if all of them come
    from words of external memory that lie there in the same order, one behind the other.

    What the host has loaded and an instruction has read stays for the next run.
    """

    def __init__(self, image: npt.NDArray[np.uint32], words: int, stride: int, used: int, reader: Unit) -> None:
        self.stride, self.used, self.reader = stride, used, reader
        self.contents = np.zeros((words, stride), np.uint32)
        self.source = np.full((words, stride), NOTHING, np.int64)
        there = image.reshape(-1, stride)
        self.contents[: len(there)], self.source[: len(there)] = there, LOADED
        self.kept = np.zeros(words, bool)
        self.order = AccessOrder(words, (Unit.MOVE,), (reader,))

    def read(self, index: int, words: Words, known: Counts) -> str:
        """An instruction reads words; why it must not, or empty."""
        source = self.source[words, : self.used]
        if (source[:, 0] == NOTHING).any():
            return f"reads word {int(words[int((source[:, 0] == NOTHING).argmax())])}, which nothing has brought"
        split = (source != source[:, :1]).any(axis=1)
        if split.any():
            return f"reads word {int(words[int(split.argmax())])}, whose parts come from different places"
        self.kept[words[source[:, 0] == LOADED]] = True
        return unordered(self.order.reads(self.reader, index, words, known), "reads")

    def write(self, index: int, chip: Words, external: Words, given: npt.NDArray[np.uint32], known: Counts) -> str:
        """A move brings host words `given`; why it must not, or empty."""
        self.contents.reshape(-1)[chip] = given
        self.source.reshape(-1)[chip] = (external - chip) % (1 << 24)
        words = np.unique(chip // self.stride)
        if self.kept[words].any():
            return f"writes over word {int(words[int(self.kept[words].argmax())])}, which the next run reads"
        return unordered(self.order.writes(Unit.MOVE, index, words, known), "writes")


def unordered(found: Unordered | None, does: str) -> str:
    """Two uses that nothing orders, as a text."""
    if found is None:
        return ""
    return f"{does} word {found.word}, and may do so before {found.unit}[{found.index}], which {found.does}"
