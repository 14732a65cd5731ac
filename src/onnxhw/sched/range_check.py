"""`check_ranges`: every access lies in its memory, and the tiles loaded are those taken."""

import numpy as np

from ..config import WINDOW
from ..errors import InternalError
from ..fixed import SUM_MAX, dot_reach
from ..isa.instructions import WINDOW_BANK, Array, Depthwise, Vector, VectorOp
from ..isa.timing import load_steps
from ..isa.units import Unit
from . import footprint
from .checked_code import CheckedCode
from .stream_state import Words


def check_ranges(checked: CheckedCode) -> None:
    """Addresses and tiles."""
    config = checked.config
    for index, load in enumerate(checked.loads):
        if int(footprint.tile_words(load, config).max()) + load_steps(load, config) > checked.weights:
            checked.fail("E1204", Unit.LOAD, index, f"reads beyond {checked.weights} weight words")
    for index, array in enumerate(checked.arrays):
        _array_range(checked, index, array)
    for index, strip in enumerate(checked.strips):
        _strip(checked, index, strip)
    for index, vector in enumerate(checked.vectors):
        _vector_range(checked, index, vector)
    for stream in checked.streams:
        loaded, taken = len(stream.tile_bases), int(stream.first_tile[-1])
        if loaded != taken:
            raise InternalError("E1205", f"{loaded} {stream.unit} weight tiles are loaded, {taken} are taken")


def _array_range(checked: CheckedCode, index: int, i: Array) -> None:
    if i.sub_n > checked.config.row_groups:
        checked.fail("E1204", Unit.ARRAY, index, f"sub_n must be at most {checked.config.row_groups}")
    if int(footprint.accumulator_rows(i).max()) >= checked.config.acc_depth:
        checked.fail("E1204", Unit.ARRAY, index, f"fills beyond {checked.config.acc_depth} accumulator rows")
    if i.unaligned and int(checked.array.reads[index].max(initial=0)) >= checked.config.unaligned_words:
        what = f"reads unaligned beyond the first {checked.config.unaligned_words} words"
        checked.fail("E1204", Unit.ARRAY, index, what)
    _inside(checked, Unit.ARRAY, index, checked.array.reads[index])


def _strip(checked: CheckedCode, index: int, i: Depthwise) -> None:
    config = checked.config
    if not config.depthwise:
        checked.fail("E1204", Unit.DEPTHWISE, index, "needs a depthwise unit")
    if min(i.sh, i.sw) < 1:
        checked.fail("E1204", Unit.DEPTHWISE, index, "sh and sw must be at least 1")
    if i.oh_n < WINDOW or not WINDOW <= i.ow_n <= config.depthwise:
        what = f"oh_n must be at least {WINDOW}, ow_n {WINDOW}..{config.depthwise}"
        checked.fail("E1204", Unit.DEPTHWISE, index, what)
    if (i.group + 1) * config.depthwise_lanes > config.word:
        checked.fail("E1204", Unit.DEPTHWISE, index, f"group must be below {config.word // config.depthwise_lanes}")
    if int(footprint.accumulator_rows(i).max()) >= config.window_depth:
        checked.fail("E1204", Unit.DEPTHWISE, index, f"fills beyond {config.window_depth} rows of sums")
    _inside(checked, Unit.DEPTHWISE, index, checked.depthwise.reads[index])


def _vector_range(checked: CheckedCode, index: int, i: Vector) -> None:
    config = checked.config
    if i.lane_group + i.groups > config.lane_groups:
        checked.fail("E1204", Unit.VECTOR, index, f"uses lane groups beyond {config.lane_groups}")
    if i.acc_bank > (WINDOW_BANK if config.depthwise else 1):
        checked.fail("E1204", Unit.VECTOR, index, f"no accumulator bank {i.acc_bank}")
    columns = config.depthwise_lanes // config.lanes if i.acc_bank == WINDOW_BANK else config.col_groups
    if i.op == VectorOp.DRAIN and i.column_group + i.groups > columns:
        checked.fail("E1204", Unit.VECTOR, index, f"drains column groups beyond {columns}")
    if i.op not in (VectorOp.SUM, VectorOp.MAX, VectorOp.DOT) and i.kh_n * i.kw_n != 1:
        checked.fail("E1204", Unit.VECTOR, index, "has a window but is neither SUM nor MAX nor DOT")
    if i.op == VectorOp.DOT and (i.groups != 1 or dot_reach(i.kh_n * i.kw_n, i.za, i.zb) > SUM_MAX):
        checked.fail("E1204", Unit.VECTOR, index, "sums more than 25 bits hold, or more than one group of lanes")
    depth = config.window_depth if i.acc_bank == WINDOW_BANK else config.acc_depth
    if int(footprint.accumulator_rows(i).max(initial=0)) >= depth:
        checked.fail("E1204", Unit.VECTOR, index, f"drains beyond {depth} accumulator rows")
    if footprint.last_param(i) >= checked.params:
        checked.fail("E1204", Unit.VECTOR, index, f"reads beyond {checked.params} parameter rows")
    if i.use_table and i.table_index >= checked.tables:
        checked.fail("E1204", Unit.VECTOR, index, f"uses a table beyond {checked.tables}")
    _inside(checked, Unit.VECTOR, index, checked.vector_reads[index])
    _inside(checked, Unit.VECTOR, index, checked.vector_writes[index])
    if len(np.unique(checked.vector_writes[index])) != len(checked.vector_writes[index]):
        checked.fail("E1204", Unit.VECTOR, index, "writes a word twice")


def _inside(checked: CheckedCode, unit: Unit, index: int, words: Words) -> None:
    if len(words) and int(words.max()) >= checked.config.act_words:
        checked.fail("E1204", unit, index, f"touches word {int(words.max())} of {checked.config.act_words}")
