"""Linked programs broken on purpose: ``python scripts/broken_moves.py --count 1500``, or until so many are refused:
``--refused 1000 --way lower_wait --way lower_reads --way other_bank --way external_address``. With ``--states``
they are networks whose runs depend on those before (`tests/segments/streaming_networks.py`).

Small networks (`tests/segments/small_networks.py`) become linked programs, and in each of so many one instruction is
changed: an ordering field lowered, another bank, another address in external memory or on the chip, a move left out.
Cycles and microcode in external memory are those of the changed program. The checker refuses it, or it is

- *equal*: run after run it gives what the golden model gives, on the emulator;
- *another* program: it computes something else, but that in whatever order the ordering fields allow. Which box of a
  tensor a move is to bring, instructions do not tell;
- *unsafe*: it depends on the order, or fails. That is printed with the number that makes the same program again
  (``--first``), and the exit status is 8.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "segments"))
from small_networks import SMALL, inputs, inverted
from streaming_networks import Stateful, cell, ring, two

from onnxhw import golden
from onnxhw.config import HwConfig
from onnxhw.emu.emulator import Emulator
from onnxhw.emu.order import count_tiles, ready_units
from onnxhw.errors import OnnxhwError
from onnxhw.ir.graph import Array8
from onnxhw.ir.states import interface
from onnxhw.isa.external_instructions import Move, reads_waited, waiting
from onnxhw.isa.instructions import Array, Depthwise, Ordered, Vector
from onnxhw.isa.memory import Space, host_stride
from onnxhw.isa.microcode import pack
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.program import DeviceProgram
from onnxhw.sched import check
from onnxhw.segments import PartCycles, link, make_plan

PLAIN = replace(SMALL, name="small", act_depth=16, weight_depth=64)
CONFIGS = (PLAIN, replace(PLAIN, name="tight", load_ucode=48, array_ucode=96, vector_ucode=128, move_ucode=512))
"""The second has rings that most segments fill a good part of."""
NETWORKS: dict[str, Callable[[], Stateful]] = {
    "deep": lambda: (inverted(4, 6), ()), "wide": lambda: (inverted(4, 8), ()),
}  # fmt: skip
"""A second or less for each program, and every kind of move."""
STREAMING: dict[str, Callable[[], Stateful]] = {
    "ring": lambda: ring(4, 6), "cell": lambda: cell(4, 6), "two": lambda: two(4, 6)
}  # fmt: skip
"""A state in place, and others that are copied."""
SHIFT = 64
"""Words by which an address is shifted at most."""
Code = dict[Unit, list[Ordered]]
Changed = Code | None
SHOWN = 100
"""Programs after which the campaign says how far it is."""


@dataclass(frozen=True)
class Linked:
    """A network's linked program, and for some inputs, one after the other, what the golden model makes of them."""

    program: DeviceProgram
    samples: tuple[tuple[dict[str, Array8], dict[str, Array8]], ...]


@cache
def linked(name: str, config: HwConfig) -> Linked:
    """A network on a configuration."""
    graph, states = {**NETWORKS, **STREAMING}[name]()
    program = link(graph, make_plan(graph, config, PartCycles(config)), config, states=states)
    runs, given = golden.StatefulRuns(graph, states), interface(graph, states)
    samples = [inputs(given, seed) for seed in range(2 + bool(states))]
    return Linked(program, tuple((x, runs.run(x)) for x in samples))


# -- ways to break a program: None if the instruction that was drawn cannot be broken so -----------


def lower_wait(code: Code, config: HwConfig, rng: random.Random) -> Changed:
    """An ordering field becomes less than what its unit has waited for before it, or something between."""
    unit = rng.choice([unit for unit in Unit if code[unit]])
    index, place = rng.randrange(len(code[unit])), rng.randrange(len(Unit))
    i = code[unit][index]
    before = max((each.waits[place] for each in code[unit][:index]), default=0)
    if i.waits[place] <= before:
        return None
    counts = list(i.waits)
    counts[place] = rng.choice([before, rng.randrange(before, counts[place]), counts[place] - 1])
    reads = reads_waited(i) - i.waits[3] + counts[3] if place == 3 else reads_waited(i)
    return with_instruction(code, unit, index, waiting(i, counts, reads))


