"""`compile` and `compile_mixed`: a model file onto one accelerator."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from .config import HwConfig
from .cutting import Pieces, cuts
from .errors import DoesNotFitError, UnsupportedError
from .frontend import MixedModel, Prepared, Source, load, prepare, refuse, require_hardware
from .frontend.diagnostics import Diagnostic
from .frontend.reading.limits import Limits
from .ir.graph import Graph
from .ir.parts import HostPart
from .passes import variants
from .program.mixed import MixedProgram
from .program.model import Program
from .report.fit import excess, larger, roomier, weight_bytes

Model = str | Path | bytes | Graph
"""A path, the bytes of an ONNX file, or a graph."""

T = TypeVar("T")

SHOWN = 8
"""Most operations in a message."""
TABLES_HINT = "a configuration with more tables; the same function of the same scales and zero points shares one"
"""What is said of a node whose table is too many."""
IN_TURN = "larger than the memory of {}: {} programs run in turn, each loaded before it, {:,} bytes of weights per call"
"""What is said of a model in more parts than its nodes need. A call may be of many samples."""
NOT_ON_IT = "{} of {} operations are larger than the memory of {} and run on the host: {:.0%} of the multiplications"
"""What is said of a model with such operations."""
LARGE = ("W3405", "W3406")
"""The codes of these notes."""


def compile(model: Model, config: HwConfig, *, patches: bool = True) -> Program:
    """The checked program of a model that runs on the hardware as a whole.

    Inputs of a first convolution are loaded as patches of its window if that takes fewer cycles; without `patches` only
    if the model does not fit as it is.

    `InvalidModelError` (E3xxx), `UnsupportedError` (E4xxx) and `DoesNotFitError` (E5xxx) say what is in
    the way; what comes back has passed `onnxhw.sched.check`.
    """
    graph = model if isinstance(model, Graph) else load(model)
    try:
        return _schedule(graph, config, patches)
    except UnsupportedError as error:
        refused = _causes(error)
        if too_large := size_error([graph], refused, config):
            raise too_large from error
        raise


@dataclass(frozen=True)
class Placing(Generic[T]):
    """A model as placed in the end, and what `attempt` made of it.

    `moved` are the scheduler's refusals of operations that went to the host for it, `first` the hardware parts
    without any of them there, `large` what was too large for one program.
    """

    mixed: MixedModel
    made: T
    moved: tuple[UnsupportedError, ...]
    first: tuple[Graph, ...]
    large: DoesNotFitError | None = None

    def too_large(self, config: HwConfig, where: str) -> DoesNotFitError | None:
        """Of a model of which nothing runs on the hardware for its size alone: what is too large."""
        if self.mixed.hardware:
            return None
        return size_error(self.first, self.moved, config, where) if self.moved or not self.large else self.large

    def require_hardware(self, config: HwConfig, where: str) -> None:
        """If nothing runs on the hardware: `DoesNotFitError` (E51xx) if that is for size alone, else the errors of
        `frontend.require_hardware`."""
        if error := self.too_large(config, where):
            raise error
        require_hardware(self.mixed, where)


def place(
    source: Source,
    config: HwConfig,
    attempt: Callable[[MixedModel], T],
    *,
    limits: Limits | None = None,
    shapes: Mapping[str, int] | None = None,
    exact_softmax: bool = False,
    runnable: bool = True,
    scheduled: int | None = None,
) -> Placing[T]:
    """Read a model and `attempt` something with it until that names no more operations which the scheduler cannot map.

    They go to the host; an error that names none which is not there yet is raised. So does, where the model does not
    fit, a Softmax in integers, which takes several times as much memory as its input, and then operations whose tables
    are more than `config` has (`onnxhw.sched.beyond`). A part that is still too large is cut into parts that run in
    turn (`onnxhw.cutting`), and an operation that is too large alone goes to the host. Of a model of more operations
    than `scheduled` that is done by `report.fit.excess` alone. `runnable` as in `onnxhw.frontend.read`.
    """
    chosen = _Chosen(prepare(source, limits, shapes), config, exact_softmax, scheduled)
    moved: list[UnsupportedError] = []
    first: tuple[Graph, ...] | None = None
    large: DoesNotFitError | None = None
    while True:
        mixed = chosen.placed(runnable)
        first = tuple(part.graph for part in mixed.hardware) if first is None else first
        try:
            made = attempt(mixed)
            break
        except DoesNotFitError as error:
            large = large or error
            if not (chosen.add(too_much(mixed, error, config)) or chosen.shrink(mixed)):
                raise
        except UnsupportedError as error:
            if not chosen.add(unmapped(mixed, error)):
                raise
            moved += _causes(error)
    if large and mixed.hardware:
        mixed = _noted(mixed, first, chosen, large.code)
    return Placing(mixed, made, tuple(moved), first, large)


@dataclass
class _Chosen:
    """What was chosen for a model: `excluded` nodes go to the host, at the operations `begin` new parts begin."""

    prepared: Prepared
    config: HwConfig
    exact_softmax: bool
    scheduled: int | None
    excluded: dict[str, tuple[str, str]] = field(default_factory=dict)
    begin: set[str] = field(default_factory=set)
    large: set[str] = field(default_factory=set)
    """The excluded nodes that are too large."""

    def placed(self, runnable: bool) -> MixedModel:
        """The model, so placed."""
        return self.prepared.placed(self.excluded, self.exact_softmax, runnable, self.begin)

    def add(self, named: Mapping[str, tuple[str, str]], begin: Collection[str] = ()) -> bool:
        """Add nodes, with reason and hint, and operations; whether any is new."""
        new = bool(named.keys() - self.excluded.keys() or set(begin) - self.begin)
        self.excluded |= named
        self.begin |= set(begin)
        return new

    def shrink(self, mixed: MixedModel) -> bool:
        """Add what makes the parts small enough, as far as that is known; whether anything is new."""
        found = False
        while True:
            named, begin = _apart(mixed, self.config, self.scheduled)
            if not self.add(named, begin):
                return found
            self.large |= named.keys()
            found, mixed = True, self.placed(runnable=False)


def _apart(
    mixed: MixedModel, config: HwConfig, scheduled: int | None
) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Of the hardware parts that are too large the nodes of the operations that are so alone, with reason and hint, or
    if there are none the cuts."""
    every = scheduled is None or sum(len(part.graph.ops) for part in mixed.hardware) <= scheduled
    for room in (_bounds, _drafts) if every else (_bounds,):
        large = [part.graph for part in mixed.hardware if room(part.graph, config)]
        named: dict[str, tuple[str, str]] = {}
        for pieces in map(Pieces, large):
            for at, op in enumerate(pieces.graph.ops):
                if error := room(pieces.piece(at, at + 1), config):
                    named |= dict.fromkeys(op.nodes, (error.what, error.hint))
        if large:
            fits = partial(_has_room, room, config)
            return named, [] if named else [at for graph in large for at in cuts(graph, fits)]
    return {}, []


