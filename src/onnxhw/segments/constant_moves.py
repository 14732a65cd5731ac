"""`ConstantMoves`: parameters, tables and weights of segments on their way into the core's memories."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..isa.instructions import Load, Ordered, Vector
from ..isa.memory import Space, host_stride
from ..isa.timing import load_steps, tiles
from ..isa.units import Unit
from ..sched import footprint
from .constants import ConstantRing
from .linked_code import LinkedInstruction
from .move_order import MoveJob, RunTimes, move_job
from .placed_segment import PlacedSegment
from .regions import ExternalMap, linear
from .residents import Constants, Residents, constants_of, depth
from .weight_loads import cut_loads, may_wrap
from .weight_stream import WeightPiece, weight_pieces

CHUNK = 1024
"""Host words of constants that one move brings at most: a load waits for no more, and moves that are needed sooner go
between. A move for itself costs some 20 cycles of 2,100."""
Words = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BroughtCode:
    """The `code` of a segment with the addresses of its constants; `spans`: the issue and the end of each of its loads
    in the segment's own time; `cuts`: which of the schedule's loads each is a part of. `jobs`: what brings the weights
    of each load alone, if they come in pieces."""

    code: dict[Unit, list[Ordered]]
    spans: list[tuple[int, int]]
    cuts: list[int]
    jobs: list[MoveJob]

    @property
    def first_loads(self) -> list[int]:
        """The loads with which a phase begins (`phases`): each one that waits for a piece of its own, or the first."""
        return list(range(len(self.jobs))) or [0]


class ConstantMoves:
    """The memories of constants, and `jobs`, which bring what does not stay in them, of each memory in order, so that
    parameters which have to wait hold up no weights. Without `ring` those of every segment begin at the same word, and
    all come."""

    def __init__(self, config: HwConfig, external: ExternalMap, resident: Residents, ring: bool = True) -> None:
        self.config, self.external, self.ring = config, external, ring
        self.memories = {
            space: ConstantRing(depth(space, config), mine.at, mine.words) for space, mine in resident.items()
        }
        self.jobs: dict[Space, list[MoveJob]] = {space: [] for space in resident}

    def bring(self, placed: PlacedSegment, before: int) -> BroughtCode:
        """The code of a segment behind so many loads, whose constants that do not stay come."""
        if not self.ring:
            for memory in self.memories.values():
                memory.empty()
        code, times = placed.part.candidate.code, placed.part.candidate.times
        loads = [each for each in code[Unit.LOAD] if isinstance(each, Load)]
        wraps, constants = may_wrap(loads, self.config), constants_of(placed.part, self.config)
        jobs: list[MoveJob] = []
        cut: list[list[Load]] = [[] for _ in loads]
        if placed.part.streams:
            pieces = weight_pieces(loads, self.config)
            assert pieces is not None
            for piece, load, job in self._stream(pieces, constants.pop(Space.WEIGHT), before):
                cut[piece.number].append(load)
                jobs.append(job)
        at = {
            space: self._bring(space, mine, wraps and space == Space.WEIGHT) for space, mine in constants.items()
        }
        if not placed.part.streams:
            cut = cut_loads(loads, at[Space.WEIGHT], self.config)
        counts = np.cumsum([0, *map(len, cut)])
        new = [each for mine in cut for each in mine]
        made: dict[Unit, list[Ordered]] = {Unit.LOAD: [*new]}
        for unit in (Unit.ARRAY, Unit.DEPTHWISE, Unit.VECTOR):
            mine = [each.but(after_load=int(counts[each.after_load])) for each in code[unit]]
            made[unit] = [_moved(each, at) for each in mine]
        spans, tile = [], 0
        for load in new:
            last = tile + tiles(load)
            spans.append((times.load_start[tile] - 1, times.load_start[last - 1] + load_steps(load, self.config)))
            tile = last
        return BroughtCode(made, spans, [number for number, mine in enumerate(cut) for _ in mine], jobs)

    def _stream(
        self, pieces: Sequence[WeightPiece], weights: Sequence[Constants], before: int
    ) -> Iterator[tuple[WeightPiece, Load, MoveJob]]:
        """Of each piece the load, and the job that brings its words; `before`: loads of the segments before."""
        memory, stride = self.memories[Space.WEIGHT], host_stride(self.config.weight_word)
        none = np.zeros(0, np.int64)
        source = np.concatenate([
            none, *(self.external.constants(each.host) + stride * np.arange(each.words) for each in weights)
        ])  # fmt: skip
        for count, piece in enumerate(pieces, before + 1):
            mine, external = memory.stream(len(piece.words)), source[piece.words]
            edges = [0, *(np.flatnonzero(np.diff(external) != stride) + 1).tolist(), len(mine)]
            waits = {Unit.LOAD: int(memory.used[mine].max())}
            moved = [
                one.fields(Space.WEIGHT, False) for low, high in pairwise(edges)
                for one in linear(int(mine[low]) * stride, int(external[low]), (high - low) * stride)
            ]  # fmt: skip
            self.jobs[Space.WEIGHT].append(move_job(moved, waits, self.config))
            memory.used[mine], memory.arrived[mine] = count, len(self.jobs[Space.WEIGHT])
            yield piece, piece.load.but(base=int(mine[0])), self.jobs[Space.WEIGHT][-1]

    def _bring(self, space: Space, pieces: Sequence[Constants], wraps: bool) -> Words:
        """Where each word of a segment's constants lies in a memory of the core; they come unless they are there."""
        memory = self.memories[space]
        user = Unit.LOAD if space == Space.WEIGHT else Unit.VECTOR
        found = memory.place([(each.key, each.words) for each in pieces], wraps)
        for each in {each.key: each for each in pieces}.values():
            words, missing = found[each.key]
            if not missing:
                continue
            external, stride = self.external.constants(each.host), len(each.host) // each.words
            breaks = np.flatnonzero(np.diff(words) != 1) + 1
            edges = sorted({*range(0, each.words, max(1, CHUNK // stride)), *breaks.tolist(), each.words})
            for low, high in pairwise(edges):
                mine = words[low:high]
                moved = linear(int(mine[0]) * stride, external + low * stride, len(mine) * stride)
                waits = {user: int(memory.used[mine].max())}
                self.jobs[space].append(move_job([one.fields(space, False) for one in moved], waits, self.config))
                memory.arrived[mine] = len(self.jobs[space])
        return np.concatenate([np.zeros(0, np.int64), *(found[each.key][0] for each in pieces)])

    def wait(
        self, runs: Sequence[RunTimes], placed: PlacedSegment, added: Mapping[Unit, Sequence[LinkedInstruction]],
        brought: BroughtCode,
    ) -> None:  # fmt: skip
        """The last instructions of the code wait for the constants that they read, and these for them; `runs`: the
        segment's phases."""
        weights, params, tables = (self.memories[space] for space in (Space.WEIGHT, Space.PARAM, Space.TABLE))
        known = dict.fromkeys(self.jobs, 0)
        run, loads = runs[0], brought.spans
        if brought.jobs:  # a piece, a load and a phase each
            for phase, item, job in zip(runs, added[Unit.LOAD], brought.jobs, strict=True):
                phase.wait(item, job, 0)
        first = runs[-1].ends[Unit.LOAD] - len(added[Unit.LOAD])
        for index, item in enumerate(added[Unit.LOAD] if not brought.jobs else ()):
            load = item.instruction
            assert isinstance(load, Load)
            starts = footprint.tile_words(load, self.config)
            words = (starts[:, None] + np.arange(load_steps(load, self.config))).ravel()
            self._wait(run, item, Space.WEIGHT, int(weights.arrived[words].max()), known, loads[index][0])
            weights.used[words] = first + index + 1
        first = runs[-1].ends[Unit.VECTOR] - len(added[Unit.VECTOR])
        spans = placed.part.candidate.times.spans[Unit.VECTOR]
        for index, item in enumerate(added[Unit.VECTOR]):
            vector = item.instruction
            assert isinstance(vector, Vector)
            rows = slice(vector.param_base, footprint.last_param(vector) + 1)
            self._wait(run, item, Space.PARAM, int(params.arrived[rows].max()), known, spans[index].issue)
            params.used[rows] = first + index + 1
            if vector.use_table:
                last = int(tables.arrived[vector.table_index])
                self._wait(run, item, Space.TABLE, last, known, spans[index].issue)
                tables.used[vector.table_index] = first + index + 1

    def _wait(
        self, run: RunTimes, item: LinkedInstruction, space: Space, last: int, known: dict[Space, int], issue: int
    ) -> None:  # fmt: skip
        """Wait for the first `last` jobs of a memory, unless that is `known` of an instruction before."""
        if last > known[space]:
            run.wait(item, self.jobs[space][last - 1], issue)
            known[space] = last


def _moved(instruction: Ordered, at: Mapping[Space, Words]) -> Ordered:
    """An instruction of a segment with the addresses of its parameters and its table: `at` tells where the words of the
    segment's images lie."""
    if not isinstance(instruction, Vector):
        return instruction
    table = int(at[Space.TABLE][instruction.table_index]) if instruction.use_table else 0
    return instruction.but(param_base=int(at[Space.PARAM][instruction.param_base]), table_index=table)
