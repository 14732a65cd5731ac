"""`TensorMoves`: boxes of tensors on their way between external memory and activation memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..ir.boxes import Box
from ..ir.graph import Graph
from ..ir.states import State
from ..isa.memory import Space, host_stride
from ..isa.units import Unit
from ..program.layout import Place
from ..program.model import Entry, ExternalPiece
from ..program.storage import PackedInput
from .hazards import USERS, ActivationUse, MovedWords
from .linked_code import Counts, LinkedInstruction
from .move_order import MoveJob, RunTimes, move_job
from .packed_boxes import PackedRegion, PackedSource, packed_moves
from .placed_segment import PlacedSegment
from .plan import Region
from .regions import ExternalMap, Strided, box_moves, linear, stripes, words_of
from .tensor_rooms import TensorRooms

OLDEST = 3
"""Segments that a store may be behind: later ones wait for it, whether it is in their way or not, so that nobody has to
look at it any more."""
PACKED = 256
"""Words of a packed input that one move brings, 1,024 host words on the presets for the ULX3S-85F."""
NONE_PACKED: Mapping[PackedRegion, PackedSource] = {}


class TensorMoves:
    """`loads` and `stores`, each in order, and what of activation memory is in whose way. The new value of states
    `in_place` is stored where the old one lies, behind all loads of that. `packed`: of which source boxes of inputs
    are taken that segments find packed."""

    def __init__(
        self, graph: Graph, config: HwConfig, external: ExternalMap, rooms: TensorRooms, in_place: Sequence[State] = (),
        packed: Mapping[PackedRegion, PackedSource] = NONE_PACKED,
    ) -> None:  # fmt: skip
        self.graph, self.config, self.external, self.rooms, self.packed = graph, config, external, rooms, packed
        self.old = {state.made: state.read for state in in_place}
        self.room = external.reserve(rooms.words * host_stride(config.word)) // host_stride(config.word)
        self._last_loads: dict[str, int] = {}
        """Of each tensor how many loads there are up to its last one."""
        self.loads: list[MoveJob] = []
        self.stores: list[MoveJob] = []
        self.use = ActivationUse(config)
        self._open: list[tuple[int, MoveJob, MovedWords]] = []
        """Jobs, and their segments, that no instruction is known to have waited for."""
        self._loading = np.zeros(config.act_words, np.int64)
        """By word, how many loads must have ended before it is stored: of a Concat, loads may be all that writes it."""
        self._storing = np.zeros(config.act_words, np.int64)
        """By word, how many stores must have ended before it is written from outside."""
        self._stored: dict[str, list[tuple[Box, int]]] = {}
        """Of each tensor the boxes that were stored, and with how many stores each has ended."""
        self._sources: dict[PackedSource, ExternalPiece] = {}
        self._pieces: dict[str, list[ExternalPiece]] = {}
        self._wholes: dict[str, Place] = {}

    def load(self, n: int, region: Region, place: Place, storage: PackedInput | None) -> None:
        """Load an input of the segment `n`, in front of its code."""
        if storage is None:
            self._last_loads[region.tensor] = len(self.loads) + len(list(stripes(region.box, place, self.config)))
            for box, part in stripes(region.box, place, self.config):
                pieces = box_moves(part, box, self._whole(region.tensor), self.config)
                made = [number for other, number in self._stored.get(region.tensor, ()) if other.meets(box)]
                self._load(n, words_of(part, self.config), pieces, max(made, default=0))
            return
        source, stride = self.packed[region, storage], host_stride(self.config.word)
        bases = place.base * stride, self._source(source).place.base * stride
        count = place.blocks(self.config.word) * place.plane
        for first in range(0, count, PACKED):
            words = range(first, min(first + PACKED, count))
            moves = [
                replace(each, chip=bases[0] + each.chip, external=bases[1] + each.external)
                for each in packed_moves(region, storage, source, words, self.config)
            ]
            self._load(n, place.base + np.array(words), moves, 0)

    def _load(self, n: int, words: npt.NDArray[np.int64], pieces: Sequence[Strided], made: int) -> None:
        """Load these words for the segment `n`, behind so many stores."""
        fields = [each.fields(Space.ACT, False) for each in pieces]
        job = move_job(fields, self.use.before_load(words), self.config)
        job.behind, job.needed = max(made, int(self._storing[words].max())), n
        self.loads.append(job)
        self._loading[words] = len(self.loads)
        for store in self.stores[: job.behind]:
            store.needed = min(store.needed, n)
        self._open.append((n, job, MovedWords(words, True, self.config)))

    def store(self, n: int, region: Region, place: Place) -> None:
        """Store a result of the segment `n`, behind its code."""
        others = [self._last_loads[name] for name in self.rooms.before.get(region.tensor, ())]
        others.append(self._last_loads.get(self.old.get(region.tensor, ""), 0))
        for box, part in stripes(region.box, place, self.config):
            words = words_of(part, self.config)
            pieces = box_moves(part, box, self._whole(region.tensor), self.config)
            self._store(n, words, pieces, max(others))
            self._stored.setdefault(region.tensor, []).append((box, len(self.stores)))

    def _store(self, n: int, words: npt.NDArray[np.int64], pieces: Sequence[Strided], loads: int = 0) -> None:
        """Store these words behind the segment `n`, and behind so many loads."""
        fields = [each.fields(Space.ACT, True) for each in pieces]
        job = move_job(fields, self.use.before_store(words), self.config)
        job.behind_loads = max(int(self._loading[words].max()), loads)
        self.stores.append(job)
        self._storing[words] = len(self.stores)
        self._open.append((n, job, MovedWords(words, False, self.config)))

    def copy(self, n: int, state: State) -> None:
        """Behind the segment `n`, the last one, bring the new value of a state to where the old one lies: through
        activation memory, in which nothing is needed any more."""
        source, target, stride = self._whole(state.made), self._whole(state.read), host_stride(self.config.word)
        count, each = source.blocks(self.config.word) * source.plane, min(PACKED, self.config.act_words)
        stored = max((number for _, number in self._stored.get(state.made, ())), default=0)
        for first in range(0, count, each):
            words = np.arange(min(each, count - first))
            self._load(n, words, list(linear(0, (source.base + first) * stride, len(words) * stride)), stored)
            # It is stored behind its own load, and that one stands behind all others.
            self._store(n, words, list(linear(0, (target.base + first) * stride, len(words) * stride)))

    def wait(
        self, run: RunTimes, placed: PlacedSegment, added: Mapping[Unit, Sequence[LinkedInstruction]], before: Counts
    ) -> None:
        """The last instructions of the code, behind so many, wait for loads of what they read, and for moves that they
        would disturb; later moves wait for them."""
        spans, left = placed.part.candidate.times.spans, []
        for each in self._open:
            n, job, moved = each
            old, waited = not moved.loads and n < run.number - OLDEST, False
            for unit in USERS:
                for index, item in enumerate(added[unit]):
                    if old or moved.before(placed.use.footprints[unit][index]):
                        run.wait(item, job, spans[unit][index].issue)
                        waited = True
                        break
            # Later segments wait for this one, and with it for the job.
            left += [] if waited else [each]
        self._open = left
        self.use.add(placed.use, before)

    def ports(self) -> dict[str, Entry]:
        """The inputs and outputs, which lie in external memory."""
        found = {}
        for name in dict.fromkeys(port.tensor for port in (*self.graph.inputs, *self.graph.outputs)):
            tensor = self.graph.tensors[name]
            pieces = self._pieces.get(name, [])
            if name in self._wholes:
                pieces = [ExternalPiece(Box.whole(tensor.shape), self._wholes[name], None), *pieces]
            place = Place(0, tensor.height * tensor.width, tensor.width, (1, *tensor.shape[1:]))
            found[name] = Entry(name, place, tensor.scale, tensor.zero_point, external=tuple(pieces))
        return found

    def _source(self, source: PackedSource) -> ExternalPiece:
        """The piece of an input that lies packed in external memory."""
        if source not in self._sources:
            place = self.external.tensor(source.storage.stored_shape(source.box.shape))
            made = self._sources[source] = ExternalPiece(source.box, place, source.storage)
            self._pieces.setdefault(source.tensor, []).append(made)
        return self._sources[source]

    def _whole(self, tensor: str) -> Place:
        """Where a tensor lies as it is."""
        if tensor in self.old:
            return self._wholes.setdefault(tensor, self._whole(self.old[tensor]))
        if tensor not in self._wholes:
            shape, first = self.graph.tensors[tensor].shape, self.rooms.first.get(tensor)
            self._wholes[tensor] = (
                self.external.tensor(shape) if first is None else self.external.placed(shape, self.room + first)
            )
        return self._wholes[tensor]