def _has_room(room: Callable[[Graph, HwConfig], DoesNotFitError | None], config: HwConfig, graph: Graph) -> bool:
    return room(graph, config) is None


def _bounds(graph: Graph, config: HwConfig) -> DoesNotFitError | None:
    """What is too large of a part, if that is to be seen at once."""
    found = excess(graph, config)
    return DoesNotFitError(*found) if found else None


def _drafts(graph: Graph, config: HwConfig) -> DoesNotFitError | None:
    """What is too large of a part; operations that cannot be mapped are for others to refuse."""
    from . import sched  # only here: it takes long to import

    try:
        sched.require_room(variants(graph), config)
    except DoesNotFitError as error:
        return error
    except UnsupportedError:
        pass
    return None


def _noted(mixed: MixedModel, first: Sequence[Graph], chosen: _Chosen, code: str) -> MixedModel:
    """The model with notes on what is too large; `code` is of the error that told so."""
    config, notes = chosen.config, []
    if chosen.begin and len(mixed.hardware) > 1:
        total = sum(weight_bytes(part.graph) for part in mixed.hardware)
        notes.append((LARGE[0], IN_TURN.format(config.name, len(mixed.hardware), total)))
    operations = [op for graph in first for op in graph.ops]
    if gone := [op for op in operations if not chosen.large.isdisjoint(op.nodes)]:
        share = 1 - sum(part.graph.macs() for part in mixed.hardware) / max(1, sum(graph.macs() for graph in first))
        notes.append((LARGE[1], NOT_ON_IT.format(len(gone), len(operations), config.name, max(0.0, share))))
    if not notes:
        return mixed
    presets = roomier(first, config, code)
    hint = f"all of it at once may fit {presets}" if presets else ""
    found = (Diagnostic(note, "warning", "model", what, hint) for note, what in notes)
    return replace(mixed, diagnostics=(*mixed.diagnostics, *found))


