"""`place`: a model on hardware and host, so that what is on the hardware fits it.

`onnxhw.convert` has said before which nodes are operations of the hardware; here those go back to the host that do not
fit together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from ..batch import Batch
from ..config import HwConfig
from ..convert.conversion import Conversion
from ..diagnostics import Diagnostic
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.graph import Graph
from ..onnxfile.limits import Limits
from ..onnxmodel.prepared import Source, prepare
from ..partition import PartitionedModel, require_hardware
from ..partition.pipeline import converted, parts_of
from ..partition.stages import Constraints
from ..passes.variants import variants
from .capacity import excess, external_excess, roomier, scheduled, weight_bytes
from .cost import Cost
from .external_presets import external_presets
from .reasons import PREFER, Reasons, causes, no_part, size_error, too_much, too_slow, unmapped
from .split import OperationRanges, groups

T = TypeVar("T")

IN_TURN = "larger than the memory of {}: {}{} programs run in turn, each loaded before, {:,} bytes of weights per call"
"""What is said of a model in more parts than its nodes need. A call may be of many samples."""
NOT_ON_IT = (
    "{}{} of {} operations are larger than the memory of {} and run on the host: {}{:.0%} of the multiplications"
)
"""What is said of a model with such operations."""
AT_LEAST = "at least "
"""Of numbers by `capacity.excess` alone: a part that these bounds leave whole, the scheduler may have to divide."""
LARGE = ("W3405", "W3406")
"""The codes of these notes."""
SLOW = "W3480"
LEFT = "{} operations run on the host, which is quicker than the line to the board"
"""The code and text of the note on a model with parts that are left to the host for their time."""


@dataclass(frozen=True)
class Placement(Generic[T]):
    """A model as placed in the end, and what `attempt` made of it.

    `moved` are the scheduler's refusals of operations that went to the host for it, `first` the hardware parts
    without any of them there, `large` what was too large for one program.
    """

    model: PartitionedModel
    made: T
    moved: tuple[UnsupportedError, ...]
    first: tuple[Graph, ...]
    large: DoesNotFitError | None = None

    def too_large(self, config: HwConfig, where: str) -> DoesNotFitError | None:
        """Of a model of which nothing runs on the hardware for its size alone: what is too large."""
        if self.model.hardware:
            return None
        return size_error(self.first, self.moved, config, where) if self.moved or not self.large else self.large

    def require_hardware(self, config: HwConfig, where: str) -> None:
        """If nothing runs on the hardware: `DoesNotFitError` (E51xx) if that is for size alone, else the errors of
        `partition.require_hardware`."""
        if error := self.too_large(config, where):
            raise error
        require_hardware(self.model, where)


def place(
    source: Source,
    config: HwConfig,
    attempt: Callable[[PartitionedModel], T],
    *,
    limits: Limits | None = None,
    shapes: Mapping[str, int] | None = None,
    exact_softmax: bool = False,
    runnable: bool = True,
    scheduled: int | None = None,
    costs: Callable[[PartitionedModel, T], Sequence[Cost]] | None = None,
) -> Placement[T]:
    """Read a model and `attempt` something with it until it is placed so that this succeeds.

    An operation that an `UnsupportedError` names, because the scheduler cannot map it, goes to the host, which computes
    it as the golden model does (`onnxhw.ir.parts.GoldenPart`): where operations run never changes a result. An error
    that names none is raised. Where the model does not fit, so does a Softmax in integers, which takes several times
    as much memory as its input, and then operations whose tables are more than `config` has
    (`onnxhw.sched.over_table_limit`).
    With external memory a part is as large as that is, and an operation of which no part fits the chip goes to the
    host (`onnxhw.segments.NoPartError`).
    A part that is still too large is divided into parts that run in turn (`split`), and an operation that is
    too large alone goes to the host. Of a model of more operations than `scheduled` that is done by
    `capacity.excess` alone. `runnable` as in `onnxhw.partition.read`. With the `costs` of hardware parts, those that
    are slower there go to the host, too (`cost.slower`).

    It ends: each failure, and each look at the costs, either sends operations to the host, which never come back, or
    separates two operations that shared a part, which never share one again. And no `DoesNotFitError` leaves it unless
    `attempt` raises one for a model of which nothing is on the hardware: else a part can be divided, or is one
    operation, which can go.
    """
    chosen = _Attempt(converted(prepare(source, limits, shapes), exact_softmax=exact_softmax), config, scheduled)
    moved: list[UnsupportedError] = []
    first: tuple[Graph, ...] | None = None
    large: DoesNotFitError | None = None
    while True:
        model = chosen.placed(runnable)
        first = tuple(part.graph for part in model.hardware) if first is None else first
        try:
            made = attempt(model)
            if costs is None or not chosen.move_to_host(slow := too_slow(model, costs(model, made))):
                break
            chosen.slow |= slow.keys()
        except DoesNotFitError as error:
            large = large or error
            if not (chosen.without_part(model, error)
                    or chosen.move_to_host(too_much(model, error, config))
                    or chosen.shrink(model, error)):  # fmt: skip
                raise
        except UnsupportedError as error:
            if not chosen.move_to_host(unmapped(model, error)):
                raise
            moved += causes(error)
    if large and model.hardware:
        model = _noted(model, first, chosen, large.code)
    if chosen.slow:
        note = Diagnostic(SLOW, "warning", "model", LEFT.format(len(chosen.slow)), PREFER)
        model = replace(model, diagnostics=(*model.diagnostics, note))
    return Placement(model, made, tuple(moved), first, large)


Excess = Callable[[Graph], DoesNotFitError | None]
"""What is too large of a graph."""


@dataclass
class _Attempt:
    """A model, and what was chosen for it: operations that are the host's, and which do not share a part."""

    converted: tuple[Conversion, list[Diagnostic], Batch | None]
    config: HwConfig
    scheduled: int | None
    constraints: Constraints = field(default_factory=Constraints)
    large: set[str] = field(default_factory=set)
    """The operations to_host that are too large."""
    slow: set[str] = field(default_factory=set)
    """Those that the host computes quicker."""
    known: dict[tuple[object, ...], DoesNotFitError | None] = field(default_factory=dict)
    """What `_initial` has found."""

    def placed(self, runnable: bool) -> PartitionedModel:
        """The model, so placed."""
        return parts_of(*self.converted, runnable, self.constraints)

    def bounded(self, graphs: Sequence[Graph]) -> bool:
        """Whether parts of so many operations are not scheduled."""
        return self.scheduled is not None and not scheduled(graphs, self.config, self.scheduled)

    def move_to_host(self, named: Reasons) -> bool:
        """Give operations to the host; whether there are any."""
        self.constraints.to_host |= named
        return bool(named)

    def without_part(self, model: PartitionedModel, error: DoesNotFitError) -> bool:
        """Give the operation to the host of which no part fits the chip, if the error is about one."""
        named = no_part(model, error)
        self._too_large(named)
        return bool(named)

    def shrink(self, model: PartitionedModel, error: DoesNotFitError) -> bool:
        """Divide the parts until none is seen to be too large, and at least once; False if there is no part.

        What is to be seen of no part only `error` knows: all are halved, or if each is one operation go to the host.
        """
        graphs = [part.graph for part in model.hardware]
        large, excess_of = self._large(graphs)
        if not large:
            several = [graph for graph in graphs if len(graph.ops) > 1]
            self.constraints.ordered_groups += [groups(graph, lambda piece: True) for graph in several]
            if not several:
                self._too_large({op.output: (error.what, error.hint) for graph in graphs for op in graph.ops})
            return bool(graphs)
        while large:
            self._divide(large, excess_of)
            large, excess_of = self._large([part.graph for part in self.placed(runnable=False).hardware])
        return True

    def _divide(self, graphs: Sequence[Graph], excess_of: Excess) -> None:
        """Give the operations of parts without room that have none alone to the host, or if there are none divide the
        parts."""
        named: Reasons = {}
        for graph in graphs:
            pieces = OperationRanges(graph)
            each = [pieces.piece(at, at + 1) for at in range(len(pieces))] if len(pieces) > 1 else [graph]
            for op, piece in zip(graph.ops, each, strict=True):
                if error := excess_of(piece):
                    named[op.output] = error.what, error.hint
        self._too_large(named)
        if not named:
            self.constraints.ordered_groups += [
                groups(graph, lambda piece: excess_of(piece) is None) for graph in graphs
            ]

    def _too_large(self, named: Reasons) -> None:
        self.move_to_host(named)
        self.large |= named.keys()

    def _large(self, graphs: Sequence[Graph]) -> tuple[list[Graph], Excess]:
        """The parts without room, and what tells so: bounds, and if these tell of none the parts' initial schedules,
        unless the model has more operations than are scheduled, or there is external memory."""
        bounds_only = self.config.external is not None or self.bounded(graphs)
        ways: list[Excess] = [self._bounds] if bounds_only else [self._bounds, self._initial]
        for excess_of in ways:
            if large := [graph for graph in graphs if excess_of(graph)]:
                break
        return large, excess_of

    def _bounds(self, graph: Graph) -> DoesNotFitError | None:
        """What is too large of a part, if that is to be seen at once."""
        found = external_excess(graph, self.config) if self.config.external else excess(graph, self.config)
        return DoesNotFitError(*found) if found else None

    def _initial(self, graph: Graph) -> DoesNotFitError | None:
        """What is too large of a part; operations that cannot be mapped are for others to refuse."""
        from .. import sched  # only here: it takes long to import

        key = *((op.output, op.inputs) for op in graph.ops), *(port.tensor for port in graph.outputs)
        if key not in self.known:
            self.known[key] = None
            try:
                sched.require_capacity(variants(graph, self.config), self.config)
            except DoesNotFitError as error:
                self.known[key] = error
            except UnsupportedError:
                pass
        return self.known[key]


