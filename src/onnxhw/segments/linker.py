"""`link`: the segments of a plan as one program that runs by itself, with moves from and to external memory.

Segments run one after the other. While one runs, what the next one needs comes: constants into what is free of their
memories, microcode, and boxes of tensors that no running instruction is in the way of; and results of the one before
leave. Every move waits for what the program itself says is in its way (`hazards`), and every segment for the moves that
it needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.boxes import Box
from ..ir.graph import Graph
from ..isa.instructions import Load, Ordered, Vector
from ..isa.memory import Space, host_stride, word_bytes
from ..isa.timing import load_steps, timeline
from ..isa.units import Unit
from ..program.layout import Place, to_host
from ..program.model import DeviceProgram, Entry, ExternalPiece, TensorPart
from ..program.storage import PackedInput
from ..sched import Occupied, entries, footprint, unnamed
from .constants import ConstantRing
from .hazards import ActivationUse, SegmentUse
from .linked_code import Counts, LinkedCode, LinkedInstruction, LinkedMove
from .linked_layers import LinkedLayers
from .part_schedule import PartSchedules, ScheduledPart
from .plan import OperationPart, Plan, Region, Segment
from .regions import ExternalMap, Strided, box_moves, linear, words_of

CHUNK = 2048
"""Host words of weights that one move brings at most: a segment begins when its first weights are there."""


@dataclass
class PendingStore:
    """Results of a segment that are still to be stored."""

    region: Region
    place: Place


def link(graph: Graph, plan: Plan, config: HwConfig) -> DeviceProgram:
    """The program of a plan.

    `DoesNotFitError` E5190: external memory is too small; and as of the scheduler, for a segment alone.
    """
    return _Linker(graph, plan, config).program()


def part_name(part: OperationPart, segment: int) -> str:
    """The name under which the tensor table has what a part of an operation makes in a segment."""
    return f"{part.tensor}@{segment}"


class _Linker:
    def __init__(self, graph: Graph, plan: Plan, config: HwConfig) -> None:
        assert config.external is not None
        self.host_words = config.external.host_words
        self.graph, self.plan, self.config = graph, plan, config
        self.external = ExternalMap(config)
        self.inputs = {port.tensor for port in graph.inputs}
        self.pieces: dict[str, list[ExternalPiece]] = {}
        self.wholes: dict[str, Place] = {}
        self.code = LinkedCode(config, self.external)
        self.use = ActivationUse(config)
        self.schedules = PartSchedules(config)
        self.memories = {
            Space.WEIGHT: ConstantRing(config.weight_depth),
            Space.PARAM: ConstantRing(config.param_depth),
            Space.TABLE: ConstantRing(config.tables),
        }
        self.chip: dict[Region, Place] = {}
        """What is in activation memory when the next segment begins, and where."""
        self.pending: list[PendingStore] = []
        self.entries: dict[str, Entry] = {}
        self.layers = LinkedLayers(graph)
        self.ends: list[Counts] = []
        self.last_moves: list[int] = []

    def program(self) -> DeviceProgram:
        """Link all segments."""
        for n, segment in enumerate(self.plan.segments):
            self._segment(n, segment)
        for stored in self.pending:
            self._store(stored)
        code = self.code.finish()
        if self.external.words > self.host_words:
            what = f"{4 * self.external.words} bytes of external memory are needed, {self.config.name} has fewer"
            raise DoesNotFitError("E5190", what, hint="a smaller model, or a board with more external memory")
        self._ports()
        word, lanes = self.config.weight_word, self.config.lanes
        layers = self.layers.layers()
        return DeviceProgram(
            self.config, self.graph.name, code, np.zeros((0, word), np.uint8), np.zeros((0, lanes), np.uint64),
            np.zeros((0, 256), np.int8), self.entries, list(self.graph.inputs),
            [unnamed(port) for port in self.graph.outputs], layers, timeline(self.config, code).cycles,
            sum(layer.macs for layer in layers), nominal=self.graph.macs(), external=self.external.image(),
            segments=len(self.plan.segments),
        )  # fmt: skip

    # -- one segment ---------------------------------------------------------------------------

    def _segment(self, n: int, segment: Segment) -> None:
        code, recent = self.code, len(self.code.moves)
        if n >= 3:
            code.least = self.ends[n - 3]
        part = self._scheduled(n, segment)
        # First of all: the last instructions of the segment before wait for it, and it waits for few of them.
        code.open_microcode()
        instructions = self._constants(part)
        needed: list[LinkedMove] = []
        use = SegmentUse(instructions, self.config)
        for unit, mine in instructions.items():
            if mine and unit is not Unit.MOVE:
                code.microcode(unit, len(mine))
        loads = [(region, port.tensor) for port, region in zip(segment.graph.inputs, segment.inputs, strict=True)
                 if region not in self.chip]  # fmt: skip
        late = [each for each in loads if self._is_late(each, part)]
        for each in loads:
            if each not in late:
                needed.append(self._load(each, part))
        stores = [(stored, self._store(stored)) for stored in self.pending if self._is_read(stored, n)]
        for each in late:
            needed.append(self._load(each, part))
        # A segment waits for stores that it would disturb, and for all that was under way two segments ago.
        needed += [move for stored, move in stores if self._disturbed(stored, use)]
        before = code.counts
        added = code.segment(instructions)
        old = code.moves[self.last_moves[n - 1] - 1] if n and self.last_moves[n - 1] else None
        last = max(needed, key=lambda move: move.number, default=None)
        for items in added.values():
            if items:
                items[0].after(old)
                items[0].after(last)
        self._arrivals(added)
        self.use.add(use, before)
        self._remember(n, segment, part, before)
        self.last_moves.append(recent)

    def _scheduled(self, n: int, segment: Segment) -> ScheduledPart:
        """Its schedule: with inputs where they are, with those that the next segment reads kept, and if there is room,
        beside the results that are still to be stored."""
        ports = dict(zip(segment.inputs, (port.tensor for port in segment.graph.inputs), strict=True))
        after = self.plan.segments[n + 1].inputs if n + 1 < len(self.plan.segments) else ()
        packed = frozenset(name for region, name in ports.items() if region.tensor in self.inputs)
        there = {region: self.chip[region].base for region in ports if region in self.chip}
        kept = frozenset(name for region, name in ports.items() if region in after and name not in packed)
        stays = [stored for stored in self.pending if stored.region not in ports]
        reserved = tuple((s.place.base, s.place.blocks(self.config.word) * s.place.plane) for s in stays)
        error: DoesNotFitError | UnsupportedError | None = None
        for fixed, keep, free in (
            (there, kept, reserved), (there, kept, ()), (there, frozenset[str](), ()), ({}, frozenset[str](), ()),
        ):  # fmt: skip
            try:
                occupied = Occupied({ports[region]: base for region, base in fixed.items()}, keep, free)
                found = self.schedules(segment.graph, occupied, packed)
            except (DoesNotFitError, UnsupportedError) as refused:
                error = refused
                continue
            if all(found.places[ports[region]] == self.chip[region] for region in fixed):
                self.chip = {region: self.chip[region] for region in fixed}
                return found
        raise error or DoesNotFitError("E5101", "a segment's inputs have no place")

    def _constants(self, part: ScheduledPart) -> dict[Unit, list[Ordered]]:
        """Bring weights, parameters and tables; the code with their addresses."""
        images = part.lowered.images
        size = word_bytes(self.config, Space.PARAM)
        weights = to_host(images.weight_image, self.config.weight_word)
        params = to_host(images.param_image.astype("<u8").view(np.uint8), size)
        tables = images.table_image.reshape(-1).view(np.uint8).astype(np.uint32)
        at = {
            Space.WEIGHT: self._bring(Space.WEIGHT, weights, host_stride(self.config.weight_word)),
            Space.PARAM: self._bring(Space.PARAM, params, host_stride(size)),
            Space.TABLE: self._bring(Space.TABLE, tables, 256),
        }
        return {unit: [self._moved(each, at) for each in mine] for unit, mine in part.candidate.code.items()}

    def _moved(self, instruction: Ordered, at: Mapping[Space, int]) -> Ordered:
        if isinstance(instruction, Load):
            return instruction.but(base=instruction.base + at[Space.WEIGHT])
        if isinstance(instruction, Vector):
            table = instruction.table_index + at[Space.TABLE] if instruction.use_table else 0
            return instruction.but(param_base=instruction.param_base + at[Space.PARAM], table_index=table)
        return instruction

    def _bring(self, space: Space, words: npt.NDArray[np.uint32], stride: int) -> int:
        """The first word of constants in a memory of the core, which come unless they are there."""
        memory, count = self.memories[space], len(words) // stride
        key = words.tobytes()
        if not count:
            return 0
        if (known := memory.find(key)) is not None:
            return known
        base = memory.take(key, count)
        external = self.external.constants(words)
        user = Unit.LOAD if space == Space.WEIGHT else Unit.VECTOR
        step = max(1, CHUNK // stride)
        for first in range(0, count, step):
            mine = slice(base + first, base + min(first + step, count))
            moved = linear((base + first) * stride, external + first * stride, (mine.stop - mine.start) * stride)
            for strided in moved:
                move = self.code.move(strided.fields(space, False), {user: int(memory.used[mine].max())})
            memory.arrived[mine] = move.number
        return base

    def _arrivals(self, added: Mapping[Unit, Sequence[LinkedInstruction]]) -> None:
        """Instructions wait for the constants that they read, and these for them."""
        weights, params, tables = (self.memories[space] for space in (Space.WEIGHT, Space.PARAM, Space.TABLE))
        moves = self.code.moves
        total = self.code.counts
        for number, item in enumerate(added[Unit.LOAD], total[Unit.LOAD] - len(added[Unit.LOAD]) + 1):
            load = item.instruction
            assert isinstance(load, Load)
            starts = footprint.tile_words(load, self.config)
            words = (starts[:, None] + np.arange(load_steps(load, self.config))).ravel()
            item.after(moves[int(weights.arrived[words].max()) - 1])
            weights.used[words] = number
        for number, item in enumerate(added[Unit.VECTOR], total[Unit.VECTOR] - len(added[Unit.VECTOR]) + 1):
            vector = item.instruction
            assert isinstance(vector, Vector)
            rows = slice(vector.param_base, footprint.last_param(vector) + 1)
            item.after(moves[int(params.arrived[rows].max()) - 1])
            params.used[rows] = number
            if vector.use_table:
                item.after(moves[int(tables.arrived[vector.table_index]) - 1])
                tables.used[vector.table_index] = number

    # -- tensors -------------------------------------------------------------------------------

    def _is_late(self, load: tuple[Region, str], part: ScheduledPart) -> bool:
        """Whether a load needs what is still to be stored, or its place."""
        region, name = load
        words = words_of(part.places[name], self.config)
        return any(
            (stored.region.tensor == region.tensor and stored.region.box.meets(region.box))
            or bool(np.isin(words, words_of(stored.place, self.config)).any())
            for stored in self.pending
        )

    def _load(self, load: tuple[Region, str], part: ScheduledPart) -> LinkedMove:
        region, name = load
        place, storage = part.places[name], part.storage.get(name)
        if storage is None:
            pieces: Sequence[Strided] = box_moves(place, region.box, self._whole(region.tensor), self.config)
        else:
            piece = self._packed(region, place, storage)
            stride = host_stride(self.config.word)
            count = place.blocks(self.config.word) * place.plane
            pieces = list(linear(place.base * stride, piece.place.base * stride, count * stride))
        waits = self.use.before_load(words_of(place, self.config))
        return [self.code.move(each.fields(Space.ACT, False), waits) for each in pieces][-1]

    def _packed(self, region: Region, place: Place, storage: PackedInput) -> ExternalPiece:
        """The piece of an input that lies in external memory as activation memory is to have it."""
        mine = self.pieces.setdefault(region.tensor, [])
        for piece in mine:
            if (piece.box, piece.storage) == (region.box, storage):
                return piece
        made = ExternalPiece(region.box, self.external.tensor(place.shape), storage)
        mine.append(made)
        return made

    def _whole(self, tensor: str) -> Place:
        """Where a tensor lies as it is."""
        if tensor not in self.wholes:
            self.wholes[tensor] = self.external.tensor(self.graph.tensors[tensor].shape)
        return self.wholes[tensor]

    def _store(self, stored: PendingStore) -> LinkedMove:
        waits = self.use.before_store(words_of(stored.place, self.config))
        whole = self._whole(stored.region.tensor)
        pieces = box_moves(stored.place, stored.region.box, whole, self.config)
        return [self.code.move(each.fields(Space.ACT, True), waits) for each in pieces][-1]

    def _is_read(self, stored: PendingStore, n: int) -> bool:
        """Whether a result is an output, or somebody reads it who does not find it on chip."""
        tensor, box = stored.region.tensor, stored.region.box
        if any(port.tensor == tensor for port in self.graph.outputs):
            return True
        later = self.plan.segments[n + 1 :] if stored.region in self.chip else self.plan.segments[n:]
        return any(mine.tensor == tensor and mine.box.meets(box) for each in later for mine in each.inputs)

    def _disturbed(self, stored: PendingStore, use: SegmentUse) -> bool:
        """Whether a segment reads a bank from which a store reads, or writes over what it stores."""
        words = words_of(stored.place, self.config)
        banks = np.unique(words // self.config.act_depth)
        reads = any(bool(mine[banks].any()) for mine in use.read_banks.values())
        return reads or bool(use.written[words].any())

    def _remember(self, n: int, segment: Segment, part: ScheduledPart, before: Counts) -> None:
        """What the segment leaves on chip, its tensors, and what is to be stored."""
        written = SegmentUse(part.candidate.code, self.config).written
        ports = zip(segment.graph.inputs, segment.inputs, strict=True)
        intact = {
            region: part.places[port.tensor]
            for port, region in ports
            if port.tensor not in part.storage and not written[words_of(part.places[port.tensor], self.config)].any()
        }
        made = {
            region: part.places[port.tensor]
            for port, region in zip(segment.graph.outputs, segment.outputs, strict=True)
        }
        self.chip = {**intact, **made}
        self.pending = [PendingStore(region, place) for region, place in made.items()]
        self.ends.append(self.code.counts)
        results = {op.name: op.output for op in segment.graph.ops}
        parts = {results[each.op]: each for each in segment.parts}
        vectors = before[Unit.VECTOR]
        for tensor, found in entries(part.lowered, part.candidate).items():
            if not found.op:
                continue
            mine = parts.get(tensor)
            if mine:
                name, whole = part_name(mine, n), TensorPart(mine.tensor, mine.box)
            else:  # rows that only this segment takes of a tensor: the model has no name for them
                name, whole = f"{found.op}@{n}", None
            self.entries[name] = replace(
                found, name=name, ready=found.ready + vectors, last=found.last + vectors,
                op=mine.op if mine else found.op, part=whole,
            )  # fmt: skip
        self.layers.add(part.lowered, part.candidate, {each.op for each in segment.parts}, before)

    def _ports(self) -> None:
        """The inputs and outputs, which lie in external memory."""
        for name in dict.fromkeys(port.tensor for port in (*self.graph.inputs, *self.graph.outputs)):
            tensor = self.graph.tensors[name]
            pieces = self.pieces.get(name, [])
            if name in self.wholes:
                pieces = [ExternalPiece(Box.whole(tensor.shape), self.wholes[name], None), *pieces]
            shape = (1, *tensor.shape[1:])
            place = Place(0, tensor.height * tensor.width, tensor.width, shape)
            self.entries[name] = Entry(name, place, tensor.scale, tensor.zero_point, external=tuple(pieces))
