"""`Snapshot`: what a device is doing, from its control registers."""

from dataclasses import dataclass

from ..isa.memory import COUNTERS, ENDED, MOVE_COUNTERS, RING_SIZE, RUNNING, WATCHDOG, Control
from ..isa.units import Unit

SNAPSHOT_WORDS = Control.RING + RING_SIZE
"""Control registers of a snapshot, from the first on."""


@dataclass(frozen=True)
class Snapshot:
    """One reading of the control registers.

    `done` of `counts` instructions of each unit (in the order of `isa.units.Unit`) are completed; `last` are the
    instructions issued last, oldest first: unit and index. `token` is that of the last RUN.
    """

    running: bool
    ended: bool
    watchdog: bool
    token: int
    counts: tuple[int, ...]
    done: tuple[int, ...]
    budget: int
    cycles: int
    counters: dict[str, int]
    last: tuple[tuple[Unit, int], ...]

    @classmethod
    def of(cls, token: int, words: list[int]) -> "Snapshot":
        """From `SNAPSHOT_WORDS` registers."""
        status, head = words[Control.RUN], words[Control.RING_HEAD]
        ring = words[Control.RING : Control.RING + RING_SIZE]
        names = {unit.number: unit for unit in Unit}
        entries = [ring[(head + at) % RING_SIZE] for at in range(RING_SIZE)]
        return cls(
            running=bool(status & RUNNING),
            ended=bool(status & ENDED),
            watchdog=bool(status & WATCHDOG),
            token=token,
            counts=tuple(words[unit.registers.count] for unit in Unit),
            done=tuple(words[unit.registers.done] for unit in Unit),
            budget=words[Control.BUDGET],
            cycles=words[Control.CYCLES],
            counters={register.name.lower(): words[register] for register in (*COUNTERS, *MOVE_COUNTERS)},
            last=tuple((names[word >> 28], word & 0xFFFF) for word in entries if word >> 28 in names),
        )
