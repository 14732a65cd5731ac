"""Mutations of the controller of external memory: other constants, and other levels of its pins."""

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from external_bench import SMALL, Found, simulate

from onnxhw.engines.cxxrtl.sdram_model import SdramPins
from onnxhw.external import ExternalMemory
from onnxhw.isa.external import MemoryRequest, SdramCommand

CKE, CS, RAS, CAS, WE, BA, A, DQM, DQ, DRIVEN = range(len(SdramPins._fields))
SHORT, LONG = 900, 3 * SMALL.rows * SMALL.refresh
"""Cycles: enough for every rule; enough for rows to be lost."""

CONSTANTS: dict[str, tuple[ExternalMemory, str]] = {
    "tRCD a cycle short": (replace(SMALL, rcd=2), "tRCD"),
    "tRP a cycle short": (replace(SMALL, rp=2, ras=6), "tRP"),
    "tRAS a cycle short": (replace(SMALL, ras=4), "tRAS"),
    "tRFC a cycle short": (replace(SMALL, rfc=6), "tRFC"),
    "tWR a cycle short": (replace(SMALL, wr=1), "tWR"),
    "tRRD a cycle short": (replace(SMALL, rrd=1), "tRRD"),
    "tMRD ignored": (replace(SMALL, mrd=1), "tMRD"),
    "turnaround a cycle short": (replace(SMALL, turn=3), "contention"),
    "turnaround two cycles short": (replace(SMALL, turn=2), "contention"),
    "power-up half as long": (replace(SMALL, power_up=10), "power-up"),
    "another CAS latency": (replace(SMALL, cas_latency=3), "mode"),
    "refreshes half as often": (replace(SMALL, refresh=2 * SMALL.refresh), "lost"),
    "half the rows": (replace(SMALL, rows=8), "words"),
    "half the banks": (replace(SMALL, banks=2), "words"),
    "twice the columns": (replace(SMALL, columns=32), "address"),
}
"""What the controller is built with, and what finds it: a rule of the memory, lost rows, or other words read."""


