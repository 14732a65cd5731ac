"""Which words an instruction touches, computed from the instruction's own fields (see `isa.instructions`)."""

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..isa.external_instructions import ADDRESS as MOVED
from ..isa.external_instructions import Move
from ..isa.instructions import ADDRESS, Array, Depthwise, Load, Vector, VectorOp
from ..isa.timing import load_steps, sums

Words = npt.NDArray[np.int64]
PAIRS = (VectorOp.ADD, VectorOp.MUL, VectorOp.DOT)
"""Operations that read a word of each of two operands per cycle."""


def _axis(count_k: int, count_o: int, start: int, step_k: int, step_o: int, size: int, a_k: int, a_o: int) -> Words:
    """Address offsets of the positions of one axis that lie inside the input."""
    position = start + np.arange(count_k)[:, None] * step_k + np.arange(count_o) * step_o
    offset = np.arange(count_k)[:, None] * a_k + np.arange(count_o) * a_o
    return np.unique(offset[(position >= 0) & (position < size)]).astype(np.int64)


def _sum(base: int, outer: Words, rows: Words, cols: Words) -> Words:
    return np.unique((base + outer[:, None, None] + rows[:, None] + cols) & ADDRESS)


def _window(i: Array | Depthwise | Vector) -> tuple[Words, Words]:
    rows = _axis(i.kh_n, i.oh_n, i.ih0, i.ih_kh, i.ih_oh, i.in_h, i.a_kh, i.a_oh)
    cols = _axis(i.kw_n, i.ow_n, i.iw0, i.iw_kw, i.iw_ow, i.in_w, i.a_kw, i.a_ow)
    return rows, cols


def array_planes(i: Array | Depthwise, word: int) -> list[Words]:
    """Activation words of `word` lanes that an array or depthwise instruction reads, for each kt."""
    first = _sum(i.act_base, np.zeros(1, np.int64), *_window(i))
    if isinstance(i, Depthwise):
        return [first]
    planes = [(first + kt * i.a_kt) & ADDRESS for kt in range(i.kt_n)]
    return [_unaligned(i, plane, word) for plane in planes] if i.unaligned else planes


def array_reads(i: Array | Depthwise, word: int) -> Words:
    """Activation words that an array or depthwise instruction reads."""
    if isinstance(i, Depthwise) or i.unaligned:
        return np.unique(np.concatenate(array_planes(i, word)))
    return _sum(i.act_base, np.arange(i.kt_n) * i.a_kt, *_window(i))


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
    return _sum(i.a_base, np.arange(i.cb_n) * i.a_cb, *_window(i))


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
    outer = np.arange(i.cb_n)[:, None, None] * cb + np.arange(i.oh_n)[:, None] * oh + np.arange(i.ow_n) * ow
    return ((base + outer) & ADDRESS).ravel().astype(np.int64)


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
    rows = i.param_base + np.arange(i.cb_n)[:, None] * i.param_cb + np.arange(i.groups) * i.per_channel
    return np.unique(rows & ADDRESS)


def move_words(i: Move) -> tuple[Words, Words]:
    """Host words of the memory, and words of external memory, that a move copies, in the order of its loop."""
    block, run = np.arange(i.block_n)[:, None, None], np.arange(i.run_n)[:, None]
    word = np.arange(i.word_n)
    chip = i.chip + block * i.c_block + run * i.c_run + word
    external = i.external + block * i.e_block + run * i.e_run + word
    return (chip & MOVED).ravel(), (external & MOVED).ravel()
