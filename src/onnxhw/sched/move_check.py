"""`check_moves`: what the checker proves of activation memory, and of all that moves touch, in a program with moves.

All instructions take effect one after the other, in one of the orders that the ordering fields allow. In it nothing is
read that was not written, constants and tensors in external memory stay apart, and rings hold the words that are
fetched. And no two uses of a word of which one writes are left unordered by the ordering fields: so every other order
that they allow gives the same, whatever anything takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..config import WINDOW
from ..errors import InternalError
from ..fixed import MULTIPLIER_BITS, Scale
from ..isa.external_instructions import Move
from ..isa.instructions import Array, Depthwise, Load, Vector, VectorOp
from ..isa.memory import Space, host_stride, word_bytes
from ..isa.timeline import Timeline
from ..isa.timing import load_steps
from ..isa.units import Unit
from ..program.layout import to_host
from ..program.model import DeviceProgram
from . import footprint
from .activation_contents import ActivationContents
from .completion_order import AccessOrder, Counts, completed_at_issue, events
from .external_state import ExternalState
from .microcode_rings import MicrocodeRings
from .moved_constants import MovedConstants, unordered
from .stream_state import StreamState

Words = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Touched:
    """The words of activation memory that instructions touch: of vector instructions what they read and write; and the
    state of the array and the depthwise unit."""

    vector_reads: Sequence[Words]
    vector_writes: Sequence[Words]
    streams: Sequence[StreamState]


def check_moves(program: DeviceProgram, times: Timeline, touched: Touched) -> None:
    """`InternalError` E1206 or E1207 (memories of the core), E1214 (external memory) or E1215 (rings)."""
    _MoveCheck(program, times, touched).run()


class _MoveCheck:
    def __init__(self, program: DeviceProgram, times: Timeline, touched: Touched) -> None:
        config = program.config
        self.program, self.config, self.times, self.touched = program, config, times, touched
        self.known = completed_at_issue(program.code, times)
        self.external = ExternalState(program)
        moves = [i for i in program.code[Unit.MOVE] if isinstance(i, Move)]
        self.rings = MicrocodeRings(program, {i.space for i in moves})
        self.act = ActivationContents(program)
        self.order = AccessOrder(
            config.act_words, (Unit.VECTOR, Unit.MOVE), (Unit.ARRAY, Unit.DEPTHWISE, Unit.VECTOR, Unit.MOVE)
        )
        params = to_host(program.params.astype("<u8").view(np.uint8), word_bytes(config, Space.PARAM))
        tables = program.tables.reshape(-1).view(np.uint8).astype(np.uint32)
        weights = to_host(program.weights, config.weight_word)
        self.constants = {
            Space.WEIGHT: self._constants(Space.WEIGHT, weights, config.weight_depth, Unit.LOAD),
            Space.PARAM: self._constants(Space.PARAM, params, config.param_depth, Unit.VECTOR),
            Space.TABLE: MovedConstants(tables, config.tables, 256, 256, Unit.VECTOR),
        }
        self.used_lanes: dict[Unit, list[Mask]] = {Unit.ARRAY: [], Unit.DEPTHWISE: []}
        """Of each weight tile that was loaded, by the unit that takes it: the lanes whose weights are not all 0."""

    def _constants(self, space: Space, image: npt.NDArray[np.uint32], words: int, reader: Unit) -> MovedConstants:
        size = word_bytes(self.config, space)
        return MovedConstants(image, words, host_stride(size), -(-size // 4), reader)

    def run(self) -> None:
        """Every instruction in turn."""
        code = self.program.code
        for unit in Unit:
            self._require("E1215", unit, 0, self.rings.fetch(unit, 0, None))
        self._complete(0)
        for unit, index in events(self.times):
            i, known = code[unit][index], self.known[unit][index]
            if isinstance(i, Load):
                self._load(index, i, known)
            elif isinstance(i, (Array, Depthwise)):
                self._stream(unit, index, i, known)
            elif isinstance(i, Vector):
                self._vector(index, i, known)
            elif isinstance(i, Move):
                self._move(index, i, known)
            self._require("E1215", unit, index + 1, self.rings.fetch(unit, index + 1, known))
        self.rings.check_end()
        self.external.check_end()

    def _require(self, code: str, unit: Unit, index: int, why: str) -> None:
        if why:
            raise InternalError(code, why, where=f"{unit}[{index}] {self.program.code[unit][index].text()}")

    def _complete(self, count: int) -> None:
        if name := self.act.incomplete(count):
            raise InternalError("E1211", f"is not complete after {count} vector instructions", where=f"tensor {name!r}")

    # -- instructions that compute -------------------------------------------------------------

    def _load(self, index: int, i: Load, known: Counts) -> None:
        weights, steps = self.constants[Space.WEIGHT], load_steps(i, self.config)
        tiles = footprint.tile_words(i, self.config)[:, None] + np.arange(steps)
        self._require("E1206", Unit.LOAD, index, weights.read(index, np.unique(tiles), known))
        words = weights.contents[tiles].view(np.uint8).reshape(*tiles.shape, -1)[..., : self.config.weight_word]
        found = words.reshape(len(tiles), -1)
        if i.depthwise:
            lanes = self.config.depthwise_lanes
            taps = found[:, : WINDOW**2 * lanes].reshape(len(tiles), -1, lanes)
            self.used_lanes[Unit.DEPTHWISE] += list(taps.any(axis=1))
        else:
            self.used_lanes[Unit.ARRAY] += list(found.reshape(len(tiles), self.config.rows, -1).any(axis=2))

    def _stream(self, unit: Unit, index: int, i: Array | Depthwise, known: Counts) -> None:
        stream = next(each for each in self.touched.streams if each.unit == unit)
        if not self.act.whole(stream.reads[index]):  # else all planes are, whatever the weights
            planes = footprint.array_planes(i, self.config.word)
            for plane, cells in zip(planes, self._cells_used(stream, index, i), strict=True):
                if cells.any():
                    self._require("E1206", unit, index, self.act.stale(plane, cells))
        why = unordered(self.order.reads(unit, index, stream.reads[index], known), "reads")
        self._require("E1207", unit, index, why)

    def _cells_used(self, stream: StreamState, index: int, i: Array | Depthwise) -> Mask:
        """``[kt, cells]``: whether an instruction's weights there are not all 0."""
        config, size = self.config, self.act.size
        if isinstance(i, Array) and i.unaligned:  # a lane of the operand may come from any
            return np.ones((i.kt_n, config.word // size), bool)
        tiles = self.used_lanes[stream.unit][stream.first_tile[index] : stream.first_tile[index + 1]]
        used, lanes = np.array(tiles), np.zeros((i.kt_n if isinstance(i, Array) else 1, config.word), bool)
        if isinstance(i, Depthwise):
            lanes[0, i.group * config.depthwise_lanes : (i.group + 1) * config.depthwise_lanes] = used.any(axis=0)
        else:
            found = used.reshape(i.kt_n, i.sub_n, -1, config.rows).any(axis=2).reshape(i.kt_n, -1)
            lanes[:, : found.shape[1]] = found[:, : config.word]
        return np.asarray(lanes.reshape(len(lanes), -1, size).any(axis=2))

    def _vector(self, index: int, i: Vector, known: Counts) -> None:
        rows = footprint.params(i)
        params = self.constants[Space.PARAM]
        self._require("E1206", Unit.VECTOR, index, params.read(index, rows, known))
        if i.op == VectorOp.ADD:
            self._second_multiplier(index, params.contents[rows])
        if i.use_table:
            table = np.array([i.table_index])
            self._require("E1206", Unit.VECTOR, index, self.constants[Space.TABLE].read(index, table, known))
        reads, writes = self.touched.vector_reads[index], self.touched.vector_writes[index]
        cells = self.act.cells_of_groups(i.lane_group, i.groups)
        self._require("E1206", Unit.VECTOR, index, self.act.stale(reads, cells))
        why = unordered(self.order.reads(Unit.VECTOR, index, reads, known), "reads")
        self._require("E1207", Unit.VECTOR, index, why)
        if footprint.meet(reads, writes):
            self._require("E1207", Unit.VECTOR, index, "writes what it reads")
        self._require("E1206", Unit.VECTOR, index, self.act.write(index, writes, cells))
        why = unordered(self.order.writes(Unit.VECTOR, index, writes, known), "writes")
        self._require("E1207", Unit.VECTOR, index, why)
        self._complete(index + 1)

    def _second_multiplier(self, index: int, rows: npt.NDArray[np.uint32]) -> None:
        """The bias of ADD's entries is a multiplier: unsigned, of its width."""
        entries = np.unique(np.ascontiguousarray(rows).view(np.uint64)[:, : self.config.lanes])
        if any(not 0 <= Scale.unpack(int(entry)).bias < 1 << MULTIPLIER_BITS for entry in entries):
            self._require("E1204", Unit.VECTOR, index, f"a second multiplier beyond {MULTIPLIER_BITS} bits")

    # -- moves ---------------------------------------------------------------------------------

    def _move(self, index: int, i: Move, known: Counts) -> None:
        chip, external = footprint.move_words(i)
        if i.space == Space.ACT:
            self._tensor(index, i, chip, external, known)
            return
        self._require("E1214", Unit.MOVE, index, self.external.load_constants(external))
        given = self.program.external[external]
        if i.space in (Space.WEIGHT, Space.PARAM, Space.TABLE):
            why = self.constants[Space(i.space)].write(index, chip, external, given, known)
            self._require("E1207", Unit.MOVE, index, why)
        else:
            self._require("E1215", Unit.MOVE, index, self.rings.write(i.space, index, chip, given, known))

    def _tensor(self, index: int, i: Move, chip: Words, external: Words, known: Counts) -> None:
        """A move between activation memory and external memory."""
        words = np.unique(chip // self.act.stride)
        if i.store:
            why, lanes = self.act.store(chip)
            self._require("E1206", Unit.MOVE, index, why)
            why = unordered(self.order.reads(Unit.MOVE, index, words, known), "reads")
            self._require("E1207", Unit.MOVE, index, why)
            self._require("E1214", Unit.MOVE, index, self.external.store(external, lanes))
        else:
            why, lanes = self.external.load_tensor(external)
            self._require("E1214", Unit.MOVE, index, why)
            why = unordered(self.order.writes(Unit.MOVE, index, words, known), "writes")
            self._require("E1207", Unit.MOVE, index, why)
            self.act.load(chip, external, lanes, self.external.packed(external))
