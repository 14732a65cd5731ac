"""`check_accumulators`: sums are filled, drained and filled again in that order."""

import numpy as np
import numpy.typing as npt

from ..isa.instructions import WINDOW_BANK, VectorOp
from ..isa.timeline import Timeline
from ..isa.timing import ACCUMULATE, pixels
from ..isa.units import Unit
from . import footprint
from .checked_code import NEVER, CheckedCode
from .stream_state import Words


def check_accumulators(checked: CheckedCode, times: Timeline) -> None:
    """Filled before drained, never filled while drained, never accumulated too soon."""
    rows = [footprint.accumulator_rows(i) for i in checked.arrays]
    filled = np.full((WINDOW_BANK + 1, checked.config.drain_rows), NEVER, np.int64)
    last: dict[int, int] = {}
    for index, array in enumerate(checked.arrays):
        box = filled[array.acc_bank, rows[index]]
        if array.accumulate and int(box.max()) == NEVER:
            checked.fail("E1208", Unit.ARRAY, index, "accumulates onto rows that were never filled")
        previous = last.get(array.acc_bank)
        if array.accumulate and previous is not None:
            wait = _distance(checked, previous, index, times)
            if wait < ACCUMULATE:
                checked.fail("E1208", Unit.ARRAY, index, f"accumulates {wait} cycles after array[{previous}] did")
        if not array.accumulate and previous is not None and not _drained(checked, previous, index):
            what = f"overwrites the sums of array[{previous}] before they are drained"
            checked.fail("E1208", Unit.ARRAY, index, what)
        last[array.acc_bank] = index
        filled[array.acc_bank, rows[index]] = np.minimum(box, index)
        for other in checked.array.concurrent(index, checked.array.after_reads):
            vector = checked.vectors[other]
            if vector.op == VectorOp.DRAIN and vector.acc_bank == array.acc_bank:
                text = vector.text()
                checked.fail("E1209", Unit.ARRAY, index, f"may fill the bank that vector[{other}] drains: {text}")
    _windows(checked, filled[WINDOW_BANK])
    for index, vector in enumerate(checked.vectors):
        if vector.op == VectorOp.DRAIN:
            box = filled[vector.acc_bank, footprint.accumulator_rows(vector)]
            stream = checked.depthwise if vector.acc_bank == WINDOW_BANK else checked.array
            if int(box.max()) >= stream.vector_after[index]:
                checked.fail("E1208", Unit.VECTOR, index, "may drain rows before they are filled")


def _windows(checked: CheckedCode, filled: Words) -> None:
    """The sums of the depthwise unit; `filled` gets the first instruction that fills each row."""
    stream, drains = checked.depthwise, _window_drains(checked)
    last = np.full(checked.config.window_depth, -1, np.int64)
    for index, strip in enumerate(checked.strips):
        rows = footprint.accumulator_rows(strip)
        for previous in (int(number) for number in np.unique(last[rows]) if number >= 0):
            between = drains[stream.drained_from(previous) : stream.after_reads[index]]
            if not between[:, rows[last[rows] == previous]].any(axis=0).all():
                what = f"overwrites the sums of depthwise[{previous}] before they are drained"
                checked.fail("E1208", Unit.DEPTHWISE, index, what)
        last[rows] = index
        filled[rows] = np.minimum(filled[rows], index)
        for other in stream.concurrent(index, stream.after_reads):
            mine = drains[other] if strip.reads_sums else drains[other, rows]
            if mine.any():
                text = checked.vectors[other].text()
                checked.fail("E1209", Unit.DEPTHWISE, index, f"may fill sums that vector[{other}] drains: {text}")


def _window_drains(checked: CheckedCode) -> npt.NDArray[np.bool_]:
    """``[vector instructions, rows]``: which of the depthwise unit's sums each reads."""
    found = np.zeros((len(checked.vectors), checked.config.window_depth), bool)
    for index, vector in enumerate(checked.vectors):
        if vector.op == VectorOp.DRAIN and vector.acc_bank == WINDOW_BANK:
            found[index, footprint.accumulator_rows(vector)] = True
    return found


def _distance(checked: CheckedCode, earlier: int, later: int, times: Timeline) -> int:
    """Fewest cycles from the last to the first use of an accumulator row by two array instructions."""
    used = np.full((2, checked.config.acc_depth), [[-NEVER], [NEVER]], np.int64)
    for which, index in enumerate((earlier, later)):
        i = checked.arrays[index]
        first = checked.array.first_tile[index + 1] - i.nt_n if which == 0 else checked.array.first_tile[index]
        starts = np.array(times.tile_start[first : first + i.nt_n])
        used[which, footprint.accumulator_rows(i)] = (starts[:, None] + np.arange(pixels(i))).ravel()
    return int((used[1] - used[0]).min())


def _drained(checked: CheckedCode, filler: int, later: int) -> bool:
    """Whether a DRAIN of the bank is ordered after one array instruction and before another."""
    bank = checked.arrays[filler].acc_bank
    drains = checked.vectors[checked.array.drained_from(filler) : checked.array.after_reads[later]]
    return any(i.op == VectorOp.DRAIN and i.acc_bank == bank for i in drains)
