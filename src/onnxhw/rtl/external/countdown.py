"""`Countdown`: until when something must wait, with the answer in a register."""

from typing import Any

from amaranth import Module, Mux, Signal


class Countdown:
    """`ready` is high again `cycles` cycles after the one in which `start` was assigned; high at first."""

    def __init__(self, most: int, name: str) -> None:
        self.left = Signal(range(most + 1), name=f"{name}_left")
        self.ready = Signal(init=1, name=f"{name}_ready")
        self.ends = self.left <= 1
        """`ready` is high in the next cycle, unless there is a start."""

    def run(self, m: Module) -> None:
        """Counts in every cycle; comes before any `start`."""
        m.d.sync += [self.left.eq(Mux(self.left == 0, 0, self.left - 1)), self.ready.eq(self.ends)]

    def start(self, cycles: int) -> list[Any]:
        """Assignments for domain "sync"."""
        return [self.left.eq(cycles - 1), self.ready.eq(cycles == 1)]