def _noted(model: PartitionedModel, first: Sequence[Graph], chosen: _Attempt, code: str) -> PartitionedModel:
    """The model with notes on what is too large; `code` is of the error that told so."""
    config, notes = chosen.config, []
    least = AT_LEAST if chosen.bounded([part.graph for part in model.hardware]) else ""
    if chosen.constraints.ordered_groups and len(model.hardware) > 1:
        total = sum(weight_bytes(part.graph) for part in model.hardware)
        notes.append((LARGE[0], IN_TURN.format(config.name, least, len(model.hardware), total)))
    operations = [op for graph in first for op in graph.ops]
    if gone := [op for op in operations if op.output in chosen.large]:
        share = 1 - sum(part.graph.macs() for part in model.hardware) / max(1, sum(graph.macs() for graph in first))
        notes.append(
            (LARGE[1], NOT_ON_IT.format(least, len(gone), len(operations), config.name, least, max(0.0, share)))
        )
    if not notes:
        return model
    presets = roomier(first, config, code)
    hint = f"all of it at once may fit {presets}" if presets else ""
    if not presets and (external := external_presets(config)):
        hint = f"one program with the board's SDRAM: {external}"
    found = (Diagnostic(note, "warning", "model", what, hint) for note, what in notes)
    return replace(model, diagnostics=(*model.diagnostics, *found))