def compile_mixed(
    source: Source,
    config: HwConfig,
    *,
    limits: Limits | None = None,
    shapes: Mapping[str, int] | None = None,
    patches: bool = True,
    exact_softmax: bool = False,
) -> tuple[MixedModel, MixedProgram]:
    """A model placed on hardware and host, and its program; `patches` as in `compile`, `exact_softmax` as in
    `onnxhw.frontend.read`.

    What the frontend places on the hardware but the scheduler cannot map (no constant proved, say) goes to the host
    too. `UnsupportedError` E4401 names nodes that nothing can run; `DoesNotFitError` (E5xxx) what is too large.
    """
    placed = place_and_schedule(
        source, config, limits=limits, shapes=shapes, patches=patches, exact_softmax=exact_softmax
    )
    return placed.mixed, placed.made


def place_and_schedule(
    source: Source,
    config: HwConfig,
    *,
    limits: Limits | None = None,
    shapes: Mapping[str, int] | None = None,
    patches: bool = True,
    exact_softmax: bool = False,
) -> Placing[MixedProgram]:
    """The same, with what was moved to the host."""

    def attempt(mixed: MixedModel) -> MixedProgram:
        refuse(mixed)
        parts = [part if isinstance(part, HostPart) else _schedule(part.graph, config, patches) for part in mixed.parts]
        return MixedProgram(mixed.name, mixed.inputs, mixed.outputs, parts)

    return place(source, config, attempt, limits=limits, shapes=shapes, exact_softmax=exact_softmax)


def _schedule(graph: Graph, config: HwConfig, patches: bool) -> Program:
    """`sched.fastest` of the graph's variants, with the presets that may do in the hint of what is too large."""
    from . import sched  # only here: it takes long to import

    try:
        if not patches:
            with suppress(DoesNotFitError, UnsupportedError):
                return sched.fastest(variants(graph, patches=False), config)
        return sched.fastest(variants(graph), config)
    except DoesNotFitError as error:
        hint = larger([graph], config, error.code)
        raise DoesNotFitError(error.code, error.what, where=error.where, hint=hint) from error


def size_error(
    graphs: Sequence[Graph], refused: Sequence[UnsupportedError], config: HwConfig, where: str = ""
) -> DoesNotFitError | None:
    """The `DoesNotFitError` (E51xx) of hardware parts that nothing but size keeps from running: memory that is too
    small for any schedule, else the operations in `refused`. None if there are other reasons, or none at all."""
    from . import sched

    large = [error for error in refused if isinstance(error, sched.TooLargeError)]
    if not large or len(large) < len(refused):
        return None
    lines = [f"{error.where}: {error.what}" for error in large[:SHOWN]]
    over = next((found for graph in graphs if (found := excess(graph, config))), None)
    code, text = over or (large[0].size_code, f"nothing of the model fits {config.name}")
    more = [f"and {len(large) - SHOWN} more"] if len(large) > SHOWN else []
    what = "\n  ".join([f"{text}:", *lines, *more])
    return DoesNotFitError(code, what, where=where, hint=larger(graphs, config, code))


def _causes(error: UnsupportedError) -> tuple[UnsupportedError, ...]:
    from . import sched

    return sched.causes(error)


def too_much(mixed: MixedModel, error: DoesNotFitError, config: HwConfig) -> dict[str, tuple[str, str]]:
    """The ONNX nodes that can go to the host because a model is too large, with reason and hint; empty if none can."""
    found: dict[str, tuple[str, str]] = {}
    if mixed.integer_softmax:
        return dict.fromkeys(mixed.integer_softmax, (f"with it in integers: {error.what}", ""))
    if error.code != "E5105":
        return found
    from . import sched

    kept, reason = mixed.dequantizers, f"its table would be one more than the {config.tables} of {config.name}"
    for graph in (part.graph for part in mixed.hardware):
        uses = Counter(name for op in graph.ops for name in op.nodes)
        for op in sched.beyond(graph, config.tables):
            alone = [name for name in op.nodes if uses[name] == 1 and name not in kept]
            found |= dict.fromkeys({*alone, op.nodes[-1]}, (reason, TABLES_HINT))
    return found


def unmapped(mixed: MixedModel, error: UnsupportedError) -> dict[str, tuple[str, str]]:
    """The ONNX nodes of the operations that a scheduler's error names, with reason and hint."""
    found: dict[str, tuple[str, str]] = {}
    for cause in _causes(error):
        for op in (op for part in mixed.hardware for op in part.graph.ops):
            if f"node {op.name!r} (" in cause.text():
                found |= dict.fromkeys(op.nodes, (cause.what, cause.hint))
    return found
