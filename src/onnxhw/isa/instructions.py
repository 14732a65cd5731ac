"""The instructions. Each unit runs its own list in order; units run concurrently.

Every instruction starts with four *ordering fields*. It issues only when the units have completed
at least that many of their instructions since the run began::

    wait until completed[load] >= after_load and completed[array] >= after_array
           and completed[depthwise] >= after_depthwise and completed[vector] >= after_vector

An instruction has completed when its last effect can be seen by every other unit. Vector instructions
may overlap, but complete in order: one that reads what an earlier one writes says so with `after_vector`. Addresses
are in words of their memory and are computed modulo 2**16. Act words hold W int8 channels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter
from typing import ClassVar

from ..config import WINDOW
from .fields import Instruction, flag, signed, unsigned
from .units import Unit

ADDRESS = 0xFFFF
"""Addresses of activation memory and accumulators are counted modulo 2**16, as wide as their fields are."""


@dataclass(frozen=True)
class Ordered(Instruction):
    """The ordering fields, common to all instructions."""

    after_load: int = unsigned(12, "completed load instructions to wait for")
    after_array: int = unsigned(12, "completed array instructions to wait for")
    after_depthwise: int = unsigned(12, "completed depthwise instructions to wait for")
    after_vector: int = unsigned(12, "completed vector instructions to wait for")

    UNIT: ClassVar[Unit]

    @property
    def what(self) -> str:
        """What it does, in a word: its unit's name, if the unit does one thing."""
        return str(self.UNIT)

    @property
    def waits(self) -> tuple[int, ...]:
        """The completed instructions to wait for, of each `Unit` in turn."""
        return self.after_load, self.after_array, self.after_depthwise, self.after_vector


@dataclass(frozen=True)
class Load(Ordered):
    """Load weight tiles into the shadow registers of the array or the depthwise unit, one tile ahead of it::

        for tile in range(tiles):
          for nt in range(nt_n):                 # column tiles
            wait until that unit has taken its tile before
            for step in range(R // k):
                word = base + tile * R // k + nt * nt_step + step
                shadow[step * k : (step + 1) * k, 0 : C] = weights[word]

    A weight word is k rows of C int8 weights: byte ``row * C + column``. With `depthwise` the tiles are for the
    depthwise unit: 3 x 3 x D int8 weights each, byte ``(th * 3 + tw) * D + lane`` of ``ceil(9 * D / (k * C))`` words.
    """

    UNIT = Unit.LOAD
    LEADING = ("base", "depthwise", "tiles", "nt_n")

    base: int = unsigned(24, "first weight word", base=True)
    tiles: int = unsigned(16, "number of weight tiles of each column tile", least=1)
    nt_n: int = unsigned(12, "column tiles", 1, least=1)
    nt_step: int = unsigned(20, "weight words from one column tile to the next")
    depthwise: int = flag("tiles of the depthwise unit")


