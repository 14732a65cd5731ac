"""Which words an instruction touches, computed from the instruction's own fields (see `isa.instructions`).

Many instructions differ in where they begin alone: offsets are worked out once.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..isa.external_instructions import ADDRESS as MOVED
from ..isa.external_instructions import Move
from ..isa.instructions import ADDRESS, Array, Depthwise, Load, Vector, VectorOp
from ..isa.timing import load_steps, sums

Words = npt.NDArray[np.int64]
Axis = tuple[int, int, int, int, int, int, int, int]
Steps = tuple[int, int]
OFFSETS = 512
"""Lists of offsets that are kept of each kind, of at most as many words as there are addresses."""
PAIRS = (VectorOp.ADD, VectorOp.MUL, VectorOp.DOT)
"""Operations that read a word of each of two operands per cycle."""


def _axis(count_k: int, count_o: int, start: int, step_k: int, step_o: int, size: int, a_k: int, a_o: int) -> Words:
    """Address offsets of the positions of one axis that lie inside the input."""
    position = start + np.arange(count_k)[:, None] * step_k + np.arange(count_o) * step_o
    offset = np.arange(count_k)[:, None] * a_k + np.arange(count_o) * a_o
    return np.unique(offset[(position >= 0) & (position < size)]).astype(np.int64)


@lru_cache(OFFSETS)
def _offsets(outer: Steps, rows: Axis, cols: Axis) -> Words:
    """Different offsets of a window's positions inside the input, in order; `outer`: a number of steps, and a step."""
    steps = np.arange(outer[0]) * outer[1]
    return np.unique((steps[:, None, None] + _axis(*rows)[:, None] + _axis(*cols)) & ADDRESS)


def _from(base: int, offsets: Words) -> Words:
    """Addresses at these offsets, in order."""
    if len(offsets) and (base + int(offsets[0])) // (ADDRESS + 1) == (base + int(offsets[-1])) // (ADDRESS + 1):
        return (base + offsets) & ADDRESS
    return np.unique((base + offsets) & ADDRESS)


def _window(i: Array | Depthwise | Vector, outer: Steps = (1, 0)) -> Words:
    """Offsets of what an instruction reads through its window."""
    rows = i.kh_n, i.oh_n, i.ih0, i.ih_kh, i.ih_oh, i.in_h, i.a_kh, i.a_oh
    cols = i.kw_n, i.ow_n, i.iw0, i.iw_kw, i.iw_ow, i.in_w, i.a_kw, i.a_ow
    return _offsets(outer, rows, cols)


def array_planes(i: Array | Depthwise, word: int) -> list[Words]:
    """Activation words of `word` lanes that an array or depthwise instruction reads, for each kt."""
    first = _from(i.act_base, _window(i))
    if isinstance(i, Depthwise):
        return [first]
    planes = [(first + kt * i.a_kt) & ADDRESS for kt in range(i.kt_n)]
    return [_unaligned(i, plane, word) for plane in planes] if i.unaligned else planes


def array_reads(i: Array | Depthwise, word: int) -> Words:
    """Activation words that an array or depthwise instruction reads."""
    if isinstance(i, Depthwise) or i.unaligned:
        return np.unique(np.concatenate(array_planes(i, word)))
    return _from(i.act_base, _window(i, (i.kt_n, i.a_kt)))


