"""`link`: the segments of a plan as one program that runs by itself, with moves from and to external memory.

Segments run one after the other. Beside them constants come into what is free of their memories, microcode, and boxes
of tensors that no running instruction is in the way of; and results leave. Every move waits for what the program itself
says is in its way (`hazards`), every instruction for the moves that it needs, and `move_order` says which move is next.
"""

from collections.abc import Sequence
from dataclasses import replace

from ..config import HwConfig
from ..errors import DoesNotFitError
from ..ir.graph import Graph
from ..ir.states import State, interface
from ..isa.timeline import timeline
from ..isa.units import Unit
from ..program.model import DeviceProgram, Entry, TensorPart
from ..sched import input_free, unnamed
from .constant_moves import ConstantMoves
from .linked_code import Counts, LinkedCode
from .linked_layers import LinkedLayers
from .move_order import MoveJob, RunTimes, ordered
from .packed_boxes import sources_of
from .part_entries import part_entries
from .part_schedule import PartSchedules
from .phases import LastIssue, phases, spans_of
from .placed_segment import PlacedSegment
from .placing import place_segments
from .plan import OperationPart, Plan
from .regions import ExternalMap
from .residents import Residents, choices, images, no_residents
from .state_places import states_in_place
from .techniques import ALL, Techniques
from .tensor_moves import TensorMoves
from .tensor_rooms import TensorRooms, tensor_rooms

MICROCODE = 60.0
"""Cycles of a move of microcode, about: few words."""


def link(
    graph: Graph, plan: Plan, config: HwConfig, schedules: PartSchedules | None = None, techniques: Techniques = ALL,
    states: Sequence[State] = (),
) -> DeviceProgram:
    """The program of a plan: of those with other constants that stay on chip the one that takes the fewest cycles;
    `schedules`: with what is known of the segments' kinds (`PartCycles.schedules`); `techniques`: what may be left out;
    `states` stay in external memory from run to run, and are no inputs and outputs of the program.

    `DoesNotFitError` E5190: external memory is too small, or a unit has more instructions than its counter counts; and
    as of the scheduler, for a segment alone.
    """
    placed = place_segments(graph, plan, config, schedules, states)
    rooms = tensor_rooms(graph, plan, placed, config)
    resident = choices(placed, config) if techniques.residents else [no_residents()]
    programs = (_Linker(graph, plan, config, placed, each, rooms, techniques, states).program() for each in resident)
    program = min(programs, key=lambda program: program.cycles)
    program.input_free = input_free(program, timeline(config, program.code))
    return program


def part_name(part: OperationPart, segment: int) -> str:
    """The name under which the tensor table has what a part of an operation makes in a segment."""
    return f"{part.tensor}@{segment}"


