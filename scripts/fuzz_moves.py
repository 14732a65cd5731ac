"""Random programs with moves, RTL against emulator and timeline: ``python scripts/fuzz_moves.py --count 10000``.

Each program has instructions of all units and moves between them, or is itself moved in (`tests/rtl/move_programs.py`).
Activation and external memory, cycles and counters must be equal. What differs is printed with the number that makes
the same program again (``--first``), and the exit status is 8.
"""

import argparse
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "rtl"))
import moves_bench
from move_programs import GEOMETRIES, program_moved_in, random_program_with_moves

BATCH = 250
"""Programs on one configuration before the next one's turn: a core takes a second to begin with."""
MOST = 900
"""Cycles that pass at most before a run: more than from one refresh to the next."""


def batch(number: int, first: int, count: int) -> int:
    """Run programs on a configuration; how many differed."""
    wrong, config = 0, GEOMETRIES[number]
    with moves_bench.core(config) as model:
        for seed in range(first, first + count):
            make = program_moved_in if seed % 5 == 4 else random_program_with_moves
            program, act = make(config, seed)
            if found := moves_bench.run(model, program, act, random.Random(seed).randrange(MOST)):
                print(f"{config.name}: --first {seed}: {', '.join(found)}", flush=True)
                wrong += 1
    return wrong


def main(count: int, first: int) -> int:
    """Run so many programs, on each configuration in turn."""
    wrong, begin = 0, time.monotonic()
    for at in range(first, first + count, BATCH):
        wrong += batch(at // BATCH % len(GEOMETRIES), at, min(BATCH, first + count - at))
        made = min(at + BATCH - first, count)
        print(f"{made} programs, {wrong} differ, {time.monotonic() - begin:.0f} s", flush=True)
    return 8 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    arguments = parser.parse_args()
    sys.exit(main(arguments.count, arguments.first))