@dataclass(frozen=True)
class Array(Ordered):
    """Stream activations through the weight-stationary array and accumulate::

        first = not accumulate
        for kt in range(kt_n):                   # activation words along the channels
          for sub in range(sub_n):               # groups of R channels inside a word
            for kh in range(kh_n):
              for kw in range(kw_n):
                for nt in range(nt_n):           # column tiles
                  take the next weight tile: w[R, C]
                  for oh in range(oh_n):
                    for ow in range(ow_n):
                      ih = ih0 + kh * ih_kh + oh * ih_oh
                      iw = iw0 + kw * iw_kw + ow * iw_ow
                      a = act_base + kt * a_kt + kh * a_kh + kw * a_kw + oh * a_oh + ow * a_ow
                      inside = 0 <= ih < in_h and 0 <= iw < in_w
                      x = act[a][sub * R : sub * R + R] if inside else [pad] * R
                      row = acc_base + (nt * oh_n + oh) * ow_n + ow
                      acc[acc_bank][row] = (0 if first else acc[acc_bank][row]) + x @ w
                first = False

    A row group that reaches beyond lane W reads 0 there (inside), or the pad value (outside).

    With `unaligned` addresses count bytes instead, byte b of bank 0 being lane ``b % W`` of word ``b // W``; an operand
    is bytes in a row, which some lane on comes behind a jump. R is W; addresses and `split` are multiples of the
    configuration's `unaligned`::

        x[r] = bytes[a + r + (jump * W if 0 < split <= r else 0)]       for r in range(R)

    A configuration with the fast inner product accumulates more, for each weight tile that is taken::

                    acc[acc_bank][row][c] += sum(w[r, c] * w[r + 1, c] for r in 0, 2 .. R - 2)

    which depends on the weights alone: whoever drains subtracts it with the bias. (Winograd 1968: a multiplier makes
    ``(x[r] + w[r + 1, c]) * (x[r + 1] + w[r, c])``; one more column makes ``x[r] * x[r + 1]``, to be subtracted.)
    Accumulators are modulo ``2**acc_bits``.
    """

    UNIT = Unit.ARRAY
    LEADING: ClassVar[tuple[str, ...]] = (
        "acc_bank", "more_reads", "nt_n", "oh_n", "accumulate", "act_base", "after_vector",
    )  # fmt: skip

    more_reads: int = unsigned(6, "vector instructions beyond after_vector that must have read all their operands")
    act_base: int = unsigned(16, "address of the word at ih0, iw0, kt = 0", base=True)
    kt_n: int = unsigned(12, "activation words along the channels", 1, least=1)
    sub_n: int = unsigned(6, "row groups inside a word", 1, least=1)
    kh_n: int = unsigned(8, "kernel rows", 1, least=1)
    kw_n: int = unsigned(8, "kernel columns", 1, least=1)
    nt_n: int = unsigned(12, "column tiles: sets of C output channels", 1, least=1)
    oh_n: int = unsigned(12, "output rows", 1, least=1)
    ow_n: int = unsigned(12, "output columns", 1, least=1)
    a_kt: int = unsigned(16, "address step per kt")
    a_kh: int = unsigned(16, "address step per kh (dilation x row pitch)")
    a_kw: int = unsigned(16, "address step per kw (dilation x column pitch)")
    a_oh: int = unsigned(16, "address step per oh (stride x row pitch)")
    a_ow: int = unsigned(16, "address step per ow (stride x column pitch)")
    ih0: int = signed(16, "input row of the first tap of the first output")
    iw0: int = signed(16, "input column of the first tap of the first output")
    ih_kh: int = unsigned(8, "dilation of the rows")
    iw_kw: int = unsigned(8, "dilation of the columns")
    ih_oh: int = unsigned(8, "stride of the rows")
    iw_ow: int = unsigned(8, "stride of the columns")
    in_h: int = unsigned(15, "input rows", 1)
    in_w: int = unsigned(15, "input columns", 1)
    pad: int = signed(8, "activation outside the input: its zero point")
    acc_base: int = unsigned(15, "first accumulator row", base=True)
    acc_bank: int = unsigned(1, "accumulator bank")
    accumulate: int = flag("add to what the accumulators hold")
    unaligned: int = flag("addresses are of bytes")
    split: int = unsigned(6, "first lane behind the jump; 0: there is none")
    jump: int = unsigned(6, "words that lanes from `split` on lie further")


@dataclass(frozen=True)
class Depthwise(Ordered):
    """Slide a window of 3 x 3 per channel over a padded strip of the input, in the depthwise unit::

        for kh in range(kh_n):                   # windows of a larger kernel, side by side
          for kw in range(kw_n):
            take the unit's next weight tile: w[3, 3, D]
            row = acc_base
            for oh in range(oh_n):               # pixels of the strip
              for ow in range(ow_n):
                ih = ih0 + 3 * kh + oh
                iw = iw0 + 3 * kw + ow
                a = act_base + kh * a_kh + 3 * kw + oh * a_oh + ow
                inside = 0 <= ih < in_h and 0 <= iw < in_w
                x[oh, ow] = act[a][group * D : group * D + D] if inside else [pad] * D
                if oh >= 2 and ow >= 2 and (oh - 2) % sh == 0 and (ow - 2) % sw == 0:
                  s = sum(x[oh - 2 + th, ow - 2 + tw] * w[th, tw] for th in range(3) for tw in range(3))
                  window[row] = (0 if kh == kw == 0 else window[row]) + s
                  row = row + 1

    A strip is at least 3 x 3 and at most as wide as the line buffer. ``window`` are the unit's own accumulators, bank
    `WINDOW_BANK` of those that are drained: `window_depth` rows of D sums modulo ``2**sum_bits``. An instruction of
    several windows reads them, through the port of the drain.
    """

    UNIT = Unit.DEPTHWISE
    LEADING = ("acc_base", "group", "more_reads", "act_base", "after_vector")

    ih_oh: ClassVar[int] = 1
    iw_ow: ClassVar[int] = 1
    a_ow: ClassVar[int] = 1
    ih_kh: ClassVar[int] = WINDOW
    iw_kw: ClassVar[int] = WINDOW
    a_kw: ClassVar[int] = WINDOW

    more_reads: int = unsigned(6, "vector instructions beyond after_vector that must have read all their operands")
    act_base: int = unsigned(16, "address of the word at ih0, iw0", base=True)
    kh_n: int = unsigned(8, "windows down the kernel", 1, least=1)
    kw_n: int = unsigned(8, "windows across the kernel", 1, least=1)
    oh_n: int = unsigned(12, "rows of the strip", WINDOW, least=1)
    ow_n: int = unsigned(12, "columns of the strip", WINDOW, least=1)
    a_kh: int = unsigned(16, "address step per kh (3 x row pitch)")
    a_oh: int = unsigned(16, "address step per oh (row pitch)")
    ih0: int = signed(16, "input row of the strip's first pixel")
    iw0: int = signed(16, "input column of the strip's first pixel")
    in_h: int = unsigned(15, "input rows", 1)
    in_w: int = unsigned(15, "input columns", 1)
    pad: int = signed(8, "activation outside the input: its zero point")
    acc_base: int = unsigned(15, "first row of sums", base=True)
    group: int = unsigned(6, "which D channels of the word")
    sh: int = unsigned(3, "stride of the rows", 1)
    sw: int = unsigned(3, "stride of the columns", 1)

    @property
    def reads_sums(self) -> bool:
        """Whether it accumulates: it has several windows."""
        return self.kh_n * self.kw_n > 1