class _Linker:
    def __init__(
        self, graph: Graph, plan: Plan, config: HwConfig, placed: Sequence[PlacedSegment], resident: Residents,
        rooms: TensorRooms, techniques: Techniques, states: Sequence[State],
    ) -> None:  # fmt: skip
        self.graph, self.plan, self.config, self.placed, self.resident = graph, plan, config, placed, resident
        self.external = ExternalMap(config)
        self.code = LinkedCode(config, self.external)
        self.constants = ConstantMoves(config, self.external, resident, techniques.ring)
        self.prefetch = techniques.prefetch
        self.states, in_place = states, states_in_place(states, placed)
        self.copied = [state for state in states if state not in in_place]
        loads = ((region, each.part.storage.get(name)) for each in placed for region, name in each.loads)
        packed = sources_of(((region, storage) for region, storage in loads if storage is not None), config)
        self.tensors = TensorMoves(graph, config, self.external, rooms, in_place, packed)
        self.runs: list[RunTimes] = []
        self.holders: dict[Unit, LastIssue] = {}
        """Where each unit's last instruction so far issues."""
        self.microcode: dict[Unit, list[MoveJob]] = {unit: [] for unit in self.code.units}
        self.entries: dict[str, Entry] = {}
        self.layers = LinkedLayers(graph)

    def program(self) -> DeviceProgram:
        """Link all segments."""
        for n, placed in enumerate(self.placed):
            self._segment(n, placed)
        outputs = {port.tensor for port in self.graph.outputs}
        for region, place in self.placed[-1].results.items():
            if region.tensor in outputs:
                self.tensors.store(len(self.placed) - 1, region, place)
        for state in self.copied:
            self.tensors.copy(len(self.placed) - 1, state)
        self.code.require_countable()
        self._order()
        code = self.code.finish()
        assert self.config.external is not None
        if self.external.words > self.config.external.host_words:
            what = f"{4 * self.external.words} bytes of external memory are needed, {self.config.name} has fewer"
            raise DoesNotFitError("E5190", what, hint="a smaller model, or a board with more external memory")
        weights, params, tables = images(self.resident, self.config)
        layers, ports = self.layers.layers(), interface(self.graph, self.states)
        return DeviceProgram(
            self.config, self.graph.name, code, weights, params, tables, self.entries | self.tensors.ports(),
            ports.inputs, [unnamed(port) for port in ports.outputs], layers,
            timeline(self.config, code).cycles, sum(layer.macs for layer in layers), nominal=self.graph.macs(),
            external=self.external.image(), segments=len(self.placed), states=tuple(self.states),
        )  # fmt: skip

    def _segment(self, n: int, placed: PlacedSegment) -> None:
        before, queues = self.code.counts, (*self.constants.jobs.values(), self.tensors.loads)
        there = [len(queue) for queue in queues]
        brought = self.constants.bring(placed, before[Unit.LOAD])
        for region, place in placed.stored:
            self.tensors.store(n - 1, region, place)
        for region, name in placed.loads:
            self.tensors.load(n, region, placed.part.places[name], placed.part.storage.get(name))
        if not self.prefetch:
            for job in (job for queue, count in zip(queues, there, strict=True) for job in queue[count:]):
                job.wait(before)
        added = self.code.segment(brought.code)
        times = placed.part.candidate.times
        spans = spans_of(times, brought.spans)
        runs, last = phases(n, brought.code, spans, times.cycles, brought.first_loads, before)
        self.constants.wait(runs, placed, added, brought)
        self.tensors.wait(runs[0], placed, added, before)
        self.runs += runs
        for unit, mine in added.items():
            if mine:
                self._microcode(unit, len(mine))
        self.holders |= last
        self._entries(n, placed, before)
        names = {each.op for each in placed.segment.parts}
        self.layers.add(placed.part.lowered, placed.part.candidate, names, brought.cuts, before)

    def _microcode(self, unit: Unit, count: int) -> None:
        """Bring the microcode of a unit's last instructions, for which its last one before them waits."""
        holder = self.holders.get(unit)
        job = MoveJob(self.code.microcode(unit, count), MICROCODE, {}, needed=holder.run.number if holder else -1)
        self.microcode[unit].append(job)
        if holder:
            holder.run.last[unit] = job, holder.cycle, len(self.code.units[unit]) - count

    def _order(self) -> None:
        """Put all moves in order."""
        for unit, jobs in self.microcode.items():
            free = self.code.free_for(unit)
            for job in jobs:
                part = job.moves[0].microcode
                assert part is not None
                fetched = free[part.end - 1]
                job.waits = {unit: min(fetched, max(0, part.first - 1))}
                job.cycles = MICROCODE if fetched else 0.0
        microcode, constants = list(self.microcode.values()), list(self.constants.jobs.values())
        for move in ordered(self.runs, microcode, self.tensors.stores, self.tensors.loads, constants):
            self.code.put(move)

    def _entries(self, n: int, placed: PlacedSegment, before: Counts) -> None:
        """The tensors that a segment makes."""
        segment, part = placed.segment, placed.part
        results = {op.name: op.output for op in segment.graph.ops}
        parts = {results[each.op]: each for each in segment.parts}
        vectors = before[Unit.VECTOR]
        for tensor, found in part_entries(part).items():
            mine = parts.get(tensor)
            if mine:
                name, whole = part_name(mine, n), TensorPart(mine.tensor, mine.box)
            else:  # rows that only this segment takes of a tensor: the model has no name for them
                name, whole = f"{found.op}@{n}", None
            self.entries[name] = replace(
                found, name=name, ready=found.ready + vectors, last=found.last + vectors,
                op=mine.op if mine else found.op, part=whole,
            )  # fmt: skip