def _unaligned(i: Array, first: Words, word: int) -> Words:
    """The words that hold the bytes of operands that begin at these bytes."""
    split = i.split or word
    lanes = [(0, split - 1, 0), (split, word - 1, i.jump)][: 1 + (split < word)]
    return np.unique(np.concatenate([(first + at) // word + jump for *ends, jump in lanes for at in ends]))


def vector_a(i: Vector) -> Words:
    """Activation words that a vector instruction reads as its first operand."""
    if i.op == VectorOp.DRAIN:
        return np.zeros(0, np.int64)
    if i.op in PAIRS:
        return _operand(i, vector_steps(i, i.a_base, i.a_cb, i.a_oh, i.a_ow), i.a_kh, i.a_kw)
    return _from(i.a_base, _window(i, (i.cb_n, i.a_cb)))


def vector_b(i: Vector) -> Words:
    """Activation words that a vector instruction reads as its second operand."""
    if i.op not in PAIRS:
        return np.zeros(0, np.int64)
    return _operand(i, vector_steps(i, i.b_base, i.b_cb, i.b_oh, i.b_ow), 0, i.b_kw)


def _operand(i: Vector, first: Words, kh: int, kw: int) -> Words:
    """Words of one of two operands: those of the window's first position, and its steps (of a 1 x 1 unless DOT)."""
    rows, cols = np.arange(i.kh_n)[:, None] * kh, np.arange(i.kw_n) * kw
    return np.unique((np.unique(first)[:, None, None] + rows + cols) & ADDRESS)


def vector_steps(i: Vector, base: int, cb: int, oh: int, ow: int) -> Words:
    """Addresses of one operand in the order of the loop, one per output word."""
    return (base + _steps(i.cb_n, cb, i.oh_n, oh, i.ow_n, ow)) & ADDRESS


@lru_cache(OFFSETS)
def _steps(cb_n: int, cb: int, oh_n: int, oh: int, ow_n: int, ow: int) -> Words:
    """Offsets of three nested loops, in order."""
    outer = np.arange(cb_n)[:, None, None] * cb + np.arange(oh_n)[:, None] * oh + np.arange(ow_n) * ow
    return outer.ravel().astype(np.int64)


def vector_writes(i: Vector) -> Words:
    """Activation words that a vector instruction writes, in loop order."""
    return vector_steps(i, i.o_base, i.o_cb, i.o_oh, i.o_ow)


def accumulator_rows(i: Array | Depthwise | Vector) -> Words:
    """Accumulator rows that an array or depthwise instruction fills, in loop order, or a DRAIN reads."""
    if isinstance(i, (Array, Depthwise)):
        height, width = sums(i)
        count = height * width * (i.nt_n if isinstance(i, Array) else 1)
        return np.arange(i.acc_base, i.acc_base + count)
    return vector_steps(i, i.a_base, i.a_cb, i.a_oh, i.a_ow) if i.op == VectorOp.DRAIN else np.zeros(0, np.int64)


def tile_words(i: Load, config: HwConfig) -> Words:
    """First weight word of each tile of a load, in the order of its loop."""
    return (i.base + np.arange(i.tiles)[:, None] * load_steps(i, config) + np.arange(i.nt_n) * i.nt_step).ravel()


def last_param(i: Vector) -> int:
    """Highest parameter row that a vector instruction reads."""
    return int(params(i).max())


def params(i: Vector) -> Words:
    """Parameter rows that a vector instruction reads."""
    return _from(i.param_base, _rows(i.cb_n, i.param_cb, i.groups, i.per_channel))


@lru_cache(OFFSETS)
def _rows(cb_n: int, param_cb: int, groups: int, per_channel: int) -> Words:
    """Different offsets of parameter rows, in order."""
    rows = np.arange(cb_n)[:, None] * param_cb + np.arange(groups) * per_channel
    return np.unique(rows & ADDRESS).astype(np.int64)


def move_words(i: Move) -> tuple[Words, Words]:
    """Host words of the memory, and words of external memory, that a move copies, in the order of its loop."""
    chip = _moved(i.block_n, i.c_block, i.run_n, i.c_run, i.word_n)
    external = _moved(i.block_n, i.e_block, i.run_n, i.e_run, i.word_n)
    return (i.chip + chip) & MOVED, (i.external + external) & MOVED


def _moved(block_n: int, block: int, run_n: int, run: int, word_n: int) -> Words:
    """Offsets of three nested loops, in order, the last one in steps of 1."""
    if block_n * run_n == 1:
        return np.arange(word_n)
    outer = np.arange(block_n)[:, None, None] * block + np.arange(run_n)[:, None] * run
    return (outer + np.arange(word_n)).ravel()


def banks(words: Words, depth: int) -> Words:
    """The banks, of `depth` words each, in which words lie, in order."""
    if len(words) and (first := int(words.min()) // depth) == int(words.max()) // depth:
        return np.array([first], np.int64)
    return np.unique(words // depth)


def meet(one: Words, other: Words) -> bool:
    """Whether two lists have a word in common."""
    if not len(one) or not len(other) or one.max() < other.min() or other.max() < one.min():
        return False
    return bool(np.intersect1d(one, other).size)


def vector_reads(i: Vector) -> Words:
    """Activation words that a vector instruction reads, in order."""
    first, second = vector_a(i), vector_b(i)
    return np.union1d(first, second) if len(second) else first
