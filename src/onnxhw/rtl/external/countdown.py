"""`Countdown`: until when something must wait, with the answer in a register."""

from amaranth import Module, Mux, Signal, Value


class Countdown:
    """`ready` is low from the cycle after `start` on, and high again `cycles` cycles after it; high at first.

    What starts it may come late in its cycle: of the counter it reaches registers of one bit alone, and is acted on in
    the next cycle. `start` is given to `run`.
    """

    def __init__(self, cycles: int, name: str) -> None:
        self.cycles = cycles
        self.ready = Signal(init=1, name=f"{name}_ready")
        self._left = Signal(range(max(cycles, 2)), name=f"{name}_left")
        self._started = Signal(name=f"{name}_started")
        self.ends = Signal(init=1, name=f"{name}_ends")
        """A register: `ready` is high in the next cycle, unless there is a start."""

    def after(self, start: Value) -> Value:
        """What `ready` is in the next cycle, if `start` tells of a start in this one."""
        return self.ends | start if self.cycles == 1 else self.ends & ~start

    def run(self, m: Module, start: Value) -> None:
        """Counts in every cycle; `start`: it begins anew."""
        left, started = self._left, self._started
        m.d.sync += [started.eq(start), self.ready.eq(self.after(start))]
        m.d.sync += self.ends.eq(Mux(start, self.cycles <= 2, Mux(started, self.cycles <= 3, left <= 2)))
        m.d.sync += left.eq(Mux(started, max(self.cycles - 2, 0), Mux(left == 0, 0, left - 1)))
