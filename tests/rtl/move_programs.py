"""Random programs with moves: those of `programs`, and moves beside them or before and behind them."""

import random
from dataclasses import replace

import numpy as np
from programs import random_program

from onnxhw.config import HwConfig
from onnxhw.emu.machine import Machine
from onnxhw.emu.order import steps, time_order
from onnxhw.emu.rings import load_rings
from onnxhw.external import ULX3S, ExternalMemory
from onnxhw.isa.external_instructions import Move, as_external, reads_waited, waiting
from onnxhw.isa.instructions import Ordered
from onnxhw.isa.memory import Space, host_stride, word_bytes
from onnxhw.isa.timeline import IssueRecord, timeline
from onnxhw.isa.units import Unit
from onnxhw.program import DeviceProgram, to_host

EXTERNAL = 1 << 15
"""Words of external memory that moves use."""
MEMORY = replace(ULX3S, power_up=100, refresh=300)
"""Refreshes more often than on a board, so that more moves meet one."""
ROOM = {"act_banks": 5, "act_depth": 256, "weight_depth": 192, "acc_depth": 64, "window_depth": 64,
        "param_depth": 512, "tables": 3}  # fmt: skip
PLAIN = {"weight_depth": 160, "tables": 2}
"""What programs without moves use of these; bank 4 is that of moves, too."""


def with_memory(name: str, external: ExternalMemory = MEMORY, **fields: int | str) -> HwConfig:
    """A small configuration with external memory."""
    return HwConfig(name, **{**ROOM, **fields}, external=external)  # type: ignore[arg-type]


WIDE = replace(MEMORY, data_bits=32)
GEOMETRIES = [
    with_memory("moves 16", rows=4, cols=4, word=4, lanes=2, acc_bits=24),
    with_memory("moves 32", WIDE, rows=4, cols=5, word=4, lanes=2, acc_bits=24, depthwise=9),
    with_memory("moves 16 of 6 lanes", rows=6, cols=4, word=6, lanes=1, acc_bits=20, depthwise=9, load_rows=3),
    with_memory("moves 32 of 8 lanes", WIDE, rows=8, cols=4, word=8, lanes=2, acc_bits=24, load_rows=8,
                inner_product="fast", unaligned=1),
]  # fmt: skip
SMALL = GEOMETRIES[0]


def host_words(config: HwConfig, space: Space, words: int) -> int:
    """Host words of so many words of a memory."""
    return words * host_stride(word_bytes(config, space))


def random_move(rng: random.Random, space: Space, first: int, words: int, store: bool, most: int = 40) -> Move:
    """A move between external memory and host words from `first` on, `words` of them."""
    while True:
        word = rng.choice([1, 2, 3, rng.randint(1, most)])
        run, block = rng.choice([1, 1, 2, rng.randint(1, 5)]), rng.choice([1, 1, 2])
        step = word + rng.randint(0, 1)
        if step * run * block <= words:
            break
    return Move(
        space=space, store=int(store), chip=first + rng.randint(0, words - step * run * block),
        external=rng.randrange(EXTERNAL - 15_000), word_n=word, run_n=run, block_n=block,
        c_run=step, c_block=step * run, e_run=rng.choice([word, 256, rng.randint(word, 2000)]),
        e_block=rng.randint(0, 4000),
    )  # fmt: skip


def random_moves(config: HwConfig, rng: random.Random, count: int, rows: int = 0) -> list[Move]:
    """Moves of bank 4 in both directions, and into words of the other memories behind those of plain programs, whose
    parameters are `rows` rows."""
    free = {
        Space.ACT: (4 * config.act_depth, config.act_depth),
        Space.WEIGHT: (PLAIN["weight_depth"], config.weight_depth - PLAIN["weight_depth"]),
        Space.PARAM: (rows, config.param_depth - rows),
        Space.TABLE: (256 * PLAIN["tables"], 256),
    }
    found = []
    for _ in range(count):
        space = rng.choice([Space.ACT] * 4 + [Space.WEIGHT, Space.PARAM, Space.TABLE])
        first, words = (host_words(config, space, number) for number in free[space])
        found.append(random_move(rng, space, first, words, space == Space.ACT and rng.random() < 0.5))
    return found


