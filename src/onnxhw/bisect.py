"""`compare`: the first place where two rungs of the exactness ladder differ, and what made it."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .engines import Engine
from .errors import MismatchError
from .isa.instructions import Array, Vector, VectorOp
from .isa.timeline import timeline
from .isa.timing import sums
from .isa.units import Unit
from .program.model import DeviceProgram, Entry
from .program.result import first_difference

Tensors = Mapping[str, npt.NDArray[np.int8]]


@dataclass(frozen=True)
class Culprit:
    """An instruction that took part in making the element: unit, index, assembler text, and the cycles it ran in."""

    unit: str
    index: int
    text: str
    cycles: tuple[int, int]


@dataclass(frozen=True)
class Difference:
    """The first difference in the order in which tensors are completed.

    `element` is (n, c, y, x); `expected` and `got` its values on the first and the second rung; `different` elements
    of `size` differ in the tensor. `culprits` end with the vector instruction that wrote the element; `cycles` is the
    window from the first culprit's issue to the last's completion. `word` and `lane`: where the element lies in
    activation memory; None if it is of a channel that is not computed because it is constant, or of a tensor in
    external memory, which are looked at last.
    """

    tensor: str
    layer: str
    element: tuple[int, ...]
    expected: int
    got: int
    different: int
    size: int
    word: int | None
    lane: int | None
    rungs: tuple[str, str]
    culprits: list[Culprit] = field(default_factory=list)

    @property
    def cycles(self) -> tuple[int, int]:
        """First and last cycle in which the element was made; (0, 0) for an input."""
        spans = [culprit.cycles for culprit in self.culprits]
        return (min((a for a, _ in spans), default=0), max((b for _, b in spans), default=0))

    def record(self) -> dict[str, object]:
        """The same facts for ``--json``."""
        return {
            "tensor": self.tensor, "layer": self.layer, "element": list(self.element), "expected": self.expected,
            "got": self.got, "different": self.different, "of": self.size, "word": self.word, "lane": self.lane,
            "rungs": list(self.rungs), "cycles": list(self.cycles),
            "instructions": [dataclasses.asdict(culprit) for culprit in self.culprits],
        }  # fmt: skip

    def error(self, model: str = "") -> MismatchError:
        """The difference as `MismatchError` E8401."""
        at = ", ".join(map(str, self.element))
        return MismatchError(
            "E8401",
            f"{self.rungs[1]} differs from {self.rungs[0]} first in tensor {self.tensor!r} (layer {self.layer!r}) at "
            f"[{at}]: {self.got}, not {self.expected}; {self.different} of {self.size} elements differ; "
            f"{self._made()}",
            where=model,
            hint="this is a bug of ours: please report it with the model",
        )

    def _made(self) -> str:
        if self.word is None:
            return "it lies in external memory, or its channel is constant and not computed"
        made = "; ".join(f"{c.unit}[{c.index}] in cycles {c.cycles[0]}..{c.cycles[1]}" for c in self.culprits)
        by = made or "the host (it is an input)"
        return f"word {self.word}, lane {self.lane} of activation memory; made by {by}"


def compare(program: DeviceProgram, inputs: Tensors, rung_a: Engine, rung_b: Engine) -> Difference | None:
    """Run both rungs and return their first difference, or None if every tensor that both show is equal."""
    a, b = rung_a.run(program, inputs, True), rung_b.run(program, inputs, True)
    expected, got = {**a.outputs, **a.tensors}, {**b.outputs, **b.tensors}
    for name, entry in sorted(program.tensors.items(), key=lambda item: (bool(item[1].external), item[1].ready)):
        if name not in expected or name not in got:
            continue
        left, right = np.asarray(expected[name]), np.asarray(got[name])
        found = first_difference(left, right.reshape(left.shape))
        if found:
            at = found.element
            kept = None if entry.external else entry.element((at[0], at[1], at[2], at[3]))
            address, lane = _location(entry, kept, program.config.word) if kept else (None, None)
            culprits = [] if address is None or lane is None else _culprits(program, entry.ready, address, lane)
            return Difference(
                name, entry.op, at, int(found.expected), int(found.got), found.different, found.of, address, lane,
                (rung_a.name, rung_b.name), culprits,
            )  # fmt: skip
    return None


def check(program: DeviceProgram, inputs: Tensors, rung_a: Engine, rung_b: Engine) -> None:
    """`compare`, raised as `MismatchError` E8401."""
    found = compare(program, inputs, rung_a, rung_b)
    if found is not None:
        raise found.error(program.model)


def _location(entry: Entry, element: tuple[int, ...], word: int) -> tuple[int, int]:
    """Word address and lane of an element of what is kept."""
    _, channel, y, x = element
    block, lane = divmod(entry.place.lane + channel, word)
    return entry.place.base + block * entry.place.plane + y * entry.place.row + x, lane


def _culprits(program: DeviceProgram, ready: int, address: int, lane: int) -> list[Culprit]:
    """The last of the first `ready` vector instructions that wrote the lane, and the array work that it drained."""
    code, config = program.code, program.config
    times = timeline(config, code)

    def culprit(unit: Unit, index: int) -> Culprit:
        span = times.spans[unit][index]
        return Culprit(unit, index, code[unit][index].text(), (span.issue, span.over))

    for index in reversed(range(ready)):
        vector = code[Unit.VECTOR][index]
        assert isinstance(vector, Vector)
        lanes = range(vector.lane_group * config.lanes, (vector.lane_group + vector.groups) * config.lanes)
        if lane in lanes and address in _written(vector):
            arrays = list(_drained(program, vector)) if vector.op == VectorOp.DRAIN else []
            return [culprit(Unit.ARRAY, i) for i in reversed(arrays)] + [culprit(Unit.VECTOR, index)]
    return []


def _written(vector: Vector) -> set[int]:
    """Word addresses that a vector instruction writes."""
    return _rows(vector, vector.o_base, vector.o_cb, vector.o_oh, vector.o_ow)


def _rows(vector: Vector, base: int, step_cb: int, step_oh: int, step_ow: int) -> set[int]:
    """Addresses of one operand of a vector instruction."""
    cb, oh, ow = np.meshgrid(np.arange(vector.cb_n), np.arange(vector.oh_n), np.arange(vector.ow_n), indexing="ij")
    addresses = base + cb * step_cb + oh * step_oh + ow * step_ow
    return set((addresses & 0xFFFF).reshape(-1).tolist())


def _drained(program: DeviceProgram, vector: Vector) -> Iterator[int]:
    """Array instructions whose sums a drain reads, latest first."""
    drained = _rows(vector, vector.a_base, vector.a_cb, vector.a_oh, vector.a_ow)
    for index in reversed(range(vector.after_array)):
        array = program.code[Unit.ARRAY][index]
        assert isinstance(array, Array)
        height, width = sums(array)
        filled = range(array.acc_base, array.acc_base + array.nt_n * height * width)
        if array.acc_bank == vector.acc_bank and not drained.isdisjoint(filled):
            yield index
            if not array.accumulate:
                return
