"""Where the input port brings the bytes of the inputs' stream to, all at once, as indices into an image of memory."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..isa.input_port import LANES, InputRegion

Array64 = npt.NDArray[np.int64]


class Scattered(NamedTuple):
    """Bytes of a region in an image of the memory: `filled` take `fill`, then `places` the stream's from `source`."""

    places: Array64
    source: slice
    filled: Array64
    fill: int


def scatter(regions: Sequence[InputRegion], word: int, lanes: int) -> list[Scattered]:
    """Where the bytes of the stream come to, in a memory in whose image words of `word` bytes are `lanes` apart."""
    found, source = [], 0

    def image(places: Array64) -> Array64:
        return places // word * lanes + places % word

    for region in regions:
        pitch = region.run + region.gap
        row = pitch * region.runs - region.gap + region.row_gap
        starts = np.arange(region.rows)[:, None] * row + np.arange(region.runs) * pitch
        places = (starts[:, :, None] + np.arange(region.run)).reshape(-1) + region.first + region.lead
        filled = np.arange(region.first, region.end) if region.fill is not None else np.zeros(0, np.int64)
        found.append(Scattered(image(places), slice(source, source + len(places)), image(filled), region.fill or 0))
        source += region.elements
        if region.ends:
            source += -source % LANES
    return found
