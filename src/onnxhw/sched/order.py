"""From relative works to a program: addresses bound, accumulator banks named, ordering fields set.

Works are read in sequence; a memory of "who touched this last" per activation word, activation bank and
accumulator bank gives each instruction what it must wait for:

- an array instruction waits for the vector instructions that wrote what it reads; those that drained its
  accumulator bank, or read one of its activation banks (a bank has one read port), need only have read it;
- a vector instruction waits for the array instructions that filled what it drains, that still read
  what it overwrites, and that read one of its activation banks; and for the vector instructions that
  wrote what it reads.

Vector instructions read and write in order, so they need not wait for what they overwrite.
"""

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..ir.graph import Graph
from ..isa.instructions import Array, Ordered, Vector, VectorOp, wait_reads
from ..program.layout import Place
from .places import Homes
from .work import ArrayStep, Region, VectorStep, Work

ADDRESS = 0xFFFF


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
        self.loads: list[Ordered] = []
        self.arrays: list[Array] = []
        self.vectors: list[Vector] = []
        self.owners: dict[str, list[str]] = {"load": [], "array": [], "vector": []}
        self.writes: list[Region] = []
        self.written_by: npt.NDArray[np.int64] = np.zeros(config.act_words, np.int64)  # vector count
        self.read_by: npt.NDArray[np.int64] = np.zeros(config.act_words, np.int64)  # array count
        self.bank_vector = [0] * config.act_banks
        self.bank_array = [0] * config.act_banks
        self.drained = [0, 0]
        self.filled = [0, 0]
        self.acc_bank = 0

    @property
    def code(self) -> dict[str, list[Ordered]]:
        """Instructions per unit."""
        return {"load": list(self.loads), "array": list(self.arrays), "vector": list(self.vectors)}

    def emit(self, work: Work) -> None:
        """Append the instructions of a work."""
        for step in work.arrays:
            self._array(work.op, step)
        for vector in work.vectors:
            self._vector(work.op, vector)
        if work.arrays:
            self.acc_bank ^= 1

    def _array(self, op: str, step: ArrayStep) -> None:
        after, reads = 0, self.drained[self.acc_bank]
        count = len(self.arrays) + 1
        for region in step.reads:
            after = max(after, int(self._box(self.written_by, region).max()))
            for bank in self._banks(region):
                reads = max(reads, self.bank_vector[bank])
                self.bank_array[bank] = count
            self._box(self.read_by, region)[...] = count
        base = (self.places[step.tensor].base + step.array.act_base) & ADDRESS
        self.filled[self.acc_bank] = count
        self.loads.append(step.load)
        fields = {"act_base": base, "acc_bank": self.acc_bank, **wait_reads(after, reads)}
        self.arrays.append(step.array.but(**fields))
        self.owners["load"].append(op)
        self.owners["array"].append(op)

    def _vector(self, op: str, step: VectorStep) -> None:
        after, written = int(self._box(self.read_by, step.writes).max()), 0
        count = len(self.vectors) + 1
        fields = {"o_base": (step.vector.o_base + self.places[step.writes.tensor].base) & ADDRESS}
        if step.vector.op == VectorOp.DRAIN:
            after = max(after, self.filled[self.acc_bank])
            self.drained[self.acc_bank] = count
            fields["acc_bank"] = self.acc_bank
        for name, region in (("a_base", step.a), ("b_base", step.b)):
            if region:
                fields[name] = (getattr(step.vector, name) + self.places[region.tensor].base) & ADDRESS
                for bank in self._banks(region):
                    after = max(after, self.bank_array[bank])
                    self.bank_vector[bank] = count
                written = max(written, int(self._box(self.written_by, region).max()))
        self._box(self.written_by, step.writes)[...] = count
        self.writes.append(step.writes)
        self.vectors.append(step.vector.but(after_array=after, after_vector=written, **fields))
        self.owners["vector"].append(op)

    def _box(self, memory: npt.NDArray[np.int64], region: Region) -> npt.NDArray[np.int64]:
        place: Place = self.places[region.tensor]
        height, width = place.shape[2:]
        low = place.base + region.planes[0] * place.plane
        count = region.planes[1] - region.planes[0]
        planes = memory[low : low + count * place.plane].reshape(count, height, width)
        return planes[:, slice(*region.rows), slice(*region.cols)]

    def _banks(self, region: Region) -> set[int]:
        place, depth = self.places[region.tensor], self.config.act_depth
        found: set[int] = set()
        for plane in range(*region.planes):
            base = place.base + plane * place.plane
            low = base + region.rows[0] * place.row + region.cols[0]
            high = base + (region.rows[1] - 1) * place.row + region.cols[1] - 1
            found.update(range(low // depth, high // depth + 1))
        return found
