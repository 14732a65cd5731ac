"""By how much an instruction may be counted as completed early, from the instructions alone.

Of an instruction and the last one that it is sure has been counted, by the ordering fields of its unit so far::

    early <= cycles from the consumer's first access to that of a word or row
             + cycles from the producer's effect on it to its last effect
             + cycles from a completion to the consumer's first access, `READ_SLACK` or `drain_slack`

for each word or row that both touch, whatever else happens: from its last pixel on nothing holds up the array, nor the
vector unit once an instruction has issued, and a consumer can only be slower. An instruction before the last one
counted is over: units take one after the other, and `early` is no more than what follows from that. What is read of a
word that is overwritten later has been read by then (`isa.early_instructions.most_early`).

An instruction that nobody waits for is not early: the last one ends the run.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..config import EARLY_BITS, HwConfig
from ..isa.early_instructions import READ_SLACK, EarlyArray, EarlyVector, drain_slack, early_of, most_early
from ..isa.instructions import ADDRESS, UNITS, Array, Code, Depthwise, Ordered, Vector, VectorOp, follows
from ..isa.timing import (
    START,
    pixels,
    tile_distance,
    tiles,
    vector_cycles,
    vector_issue_interval,
    vector_latency,
)
from ..isa.units import Unit
from . import footprint
from .checked_code import CheckedCode
from .stream_state import running

Words = npt.NDArray[np.int64]
FAR = 1 << EARLY_BITS
"""So many cycles, or more, allow whatever the field `early` can hold."""
PLACES = ("act_base", "acc_base", "acc_bank", "accumulate", "more_reads", "early", *(unit.after for unit in UNITS))
"""Fields on which it does not depend in which order an instruction of the array reads."""


def with_early(code: Code, config: HwConfig) -> dict[Unit, list[Ordered]]:
    """The instructions with `early` as large as it may be. There are no moves."""
    made = {unit: list(instructions) for unit, instructions in code.items()}
    if not config.early_completion:
        return made
    for unit, most in limits(code, config).items():
        pairs = zip(made.get(unit, ()), most, strict=True)
        made[unit] = [i.but(early=early) if early != early_of(i) else i for i, early in pairs]
    return made


def check_early(checked: CheckedCode) -> None:
    """`InternalError` E1216 for an instruction that is early by more cycles than it may be."""
    code = checked.program.code
    if not any(early_of(i) for unit in (Unit.ARRAY, Unit.VECTOR) for i in code.get(unit, ())):
        return
    for unit, most in limits(code, checked.config).items():
        for index, (instruction, limit) in enumerate(zip(code.get(unit, ()), most, strict=True)):
            if early_of(instruction) > limit:
                what = f"is counted {early_of(instruction)} cycles early, {limit} are safe"
                checked.fail("E1216", unit, index, what)


def limits(code: Code, config: HwConfig) -> dict[Unit, list[int]]:
    """By how many cycles each instruction of the array and of the vector unit may be early."""
    found = _Limits(code, config)
    found.all()
    return {unit: found.of(unit) for unit in (Unit.ARRAY, Unit.VECTOR)}


class _Effects:
    """Of each word, or row: the last instruction that it is an effect of, and how many cycles before its last one."""

    def __init__(self, size: int) -> None:
        self.by = np.full(size, -1, np.int64)
        self.before = np.zeros(size, np.int64)

    def happen(self, index: int, words: Words, before: Words) -> None:
        self.by[words], self.before[words] = index, before

    def slack(self, index: int, words: Words, offsets: Words) -> int | None:
        """The least of `offsets` and the cycles before the last effect, of the words that are an instruction's."""
        mine = self.by[words] == index
        return int((offsets + self.before[words])[mine].min()) if mine.any() else None


