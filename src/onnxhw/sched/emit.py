"""From relative tasks to a program: addresses bound, accumulators named, ordering fields set.

Tasks are read in sequence; a memory of "who touched this last" per activation word, activation bank and
accumulator gives each instruction what it must wait for:

- an instruction of the array or the depthwise unit waits for the vector instructions that wrote what it reads, and for
  the other of the two units where it reads one of its activation banks (a bank has one read port); vector instructions
  that drained its accumulators, or read one of its activation banks, need only have read them;
- a vector instruction waits for the array and depthwise instructions that filled what it drains, that still read
  what it overwrites, and that read one of its activation banks; and for the vector instructions that
  wrote what it reads.

Vector instructions read and write in order, so they need not wait for what they overwrite. `accumulators` binds
sums, `load_order` has the order of the loads.
"""

from collections.abc import Mapping

import numpy as np

from ..config import HwConfig
from ..ir.graph import Graph
from ..isa.external_instructions import code_for
from ..isa.instructions import ADDRESS, Array, Depthwise, Ordered, Vector, VectorOp, wait_reads
from ..isa.units import STREAMING, Unit
from ..program.layout import Place
from .accumulators import AccumulatorBinder
from .aliases import Aliases
from .early_completion import with_early
from .load_order import OwnedLoad, ordered, without_loads
from .memory_trace import in_memory, spans
from .task import ArrayStep, TileTask, VectorStep, WordRegion


class StreamReader:
    """The array or the depthwise unit as a reader: its last instruction to read each word, and each bank."""

    def __init__(self, places: Mapping[str, Place], config: HwConfig) -> None:
        self.read_by = in_memory(places, config, np.zeros(config.act_words, np.int64))
        self.bank = [0] * config.act_banks


class Emitter:
    """Emits the code of a task sequence.

    Members
    -------
    code : instructions per unit.
    owners : per unit, the operation of each instruction.
    """

    def __init__(self, graph: Graph, aliases: Aliases, bases: dict[str, int], config: HwConfig) -> None:
        self.config = config
        self.places = {name: aliases.place(tensor, bases) for name, tensor in graph.tensors.items()}
        self.arrays: list[tuple[Array, OwnedLoad]] = []
        self.strips: list[tuple[Depthwise, OwnedLoad]] = []
        self.vectors: list[Vector] = []
        self.owners: dict[Unit, list[str]] = {unit: [] for unit in Unit}
        self.written_by = in_memory(self.places, config, np.zeros(config.act_words, np.int64))
        self.bank_vector = [0] * config.act_banks
        self.readers = {unit: StreamReader(self.places, config) for unit in STREAMING}
        self.sums = AccumulatorBinder(config)

    def code(self, below: int | None = None) -> dict[Unit, list[Ordered]] | None:
        """Instructions per unit; the loads, and their owners, are put in order here. None if the cycles cannot be
        `below`, even if all weights were there."""
        times = None
        if self.strips and below is not None:
            times = without_loads(self.arrays, self.strips, self.vectors, self.config, below)
            if times is None:
                return None
        loads = ordered(self.arrays, self.strips, self.vectors, self.config, times)
        self.owners[Unit.LOAD] = [owned.op for owned in loads]
        code = code_for(self.config, {
            Unit.LOAD: [owned.load for owned in loads],
            Unit.ARRAY: [instruction for instruction, _ in self.arrays],
            Unit.DEPTHWISE: [instruction for instruction, _ in self.strips],
            Unit.VECTOR: list(self.vectors),
        })  # fmt: skip
        return with_early(code, self.config)

    def emit(self, task: TileTask) -> None:
        """Append the instructions of a task."""
        self.sums.begin(task)
        for step in task.arrays:
            target, reads = self.sums.fill(step)
            fields, owned = target | self._stream(step, reads), OwnedLoad(step.load, task.op)
            if isinstance(step.array, Array):
                self.arrays.append((step.array.but(**fields), owned))
            else:
                self.strips.append((step.array.but(**fields), owned))
            self.owners[step.array.UNIT].append(task.op)
        for vector in task.vectors:
            self._vector(task, vector)

    def _stream(self, step: ArrayStep, reads: int) -> dict[str, int]:
        """Fields of an instruction of the array or the depthwise unit; `reads`: what must have drained its sums."""
        unit = step.array.UNIT
        other = Unit.DEPTHWISE if unit == Unit.ARRAY else Unit.ARRAY
        mine, after, other_reads, number = self.readers[unit], 0, 0, self.sums.filled[unit]
        for region in step.reads:
            after = max(after, int(self.written_by[region].max()))
            for bank in self._banks(region):
                reads = max(reads, self.bank_vector[bank])
                other_reads = max(other_reads, self.readers[other].bank[bank])
                mine.bank[bank] = number
            mine.read_by[region][...] = number
        words = self.config.word if isinstance(step.array, Array) and step.array.unaligned else 1
        base = (self.places[step.tensor].base * words + step.array.act_base) & ADDRESS
        fields = {"act_base": base}
        if step.reads and self._has_gaps(step.reads[0]):
            fields["act_base"] = self._address(step.reads[0], step.array.act_base)
            if isinstance(step.array, Array):
                fields["a_kt"] = self.places[step.tensor].plane & ADDRESS
        return {**fields, other.after: other_reads, **wait_reads(after, reads)}

    def _vector(self, task: TileTask, step: VectorStep) -> None:
        written = 0
        after = {unit: int(one.read_by[step.writes].max()) for unit, one in self.readers.items()}
        count = len(self.vectors) + 1
        fields = self._operand("o", step.writes, step.vector)
        if step.vector.op == VectorOp.DRAIN:
            drained = self.sums.drain(task, step, count)
            for unit in after:
                after[unit] = max(after[unit], drained.pop(unit.after, 0))
            fields |= drained
        for name, region in (("a", step.a), ("b", step.b)):
            if region:
                fields |= self._operand(name, region, step.vector)
                for bank in self._banks(region):
                    for unit, one in self.readers.items():
                        after[unit] = max(after[unit], one.bank[bank])
                    self.bank_vector[bank] = count
                written = max(written, int(self.written_by[region].max()))
        self.written_by[step.writes][...] = count
        waits = {unit.after: number for unit, number in after.items()}
        self.vectors.append(step.vector.but(after_vector=written, **waits, **fields))
        self.owners[Unit.VECTOR].append(task.op)

    def _operand(self, name: str, region: WordRegion, vector: Vector) -> dict[str, int]:
        """The fields of an operand or result `name` that tell where it lies; the vector's are those of a tensor at word
        0 whose blocks lie one behind the other."""
        fields = {f"{name}_base": self._address(region, getattr(vector, f"{name}_base"))}
        if self._has_gaps(region):
            fields[f"{name}_cb"] = self.places[region.tensor].plane & ADDRESS
        return fields

    def _address(self, region: WordRegion, address: int) -> int:
        """A word of a region's first block, from an address in a tensor whose blocks lie one behind the other."""
        place = self.places[region.tensor]
        gap = place.plane - place.shape[2] * place.shape[3]
        return (address + place.base + region.blocks[0] * gap) & ADDRESS

    def _has_gaps(self, region: WordRegion) -> bool:
        """Whether blocks of the tensor do not lie one behind the other."""
        place = self.places[region.tensor]
        return place.plane != place.shape[2] * place.shape[3]

    def _banks(self, region: WordRegion) -> set[int]:
        place, depth = self.places[region.tensor], self.config.act_depth
        ends = spans(region, place.base, place.plane, place.row)
        return {bank for low, high in ends for bank in range(low // depth, high // depth + 1)}
