"""That the input port brings the inputs to where the tensor table says, and writes nothing else."""

import numpy as np
import numpy.typing as npt

from ..errors import InternalError
from ..isa.input_port import LANES, LONGEST, MOST, REGIONS, InputRegion
from ..program.input_regions import input_regions, inputs, regions, to_stream
from ..program.input_scatter import scatter
from ..program.model import DeviceProgram, Entry
from .memory_state import tensor_words

NUMBERS = 251
"""Values by which elements are told from each other, in as many rounds as it takes: a prime, so that none of the
patterns in which elements lie repeats with them."""
NOTHING = 1000
"""What memory holds before; no int8."""


def check_input_regions(program: DeviceProgram) -> None:
    """`InternalError` E1260 if the port cannot do what the regions of the inputs say, or does something else than put
    each input where the tensor table has it."""
    found = input_regions(program)
    if len(found) > REGIONS:
        raise InternalError("E1260", f"the inputs take {len(found)} regions of the input port, which has {REGIONS}")
    for name in inputs(program):
        entry, word = program.tensors[name], program.config.word
        for region in regions(entry, word):
            if why := _impossible(region, word, program.config.act_words):
                raise InternalError("E1260", f"{region}: {why}", where=f"input {name!r}")
        mine = np.zeros(program.config.act_words, bool)
        mine[tensor_words(program, name)] = True
        elements = int(np.prod(entry.shape))
        for divisor in (NUMBERS**n for n in range(1 + int(np.emath.logn(NUMBERS, max(elements, 2))))):
            values = (np.arange(elements) // divisor % NUMBERS - NUMBERS // 2).astype(np.int8).reshape(entry.shape)
            if why := _misplaced(entry, values, mine, word):
                raise InternalError("E1260", why, where=f"input {name!r}")


def _impossible(region: InputRegion, word: int, words: int) -> str:
    """Why the port cannot work through a region; else empty."""
    gaps = region.first, region.lead, region.gap, region.row_gap, region.tail
    if min(gaps) < 0 or max(gaps) >= (MOST + 1) * word:
        return "a distance is out of range"
    if not 1 <= region.run <= LONGEST or not all(1 <= count <= MOST for count in (region.runs, region.rows)):
        return "a count is out of range"
    return "reaches beyond activation memory" if region.end > words * word else ""


def _misplaced(entry: Entry, values: npt.NDArray[np.int8], mine: npt.NDArray[np.bool_], word: int) -> str:
    """What is wrong with memory behind the port if the input is `values`; else empty."""
    data = np.frombuffer(to_stream(entry, values, word), np.int8)
    memory = np.full((len(mine), word), NOTHING, np.int16)
    flat, taken = memory.reshape(-1), 0
    for part in scatter(regions(entry, word), word, word):
        flat[part.filled] = part.fill
        flat[part.places] = data[part.source]
        taken = part.source.stop
    if taken + -taken % LANES != len(data):
        return f"{len(data)} bytes travel, the port takes {taken}"
    if (memory[~mine] != NOTHING).any():
        return "the input port writes other words"
    if not np.array_equal(_lanes(entry, memory), entry.store(values)):
        return "elements come to other places than the tensor table has"
    return ""


def _lanes(entry: Entry, memory: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
    """What memory has at the place of a tensor."""
    place, word = entry.place, memory.shape[1]
    _, channels, height, width = place.shape
    c, y, x = np.ogrid[place.lane : place.lane + channels, :height, :width]
    found: npt.NDArray[np.int16] = memory[place.base + c // word * place.plane + y * place.row + x, c % word][None]
    return found