class _Limits:
    def __init__(self, code: Code, config: HwConfig) -> None:
        self.config = config
        self.arrays = [i for i in code.get(Unit.ARRAY, ()) if isinstance(i, Array)]
        self.vectors = [i for i in code.get(Unit.VECTOR, ()) if isinstance(i, Vector)]
        strips = [i for i in code.get(Unit.DEPTHWISE, ()) if isinstance(i, Depthwise)]
        self.words = _Effects(config.act_words)
        self.rows = _Effects(2 * config.acc_depth)
        self.least: dict[Unit, dict[int, int]] = {Unit.ARRAY: {}, Unit.VECTOR: {}}
        self.slack = {Unit.ARRAY: drain_slack(config), Unit.VECTOR: READ_SLACK}
        self.filled = 0
        self.readers: dict[int, list[Array | Depthwise]] = {}
        streams: tuple[Sequence[Array | Depthwise], ...] = (self.arrays, strips)
        for stream in streams:
            known = running([i.after_vector for i in stream])
            for count, instruction in zip(known.tolist(), stream, strict=True):
                self.readers.setdefault(count, []).append(instruction)

    def all(self) -> None:
        """Everything in the order of the vector unit's instructions, between which the others' reads lie."""
        arrays = running([i.after_array for i in self.vectors]).tolist()
        vectors = running([i.after_vector for i in self.vectors]).tolist()
        for index, (instruction, filled, written) in enumerate(zip(self.vectors, arrays, vectors, strict=True)):
            self._streams(index)
            words = footprint.vector_reads(instruction)
            none = np.zeros(len(words), np.int64)
            self._read(Unit.VECTOR, written, instruction.after_vector, self.words, words, none)
            self._fill(filled)
            if instruction.op == VectorOp.DRAIN and instruction.acc_bank < 2:
                first, _ = self._vector_cycles(instruction)
                rows = footprint.accumulator_rows(instruction) + instruction.acc_bank * self.config.acc_depth
                self._read(Unit.ARRAY, filled, instruction.after_array, self.rows, rows, first)
            _, last = self._vector_cycles(instruction)
            self.words.happen(index, footprint.vector_writes(instruction), last)
        self._streams(len(self.vectors))

    def of(self, unit: Unit) -> list[int]:
        """What was found of each instruction of a unit."""
        code: list[Array] | list[Vector] = self.arrays if unit == Unit.ARRAY else self.vectors
        most, least = most_early(unit, self.config), self.least[unit]
        return [
            min(most, least.get(index, 0), self._behind(code[index - 1] if index else None, i))
            if isinstance(i, (EarlyArray, EarlyVector)) else 0
            for index, i in enumerate(code)
        ]  # fmt: skip

    def _behind(self, before: Ordered | None, i: Ordered) -> int:
        """Fewest cycles from the last access of the instruction before to that of an instruction, less one: in the
        cycle before it is counted that one is over."""
        if isinstance(i, Vector):
            took, gap = vector_cycles(i, self.config), 1
            if isinstance(before, Vector):
                rest = vector_issue_interval() + 1 - START - vector_cycles(before, self.config)
                gap = max(gap, rest) if follows(before, i) else vector_latency()
            return gap + START - 1 + took - 1
        assert isinstance(i, Array)
        return START + (tiles(i) - 1) * tile_distance(i, False) + pixels(i) - 1

    def _read(
        self, unit: Unit, known: int, waited: int, effects: _Effects, words: Words, offsets: Words
    ) -> None:
        """Words are read so many cycles behind the first, by what knows that `known` instructions have been counted,
        because it or one before has `waited` for so many."""
        slack = effects.slack(known - 1, words, offsets) if known else None
        if slack is not None or (known and waited == known):
            least = self.least[unit]
            least[known - 1] = min(FAR if slack is None else slack + self.slack[unit], least.get(known - 1, FAR))

    def _streams(self, count: int) -> None:
        """Reads of instructions of array and depthwise unit that know so many of the vector unit's to be counted."""
        for instruction in self.readers.get(count, ()):
            self._read(Unit.VECTOR, count, instruction.after_vector, self.words, *_reads(instruction, self.config))

    def _fill(self, count: int) -> None:
        """The first `count` instructions of the array have filled their rows."""
        for index in range(self.filled, count):
            instruction = self.arrays[index]
            rows = footprint.accumulator_rows(instruction) + instruction.acc_bank * self.config.acc_depth
            before = _before_last_pixel(instruction.nt_n, pixels(instruction), tile_distance(instruction, False))
            self.rows.happen(index, rows, before)
        self.filled = max(self.filled, count)

    def _vector_cycles(self, i: Vector) -> tuple[Words, Words]:
        """Of each word of an instruction, in the order of its loop: cycles from its first access to that of the word's
        window, and from the word's last result to its end."""
        word = i.kh_n * i.kw_n + i.groups - 1
        plane = vector_cycles(i, self.config) // i.cb_n
        return _word_cycles(i.cb_n, i.oh_n * i.ow_n, word, plane)


@lru_cache(256)
def _word_cycles(planes: int, count: int, word: int, plane: int) -> tuple[Words, Words]:
    first = (np.arange(planes)[:, None] * plane + np.arange(count) * word).ravel().astype(np.int64)
    return first, planes * plane - first - word


@lru_cache(256)
def _before_last_pixel(columns: int, count: int, distance: int) -> Words:
    """Cycles from each pixel of the last pass over the column tiles to the last of all, at least."""
    tile = (columns - 1 - np.arange(columns)[:, None]) * distance
    return (tile + count - 1 - np.arange(count)).ravel().astype(np.int64)


def _reads(i: Array | Depthwise, config: HwConfig) -> tuple[Words, Words]:
    """Words that an instruction reads, and at least how many cycles behind its first read; of those of the depthwise
    unit and of unaligned ones nothing is known but that they are no sooner."""
    if isinstance(i, Depthwise) or i.unaligned:
        words = footprint.array_reads(i, config.word)
        return words, np.zeros(len(words), np.int64)
    words, offsets = _first_tiles(i.but(**dict.fromkeys(PLACES, 0)), tile_distance(i, False))
    return (words + i.act_base) & ADDRESS, offsets


@lru_cache(256)
def _first_tiles(i: Array, distance: int) -> tuple[Words, Words]:
    """Words that the first tiles read, and when; those of tiles that begin `FAR` cycles later allow anything."""
    passes = -(-FAR // (i.nt_n * distance))
    found, offsets = list[Words](), list[Words]()
    rows, cols = np.arange(i.oh_n)[:, None], np.arange(i.ow_n)
    for number in range(min(passes, tiles(i) // i.nt_n)):
        rest, kw = divmod(number, i.kw_n)
        rest, kh = divmod(rest, i.kh_n)
        kt = rest // i.sub_n
        ih, iw = i.ih0 + kh * i.ih_kh + rows * i.ih_oh, i.iw0 + kw * i.iw_kw + cols * i.iw_ow
        inside = ((ih >= 0) & (ih < i.in_h)) & ((iw >= 0) & (iw < i.in_w))
        address = kt * i.a_kt + kh * i.a_kh + kw * i.a_kw + rows * i.a_oh + cols * i.a_ow
        found.append(address[inside])
        offsets.append((number * i.nt_n * distance + rows * i.ow_n + cols)[inside])
    return np.concatenate(found).astype(np.int64), np.concatenate(offsets).astype(np.int64)