WINDOW_BANK = 2
"""The accumulator bank of the depthwise unit, as a `Vector` that drains it names it."""


MORE_READS = (1 << next(spec for spec in Array.specs() if spec.name == "more_reads").bits) - 1
"""What the field `more_reads` counts at most."""


def wait_reads(written: int, read: int) -> dict[str, int]:
    """Fields of an `Array` or `Depthwise` that waits for `written` vector instructions, and for `read` of them to have
    read their operands."""
    after = max(written, read - MORE_READS)
    return {"after_vector": after, "more_reads": max(0, read - after)}


class VectorOp(IntEnum):
    """What the vector unit computes per lane, before requantization."""

    DRAIN = 0
    """``v = acc + bias``, from the accumulators"""
    SUM = 1
    """``v = sum of (a - za)`` over the window (average pooling; copy and table with a 1x1 window)"""
    MAX = 2
    """``v = max of (a - za)`` over the window, outside positions left out"""
    ADD = 3
    """``p = (a - za) * M + (b - zb) * bias``"""
    MUL = 4
    """``v = (a - za) * (b - zb)``"""
    DOT = 5
    """``v = sum of (a - za) * (b - zb)`` over the window, of one group of lanes"""


@dataclass(frozen=True)
class Vector(Ordered):
    """Requantize accumulators, or combine activations, Q lanes per cycle::

        for cb in range(cb_n):                   # activation words along the channels
          for oh in range(oh_n):
            for ow in range(ow_n):
              for kh in range(kh_n):             # the window; 1 x 1 unless SUM, MAX or DOT
                for kw in range(kw_n):
                  ih = ih0 + kh * ih_kh + oh * ih_oh
                  iw = iw0 + kw * iw_kw + ow * iw_ow
                  inside = 0 <= ih < in_h and 0 <= iw < in_w
                  a = act[a_base + cb * a_cb + kh * a_kh + kw * a_kw + oh * a_oh + ow * a_ow]
                  b = act[b_base + cb * b_cb + kw * b_kw + oh * b_oh + ow * b_ow]
                  # DRAIN: a = acc[acc_bank][a_base + cb * a_cb + oh * a_oh + ow * a_ow], columns
              for g in range(groups):
                i = column_group + g if DRAIN else lane_group + g      # Q columns, or Q lanes
                p = param[param_base + cb * param_cb + (g if per_channel else 0)]   # Q of them, one per lane
                y = requantize(op(a[i], b[i]), p.multiplier, p.shift, p.bias, exact)
                y = clamp(y + zy, lo, hi);  y = table[table_index][y] if use_table
                act[o_base + cb * o_cb + oh * o_oh + ow * o_ow][lane_group + g] = y

    Positions that are not inside contribute nothing (SUM) or are left out (MAX). A parameter row has
    an entry for each of the Q lanes. `onnxhw.fixed` defines ``requantize``. DOT has one group (`groups` is 1), and as
    many positions as make a sum of 25 bits at most, whatever a and b (``onnxhw.fixed.dot_reach``).
    """

    UNIT = Unit.VECTOR
    LEADING: ClassVar[tuple[str, ...]] = (
        "a_base", "param_base", "after_depthwise", "acc_bank", "groups", "column_group", "lane_group", "o_base",
        "after_array",
    )  # fmt: skip

    op: int = unsigned(3, "a VectorOp", setting=True)
    per_channel: int = flag("a parameter row per group, else one for all groups", setting=True)
    exact: int = flag("round once (half to even); else as float32: product to 24 bits, then to integer", setting=True)
    use_table: int = flag("look the result up in a table", setting=True)
    table_index: int = unsigned(4, "which table", setting=True)
    cb_n: int = unsigned(12, "activation words along the channels", 1, least=1)
    oh_n: int = unsigned(15, "output rows", 1, least=1)
    ow_n: int = unsigned(15, "output columns", 1, least=1)
    kh_n: int = unsigned(8, "window rows", 1, least=1)
    kw_n: int = unsigned(10, "window columns", 1, least=1)
    a_base: int = unsigned(
        16, "first operand: activation word, or accumulator row for DRAIN (so are the steps of a)", base=True
    )
    acc_bank: int = unsigned(2, "accumulator bank for DRAIN; 2: the depthwise unit's sums")
    a_cb: int = unsigned(16, "step of a per cb")
    a_oh: int = unsigned(16, "step of a per oh")
    a_ow: int = unsigned(16, "step of a per ow")
    a_kh: int = unsigned(16, "step of a per kh")
    a_kw: int = unsigned(16, "step of a per kw")
    ih0: int = signed(16, "input row of the first window position")
    iw0: int = signed(16, "input column of the first window position")
    ih_kh: int = unsigned(8, "row dilation of the window")
    iw_kw: int = unsigned(8, "column dilation of the window")
    ih_oh: int = unsigned(8, "row stride of the window")
    iw_ow: int = unsigned(8, "column stride of the window")
    in_h: int = unsigned(15, "input rows", 1)
    in_w: int = unsigned(15, "input columns", 1)
    b_base: int = unsigned(16, "second operand", base=True)
    b_cb: int = unsigned(16, "step of b per cb")
    b_oh: int = unsigned(16, "step of b per oh")
    b_ow: int = unsigned(16, "step of b per ow")
    b_kw: int = unsigned(16, "step of b per kw")
    o_base: int = unsigned(16, "result: activation word", base=True)
    o_cb: int = unsigned(16, "step of the result per cb")
    o_oh: int = unsigned(16, "step of the result per oh")
    o_ow: int = unsigned(16, "step of the result per ow")
    groups: int = unsigned(6, "groups of Q lanes per word", 1, setting=True, least=1)
    column_group: int = unsigned(6, "first group of Q accumulator columns (DRAIN)", setting=True)
    lane_group: int = unsigned(6, "first group of Q lanes of the result word (and of a and b)", setting=True)
    param_base: int = unsigned(16, "first parameter row", base=True)
    param_cb: int = unsigned(16, "step of the parameter row per cb")
    za: int = signed(8, "zero point of a", setting=True)
    zb: int = signed(8, "zero point of b", setting=True)
    zy: int = signed(8, "zero point of the result", setting=True)
    lo: int = signed(8, "smallest result", -128, setting=True)
    hi: int = signed(8, "largest result", 127, setting=True)

    @property
    def what(self) -> str:
        return VectorOp(self.op).name.lower()


SETTINGS = tuple(spec.name for spec in Vector.specs() if spec.setting)
"""The fields of a vector instruction that hold still in the pipeline; in the others instructions that overlap may
differ: they wait, loop and address each on its own."""
_SETTINGS = attrgetter(*SETTINGS)


def follows(before: Vector, instruction: Vector) -> bool:
    """Whether a vector instruction has the settings of the one before, so that their executions may overlap."""
    return bool(_SETTINGS(before) == _SETTINGS(instruction))


UNITS: dict[Unit, type[Load] | type[Array] | type[Depthwise] | type[Vector]] = {
    kind.UNIT: kind for kind in (Load, Array, Depthwise, Vector)
}
"""What the instructions of each unit are, of those that no external memory needs. Configurations with one have other
forms of them (`onnxhw.isa.external_instructions.kinds`)."""

Code = Mapping[Unit, Sequence[Ordered]]
"""Instructions by unit; a unit may be left out."""
