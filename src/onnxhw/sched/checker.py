"""`check`: proves one program safe, from its instructions alone.

What is proved, for every input:

- every field fits its bits, every instruction means something (`bounds`) and every access lies in its memory (act,
  acc, weights, params, tables, microcode);
- the program ends (no ordering or weight deadlock), tiles loaded are the tiles taken, of the array and of the
  depthwise unit, and the predicted cycles are those of the timeline;
- lanes of an activation word are read only after they were written for the tensor that the word now
  holds (lanes that meet only weights of 0 do not matter), and no instruction that might run at the
  same time writes the word: RAW and WAR by the ordering fields, so the proof holds for any timing;
  WAW because vector instructions, the only writers, write in order (and read in order: so nor do they
  overwrite what one of them still reads);
- of programs with moves: the same of all memories that moves write, of external memory, and of the rings of microcode
  (`move_check`); and no move and another unit write one activation bank in the same cycle;
- an accumulator row is drained only after it was filled, and not filled meanwhile: nor is any row of its bank if the
  array fills it, or the depthwise unit with an instruction that accumulates;
- one reader per activation bank and cycle, by the timeline;
- each output is complete at the end, and each tensor of the table between its `ready` and `last`: all lane groups of
  its channels have been written. (That the words
  then hold this tensor and no other, and whatever is read the operand that is meant, the instructions do not tell:
  `reaching_definitions` proves it from the tasks that they are made of;)
- the input port writes the inputs to their places, and nothing else;
- no input is touched once as many instructions have completed as `DeviceProgram.input_free` says.

A program that fails is a compiler bug, `InternalError` E12xx with the instruction's text; or, if it came from a file,
none of ours (`onnxhw.program_verifier`).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..config import WINDOW, HwConfig
from ..errors import InternalError
from ..fixed import SUM_MAX, dot_reach
from ..isa.external_instructions import Move
from ..isa.instructions import WINDOW_BANK, Array, Depthwise, Load, Vector, VectorOp
from ..isa.memory import Space, host_stride
from ..isa.timeline import Timeline, timeline
from ..isa.timing import ACCUMULATE, START, load_steps, pixels, results_later
from ..isa.units import Unit
from ..program.model import DeviceProgram
from . import footprint
from .bank_conflicts import BankUse, conflict
from .bounds import bounds
from .input_check import check_input_regions
from .input_release import check_window
from .memory_state import MemoryState, lane_groups, tensor_words
from .move_check import Touched, check_moves
from .stream_state import StreamState, Words, running

NEVER = 1 << 30
"""Later than any instruction."""


def check(program: DeviceProgram) -> Timeline:
    """Prove the program safe; returns its timeline."""
    bounds(program)
    checker = _Checker(program)
    checker.ranges()
    times = timeline(program.config, program.code)
    if times.cycles != program.cycles:
        raise InternalError("E1201", f"cycles must be {times.cycles}, not {program.cycles}")
    if program.code.get(Unit.MOVE):
        check_moves(program, times, Touched(checker.vector_reads, checker.vector_writes, checker.streams))
    else:
        checker.activations()
    checker.accumulators(times)
    checker.banks(times)
    checker.tensors()
    check_input_regions(program)
    check_window(program, times)
    return times


class _Checker:
    """The program and what its instructions touch."""

    def __init__(self, program: DeviceProgram) -> None:
        self.program = program
        self.config: HwConfig = program.config
        code, moves = program.code, bool(program.code.get(Unit.MOVE))
        # What moves bring may lie anywhere in its memory.
        self.weights = self.config.weight_depth if moves else len(program.weights)
        self.params = self.config.param_depth if moves else len(program.params)
        self.tables = self.config.tables if moves else len(program.tables)
        self.loads = [i for i in code.get(Unit.LOAD, ()) if isinstance(i, Load)]
        self.arrays = [i for i in code.get(Unit.ARRAY, ()) if isinstance(i, Array)]
        self.strips = [i for i in code.get(Unit.DEPTHWISE, ()) if isinstance(i, Depthwise)]
        self.vectors = [i for i in code.get(Unit.VECTOR, ()) if isinstance(i, Vector)]
        self.moves = [i for i in code.get(Unit.MOVE, ()) if isinstance(i, Move)]
        self.vector_reads = [footprint.vector_reads(i) for i in self.vectors]
        self.vector_writes = [footprint.vector_writes(i) for i in self.vectors]
        self.array = StreamState(Unit.ARRAY, self.arrays, self.loads, self.vectors, self.config)
        self.depthwise = StreamState(Unit.DEPTHWISE, self.strips, self.loads, self.vectors, self.config)
        self.streams = self.array, self.depthwise
        self.lanes_known: dict[tuple[bytes, int], npt.NDArray[np.bool_]] = {}
        self.vector_after_vector = running([i.after_vector for i in self.vectors])

    def _fail(self, code: str, unit: Unit, index: int, what: str) -> None:
        raise InternalError(code, what, where=f"{unit}[{index}] {self.program.code[unit][index].text()}")

    # -- ranges --------------------------------------------------------------------------------
    def ranges(self) -> None:
        """Addresses and tiles."""
        config = self.config
        for index, load in enumerate(self.loads):
            if int(footprint.tile_words(load, config).max()) + load_steps(load, config) > self.weights:
                self._fail("E1204", Unit.LOAD, index, f"reads beyond {self.weights} weight words")
        for index, array in enumerate(self.arrays):
            self._array_range(index, array)
        for index, strip in enumerate(self.strips):
            self._strip(index, strip)
        for index, vector in enumerate(self.vectors):
            self._vector_range(index, vector)
        for stream in self.streams:
            loaded, taken = len(stream.tile_bases), int(stream.first_tile[-1])
            if loaded != taken:
                raise InternalError("E1205", f"{loaded} {stream.unit} weight tiles are loaded, {taken} are taken")

    def _array_range(self, index: int, i: Array) -> None:
        if i.sub_n > self.config.row_groups:
            self._fail("E1204", Unit.ARRAY, index, f"sub_n must be at most {self.config.row_groups}")
        if int(footprint.accumulator_rows(i).max()) >= self.config.acc_depth:
            self._fail("E1204", Unit.ARRAY, index, f"fills beyond {self.config.acc_depth} accumulator rows")
        if i.unaligned and int(self.array.reads[index].max(initial=0)) >= self.config.unaligned_words:
            what = f"reads unaligned beyond the first {self.config.unaligned_words} words"
            self._fail("E1204", Unit.ARRAY, index, what)
        self._inside(Unit.ARRAY, index, self.array.reads[index])

    def _strip(self, index: int, i: Depthwise) -> None:
        config = self.config
        if not config.depthwise:
            self._fail("E1204", Unit.DEPTHWISE, index, "needs a depthwise unit")
        if min(i.sh, i.sw) < 1:
            self._fail("E1204", Unit.DEPTHWISE, index, "sh and sw must be at least 1")
        if i.oh_n < WINDOW or not WINDOW <= i.ow_n <= config.depthwise:
            what = f"oh_n must be at least {WINDOW}, ow_n {WINDOW}..{config.depthwise}"
            self._fail("E1204", Unit.DEPTHWISE, index, what)
        if (i.group + 1) * config.depthwise_lanes > config.word:
            self._fail("E1204", Unit.DEPTHWISE, index, f"group must be below {config.word // config.depthwise_lanes}")
        if int(footprint.accumulator_rows(i).max()) >= config.window_depth:
            self._fail("E1204", Unit.DEPTHWISE, index, f"fills beyond {config.window_depth} rows of sums")
        self._inside(Unit.DEPTHWISE, index, self.depthwise.reads[index])

    def _vector_range(self, index: int, i: Vector) -> None:
        config = self.config
        if i.lane_group + i.groups > config.lane_groups:
            self._fail("E1204", Unit.VECTOR, index, f"uses lane groups beyond {config.lane_groups}")
        if i.acc_bank > (WINDOW_BANK if config.depthwise else 1):
            self._fail("E1204", Unit.VECTOR, index, f"no accumulator bank {i.acc_bank}")
        columns = config.depthwise_lanes // config.lanes if i.acc_bank == WINDOW_BANK else config.col_groups
        if i.op == VectorOp.DRAIN and i.column_group + i.groups > columns:
            self._fail("E1204", Unit.VECTOR, index, f"drains column groups beyond {columns}")
        if i.op not in (VectorOp.SUM, VectorOp.MAX, VectorOp.DOT) and i.kh_n * i.kw_n != 1:
            self._fail("E1204", Unit.VECTOR, index, "has a window but is neither SUM nor MAX nor DOT")
        if i.op == VectorOp.DOT and (i.groups != 1 or dot_reach(i.kh_n * i.kw_n, i.za, i.zb) > SUM_MAX):
            self._fail("E1204", Unit.VECTOR, index, "sums more than 25 bits hold, or more than one group of lanes")
        depth = config.window_depth if i.acc_bank == WINDOW_BANK else config.acc_depth
        if int(footprint.accumulator_rows(i).max(initial=0)) >= depth:
            self._fail("E1204", Unit.VECTOR, index, f"drains beyond {depth} accumulator rows")
        if footprint.last_param(i) >= self.params:
            self._fail("E1204", Unit.VECTOR, index, f"reads beyond {self.params} parameter rows")
        if i.use_table and i.table_index >= self.tables:
            self._fail("E1204", Unit.VECTOR, index, f"uses a table beyond {self.tables}")
        self._inside(Unit.VECTOR, index, self.vector_reads[index])
        self._inside(Unit.VECTOR, index, self.vector_writes[index])
        if len(np.unique(self.vector_writes[index])) != len(self.vector_writes[index]):
            self._fail("E1204", Unit.VECTOR, index, "writes a word twice")

    def _inside(self, unit: Unit, index: int, words: Words) -> None:
        if len(words) and int(words.max()) >= self.config.act_words:
            self._fail("E1204", unit, index, f"touches word {int(words.max())} of {self.config.act_words}")

    # -- activation memory ---------------------------------------------------------------------
    def activations(self) -> None:
        """Every lane group read holds what was last written for one tensor, and nobody writes while another may read.

        Read in the vector unit's order: an instruction of the array or the depthwise unit sees memory as it is after
        the vector instructions that it waits for; those that might run beside it must not write what it reads.
        """
        state = MemoryState(self.program)
        waiting = sorted(
            ((int(after), number, index)
             for number, one in enumerate(self.streams) for index, after in enumerate(one.after)),
            reverse=True,
        )
        for count in range(len(self.vectors) + 1):
            while waiting and waiting[-1][0] == count:
                _, number, index = waiting.pop()
                self._stream_reads(self.streams[number], index, state)
            if count < len(self.vectors):
                self._vector_step(count, state)
        if waiting:
            _, number, index = waiting[-1]
            what = f"waits for more than {len(self.vectors)} vector instructions"
            self._fail("E1206", self.streams[number].unit, index, what)

    def _vector_step(self, index: int, state: MemoryState) -> None:
        i, reads, writes = self.vectors[index], self.vector_reads[index], self.vector_writes[index]
        groups = np.zeros(self.config.lane_groups, bool)
        groups[i.lane_group : i.lane_group + i.groups] = True
        if why := state.stale(reads, groups):
            self._fail("E1206", Unit.VECTOR, index, why)
        mine = np.zeros(self.config.act_words, bool)
        mine[reads] = True
        for other in range(self.vector_after_vector[index], index if len(reads) else 0):
            if mine[self.vector_writes[other]].any():
                text = self.vectors[other].text()
                self._fail("E1207", Unit.VECTOR, index, f"may read before vector[{other}] has written: {text}")
        if footprint.meet(reads, writes):
            self._fail("E1207", Unit.VECTOR, index, "writes what it reads")
        if why := state.write(index, writes, groups):
            self._fail("E1206", Unit.VECTOR, index, why)

    def _stream_reads(self, stream: StreamState, index: int, state: MemoryState) -> None:
        i, reads = stream.code[index], stream.reads[index]
        planes = footprint.array_planes(i, self.config.word)
        for plane, groups in zip(planes, self._lane_groups_used(stream, index), strict=True):
            if groups.any() and (why := state.stale(plane, groups)):
                self._fail("E1206", stream.unit, index, why)
        mine = np.zeros(self.config.act_words, bool)
        mine[reads] = True
        for other in stream.concurrent(index, stream.after):
            if mine[self.vector_writes[other]].any():
                text = self.vectors[other].text()
                self._fail("E1207", stream.unit, index, f"may read while vector[{other}] writes: {text}")

    def _lane_groups_used(self, stream: StreamState, index: int) -> npt.NDArray[np.bool_]:
        """``[kt, lane groups]``: whether an instruction's weights there are not all 0."""
        config, i = self.config, stream.code[index]
        if isinstance(i, Array) and i.unaligned:  # a lane of the operand may come from any
            return np.ones((i.kt_n, config.lane_groups), bool)
        bases = stream.tile_bases[stream.first_tile[index] : stream.first_tile[index + 1]]
        key = bases.tobytes(), i.group if isinstance(i, Depthwise) else -1
        if key not in self.lanes_known:
            if isinstance(i, Depthwise):
                width = config.depthwise_lanes
                words = self.program.weights[bases[:, None] + np.arange(config.depthwise_words)]
                weights = words.reshape(len(bases), -1)[:, : WINDOW**2 * width]
                lanes = np.zeros((1, config.word), bool)
                lanes[0, i.group * width : (i.group + 1) * width] = weights.reshape(-1, width).any(axis=0)
            else:
                words = self.program.weights[bases[:, None] + np.arange(config.tile_words)]
                taps = i.kh_n * i.kw_n * i.nt_n
                used = words.reshape(i.kt_n, i.sub_n, taps, config.rows, config.cols).any(axis=(2, 4))
                lanes = np.zeros((i.kt_n, config.word), bool)
                count = min(config.word, i.sub_n * config.rows)
                lanes[:, :count] = used.reshape(i.kt_n, -1)[:, :count]
            self.lanes_known[key] = np.asarray(lanes.reshape(-1, config.lane_groups, config.lanes).any(axis=2))
        return self.lanes_known[key]

    # -- accumulators --------------------------------------------------------------------------
    def accumulators(self, times: Timeline) -> None:
        """Filled before drained, never filled while drained, never accumulated too soon."""
        rows = [footprint.accumulator_rows(i) for i in self.arrays]
        filled = np.full((WINDOW_BANK + 1, self.config.drain_rows), NEVER, np.int64)
        last: dict[int, int] = {}
        for index, array in enumerate(self.arrays):
            box = filled[array.acc_bank, rows[index]]
            if array.accumulate and int(box.max()) == NEVER:
                self._fail("E1208", Unit.ARRAY, index, "accumulates onto rows that were never filled")
            previous = last.get(array.acc_bank)
            if array.accumulate and previous is not None:
                wait = self._distance(previous, index, times)
                if wait < ACCUMULATE:
                    self._fail("E1208", Unit.ARRAY, index, f"accumulates {wait} cycles after array[{previous}] did")
            if not array.accumulate and previous is not None and not self._drained(previous, index):
                what = f"overwrites the sums of array[{previous}] before they are drained"
                self._fail("E1208", Unit.ARRAY, index, what)
            last[array.acc_bank] = index
            filled[array.acc_bank, rows[index]] = np.minimum(box, index)
            for other in self.array.concurrent(index, self.array.after_reads):
                vector = self.vectors[other]
                if vector.op == VectorOp.DRAIN and vector.acc_bank == array.acc_bank:
                    text = vector.text()
                    self._fail("E1209", Unit.ARRAY, index, f"may fill the bank that vector[{other}] drains: {text}")
        self._windows(filled[WINDOW_BANK])
        for index, vector in enumerate(self.vectors):
            if vector.op == VectorOp.DRAIN:
                box = filled[vector.acc_bank, footprint.accumulator_rows(vector)]
                stream = self.depthwise if vector.acc_bank == WINDOW_BANK else self.array
                if int(box.max()) >= stream.vector_after[index]:
                    self._fail("E1208", Unit.VECTOR, index, "may drain rows before they are filled")

    def _windows(self, filled: Words) -> None:
        """The sums of the depthwise unit; `filled` gets the first instruction that fills each row."""
        stream, drains = self.depthwise, self._window_drains()
        last = np.full(self.config.window_depth, -1, np.int64)
        for index, strip in enumerate(self.strips):
            rows = footprint.accumulator_rows(strip)
            for previous in (int(number) for number in np.unique(last[rows]) if number >= 0):
                between = drains[stream.drained_from(previous) : stream.after_reads[index]]
                if not between[:, rows[last[rows] == previous]].any(axis=0).all():
                    what = f"overwrites the sums of depthwise[{previous}] before they are drained"
                    self._fail("E1208", Unit.DEPTHWISE, index, what)
            last[rows] = index
            filled[rows] = np.minimum(filled[rows], index)
            for other in stream.concurrent(index, stream.after_reads):
                mine = drains[other] if strip.reads_sums else drains[other, rows]
                if mine.any():
                    text = self.vectors[other].text()
                    self._fail("E1209", Unit.DEPTHWISE, index, f"may fill sums that vector[{other}] drains: {text}")

    def _window_drains(self) -> npt.NDArray[np.bool_]:
        """``[vector instructions, rows]``: which of the depthwise unit's sums each reads."""
        found = np.zeros((len(self.vectors), self.config.window_depth), bool)
        for index, vector in enumerate(self.vectors):
            if vector.op == VectorOp.DRAIN and vector.acc_bank == WINDOW_BANK:
                found[index, footprint.accumulator_rows(vector)] = True
        return found

    def _distance(self, earlier: int, later: int, times: Timeline) -> int:
        """Fewest cycles from the last to the first use of an accumulator row by two array instructions."""
        used = np.full((2, self.config.acc_depth), [[-NEVER], [NEVER]], np.int64)
        for which, index in enumerate((earlier, later)):
            i = self.arrays[index]
            first = self.array.first_tile[index + 1] - i.nt_n if which == 0 else self.array.first_tile[index]
            starts = np.array(times.tile_start[first : first + i.nt_n])
            used[which, footprint.accumulator_rows(i)] = (starts[:, None] + np.arange(pixels(i))).ravel()
        return int((used[1] - used[0]).min())

    def _drained(self, filler: int, later: int) -> bool:
        """Whether a DRAIN of the bank is ordered after one array instruction and before another."""
        bank = self.arrays[filler].acc_bank
        drains = self.vectors[self.array.drained_from(filler) : self.array.after_reads[later]]
        return any(i.op == VectorOp.DRAIN and i.acc_bank == bank for i in drains)

    # -- bank conflicts ------------------------------------------------------------------------
    def banks(self, times: Timeline) -> None:
        """No two readers, nor two writers, of one activation bank in the same cycle."""
        depth = self.config.act_depth
        for index, i in enumerate(self.vectors):
            if i.op in (VectorOp.ADD, VectorOp.MUL):
                a = footprint.vector_steps(i, i.a_base, i.a_cb, i.a_oh, i.a_ow) // depth
                b = footprint.vector_steps(i, i.b_base, i.b_cb, i.b_oh, i.b_ow) // depth
                if (a == b).any():
                    self._fail("E1210", Unit.VECTOR, index, "reads both operands from one bank")
            seen = [set((words // depth).tolist()) for words in (footprint.vector_a(i), footprint.vector_b(i))]
            if i.op == VectorOp.DOT and seen[0] & seen[1]:
                self._fail("E1210", Unit.VECTOR, index, "reads a bank for both operands")
        self._require_disjoint(self._readers(times), "reads")
        self._require_disjoint(self._writers(times), "writes")

    def _require_disjoint(self, uses: Sequence[BankUse], does: str) -> None:
        if found := conflict(uses):
            one, other = found
            text = self.program.code[other.unit][other.index].text()
            what = f"{does} a bank that {other.unit}[{other.index}] {does}: {text}"
            self._fail("E1210", one.unit, one.index, what)

    def _readers(self, times: Timeline) -> list[BankUse]:
        """Reads of activation memory: of a store from its issue to its end, of others from the first operand on."""
        found = [
            self._use(unit, index, words, span.issue + START, span.end)
            for unit, reads in (
                *((stream.unit, stream.reads) for stream in self.streams), (Unit.VECTOR, self.vector_reads),
            )
            for index, (words, span) in enumerate(zip(reads, times.spans[unit], strict=True)) if len(words)
        ]  # fmt: skip
        return found + self._moves(times, 1)

    def _writers(self, times: Timeline) -> list[BankUse]:
        """Writes: of loads likewise, of vector instructions from just before their first result until it is there."""
        if not self.program.code.get(Unit.MOVE):
            return []
        spans = zip(self.vector_writes, times.spans[Unit.VECTOR], strict=True)
        return self._moves(times, 0) + [
            self._use(Unit.VECTOR, index, words, span.issue + results_later(), span.done)
            for index, (words, span) in enumerate(spans)
        ]

    def _moves(self, times: Timeline, store: int) -> list[BankUse]:
        """Moves between external and activation memory, in one direction."""
        stride = host_stride(self.config.word)
        return [
            self._use(Unit.MOVE, index, footprint.move_words(i)[0] // stride, span.issue, span.end)
            for index, (i, span) in enumerate(zip(self.moves, times.spans[Unit.MOVE], strict=True))
            if i.space == Space.ACT and i.store == store
        ]

    def _use(self, unit: Unit, index: int, words: Words, first: int, last: int) -> BankUse:
        return BankUse(unit, index, first, last, frozenset(footprint.banks(words, self.config.act_depth).tolist()))

    # -- the tensor table ----------------------------------------------------------------------
    def tensors(self) -> None:
        """Each tensor is written by `ready` (of programs with moves `move_check` proves it), and vector instructions
        leave it alone until `last`; outputs until the end."""
        count = len(self.vectors)
        inputs = {port.tensor for port in self.program.inputs}
        outputs = {port.tensor for port in self.program.outputs}
        first = np.full((self.config.act_words, self.config.lane_groups), NEVER, np.int64)
        for index in reversed(range(count)):
            i = self.vectors[index]
            first[self.vector_writes[index], i.lane_group : i.lane_group + i.groups] = index
        inside = {name: entry for name, entry in self.program.tensors.items() if not entry.external}
        for name in inputs & set(inside):
            first[tensor_words(self.program, name)] = -1
        for name, entry in inside.items():
            where = f"tensor {name!r}"
            words = tensor_words(self.program, name)
            if not 0 <= entry.ready <= entry.last <= count:
                text = f"ready {entry.ready} and last {entry.last} must lie in 0 .. {count}"
                raise InternalError("E1211", text, where=where)
            groups = lane_groups(self.program, name)
            latest = first[words].reshape(len(groups), -1, self.config.lane_groups).max(axis=1)
            if not self.moves and int(latest[groups].max()) >= entry.ready:
                raise InternalError("E1211", f"is not complete after {entry.ready} vector instructions", where=where)
            mine = np.zeros(self.config.act_words, bool)
            mine[words] = True
            for index in range(entry.ready, count if name in outputs else entry.last):
                if mine[self.vector_writes[index]].any():
                    text = self.vectors[index].text()
                    raise InternalError("E1211", f"is overwritten by vector[{index}] {text}", where=where)