def lower_reads(code: Code, config: HwConfig, rng: random.Random) -> Changed:
    """Fewer vector instructions must have read their operands."""
    unit = rng.choice([unit for unit in (Unit.ARRAY, Unit.DEPTHWISE) if code[unit]])
    index = rng.randrange(len(code[unit]))
    i = code[unit][index]
    assert isinstance(i, (Array, Depthwise))
    return with_instruction(code, unit, index, i.but(more_reads=rng.randrange(i.more_reads))) if i.more_reads else None


def other_bank(code: Code, config: HwConfig, rng: random.Random) -> Changed:
    """A base address of activation memory lies in another bank."""
    unit = rng.choice([unit for unit in (Unit.ARRAY, Unit.VECTOR, Unit.MOVE) if code[unit]])
    index, step = rng.randrange(len(code[unit])), config.act_depth * rng.choice([-2, -1, 1, 2])
    i = code[unit][index]
    if isinstance(i, Move):
        if i.space != Space.ACT:
            return None
        return shifted(code, unit, index, "chip", step * host_stride(config.word))
    if isinstance(i, Vector):
        return shifted(code, unit, index, rng.choice(["o_base", "a_base"] if i.op else ["o_base"]), step)
    return shifted(code, unit, index, "act_base", step)


def external_address(code: Code, config: HwConfig, rng: random.Random) -> Changed:
    """A move goes to or comes from other words of external memory."""
    index, other = rng.randrange(len(code[Unit.MOVE])), rng.choice(code[Unit.MOVE])
    i = code[Unit.MOVE][index]
    assert isinstance(i, Move)
    assert isinstance(other, Move)
    step = rng.choice([other.external - i.external, rng.randint(-SHIFT, SHIFT), rng.choice([-4, -1, 1, 4])])
    return shifted(code, Unit.MOVE, index, "external", step)


def chip_address(code: Code, config: HwConfig, rng: random.Random) -> Changed:
    """A move goes to or comes from other words of its memory of the core."""
    index = rng.randrange(len(code[Unit.MOVE]))
    return shifted(code, Unit.MOVE, index, "chip", rng.choice([-1, 1]) * rng.choice([1, 4, rng.randint(1, SHIFT)]))


def fewer_words(code: Code, config: HwConfig, rng: random.Random) -> Changed:
    """A move copies fewer words, runs or blocks."""
    index, name = rng.randrange(len(code[Unit.MOVE])), rng.choice(["word_n", "run_n", "block_n"])
    i = code[Unit.MOVE][index]
    count = int(getattr(i, name))
    return with_instruction(code, Unit.MOVE, index, i.but(**{name: rng.randrange(1, count)})) if count > 1 else None


def without_move(code: Code, config: HwConfig, rng: random.Random) -> Changed:
    """A move is left out; what has waited for it waits for the one before it."""
    return dropped(code, rng.randrange(len(code[Unit.MOVE])))


def without_refill(code: Code, config: HwConfig, rng: random.Random) -> Changed:
    """The same of a move that brings microcode."""
    rings = {unit.microcode for unit in Unit}
    mine = [n for n, i in enumerate(code[Unit.MOVE]) if isinstance(i, Move) and i.space in rings]
    return dropped(code, rng.choice(mine)) if mine else None


Way = Callable[[Code, HwConfig, random.Random], Changed]
WAYS: tuple[Way, ...] = (
    lower_wait, lower_reads, other_bank, external_address, chip_address, fewer_words, without_move, without_refill,
)  # fmt: skip


def with_instruction(code: Code, unit: Unit, index: int, instruction: Ordered) -> Code:
    """Code with another instruction."""
    return {**code, unit: [*code[unit][:index], instruction, *code[unit][index + 1 :]]}


def shifted(code: Code, unit: Unit, index: int, field: str, step: int) -> Changed:
    """Code with an address moved on; None if it does not change or leaves its field."""
    i = code[unit][index]
    value = int(getattr(i, field)) + step
    most = (1 << next(spec for spec in i.specs() if spec.name == field).bits) - 1
    return with_instruction(code, unit, index, i.but(**{field: value})) if step and 0 <= value <= most else None


def dropped(code: Code, index: int) -> Code:
    """Code without a move."""
    def renumbered(i: Ordered) -> Ordered:
        counts = [*i.waits[:-1], i.waits[-1] - (i.waits[-1] > index)]
        return waiting(i, counts, reads_waited(i))

    kept = {unit: [renumbered(i) for i in mine] for unit, mine in code.items()}
    return {**kept, Unit.MOVE: [i for n, i in enumerate(kept[Unit.MOVE]) if n != index]}


# -- the campaign ----------------------------------------------------------------------------------


