"""What an engine writes into the simulated core before a run, and what it says of a run that does not end."""

from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import MismatchError
from ..isa.instructions import UNITS
from ..isa.memory import WATCHDOG, Control, Space
from ..program.host_words import Words, memories
from ..program.model import DeviceProgram


def budget(program: DeviceProgram) -> int:
    """Cycles after which the watchdog ends a run: twice the prediction, so that a late end can still be examined."""
    return 2 * program.cycles + 1024


def program_writes(program: DeviceProgram) -> Iterator[tuple[Space, int, Words]]:
    """Space, host address and words of everything that a program brings along; the counts come first."""
    counts = [len(program.code.get(unit, ())) for unit in UNITS]
    yield Space.CONTROL, int(Control.LOAD_COUNT), np.array([*counts, budget(program)], np.uint32)
    for space, words in memories(program):
        yield space, 0, words


def watchdog_error(program: DeviceProgram, status: int, cycles: int, counts: Sequence[int]) -> MismatchError:
    """What to say of a run that has not ended by itself."""
    done = ", ".join(
        f"{unit} {n} of {len(program.code.get(unit, ()))}" for unit, n in zip(UNITS, counts, strict=False)
    )
    state = "the watchdog ended it" if status & WATCHDOG else f"status {status}"
    return MismatchError(
        "E8402",
        f"the run has not ended after {cycles} cycles ({program.cycles} predicted; {state}); completed: {done}",
        where=program.model,
        hint="onnxhw.bisect.compare names the first difference",
    )
