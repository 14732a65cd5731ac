"""`StreamState`: what the checker knows of the unit that streams pixels, the array or the depthwise unit."""

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..isa.instructions import Array, Depthwise, Load, Vector
from ..isa.timing import tiles
from ..isa.units import Unit
from . import footprint

Words = npt.NDArray[np.int64]


class StreamState:
    """The instructions of the array, or of the depthwise unit: what they read, their tiles, what they wait for."""

    def __init__(
        self,
        unit: Unit,
        code: list[Array] | list[Depthwise],
        loads: list[Load],
        vectors: list[Vector],
        config: HwConfig,
    ) -> None:
        self.unit, self.code = unit, code
        self.reads = [footprint.array_reads(i, config.word) for i in code]
        mine = [i for i in loads if i.depthwise == (unit == Unit.DEPTHWISE)]
        starts = [footprint.tile_words(load, config) for load in mine]
        self.tile_bases = np.concatenate([np.zeros(0, np.int64), *starts]).astype(np.int64)
        self.first_tile = np.cumsum([0, *(tiles(i) for i in code)])
        # A unit waits in order, so it has waited for the most that any of its instructions so far asked.
        self.after = running([i.after_vector for i in code])
        self.after_reads = running([i.after_vector + i.more_reads for i in code])
        place = tuple(Unit).index(unit)
        self.vector_after = running([i.waits[place] for i in vectors])

    def concurrent(self, index: int, after: Words) -> range:
        """Vector instructions that no ordering field puts before or after an instruction, which waits for `after`."""
        first = after[index]
        end = int(np.searchsorted(self.vector_after, index, side="right"))
        return range(first, max(first, end))

    def drained_from(self, index: int) -> int:
        """The first vector instruction that waits for an instruction."""
        return int(np.searchsorted(self.vector_after, index, side="right"))


def running(values: list[int]) -> Words:
    """The largest so far, after each."""
    return np.maximum.accumulate(np.array(values, np.int64)) if values else np.zeros(0, np.int64)
