"""`bounds`: what each instruction and table row may ask for, from its own fields alone.

It is the checker's first step: whatever passes is small enough to be looked at word by word, so a program of a stranger
costs the checker no more than a large one of ours. It also finds instructions that mean nothing.
"""

from functools import lru_cache
from math import prod

import numpy as np

from ..config import HwConfig
from ..errors import InternalError
from ..fixed import INT8_MAX, INT8_MIN, MULTIPLIER_BITS, SUM_MAX, Scale
from ..isa.external_instructions import COUNT_BITS, Move, kinds
from ..isa.instructions import ADDRESS, Array, Depthwise, Load, Ordered, Vector, VectorOp
from ..isa.memory import Space, host_stride, word_bytes
from ..isa.microcode import length
from ..isa.timing import load_steps, sums, tiles
from ..isa.units import Ports, Unit, units_of
from ..program.model import DeviceProgram, Entry
from . import footprint

COUNTED = (1 << 12) - 1
"""Most instructions of a unit: the ordering fields count no further."""
EXTERNALLY_COUNTED = (1 << COUNT_BITS) - 1
"""The same where there is external memory."""
MOVED = 1 << 27
"""Most words that all moves of a program copy, each of which the checker looks at; those of ResNet-18 copy 2**23."""
POSITION = 1 << 15
"""Rows and columns of an input lie in ``-POSITION .. POSITION - 1``: positions have 16 bits, as `ih0` has."""
TILES = 1 << 22
"""Most weight tiles of a program; its timeline takes some microseconds for each. Ours have up to 2**17."""
STEPS = 1 << 24
"""Most positions along the axes of all windows of a program, which the checker lists. Ours have up to 2**18."""
READS = 1 << 24
"""Most words that one vector instruction reads, which the checker lists: 128 MB of addresses."""
LOADED = 1 << 20
"""Most weight words of one load, which the checker lists; the largest memory of a preset has 2**14."""
CYCLES = (1 << 31) - (1 << 10)
"""Most cycles of a run: the watchdog counts twice as many in 32 bits."""
LOOKS = 1 << 22
"""Most pairs of a vector instruction and a tensor of the table: the checker looks at each. Ours have up to 2**18."""


OPERATIONS = frozenset(VectorOp)


def bounds(program: DeviceProgram) -> None:
    """`InternalError` E1202 to E1205 or E1211 for what is not there, too large or means nothing."""
    _Bounds(program).all()