def workload(cycles: int) -> list[MemoryRequest]:
    """Everything is written, some of it is used, everything is read."""
    rng = random.Random(7)
    size = 1 << SMALL.address_bits
    some = [MemoryRequest(0, True, 0, 150), MemoryRequest(0, True, 640, 60)]
    everything = [MemoryRequest(0, True, 0, size)] if cycles > SHORT else some
    use = []
    for _ in range(16):
        use.append(MemoryRequest(0, rng.random() < 0.5, rng.randrange(size // 8), rng.choice([1, 2, 20])))
    read = (
        [MemoryRequest(max(0, cycles - size - 900), False, 0, size)]
        if cycles > SHORT
        else [MemoryRequest(0, False, 0, 150)]
    )
    return [*everything, *use, *read]


def traced(external: ExternalMemory, cycles: int) -> Found:
    """The workload on a controller."""
    return simulate(
        external, workload(cycles), [MemoryRequest(0, True, 512, 8), MemoryRequest(0, False, 512, 8)], cycles
    )


def command(trace: np.ndarray, op: SdramCommand) -> np.ndarray:
    """The cycles of a command."""
    return np.flatnonzero((trace[:, RAS] << 2 | trace[:, CAS] << 1 | trace[:, WE]) == op)


def without(op: SdramCommand, numbers: slice) -> Callable[[np.ndarray], None]:
    """Some of these commands left out."""

    def change(trace: np.ndarray) -> None:
        cycles = command(trace, op)[numbers]
        trace[cycles, RAS : WE + 1] = 0
        if op == SdramCommand.WRITE:
            trace[cycles, DRIVEN] = 0

    return change


def stuck(column: int, mask: int, level: int, *ops: SdramCommand) -> Callable[[np.ndarray], None]:
    """Lines that stand at a level in the cycles of some commands."""

    def change(trace: np.ndarray) -> None:
        cycles = np.concatenate([command(trace, op) for op in ops])
        trace[cycles, column] = trace[cycles, column] & ~np.uint32(mask) | np.uint32(mask * level)

    return change


def late(*columns: int) -> Callable[[np.ndarray], None]:
    """Pins a cycle late."""

    def change(trace: np.ndarray) -> None:
        for column in columns:
            trace[1:, column] = trace[:-1, column].copy()

    return change


def _twice(trace: np.ndarray) -> None:
    """ACTIVATE again, of the bank whose row is open, in a cycle without a command."""
    idle = np.flatnonzero(~trace[:, RAS : WE + 1].any(1))
    first = command(trace, SdramCommand.ACTIVATE)[0]
    trace[idle[idle > first + 8][0]] = trace[first]


def _open(trace: np.ndarray) -> None:
    """No precharge before the refreshes."""
    cycles = [at for at in command(trace, SdramCommand.PRECHARGE)[1:] if trace[at, A] & 1024]
    trace[cycles, RAS : WE + 1] = 0


def _mask(trace: np.ndarray) -> None:
    trace[:, DQM] = 3


def _clock_off(trace: np.ndarray) -> None:
    trace[len(trace) // 2, CKE] = 0


def _no_release(trace: np.ndarray) -> None:
    """The pads drive a cycle longer than they should."""
    trace[1:, DRIVEN] |= trace[:-1, DRIVEN].copy()


def _never_drive(trace: np.ndarray) -> None:
    trace[:, DRIVEN] = 0


def _bursts(trace: np.ndarray) -> None:
    """The mode register asks for bursts of two."""
    trace[command(trace, SdramCommand.MODE), A] |= 1


def _stop(trace: np.ndarray) -> None:
    """BURST STOP in a cycle without a command."""
    idle = np.flatnonzero(~trace[:, RAS : WE + 1].any(1))
    trace[idle[idle > command(trace, SdramCommand.READ)[0]][0], WE] = 1


COLUMNS = (SdramCommand.READ, SdramCommand.WRITE)
PINS: dict[str, tuple[Callable[[np.ndarray], None], str]] = {
    "no refreshes": (without(SdramCommand.REFRESH, slice(8, None)), "lost"),
    "every second refresh left out": (without(SdramCommand.REFRESH, slice(8, None, 2)), "lost"),
    "seven refreshes at power-up": (without(SdramCommand.REFRESH, slice(0, 1)), "power-up"),
    "no precharge at power-up": (without(SdramCommand.PRECHARGE, slice(0, 1)), "power-up"),
    "no mode register": (without(SdramCommand.MODE, slice(None)), "mode"),
    "bursts of two columns": (_bursts, "mode"),
    "no precharge before refreshes": (_open, "open"),
    "one ACTIVATE left out": (without(SdramCommand.ACTIVATE, slice(3, 4)), "closed"),
    "ACTIVATE twice": (_twice, "open"),
    "one write left out": (without(SdramCommand.WRITE, slice(100, 101)), "words"),
    "row line 0 low": (stuck(A, 1, 0, SdramCommand.ACTIVATE), "words"),
    "column line 3 low": (stuck(A, 8, 0, *COLUMNS), "words"),
    "column line 0 high": (stuck(A, 1, 1, *COLUMNS), "words"),
    "bank line 1 low for columns": (stuck(BA, 2, 0, *COLUMNS), "closed"),
    "bank line 0 low for ACTIVATE": (stuck(BA, 1, 0, SdramCommand.ACTIVATE), "open"),
    "A10 high for columns": (stuck(A, 1024, 1, *COLUMNS), "A10"),
    "A10 high for one bank's precharge": (stuck(A, 1024, 1, SdramCommand.PRECHARGE), "tWR"),
    "data line 5 high": (stuck(DQ, 32, 1, SdramCommand.WRITE), "words"),
    "data a cycle late": (late(DQ), "words"),
    "data and its enable a cycle late": (late(DQ, DRIVEN), "data"),
    "pads that drive a cycle too long": (_no_release, "data"),
    "pads that never drive": (_never_drive, "data"),
    "data masked": (_mask, "words"),
    "clock enable low for a cycle": (_clock_off, "CKE"),
    "burst stop": (_stop, "command"),
}
"""What happens at the pins of a right controller, and what finds it."""
LONG_ONES = ("no refreshes", "every second refresh left out", "refreshes half as often")