def patched(program: DeviceProgram, code: Code) -> DeviceProgram:
    """The program with other code: its cycles, and its microcode where external memory has the old one."""
    image = program.external.copy()
    data = image.tobytes()
    for unit in Unit:
        before = np.array(pack(program.code[unit]), np.uint32)
        after = np.array(pack(code[unit]), np.uint32)
        at = data.find(before.tobytes()) if len(before) else -1
        if at >= 0 and at % 4 == 0:
            count = min(len(before), len(after))
            image[at // 4 : at // 4 + count] = after[:count]
    return replace(program, code=code, external=image, cycles=timeline(program.config, code).cycles)


def verdict(whole: Linked, code: Code, rng: random.Random) -> str:
    """"refused E....", "equal", "another" or "unsafe"."""
    try:
        program = patched(whole.program, code)
        check(program)
    except OnnxhwError as error:
        return f"refused {error.code}"
    try:
        emulator = Emulator(program)
        made = [emulator.run(x).outputs for x, _ in whole.samples]
        emulator.clear_state()
        if all(same(each, wanted) for each, (_, wanted) in zip(made, whole.samples, strict=True)):
            return "equal"
        # What is there before a run is what the other input's run has left, each time.
        results = [emulator.run(x, order=random_order(code, rng)).outputs for x, _ in whole.samples]
        emulator.clear_state()
        alike = [emulator.run(x).outputs for x, _ in whole.samples]
        return "another" if all(map(same, results, alike)) else "unsafe"
    except OnnxhwError:
        return "unsafe"


def same(made: Mapping[str, Array8], wanted: Mapping[str, Array8]) -> bool:
    """Whether outputs are equal."""
    return all(np.array_equal(values, wanted[name]) for name, values in made.items())


def random_order(code: Code, rng: random.Random) -> list[Unit]:
    """An order of effects that the ordering fields allow."""
    completed, waiting_tiles = dict.fromkeys(Unit, 0), dict.fromkeys(Unit, 0)
    found: list[Unit] = []
    while units := ready_units(code, completed, waiting_tiles):
        unit = rng.choice(units)
        count_tiles(waiting_tiles, code[unit][completed[unit]])
        completed[unit] += 1
        found.append(unit)
    return found


def broken(seed: int, ways: Sequence[Way] = WAYS, networks: Sequence[str] = tuple(NETWORKS)) -> tuple[str, str]:
    """How program number `seed` is broken, in one of some ways, and the verdict."""
    rng = random.Random(seed)
    whole = linked(rng.choice(networks), rng.choice(CONFIGS))
    while True:
        way = rng.choice(ways)
        code = way({unit: list(mine) for unit, mine in whole.program.code.items()}, whole.program.config, rng)
        if code is not None:
            return way.__name__, verdict(whole, code, rng)


def main(count: int, first: int, ways: Sequence[Way], wanted: int, networks: Sequence[str]) -> int:
    """Break so many programs, or until as many are refused as `wanted` if that is not 0, and print a table."""
    found: dict[str, Counter[str]] = {}
    begin, refused, made = time.monotonic(), 0, 0
    for seed in range(first, sys.maxsize):
        if refused >= wanted if wanted else made >= count:
            break
        way, what = broken(seed, ways, networks)
        found.setdefault(way, Counter())[what] += 1
        made, refused = made + 1, refused + what.startswith("refused")
        if what == "unsafe":
            print(f"--first {seed} --count 1: {way}", flush=True)
        if made % SHOWN == 0:
            print(f"{made} programs, {refused} refused, {time.monotonic() - begin:.0f} s", flush=True)
    for way, counts in sorted(found.items()):
        print(way, " ".join(f"{what}: {number}" for what, number in sorted(counts.items())), sep="  ")
    print(f"{made} programs, {refused} refused, {time.monotonic() - begin:.0f} s")
    return 8 if any(counts["unsafe"] for counts in found.values()) else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--refused", type=int, default=0, metavar="N", help="go on until so many are refused")
    names = {way.__name__: way for way in WAYS}
    parser.add_argument("--way", action="append", choices=names, help="break them in this way alone; repeatable")
    parser.add_argument("--states", action="store_true", help="break programs with states")
    arguments = parser.parse_args()
    chosen = [names[name] for name in arguments.way or names]
    subjects = tuple(STREAMING if arguments.states else NETWORKS)
    sys.exit(main(arguments.count, arguments.first, chosen, arguments.refused, subjects))
