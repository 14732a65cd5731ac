"""How the lists of instructions lie in the microcode memories: of each, the words in which it differs from the last.

Neighbours are alike: of a vector instruction's 17 words a quarter changes from one to the next. So the first
instruction is given whole, and each of the others by the words that change, in their order, behind a *mask* that has a
bit for each word::

    words of instruction 0    mask 1    some words of instruction 1    mask 2    ...

A unit's fetcher reads the mask of the next instruction together with an instruction. A word that counts as changed may
be as it was: a field that changes counts for every word that it touches, and an instruction that is the one before
once more gives its first word.
"""

from collections.abc import Sequence
from itertools import compress
from operator import ne
from typing import TypeVar

from ..errors import InternalError
from .fields import Instruction

_I = TypeVar("_I", bound=Instruction)


def mask(before: Instruction | None, instruction: Instruction) -> int:
    """Bit w: word w is given; `before` is the unit's instruction before, if there is one."""
    if before is None:
        return (1 << instruction.words()) - 1
    changed = map(ne, before.__dict__.values(), instruction.__dict__.values())
    found = 0
    for touched in compress(instruction.touched(), changed):
        found |= touched
    return found or 1


def given(instructions: Sequence[Instruction]) -> list[int]:
    """How many words of each instruction are given."""
    pairs = zip((None, *instructions), instructions, strict=False)
    return [mask(before, instruction).bit_count() for before, instruction in pairs]


def length(instructions: Sequence[Instruction]) -> int:
    """Words of microcode of a unit's instructions."""
    return sum(given(instructions)) + max(0, len(instructions) - 1)


def pack(instructions: Sequence[Instruction]) -> list[int]:
    """The words of microcode of a unit's instructions; `InternalError` E1101 for a value that does not fit."""
    out: list[int] = []
    before: Instruction | None = None
    for instruction in instructions:
        now = mask(before, instruction)
        if before is not None:
            out.append(now)
        out += [word for w, word in enumerate(instruction.encode()) if now >> w & 1]
        before = instruction
    return out


def unpack(kind: type[_I], words: Sequence[int], count: int) -> list[_I]:
    """The first `count` instructions of microcode: inverse of `pack`. `InternalError` E1103 if `words` end before, or
    a mask is empty.
    """
    out: list[_I] = []
    now, at, state = (1 << kind.words()) - 1, 0, [0] * kind.words()
    for _ in range(count):
        if out:
            now, at = words[at] if at < len(words) else 0, at + 1
        which = [w for w in range(kind.words()) if now >> w & 1]
        if not which or at + len(which) > len(words):
            raise InternalError("E1103", f"{kind.UNIT} microcode ends or has no words at instruction {len(out)}")
        for w in which:
            state[w], at = words[at], at + 1
        out.append(kind.decode(state))
    return out
