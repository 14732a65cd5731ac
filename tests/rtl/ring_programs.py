"""Programs whose microcode is longer than its ring, refilled by moves."""

from dataclasses import replace

import numpy as np
from move_programs import EXTERNAL

from onnxhw.config import HwConfig
from onnxhw.fixed import Scale
from onnxhw.isa.external_instructions import ExternalVector, Move, fetched
from onnxhw.isa.instructions import Ordered, VectorOp
from onnxhw.isa.microcode import pack
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.program import DeviceProgram


def program_of(config: HwConfig, code: dict[Unit, list[Ordered]], seed: int = 1) -> DeviceProgram:
    """A program of some instructions, and external memory of random words."""
    rng = np.random.default_rng(seed)
    return DeviceProgram(
        config, "moves", {unit: code.get(unit, []) for unit in Unit},
        np.zeros((0, config.weight_word), np.uint8), np.zeros((0, config.lanes), np.uint64),
        np.zeros((0, 256), np.int8),
        {}, [], [], [], timeline(config, code).cycles, 0, external=rng.integers(0, 1 << 32, EXTERNAL, np.uint32),
    )  # fmt: skip


def vectors(config: HwConfig, count: int) -> list[Ordered]:
    """Vector instructions of a pixel, some of whose words change; each waits for one of the unit's own long before."""
    base = ExternalVector(op=VectorOp.SUM, in_h=9, in_w=9)
    return [
        base.but(a_base=i % 7, o_base=2 * config.act_depth + i % 200, zy=i % 100,
                 after_vector=max(0, i // 1000 - 1) * 1000)
        for i in range(count)
    ]  # fmt: skip


def refilled(config: HwConfig, unit: Unit, instructions: list[Ordered]) -> DeviceProgram:
    """A program whose microcode is longer than the ring: moves bring what follows where instructions were fetched.

    A move waits for the instructions whose words it writes over. An instruction's words are read from the issue of the
    one before on, which so waits for the moves that bring them. Waits are words, too, so they are found in turns.
    """
    ring, piece = unit.ucode(config), unit.ucode(config) // 4
    waits = [0] * len(instructions)
    while True:
        code = [i.but(after_move=n) for i, n in zip(instructions, waits, strict=True)]
        takes, words = fetched(code), pack(code)
        starts = range(ring, len(words), piece)
        wanted = [sum(start < after.end for start in starts) for after in [*takes[1:], takes[-1]]]
        if wanted == waits:
            break
        waits = wanted
    moves: list[Ordered] = []
    for number, start in enumerate(starts):
        over = next(index for index, each in enumerate(takes) if each.end >= start - ring + piece)
        waits_for = {"after_move": number, unit.after: (over + 1)}
        count = min(piece, len(words) - start)
        moves.append(Move(space=unit.microcode, chip=start % ring, external=start, word_n=count, **waits_for))
    program = program_of(config, {unit: code, Unit.MOVE: moves})
    program.external[: len(words)] = words
    scale = Scale(1 << 23, 24, 5).pack()
    return replace(program, params=np.full((1, config.lanes), scale, np.uint64))
