"""Setup and hold between the FPGA and its SDRAM, by the numbers of data sheets: computed, not measured.

    python bench/sdram_margins.py [--board ulx3s-85f] [--mhz 100 --mhz 110 --mhz 125]

The memory's clock leaves inverted through ODDRX1F (or, for comparison, not inverted); commands, addresses and data
have registers in the pads. A margin is the least over both corners of the pads' delays; two pins that are compared
are of one corner, since they are in one device. Not in it: skew of the clock tree between pads, differences between
the traces of a board, loads other than those of the data sheets, jitter.
"""

import argparse
from dataclasses import dataclass

from onnxhw import board
from onnxhw.board_memory import BoardMemory

CORNERS = ("fast", "slow")
# prjtrellis-db, ECP5/timing/speed_6/cells.json (from Lattice's tools), ns, fast and slow: IOLOGIC MODE=OREG, TSREG,
# ODDRX1F and IREG; PIO IOTYPE=LVCMOS33 to and from the pad. It has one number for both corners of the registers.
REGISTER_TO_PAD = (1.200 + 1.988, 1.200 + 2.674)
ENABLE_TO_PAD = (1.031 + 2.203, 1.031 + 3.023)
CLOCK_TO_PAD = (0.983 + 1.988, 0.987 + 2.674)
PAD_TO_REGISTER = (0.990, 1.140)
REGISTER_SETUP, REGISTER_HOLD = 0.439, 0.311
TRACE = (0.0, 0.3)
"""A few centimetres of board, each way."""


@dataclass(frozen=True)
class Margins:
    """Nanoseconds that are left, at one clock. Below 0: it does not work."""

    mhz: float
    phase: int
    cas_latency: int
    memory_setup: float
    memory_hold: float
    read_setup: float
    read_hold: float

    @property
    def least(self) -> float:
        """The smallest of all."""
        return min(self.memory_setup, self.memory_hold, self.read_setup, self.read_hold)


def margins(memory: BoardMemory, mhz: float, phase: int) -> Margins:
    """All margins at a clock whose edges reach the memory `phase` degrees after the registers' in the pads."""
    period = 1e3 / mhz
    external = memory.external(round(mhz * 1e6))
    shift = period * phase / 360
    latency, captured = external.cas_latency, external.cas_latency + external.capture
    access = memory.tac2_ns if latency == 2 else memory.tac3_ns
    found = {name: [] for name in ("memory_setup", "memory_hold", "read_setup", "read_hold")}
    for corner in range(len(CORNERS)):
        clock = shift + CLOCK_TO_PAD[corner]
        latest, earliest = max(REGISTER_TO_PAD[corner], ENABLE_TO_PAD[corner]), REGISTER_TO_PAD[corner]
        # With the edges at the same time the memory samples what was there before: the next edge counts for setup.
        edge = clock if phase else clock + period
        found["memory_setup"].append(edge - latest - memory.tsu_ns - (TRACE[1] - TRACE[0]))
        found["memory_hold"].append(period + earliest - edge - memory.th_ns - (TRACE[1] - TRACE[0]))
        at = clock + (0 if phase else period) + TRACE[corner]
        there = at + (latency - 1) * period + access + TRACE[corner] + PAD_TO_REGISTER[corner]
        gone = at + latency * period + memory.toh_ns + TRACE[corner] + PAD_TO_REGISTER[corner]
        sample = captured * period
        found["read_setup"].append(sample - there - REGISTER_SETUP)
        found["read_hold"].append(gone - sample - REGISTER_HOLD)
    return Margins(mhz, phase, latency, **{name: min(values) for name, values in found.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", default="ulx3s-85f")
    parser.add_argument("--mhz", type=float, action="append")
    chosen = parser.parse_args()
    memory = board.find(chosen.board).external
    if memory is None:
        raise SystemExit(f"{chosen.board} has no external memory")
    print(f"{chosen.board}: margins in ns, computed from data sheets, NOT MEASURED on a board")
    print("MHz    phase  CL  memory setup  memory hold  read setup  read hold")
    for mhz in chosen.mhz or (100.0, 110.0, 125.0):
        for phase in (180, 0):
            m = margins(memory, mhz, phase)
            numbers = f"{m.memory_setup:12.2f} {m.memory_hold:12.2f} {m.read_setup:11.2f} {m.read_hold:10.2f}"
            print(f"{mhz:5g} {phase:6} {m.cas_latency:4} {numbers}  {'' if m.least > 0 else 'does not work'}")


if __name__ == "__main__":
    main()
