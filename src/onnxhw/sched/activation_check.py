"""`check_activations`: what is read of activation memory was written, in programs without moves."""

import numpy as np
import numpy.typing as npt

from ..config import WINDOW
from ..isa.instructions import Array, Depthwise
from ..isa.units import Unit
from . import footprint
from .checked_code import CheckedCode
from .memory_state import MemoryState
from .stream_state import StreamState


def check_activations(checked: CheckedCode) -> None:
    """Every lane group read holds what was last written for one tensor, and nobody writes while another may read.

    Read in the vector unit's order: an instruction of the array or the depthwise unit sees memory as it is after
    the vector instructions that it waits for; those that might run beside it must not write what it reads.
    """
    state = MemoryState(checked.program)
    waiting = sorted(
        ((int(after), number, index)
         for number, one in enumerate(checked.streams) for index, after in enumerate(one.after)),
        reverse=True,
    )
    for count in range(len(checked.vectors) + 1):
        while waiting and waiting[-1][0] == count:
            _, number, index = waiting.pop()
            _stream_reads(checked, checked.streams[number], index, state)
        if count < len(checked.vectors):
            _vector_step(checked, count, state)
    if waiting:
        _, number, index = waiting[-1]
        what = f"waits for more than {len(checked.vectors)} vector instructions"
        checked.fail("E1206", checked.streams[number].unit, index, what)


def _vector_step(checked: CheckedCode, index: int, state: MemoryState) -> None:
    i, reads, writes = checked.vectors[index], checked.vector_reads[index], checked.vector_writes[index]
    groups = np.zeros(checked.config.lane_groups, bool)
    groups[i.lane_group : i.lane_group + i.groups] = True
    if why := state.stale(reads, groups):
        checked.fail("E1206", Unit.VECTOR, index, why)
    mine = np.zeros(checked.config.act_words, bool)
    mine[reads] = True
    for other in range(checked.vector_after_vector[index], index if len(reads) else 0):
        if mine[checked.vector_writes[other]].any():
            text = checked.vectors[other].text()
            checked.fail("E1207", Unit.VECTOR, index, f"may read before vector[{other}] has written: {text}")
    if footprint.meet(reads, writes):
        checked.fail("E1207", Unit.VECTOR, index, "writes what it reads")
    if why := state.write(index, writes, groups):
        checked.fail("E1206", Unit.VECTOR, index, why)


def _stream_reads(checked: CheckedCode, stream: StreamState, index: int, state: MemoryState) -> None:
    i, reads = stream.code[index], stream.reads[index]
    planes = footprint.array_planes(i, checked.config.word)
    for plane, groups in zip(planes, _lane_groups_used(checked, stream, index), strict=True):
        if groups.any() and (why := state.stale(plane, groups)):
            checked.fail("E1206", stream.unit, index, why)
    mine = np.zeros(checked.config.act_words, bool)
    mine[reads] = True
    for other in stream.concurrent(index, stream.after):
        if mine[checked.vector_writes[other]].any():
            text = checked.vectors[other].text()
            checked.fail("E1207", stream.unit, index, f"may read while vector[{other}] writes: {text}")


def _lane_groups_used(checked: CheckedCode, stream: StreamState, index: int) -> npt.NDArray[np.bool_]:
    """``[kt, lane groups]``: whether an instruction's weights there are not all 0."""
    config, i = checked.config, stream.code[index]
    if isinstance(i, Array) and i.unaligned:  # a lane of the operand may come from any
        return np.ones((i.kt_n, config.lane_groups), bool)
    bases = stream.tile_bases[stream.first_tile[index] : stream.first_tile[index + 1]]
    key = bases.tobytes(), i.group if isinstance(i, Depthwise) else -1
    if key not in checked.lanes_known:
        if isinstance(i, Depthwise):
            width = config.depthwise_lanes
            words = checked.program.weights[bases[:, None] + np.arange(config.depthwise_words)]
            weights = words.reshape(len(bases), -1)[:, : WINDOW**2 * width]
            lanes = np.zeros((1, config.word), bool)
            lanes[0, i.group * width : (i.group + 1) * width] = weights.reshape(-1, width).any(axis=0)
        else:
            words = checked.program.weights[bases[:, None] + np.arange(config.tile_words)]
            taps = i.kh_n * i.kw_n * i.nt_n
            used = words.reshape(i.kt_n, i.sub_n, taps, config.rows, config.cols).any(axis=(2, 4))
            lanes = np.zeros((i.kt_n, config.word), bool)
            count = min(config.word, i.sub_n * config.rows)
            lanes[:, :count] = used.reshape(i.kt_n, -1)[:, :count]
        checked.lanes_known[key] = np.asarray(lanes.reshape(-1, config.lane_groups, config.lanes).any(axis=2))
    return checked.lanes_known[key]