def random_program_with_moves(config: HwConfig, seed: int, length: int = 4) -> tuple[DeviceProgram, np.ndarray]:
    """A random program, moves of other words at random times of it, and random waits between both; the initial
    activation memory. Waits follow the times without moves, so no unit waits for what waits for it."""
    rng = random.Random(seed)
    plain = replace(config, external=None, **PLAIN)
    program, act = random_program(plain, seed, length)
    times = timeline(plain, program.code)
    moves = random_moves(config, rng, rng.randint(1, 12), len(program.params))
    begins = sorted(rng.randrange(times.cycles) for _ in moves)
    code: dict[Unit, list[Ordered]] = {unit: [] for unit in Unit}
    for unit, instructions in program.code.items():
        absolute = [0] * len(Unit)
        for instruction, span in zip(instructions, times.spans[Unit(unit)], strict=True):
            before = sum(begin < span.issue for begin in begins)
            wanted = [*instruction.waits, rng.choice([0, rng.randint(0, before), before])]
            absolute = [max(pair) for pair in zip(absolute, wanted, strict=True)]
            code[Unit(unit)].append(waiting(as_external(instruction), absolute, reads_waited(instruction)))
    absolute = [0] * len(Unit)
    for move, begin in zip(moves, begins, strict=True):
        for number, unit in enumerate(Unit):
            done = _done(times.spans[unit], begin)
            absolute[number] = max(absolute[number], rng.choice([0, rng.randint(0, done), done]))
        code[Unit.MOVE].append(waiting(move, absolute))
    weights = np.random.default_rng(seed).integers(0, 256, (config.weight_depth, config.weight_word), np.uint8)
    weights[: len(program.weights)] = program.weights
    tables = np.random.default_rng(seed).integers(-128, 128, (config.tables, 256)).astype(np.int8)
    tables[: len(program.tables)] = program.tables
    program = replace(
        program, config=config, code=code, weights=weights, tables=tables, cycles=timeline(config, code).cycles,
        external=np.random.default_rng(seed).integers(0, 1 << 32, EXTERNAL, np.uint32),
    )  # fmt: skip
    return program, act


def program_moved_in(config: HwConfig, seed: int, length: int = 4) -> tuple[DeviceProgram, np.ndarray]:
    """A random program that moves bring: the core has zeros, and what it needs comes from external memory, word after
    word in an order of their own; each instruction waits for those that it needs, and its results are moved out."""
    rng = random.Random(seed)
    plain, act = random_program(replace(config, external=None, **PLAIN), seed, length)
    params = plain.params.astype("<u8").view(np.uint8)
    images = {
        Space.ACT: to_host(act[: 4 * config.act_depth].view(np.uint8), config.word),
        Space.WEIGHT: to_host(plain.weights, config.weight_word),
        Space.PARAM: to_host(params, word_bytes(config, Space.PARAM)),
        Space.TABLE: plain.tables.reshape(-1).view(np.uint8).astype(np.uint32),
    }
    order, at, external, moves = rng.sample(list(images), len(images)), 0, np.zeros(EXTERNAL, np.uint32), []
    there = {}
    for space in order:
        words = images[space]
        external[at : at + len(words)] = words
        half = len(words) // 2
        for first, count in rng.sample([(0, half), (half, len(words) - half)], 2):
            moves.append(Move(space=space, chip=first, external=at + first, word_n=count, after_move=len(moves)))
        at, there[space] = at + len(words), len(moves)
    needed = {Unit.LOAD: there[Space.WEIGHT], Unit.ARRAY: there[Space.ACT], Unit.DEPTHWISE: there[Space.ACT],
              Unit.VECTOR: max(there[space] for space in (Space.ACT, Space.PARAM, Space.TABLE))}  # fmt: skip
    code: dict[Unit, list[Ordered]] = {unit: [] for unit in Unit}
    for unit, instructions in plain.code.items():
        absolute = [0] * len(Unit)
        for instruction in instructions:
            absolute = [max(pair) for pair in zip(absolute, [*instruction.waits, needed[Unit(unit)]], strict=True)]
            code[Unit(unit)].append(waiting(as_external(instruction), absolute, reads_waited(instruction)))
    bank = host_words(config, Space.ACT, config.act_depth)
    results = Move(space=Space.ACT, store=1, chip=2 * bank, external=EXTERNAL - bank, word_n=bank,
                   after_vector=len(code[Unit.VECTOR]), after_move=len(moves))  # fmt: skip
    code[Unit.MOVE] = [*moves, results]
    empty = {name: np.zeros_like(getattr(plain, name)[:0]) for name in ("weights", "params", "tables")}
    cycles = timeline(config, code).cycles
    return replace(plain, config=config, code=code, cycles=cycles, external=external, **empty), np.zeros_like(act)


def _done(spans: list[IssueRecord], cycle: int) -> int:
    return sum(span.done <= cycle for span in spans)


def executed(program: DeviceProgram, act: np.ndarray) -> Machine:
    """A machine that has run a program."""
    machine = Machine(program.config)
    machine.act[:] = act
    machine.load(program)
    load_rings(machine, program.code)
    for unit, index in steps(program.code, time_order(timeline(program.config, program.code))):
        machine.execute(program.code[unit][index])
    return machine
