"""What an engine writes into the simulated core before a run, and what it says of a run that does not end."""

from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import MismatchError, UsageError
from ..isa.external_instructions import ring_units
from ..isa.instructions import UNITS
from ..isa.memory import WATCHDOG, Control, Space
from ..isa.units import Unit
from ..program.host_words import Words, memories
from ..program.model import DeviceProgram

WITHOUT_MEMORY = ("cocotb",)
"""Engines that run programs of configurations with external memory only where these do not use it."""


def budget(program: DeviceProgram) -> int:
    """Cycles after which the watchdog ends a run: twice the prediction, so that a late end can still be examined."""
    return 2 * program.cycles + 1024


def program_writes(program: DeviceProgram) -> Iterator[tuple[Space, int, Words]]:
    """Space, host address and words of everything that a program brings along into the core; the counts come first. Of
    microcode that is longer than its ring, moves bring the rest."""
    counts = [len(program.code.get(unit, ())) for unit in UNITS]
    yield Space.CONTROL, int(Control.LOAD_COUNT), np.array([*counts, budget(program)], np.uint32)
    if program.config.external is not None:
        yield Space.CONTROL, int(Control.MOVE_COUNT), np.array([len(program.code.get(Unit.MOVE, ()))], np.uint32)
    rings = {unit.microcode: unit.ucode(program.config) for unit in ring_units(program.config)}
    for space, words in memories(program):
        if space is not Space.EXTERNAL:
            yield space, 0, words[: rings.get(space, len(words))]


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


def require_able(name: str, program: DeviceProgram) -> None:
    """`UsageError` E2404 if an engine cannot run a program, before it is prepared."""
    if name in WITHOUT_MEMORY and program.in_segments:
        raise UsageError(
            "E2404",
            f"{program.model} moves data from and to external memory, which the engine {name} does not have",
            hint="--engine cxxrtl simulates the core with its memory",
        )
