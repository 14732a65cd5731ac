"""`DeviceProgram`: everything the hardware needs to run a model, and what is needed to check it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..ir.boxes import Box
from ..ir.graph import Port
from ..ir.states import State
from ..isa.instructions import Ordered
from ..isa.units import Unit
from .layout import Place
from .storage import Array8, Element, PackedInput, Shape, StorageFormat


@dataclass(frozen=True)
class ExternalPiece:
    """A box of a tensor in external memory: `place` counts words of W bytes there; stored as `storage`
    says, if given."""

    box: Box
    place: Place
    storage: PackedInput | None = None


@dataclass(frozen=True)
class TensorPart:
    """A box of one of the model's tensors, which one segment of a program makes."""

    tensor: str
    box: Box


@dataclass
class Entry:
    """A row of the tensor table: a tensor of the model, and where activation memory has it.

    The tensor is complete in activation memory once `ready` vector instructions have completed (0: it is an
    input) and stays until `last` have (the program's length for outputs). `golden` is the SHA-256 of its
    int8 values for the program's test vector, empty if there is none. `op` names the operation that
    made it. `place` has the model's shape, unless `storage` says what lies there instead of a tensor of shape `model`.
    An input or output in `external` memory lies there alone, in pieces; the first one of an output is all of it.
    A `part` of a tensor is there under a name of its own, for that a network larger than the chip runs in segments.
    """

    name: str
    place: Place
    scale: float
    zero_point: int
    ready: int = 0
    last: int = 0
    op: str = ""
    golden: str = ""
    storage: StorageFormat | None = None
    model: Shape | None = None
    external: tuple[ExternalPiece, ...] = ()
    part: TensorPart | None = None

    @property
    def shape(self) -> Shape:
        """(1, C, H, W) of the model's tensor."""
        return self.model or self.place.shape

    def store(self, values: Array8) -> Array8:
        """What lies at `place` if the model's input is `values`, int8 ``(1, C, H, W)``."""
        if isinstance(self.storage, PackedInput):
            return self.storage.store(values, self.zero_point)
        return values

    def restore(self, stored: Array8) -> Array8:
        """The model's tensor, from what lies at `place`."""
        return self.storage.restore(stored, self.shape) if self.storage else stored

    def element(self, at: Element) -> Element | None:
        """Where `place` has an element of the model's tensor, None if it is not stored."""
        return self.storage.element(at, self.shape) if self.storage else at


@dataclass
class Layer:
    """One operation for reports: its multiply-accumulates, and its instructions per unit as runs ``[first, last)`` in
    order. `macs`: executed ones, `nominal`: those of the model, as in `DeviceProgram`.

    Operations take turns on a unit, so a layer may have several runs; an instruction belongs to one layer at most.
    """

    name: str
    kind: str
    macs: int
    instructions: dict[Unit, list[tuple[int, int]]] = field(default_factory=dict)
    nominal: int = 0

    def indices(self, unit: Unit) -> list[int]:
        """The layer's instructions of a unit, in order."""
        return [index for run in self.instructions.get(unit, ()) for index in range(*run)]

    def span(self, unit: Unit) -> tuple[int, int] | None:
        """From the first to behind the last of its instructions of a unit, those of others in between included."""
        runs = self.instructions.get(unit)
        return (runs[0][0], runs[-1][1]) if runs else None


def runs_of(indices: Iterable[int]) -> list[tuple[int, int]]:
    """Increasing indices as runs ``[first, last)``."""
    found: list[tuple[int, int]] = []
    for index in indices:
        if found and found[-1][1] == index:
            found[-1] = found[-1][0], index + 1
        else:
            found.append((index, index + 1))
    return found


@dataclass
class DeviceProgram:
    """A compiled model.

    `weights` is uint8 ``[words, k * C]``, `params` packed `onnxhw.fixed.Scale` entries (uint64
    ``[rows, Q]``), `tables` int8 ``[n, 256]``. `cycles` is the predicted, exact number of cycles of a run. `macs` are
    the multiply-accumulates that it executes, `nominal` those that the model has: not executed are those of constant
    channels and of channels that meet only weights of 0. Once `input_free` (array,
    vector) instructions have completed, a run touches no word of an input any more, and no output lies there; (0, 0):
    the inputs may be written only when the outputs have been read. `segments`: of a network larger than the chip, into
    how many parts that run one after the other it was cut; 0: it runs on the chip alone, without moves.
    """

    config: HwConfig
    model: str
    code: dict[Unit, list[Ordered]]
    weights: npt.NDArray[np.uint8]
    params: npt.NDArray[np.uint64]
    tables: npt.NDArray[np.int8]
    tensors: dict[str, Entry]
    inputs: list[Port]
    outputs: list[Port]
    layers: list[Layer]
    cycles: int
    macs: int
    input_free: tuple[int, int] = (0, 0)
    nominal: int = 0
    external: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    """What external memory holds from its word 0 on before the first run: weights, parameters, tables, microcode."""
    segments: int = 0
    states: tuple[State, ...] = ()
    """Tensors that stay in external memory from run to run; `inputs` and `outputs` are without them."""

    @property
    def in_segments(self) -> bool:
        """Whether it runs in segments, with moves from and to external memory."""
        return bool(self.code.get(Unit.MOVE))
