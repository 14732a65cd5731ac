"""From relative works to a program: addresses bound, accumulators named, ordering fields set.

Works are read in sequence; a memory of "who touched this last" per activation word, activation bank and
accumulator gives each instruction what it must wait for:

- an instruction of the array or the depthwise unit waits for the vector instructions that wrote what it reads, and for
  the other of the two units where it reads one of its activation banks (a bank has one read port); vector instructions
  that drained its accumulators, or read one of its activation banks, need only have read them;
- a vector instruction waits for the array and depthwise instructions that filled what it drains, that still read
  what it overwrites, and that read one of its activation banks; and for the vector instructions that
  wrote what it reads.

Vector instructions read and write in order, so they need not wait for what they overwrite. `sums` has the accumulators,
`loads` the order of the loads.
"""

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..ir.graph import Graph
from ..isa.instructions import Array, Depthwise, Ordered, Vector, VectorOp, wait_reads
from ..isa.units import STREAMING, Unit
from ..program.layout import Place
from .loads import Owned, ordered, without_loads
from .places import Homes
from .sums import Sums
from .work import ArrayStep, Region, VectorStep, Work

ADDRESS = 0xFFFF
Memory = npt.NDArray[np.int64]
"""Of each word, the number of the last instruction that touched it."""


def box(memory: Memory, place: Place, region: Region) -> Memory:
    """The words of a region of a tensor, as planes, rows and columns, in something that has a value for each word."""
    height, width = place.shape[2:]
    low = place.base + region.planes[0] * place.plane
    count = region.planes[1] - region.planes[0]
    planes = memory[low : low + count * place.plane].reshape(count, height, width)
    return planes[:, slice(*region.rows), slice(*region.cols)]


class Reader:
    """A unit that reads activations beside the vector unit: its instructions, and what each word and bank is to it."""

    def __init__(self, config: HwConfig) -> None:
        self.read_by: Memory = np.zeros(config.act_words, np.int64)
        self.bank = [0] * config.act_banks


class Binder:
    """Emits the code of a work sequence.

    Members
    -------
    code : instructions per unit.
    owners : per unit, the operation of each instruction.
    writes : per vector instruction, the region that it writes.
    """

    def __init__(self, graph: Graph, homes: Homes, bases: dict[str, int], config: HwConfig) -> None:
        self.config = config
        self.places = {name: homes.place(tensor, bases) for name, tensor in graph.tensors.items()}
        self.arrays: list[tuple[Array, Owned]] = []
        self.strips: list[tuple[Depthwise, Owned]] = []
        self.vectors: list[Vector] = []
        self.owners: dict[Unit, list[str]] = {unit: [] for unit in Unit}
        self.writes: list[Region] = []
        self.written_by: Memory = np.zeros(config.act_words, np.int64)
        self.bank_vector = [0] * config.act_banks
        self.readers = {unit: Reader(config) for unit in STREAMING}
        self.sums = Sums(config)

    def code(self, below: int | None = None) -> dict[Unit, list[Ordered]] | None:
        """Instructions per unit; the loads, and their owners, are put in order here. None if the cycles cannot be
        `below`, even if all weights were there."""
        times = None
        if self.strips and below is not None:
            times = without_loads(self.arrays, self.strips, self.vectors, self.config)
            if times.cycles >= below:
                return None
        loads = ordered(self.arrays, self.strips, self.vectors, self.config, times)
        self.owners[Unit.LOAD] = [owned.op for owned in loads]
        return {
            Unit.LOAD: [owned.load for owned in loads],
            Unit.ARRAY: [instruction for instruction, _ in self.arrays],
            Unit.DEPTHWISE: [instruction for instruction, _ in self.strips],
            Unit.VECTOR: list(self.vectors),
        }

    def emit(self, work: Work) -> None:
        """Append the instructions of a work."""
        self.sums.begin(work)
        for step in work.arrays:
            target, reads = self.sums.fill(step)
            fields, owned = target | self._stream(step, reads), Owned(step.load, work.op)
            if isinstance(step.array, Array):
                self.arrays.append((step.array.but(**fields), owned))
            else:
                self.strips.append((step.array.but(**fields), owned))
            self.owners[step.array.UNIT].append(work.op)
        for vector in work.vectors:
            self._vector(work, vector)

    def _stream(self, step: ArrayStep, reads: int) -> dict[str, int]:
        """Fields of an instruction of the array or the depthwise unit; `reads`: what must have drained its sums."""
        unit = step.array.UNIT
        other = Unit.DEPTHWISE if unit == Unit.ARRAY else Unit.ARRAY
        mine, after, beside, number = self.readers[unit], 0, 0, self.sums.filled[unit]
        for region in step.reads:
            after = max(after, int(box(self.written_by, self.places[region.tensor], region).max()))
            for bank in self._banks(region):
                reads = max(reads, self.bank_vector[bank])
                beside = max(beside, self.readers[other].bank[bank])
                mine.bank[bank] = number
            box(mine.read_by, self.places[region.tensor], region)[...] = number
        base = (self.places[step.tensor].base + step.array.act_base) & ADDRESS
        return {"act_base": base, other.after: beside, **wait_reads(after, reads)}

    def _vector(self, work: Work, step: VectorStep) -> None:
        written = 0
        place = self.places[step.writes.tensor]
        after = {unit: int(box(one.read_by, place, step.writes).max()) for unit, one in self.readers.items()}
        count = len(self.vectors) + 1
        fields = {"o_base": (step.vector.o_base + self.places[step.writes.tensor].base) & ADDRESS}
        if step.vector.op == VectorOp.DRAIN:
            drained = self.sums.drain(work, step, count)
            for unit in after:
                after[unit] = max(after[unit], drained.pop(unit.after, 0))
            fields |= drained
        for name, region in (("a_base", step.a), ("b_base", step.b)):
            if region:
                fields[name] = (getattr(step.vector, name) + self.places[region.tensor].base) & ADDRESS
                for bank in self._banks(region):
                    for unit, one in self.readers.items():
                        after[unit] = max(after[unit], one.bank[bank])
                    self.bank_vector[bank] = count
                written = max(written, int(box(self.written_by, self.places[region.tensor], region).max()))
        box(self.written_by, place, step.writes)[...] = count
        self.writes.append(step.writes)
        waits = {unit.after: number for unit, number in after.items()}
        self.vectors.append(step.vector.but(after_vector=written, **waits, **fields))
        self.owners[Unit.VECTOR].append(work.op)

    def _banks(self, region: Region) -> set[int]:
        place, depth = self.places[region.tensor], self.config.act_depth
        found: set[int] = set()
        for plane in range(*region.planes):
            base = place.base + plane * place.plane
            low = base + region.rows[0] * place.row + region.cols[0]
            high = base + (region.rows[1] - 1) * place.row + region.cols[1] - 1
            found.update(range(low // depth, high // depth + 1))
        return found