class _Bounds:
    def __init__(self, program: DeviceProgram) -> None:
        self.program = program
        self.config: HwConfig = program.config
        self.steps = self.moved = 0

    def all(self) -> None:
        """Every check, the cheap ones first."""
        self._counts()
        self._memories()
        code, count = self.program.code, 0
        for unit, kind in kinds(self.config).items():
            for index, instruction in enumerate(code.get(unit, ())):
                if not isinstance(instruction, kind):
                    raise InternalError("E1202", f"{unit} holds an instruction of another unit")
                self._fields(index, instruction)
                count += tiles(instruction) if isinstance(instruction, (Load, Array, Depthwise)) else 0
                if count > TILES:
                    self._fail(index, instruction, f"more than {TILES} weight tiles so far")
        self._table()

    def _fail(self, index: int, i: Ordered, what: str) -> None:
        raise InternalError("E1204", what, where=f"{i.UNIT}[{index}] {i.text()}")

    def _counts(self) -> None:
        program = self.program
        moved = {i.space for i in program.code.get(Unit.MOVE, ()) if isinstance(i, Move)}
        counted = EXTERNALLY_COUNTED if self.config.external else COUNTED
        if unknown := sorted(set(program.code) - set(Unit)):
            raise InternalError("E1202", f"unknown units {unknown}")
        for unit in kinds(self.config):
            code = program.code.get(unit, ())
            if len(code) > counted:
                raise InternalError("E1203", f"{unit} has {len(code)} instructions, {counted} are counted")
            used, depth = length(code), unit.ucode(self.config)
            if used > depth and unit.microcode not in moved:
                raise InternalError("E1203", f"{unit} microcode has {used} words, the memory {depth}")
        if not 0 <= program.cycles <= CYCLES:
            raise InternalError("E1201", f"cycles must be 0..{CYCLES}, not {program.cycles}")
        if sum(max(1, entry.last - entry.ready + 1) for entry in program.tensors.values()) > LOOKS:
            raise InternalError("E1211", f"{len(program.tensors)} tensors are more than can be looked at")

    def _memories(self) -> None:
        config, program = self.config, self.program
        for name, image, size, row in (
            ("weights", program.weights, config.weight_depth, config.weight_word),
            ("params", program.params, config.param_depth, config.lanes),
            ("tables", program.tables, config.tables, 256),
        ):
            if len(image) > size:
                raise InternalError("E1203", f"{name} have {len(image)} words, the memory {size}")
            if image.ndim != 2 or image.shape[1] != row:
                raise InternalError("E1203", f"{name} must have rows of {row}, not {image.shape}")

    def _fields(self, index: int, i: Ordered) -> None:
        try:
            i.encode()
        except InternalError as error:
            self._fail(index, i, error.what)
        if spec := i.too_small():
            self._fail(index, i, f"{spec.name} must be at least {spec.least}")
        if isinstance(i, Load):
            words = tiles(i) * load_steps(i, self.config)  # more than there are where column tiles share weights
            if words > LOADED:
                self._fail(index, i, f"loads {words} weight words, {LOADED} can be looked at")
        elif isinstance(i, Vector):
            self._positions(index, i)
            self._vector(index, i)
        elif isinstance(i, (Array, Depthwise)):
            self._positions(index, i)
            self._stream(index, i)
        elif isinstance(i, Move):
            self._move(index, i)
        elif i.UNIT.ports != Ports():  # what touches nothing needs no bounds but its fields'
            self._fail(index, i, "the checker does not know what this unit touches")

    def _positions(self, index: int, i: Array | Depthwise | Vector) -> None:
        """Where an instruction's window may be."""
        self.steps += i.kh_n * i.oh_n + i.kw_n * i.ow_n
        if self.steps > STEPS:
            self._fail(index, i, f"more than {STEPS} positions so far")
        for axis, first, (k, step_k), (o, step_o) in (
            ("row", i.ih0, (i.kh_n, i.ih_kh), (i.oh_n, i.ih_oh)),
            ("column", i.iw0, (i.kw_n, i.iw_kw), (i.ow_n, i.iw_ow)),
        ):
            last = first + (k - 1) * step_k + (o - 1) * step_o
            if last >= POSITION:
                self._fail(index, i, f"reaches {axis} {last} of an input, of {POSITION}")

    def _stream(self, index: int, i: Array | Depthwise) -> None:
        """Of the array or the depthwise unit: no more words and sums than there are."""
        height, width = sums(i)
        columns, depth = (i.nt_n, self.config.acc_depth) if isinstance(i, Array) else (1, self.config.window_depth)
        if height * width * columns > depth:
            self._fail(index, i, f"fills {height * width * columns} accumulator rows of {depth}")
        if isinstance(i, Array):
            self._unaligned(index, i)
        blocks = i.kt_n if isinstance(i, Array) else 1
        least = blocks * _offsets(i.kh_n, i.a_kh, i.oh_n, i.a_oh) * _offsets(i.kw_n, i.a_kw, i.ow_n, i.a_ow)
        if least > ADDRESS + 1:
            self._fail(index, i, f"reads {least} words")

    def _unaligned(self, index: int, i: Array) -> None:
        """A configuration that can, and places that it can address."""
        step = self.config.unaligned
        if not i.unaligned:
            if i.split or i.jump:
                self._fail(index, i, "has a jump, and reads words as they lie")
            return
        if not step or i.sub_n > 1 or i.split >= self.config.word:
            self._fail(index, i, f"is no unaligned read of {self.config.name}")
        steps = i.act_base, i.a_kt, i.a_kh, i.a_kw, i.a_oh, i.a_ow, i.split
        if any(at % step for at in steps):
            self._fail(index, i, f"addresses must be multiples of {step} bytes")

    def _move(self, index: int, i: Move) -> None:
        """A memory that a move reaches, and words that are in it and in external memory."""
        assert self.config.external is not None
        self.moved += i.block_n * i.run_n * i.word_n
        if self.moved > MOVED:
            self._fail(index, i, f"more than {MOVED} words are moved so far")
        rows = {
            Space.ACT: self.config.act_words, Space.WEIGHT: self.config.weight_depth,
            Space.PARAM: self.config.param_depth, Space.TABLE: 256 * self.config.tables,
            **{Space(unit.microcode): unit.ucode(self.config) for unit in units_of(self.config)},
        }  # fmt: skip
        if i.space not in rows or (i.store and i.space != Space.ACT):
            self._fail(index, i, f"no move {'stores from' if i.store else 'loads into'} space {i.space}")
        chip, external = footprint.move_words(i)
        size = rows[Space(i.space)] * host_stride(word_bytes(self.config, Space(i.space)))
        if int(chip.max()) >= size:
            self._fail(index, i, f"reaches host word {int(chip.max())} of {size}")
        if int(external.max()) >= self.config.external.host_words:
            self._fail(index, i, f"reaches word {int(external.max())} of {self.config.external.host_words}")

    def _vector(self, index: int, i: Vector) -> None:
        if i.op not in OPERATIONS:
            self._fail(index, i, "no such operation")
        words = i.cb_n * i.oh_n * i.ow_n
        if words > self.config.act_words:
            self._fail(index, i, f"writes {words} words of {self.config.act_words}")
        if i.op in (VectorOp.SUM, VectorOp.MAX):
            self._window(index, i)
        elif not _all_inside(i):
            self._fail(index, i, "leaves positions out, and is neither SUM nor MAX")
        if i.op == VectorOp.DOT and _offsets(i.kh_n, i.a_kh, 1, 0) * _offsets(i.kw_n, i.a_kw, 1, 0) * words > READS:
            self._fail(index, i, "reads more words than can be looked at")
        if i.lo > i.hi:
            self._fail(index, i, f"lo {i.lo} is beyond hi {i.hi}")
        if i.op == VectorOp.ADD and not self.program.code.get(Unit.MOVE):  # else `move_check` sees what moves bring
            self._second_multiplier(index, i)

    def _window(self, index: int, i: Vector) -> None:
        """A window of SUM holds its sum, one of MAX has a position inside."""
        reach = max(i.za - INT8_MIN, INT8_MAX - i.za)
        least = i.cb_n * _offsets(i.kh_n, i.a_kh, i.oh_n, i.a_oh) * _offsets(i.kw_n, i.a_kw, i.ow_n, i.a_ow)
        if least > READS:
            self._fail(index, i, f"reads {least} words")
        for first, (k, step_k), (o, step_o), size in (
            (i.ih0, (i.kh_n, i.ih_kh), (i.oh_n, i.ih_oh), i.in_h),
            (i.iw0, (i.kw_n, i.iw_kw), (i.ow_n, i.iw_ow), i.in_w),
        ):
            at = first + np.arange(k)[:, None] * step_k + np.arange(o) * step_o
            inside = ((at >= 0) & (at < size)).sum(axis=0)
            reach *= int(inside.max())
            if i.op == VectorOp.MAX and not inside.all():
                self._fail(index, i, "the maximum of a window without a position inside")
        if i.op == VectorOp.SUM and reach > SUM_MAX:
            self._fail(index, i, f"sums that reach {reach}, beyond {SUM_MAX}")

    def _second_multiplier(self, index: int, i: Vector) -> None:
        """The bias of ADD's entries is a multiplier: unsigned, of its width."""
        rows = i.param_base + np.arange(i.cb_n)[:, None] * i.param_cb + np.arange(i.groups) * i.per_channel
        rows = rows.ravel() & ADDRESS
        for entry in np.unique(self.program.params[rows[rows < len(self.program.params)]]):
            if not 0 <= Scale.unpack(int(entry)).bias < 1 << MULTIPLIER_BITS:
                self._fail(index, i, f"a second multiplier beyond {MULTIPLIER_BITS} bits")

    def _table(self) -> None:
        """Every tensor has a place, with words of its own."""
        for entry in self.program.tensors.values():
            if not entry.external:
                self._entry(entry)

    def _entry(self, entry: Entry) -> None:
        where, place, word = f"tensor {entry.name!r}", entry.place, self.config.word
        shape = place.shape
        if len(shape) != 4 or shape[0] != 1 or min(shape) < 1 or not 0 <= place.lane < word:
            raise InternalError("E1211", f"must be (1, C, H, W) from a lane below {word}, not {place}", where=where)
        words = place.blocks(word) * prod(shape[2:])
        ends = place.blocks(word) - 1, shape[2] - 1, shape[3] - 1
        last = place.base + sum(end * step for end, step in zip(ends, (place.plane, place.row, 1), strict=True))
        if words > self.config.act_words or last >= self.config.act_words:
            what = f"needs {words} words up to {last} of {self.config.act_words}"
            raise InternalError("E1211", what, where=where)
        if len(np.unique(place.addresses(word))) < words:
            raise InternalError("E1211", "has two pixels in one word", where=where)


@lru_cache(1 << 12)
def _offsets(count_k: int, step_k: int, count_o: int, step_o: int) -> int:
    """How many different offsets ``k * step_k + o * step_o`` there are."""
    return len(np.unique(np.arange(count_k)[:, None] * step_k + np.arange(count_o) * step_o))


def _all_inside(i: Vector) -> bool:
    """Whether no position of the window is left out."""
    rows = i.ih0 + (i.kh_n - 1) * i.ih_kh + (i.oh_n - 1) * i.ih_oh
    cols = i.iw0 + (i.kw_n - 1) * i.iw_kw + (i.ow_n - 1) * i.iw_ow
    return min(i.ih0, i.iw0) >= 0 and rows < i.in_h and cols < i.in_w
