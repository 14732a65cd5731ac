"""`Machine`: all memories of one accelerator, and what each instruction does to them.

The loops are those of the docstrings in `isa.instructions`; only the innermost ones (pixels, rows,
columns, lanes) are numpy operations. Integers throughout: a tile's products are summed in float32
(at most 96 x 2**14 < 2**21, hence exact), everything else in int64.
"""

from collections import deque

import numpy as np
import numpy.typing as npt

from ..config import WINDOW, HwConfig
from ..errors import InternalError
from ..fixed import SUM_MAX, Ints, Scale, Scales, dot_reach, lane_add, lane_drain, wrap
from ..isa.external_instructions import Move, ring_units
from ..isa.instructions import WINDOW_BANK, Array, Depthwise, Load, Ordered, Vector, VectorOp
from ..isa.timing import load_steps, sums
from ..program.layout import Place
from ..program.model import DeviceProgram
from .moves import move

Words = npt.NDArray[np.uint8]
"""Words of weight memory: ``[words, k * C]``."""
ADDRESS = 0xFFFF
"""Addresses are computed modulo 2**16."""
BIAS_BITS = 32
LEAST = -(1 << 20)
"""Below every operand of MAX."""


class Machine:
    """The state between instructions.

    Members
    -------
    act : int8 ``[act_words, W]``
    weights : uint8 ``[weight_depth, k * C]``
    acc : int64 ``[2, acc_depth, C]``, each value within `acc_bits`
    window : int64 ``[window_depth, D]``, the depthwise unit's sums, each within `sum_bits`
    params : uint64 ``[param_depth, Q]``, packed `fixed.Scale` entries
    tables : int8 ``[tables, 256]``
    fifo : of the array and of the depthwise unit, the first weight word of every tile that the load unit has provided
        and that was not yet taken; the tile's words instead, where there is external memory and weights may change
    external : uint32, words of external memory; none without one
    microcode : by address space, uint32 words of the microcode memories, where they are rings

    Effects are those of an instruction that has completed, and an instruction reads all its operands
    before it writes (the program checker keeps its results out of what it reads later). An address
    outside its memory, a tile that was never loaded or an instruction without meaning is an
    `InternalError` (E1121 to E1124), because the checker lets no such program pass either.
    """

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        self.act = np.zeros((config.act_words, config.word), np.int8)
        self.weights = np.zeros((config.weight_depth, config.weight_word), np.uint8)
        self.acc = np.zeros((2, config.acc_depth, config.cols), np.int64)
        self.params = np.zeros((config.param_depth, config.lanes), np.uint64)
        self.tables = np.zeros((config.tables, 256), np.int8)
        self.window = np.zeros((config.window_depth, config.depthwise_lanes), np.int64)
        self.fifo: tuple[deque[int | Words], deque[int | Words]] = (deque(), deque())
        self.external = np.zeros(config.external.host_words if config.external else 0, np.uint32)
        self.microcode = {unit.microcode: np.zeros(unit.ucode(config), np.uint32) for unit in ring_units(config)}

    # -- the host's side -----------------------------------------------------------------------
    def load(self, program: DeviceProgram) -> None:
        """Write a program's weights, parameters and tables from address 0 of their memories."""
        if program.config.fingerprint != self.config.fingerprint:
            raise InternalError("E1123", f"program for {program.config.name!r} on a machine for {self.config.name!r}")
        for memory, image in (("weights", program.weights), ("params", program.params), ("tables", program.tables)):
            target = getattr(self, memory)
            if len(image) > len(target) or image.shape[1:] != target.shape[1:]:
                raise InternalError("E1123", f"{memory} {image.shape} do not fit the memory {target.shape}")
            target[: len(image)] = image
        if len(program.external) > len(self.external):
            what = f"an image of {len(program.external)} words does not fit an external memory of {len(self.external)}"
            raise InternalError("E1123", what)
        self.external[: len(program.external)] = program.external
        self.forget()

    def forget(self) -> None:
        """A run begins: no tile is loaded."""
        for tiles in self.fifo:
            tiles.clear()

    def write(self, place: Place, values: npt.NDArray[np.int8]) -> None:
        """Write a tensor to activation memory, as the host does (unused lanes become 0)."""
        addresses = self._checked(place.addresses(self.config.word), len(self.act), place)
        self.act[addresses] = place.pack(values, self.config.word).view(np.int8)

    def read(self, place: Place) -> npt.NDArray[np.int8]:
        """Read a tensor from activation memory: int8 ``(1, C, H, W)``."""
        addresses = self._checked(place.addresses(self.config.word), len(self.act), place)
        return place.unpack(self.act[addresses].view(np.uint8), self.config.word)

    # -- instructions --------------------------------------------------------------------------
    def execute(self, instruction: Ordered) -> None:
        """All effects of one instruction; the ordering fields are the caller's."""
        if spec := instruction.too_small():
            what = f"{spec.name} must be at least {spec.least}, not {getattr(instruction, spec.name)}"
            raise InternalError("E1122", what, where=instruction.text())
        if isinstance(instruction, Load):
            self._load(instruction)
        elif isinstance(instruction, Array):
            self._array(instruction)
        elif isinstance(instruction, Depthwise):
            self._depthwise(instruction)
        elif isinstance(instruction, Vector):
            self._vector(instruction)
        elif isinstance(instruction, Move) and self.config.external:
            move(self, instruction)
        else:
            raise InternalError("E1122", f"not an instruction of any unit: {instruction!r}")

    def _load(self, i: Load) -> None:
        step = load_steps(i, self.config)
        last = i.base + i.tiles * step + (i.nt_n - 1) * i.nt_step - 1
        if last >= len(self.weights):
            raise InternalError("E1121", f"weight word {last} of {len(self.weights)}", where=i.text())
        bases = (i.base + tile * step + nt * i.nt_step for tile in range(i.tiles) for nt in range(i.nt_n))
        if self.config.external:
            self.fifo[i.depthwise].extend(self.weights[base : base + step].copy() for base in bases)
        else:
            self.fifo[i.depthwise].extend(bases)

    def _tile(self, i: Array) -> npt.NDArray[np.float32]:
        """Take the next weight tile: ``[R, C]``."""
        words = self._next_tile(i, self.config.tile_words)
        return words.view(np.int8).reshape(self.config.rows, self.config.cols).astype(np.float32)

    def _next_tile(self, i: Array | Depthwise, count: int) -> npt.NDArray[np.uint8]:
        """The weight words of the unit's next tile."""
        waiting = self.fifo[isinstance(i, Depthwise)]
        if not waiting:
            raise InternalError("E1124", f"the {i.UNIT} unit takes a weight tile that was not loaded", where=i.text())
        tile = waiting.popleft()
        return self.weights[tile : tile + count] if isinstance(tile, int) else tile

    def _depthwise(self, i: Depthwise) -> None:
        """Windows over a strip: its words ``[oh, ow, D]`` once per tile, each tap a strided view of them."""
        config, lanes = self.config, self.config.depthwise_lanes
        legal = min(i.sh, i.sw) >= 1 and min(i.oh_n, i.ow_n) >= WINDOW
        if not config.depthwise or not legal:
            raise InternalError("E1122", "no depthwise instruction of this configuration", where=i.text())
        if (i.group + 1) * lanes > config.word or i.ow_n > config.depthwise:
            what = f"group {i.group} of {config.word // lanes}, {i.ow_n} pixels in a row of {config.depthwise}"
            raise InternalError("E1121", what, where=i.text())
        mine = slice(i.group * lanes, (i.group + 1) * lanes)
        oh, ow = _grid(i.oh_n, i.ow_n)
        height, width = sums(i)
        rows = self._checked((i.acc_base + np.arange(height * width)) & ADDRESS, len(self.window), i)
        total = np.zeros((height, width, lanes), np.int64)
        for kh, kw in zip(*_grid(i.kh_n, i.kw_n), strict=True):
            tile = self._next_tile(i, config.depthwise_words).view(np.int8).reshape(-1)[: WINDOW**2 * lanes]
            w = tile.reshape(WINDOW, WINDOW, lanes).astype(np.int64)
            ih, iw = i.ih0 + kh * i.ih_kh + oh * i.ih_oh, i.iw0 + kw * i.iw_kw + ow * i.iw_ow
            inside = _inside(ih, iw, i)
            a = i.act_base + kh * i.a_kh + kw * i.a_kw + oh * i.a_oh + ow * i.a_ow
            x = self._operand(a, inside, mine, i).astype(np.int64)
            x[~inside] = i.pad
            strip = x.reshape(i.oh_n, i.ow_n, lanes)
            for th in range(WINDOW):
                for tw in range(WINDOW):
                    taps = strip[th : th + i.oh_n - 2 : i.sh, tw : tw + i.ow_n - 2 : i.sw]
                    total += taps * w[th, tw]
        self.window[rows] = wrap(total.reshape(len(rows), -1), config.sum_bits)

    def _array(self, i: Array) -> None:
        if i.sub_n > self.config.row_groups:
            raise InternalError("E1121", f"row group {i.sub_n - 1} of {self.config.row_groups}", where=i.text())
        oh, ow = _grid(i.oh_n, i.ow_n)
        pixels = i.oh_n * i.ow_n
        rows = self._checked((i.acc_base + np.arange(i.nt_n * pixels)) & ADDRESS, len(self.acc[0]), i)
        total = np.zeros((i.nt_n, pixels, self.config.cols))
        if i.unaligned and (not self.config.unaligned or i.sub_n > 1):
            raise InternalError("E1122", "no unaligned read of this configuration", where=i.text())
        for kt in range(i.kt_n):
            for sub in range(i.sub_n):
                lanes = slice(sub * self.config.rows, (sub + 1) * self.config.rows)
                for kh in range(i.kh_n):
                    for kw in range(i.kw_n):
                        ih, iw = i.ih0 + kh * i.ih_kh + oh * i.ih_oh, i.iw0 + kw * i.iw_kw + ow * i.iw_ow
                        a = i.act_base + kt * i.a_kt + kh * i.a_kh + kw * i.a_kw + oh * i.a_oh + ow * i.a_ow
                        inside = _inside(ih, iw, i)
                        x = np.zeros((pixels, self.config.rows), np.float32)
                        x[:, : self.config.word - lanes.start] = (
                            self._bytes(a, inside, i) if i.unaligned else self._operand(a, inside, lanes, i)
                        )
                        x[~inside] = i.pad
                        for nt in range(i.nt_n):
                            w = self._tile(i)
                            total[nt] += x @ w + (pair_products(w) if self.config.fast else 0)
        before = self.acc[i.acc_bank, rows] if i.accumulate else 0
        self.acc[i.acc_bank, rows] = wrap(before + total.reshape(rows.size, -1).astype(np.int64), self.config.acc_bits)

    def _operand(
        self, addresses: Ints, inside: npt.NDArray[np.bool_], lanes: slice, i: Ordered
    ) -> npt.NDArray[np.int8]:
        """Lanes of the words at `addresses`; where not inside, nothing is read and the values mean nothing."""
        return self.act[self._checked(np.where(inside, addresses & ADDRESS, 0), len(self.act), i), lanes]

    def _bytes(self, first: Ints, inside: npt.NDArray[np.bool_], i: Array) -> npt.NDArray[np.int8]:
        """The operands that begin at these bytes of bank 0, as `_operand`."""
        lane = np.arange(self.config.word)
        behind = (lane >= i.split) & (i.split > 0)
        at = np.where(inside, first & ADDRESS, 0)[:, None] + lane + behind * i.jump * self.config.word
        limit = self.config.unaligned_words * self.config.word
        return self.act[: self.config.unaligned_words].reshape(-1)[self._checked(at, limit, i)]

    def _vector(self, i: Vector) -> None:
        config, count = self.config, i.groups * self.config.lanes
        if i.lane_group + i.groups > config.lane_groups:
            last = i.lane_group + i.groups - 1
            raise InternalError("E1121", f"lane group {last} of {config.lane_groups}", where=i.text())
        if i.op not in set(VectorOp):
            raise InternalError("E1122", f"no vector operation {i.op}", where=i.text())
        if i.op not in (VectorOp.SUM, VectorOp.MAX, VectorOp.DOT) and i.kh_n * i.kw_n != 1:
            raise InternalError("E1122", "only SUM, MAX and DOT have a window", where=i.text())
        if i.op == VectorOp.DOT and (i.groups != 1 or dot_reach(i.kh_n * i.kw_n, i.za, i.zb) > SUM_MAX):
            raise InternalError("E1122", "DOT has one group, and sums of 25 bits", where=i.text())
        first = i.lane_group * config.lanes
        lanes = slice(first, first + count)
        cb, oh, ow = _grid(i.cb_n, i.oh_n, i.ow_n)

        if i.op == VectorOp.DRAIN:
            v = self._accumulators(i, (i.a_base + cb * i.a_cb + oh * i.a_oh + ow * i.a_ow) & ADDRESS)
        elif i.op in (VectorOp.SUM, VectorOp.MAX):
            v = self._window(i, lanes, cb, oh, ow)
        elif i.op == VectorOp.DOT:
            v = self._dot(i, lanes, cb, oh, ow)
        else:
            v, u = self._pair(i, lanes, cb, oh, ow, 0, 0)

        exact, p, planes = bool(i.exact), self._scales(i), (i.cb_n, -1, count)
        v = v.reshape(planes)
        if i.op == VectorOp.ADD:
            y = lane_add(v, u.reshape(planes), p, exact, i.zy, i.lo, i.hi)
        elif i.op == VectorOp.MUL:
            y = lane_drain(v * u.reshape(planes), p, exact, i.zy, i.lo, i.hi)
        elif i.op == VectorOp.DRAIN:
            y = lane_drain(wrap(v + p.bias, BIAS_BITS), p, exact, i.zy, i.lo, i.hi)
        else:
            y = lane_drain(v, p, exact, i.zy, i.lo, i.hi)
        y = y.reshape(-1, count)
        if i.use_table:
            if i.table_index >= len(self.tables):
                raise InternalError("E1121", f"table {i.table_index} of {len(self.tables)}", where=i.text())
            y = self.tables[i.table_index][y + 128].astype(np.int64)
        o = (i.o_base + cb * i.o_cb + oh * i.o_oh + ow * i.o_ow) & ADDRESS
        self.act[self._checked(o, len(self.act), i), lanes] = y

    def _accumulators(self, i: Vector, rows: Ints) -> Ints:
        """Columns ``[words, groups * Q]`` of accumulator rows."""
        if i.acc_bank > WINDOW_BANK or (i.acc_bank == WINDOW_BANK and not self.config.depthwise):
            raise InternalError("E1122", f"no accumulator bank {i.acc_bank}", where=i.text())
        bank = self.window if i.acc_bank == WINDOW_BANK else self.acc[i.acc_bank]
        count = bank.shape[1] // self.config.lanes
        if i.column_group + i.groups > count:
            last = i.column_group + i.groups - 1
            raise InternalError("E1121", f"column group {last} of {count}", where=i.text())
        first = i.column_group * self.config.lanes
        checked = self._checked(rows, len(bank), i)
        return bank[checked, first : first + i.groups * self.config.lanes]

    def _window(self, i: Vector, lanes: slice, cb: Ints, oh: Ints, ow: Ints) -> Ints:
        """Sum or maximum of ``a - za`` over the window: ``[words, lanes]``."""
        v = np.full((len(cb), lanes.stop - lanes.start), 0 if i.op == VectorOp.SUM else LEAST, np.int64)
        for kh in range(i.kh_n):
            for kw in range(i.kw_n):
                ih, iw = i.ih0 + kh * i.ih_kh + oh * i.ih_oh, i.iw0 + kw * i.iw_kw + ow * i.iw_ow
                inside = _inside(ih, iw, i)
                address = i.a_base + cb * i.a_cb + kh * i.a_kh + kw * i.a_kw + oh * i.a_oh + ow * i.a_ow
                a = self._operand(address, inside, lanes, i).astype(np.int64) - i.za
                if i.op == VectorOp.SUM:
                    v += np.where(inside[:, None], a, 0)
                else:
                    v = np.maximum(v, np.where(inside[:, None], a, LEAST))
        if i.op == VectorOp.MAX and (v == LEAST).any():
            raise InternalError("E1122", "MAX over a window without a position inside", where=i.text())
        return v

    def _dot(self, i: Vector, lanes: slice, cb: Ints, oh: Ints, ow: Ints) -> Ints:
        """Sum of ``(a - za) * (b - zb)`` over the window: ``[words, lanes]``."""
        total = np.zeros((len(cb), lanes.stop - lanes.start), np.int64)
        for kh in range(i.kh_n):
            for kw in range(i.kw_n):
                v, u = self._pair(i, lanes, cb, oh, ow, kh, kw)
                total += v * u
        return total

    def _pair(
        self, i: Vector, lanes: slice, cb: Ints, oh: Ints, ow: Ints, kh: int, kw: int
    ) -> tuple[Ints, Ints]:
        """``a - za`` and ``b - zb`` of ADD and MUL, or of one position of DOT: ``[words, lanes]`` each."""
        inside = _inside(i.ih0 + kh * i.ih_kh + oh * i.ih_oh, i.iw0 + kw * i.iw_kw + ow * i.iw_ow, i)
        if not inside.all():
            raise InternalError("E1122", "only SUM and MAX may leave positions out", where=i.text())
        a = i.a_base + cb * i.a_cb + kh * i.a_kh + kw * i.a_kw + oh * i.a_oh + ow * i.a_ow
        b = i.b_base + cb * i.b_cb + kw * i.b_kw + oh * i.b_oh + ow * i.b_ow
        v = self._operand(a, inside, lanes, i).astype(np.int64) - i.za
        return v, self._operand(b, inside, lanes, i).astype(np.int64) - i.zb

    def _scales(self, i: Vector) -> Scale | Scales:
        """The parameter entry of all results, or those of planes and lanes: ``[planes, 1, lanes]``."""
        first = i.param_base + np.arange(i.cb_n)[:, None] * i.param_cb
        rows = (first + np.arange(i.groups) * i.per_channel) & ADDRESS
        if int(rows.max()) >= len(self.params):
            raise InternalError("E1121", f"parameter row {rows.max()} of {len(self.params)}", where=i.text())
        entries = self.params[rows].reshape(i.cb_n, -1)
        if (entries == entries[0, 0]).all():
            return Scale.unpack(int(entries[0, 0]))
        return Scales.unpack(entries[:, None, :])

    @staticmethod
    def _checked(addresses: Ints, size: int, owner: Ordered | Place) -> Ints:
        highest = int(addresses.max(initial=0))
        if highest >= size:
            where = owner.text() if isinstance(owner, Ordered) else str(owner)
            raise InternalError("E1121", f"address {highest} in a memory of {size} words", where=where)
        return addresses


def pair_products(w: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """What the fast inner product adds to the sums of each column of a weight tile: ``[R, C]`` to ``[C]``."""
    return np.asarray((w[0::2] * w[1::2]).sum(0))


def _inside(ih: Ints, iw: Ints, i: Array | Depthwise | Vector) -> npt.NDArray[np.bool_]:
    """Whether input positions are no padding."""
    return (ih >= 0) & (ih < i.in_h) & (iw >= 0) & (iw < i.in_w)


def _grid(*counts: int) -> tuple[Ints, ...]:
    """The indices of nested loops, outermost first, each flattened in loop order."""
    return tuple(index.reshape(-1) for index in np.indices(counts, np.int64))
