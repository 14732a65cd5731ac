"""`schedule`: a typed integer graph onto one accelerator, as a checked program."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..garbage import collection_paused
from ..ir.graph import Graph, Op, Port
from ..isa.units import Unit
from ..program.input_regions import latency_of, require_regions, travelling_words
from ..program.model import DeviceProgram, Entry, Layer, runs_of
from ..program.traffic import Traffic, traffic
from ..program.variant import Variant
from .aliases import producers
from .alloc import NOTHING, Occupied
from .checker import check
from .constant_memories import ConstantMemories
from .heuristics import ALL, Heuristics
from .input_release import input_free
from .lower import LoweredGraph, lower
from .memory_trace import accesses, in_memory
from .reaching_definitions import check_reaching_definitions
from .rewrite import same_operand
from .search import ScheduledCandidate, first, improve, with_exclusive_inputs


def schedule(graph: Graph, config: HwConfig) -> DeviceProgram:
    """The program of a graph; it has passed `check`.

    `UnsupportedError` (E43xx) names what cannot be mapped, `DoesNotFitError` (E51xx) what is too large,
    with the numbers.
    """
    return finish(initial_schedule(graph, config))


def fastest(
    groups: Sequence[Sequence[Variant]], config: HwConfig, use: Heuristics = ALL, checked: bool = True
) -> DeviceProgram:
    """The program of fewest cycles of graphs of one meaning, compared before the search for cuts; else as `schedule`.

    Of each group the first that can be scheduled counts; the first of all is the model itself. Of equally fast ones the
    first is taken. If none can be scheduled, the error is that of the last which is too large, if the model is too
    large, and else the model's.
    `use`: for measurements alone (`heuristics`). `checked`: as in `finish`.
    """
    return begin(groups, config, use).finished(checked)


def initial_cycles(groups: Sequence[Sequence[Variant]], config: HwConfig) -> tuple[int, int, Traffic]:
    """Of `fastest` before the search for cuts: cycles from the acceptance of the last input on, and those of the run,
    from which the search only takes away; and what travels for an inference. Errors as there."""
    best = begin(groups, config)
    begun, inputs = best.schedule, _inputs(best.variant, best.schedule)
    cycles, places = begun.candidate.cycles, begun.candidate.places
    outputs = [places[port.tensor] for port in begun.lowered.graph.outputs]
    moved = traffic(sum(map(travelling_words, inputs)), outputs, config.word)
    return latency_of(inputs, config.word, cycles), cycles, moved


def begin(groups: Sequence[Sequence[Variant]], config: HwConfig, use: Heuristics = ALL) -> "BegunProgram":
    """The program of `fastest` before the search for better cuts: the fastest initial schedule of the first of each
    group that can be scheduled. Errors as there: whatever does not fit is known after it."""
    schedules: list[tuple[Variant, InitialSchedule]] = []
    errors: list[DoesNotFitError | UnsupportedError] = []
    for group in groups:
        if found := _first(group, config, errors, use):
            schedules.append(found)
    if not schedules:
        raise _heaviest(errors)
    return BegunProgram(groups[0][0].graph, *min(schedules, key=lambda each: each[1].candidate.cycles))


def _inputs(variant: Variant, begun: "InitialSchedule") -> list[Entry]:
    """Where the inputs lie."""
    found = []
    for name in dict.fromkeys(port.tensor for port in begun.lowered.graph.inputs):
        tensor, (storage, shape) = begun.lowered.graph.tensors[name], variant.storage.get(name, (None, None))
        place = begun.candidate.places[name]
        found.append(Entry(name, place, tensor.scale, tensor.zero_point, storage=storage, model=shape))
    return found


def require_capacity(groups: Sequence[Sequence[Variant]], config: HwConfig) -> None:
    """The errors of `fastest`, without the search for its program."""
    errors: list[DoesNotFitError | UnsupportedError] = []
    if not any(_first(group, config, errors) for group in groups):
        raise _heaviest(errors)


def _first(
    group: Sequence[Variant], config: HwConfig, errors: list[DoesNotFitError | UnsupportedError],
    use: Heuristics = ALL,
) -> "tuple[Variant, InitialSchedule] | None":
    """The first that can be scheduled; `errors` of those before it are added."""
    for variant in group:
        try:
            return variant, initial_schedule(variant.graph, config, use)
        except (DoesNotFitError, UnsupportedError) as error:
            errors.append(error)
    return None


def _heaviest(errors: Sequence[DoesNotFitError | UnsupportedError]) -> DoesNotFitError | UnsupportedError:
    """What `fastest` raises if no variant can be scheduled."""
    too_large = [error for error in errors if isinstance(error, DoesNotFitError)]
    return too_large[-1] if isinstance(errors[0], DoesNotFitError) else errors[0]


@dataclass(frozen=True)
class InitialSchedule:
    """A graph ready to be scheduled, and its program before the search for better cuts."""

    lowered: LoweredGraph
    candidate: ScheduledCandidate


@dataclass(frozen=True)
class BegunProgram:
    """The `schedule` of the best `variant` of a `model`."""

    model: Graph
    variant: Variant
    schedule: InitialSchedule

    def finished(self, checked: bool = True) -> DeviceProgram:
        """The program after the search for better cuts; `checked` as in `finish`."""
        program = finish(self.schedule, self.model, checked)
        for name, (storage, shape) in self.variant.storage.items():
            program.tensors[name] = replace(program.tensors[name], storage=storage, model=shape)
        return program


@collection_paused()
def initial_schedule(
    graph: Graph, config: HwConfig, use: Heuristics = ALL, occupied: Occupied = NOTHING, streams: bool = False,
    moved: bool = False,
) -> InitialSchedule:  # fmt: skip
    """The first program of a graph; errors as `schedule`. `streams`: its weights may be more than their memory holds,
    for they come in pieces, anew for each tile of rows; then it has the fewest tiles. `moved`: its inputs come by
    moves, any number of them, and not through the input port."""
    lowered = lower(same_operand(graph), config, use, occupied)
    check_capacity(lowered.images, config, streams)
    if lowered.images.weight_words > config.weight_depth:
        lowered = replace(lowered, use=replace(use, row_tiles=False))
    candidate = first(lowered)
    inputs = () if moved else dict.fromkeys(port.tensor for port in graph.inputs)
    if why := require_regions([candidate.places[name] for name in inputs], config.word):
        raise DoesNotFitError("E5160", why, hint="concatenate inputs before the model, and split them in it")
    return InitialSchedule(lowered, candidate)


@collection_paused()
def finish(begun: InitialSchedule, model: Graph | None = None, checked: bool = True) -> DeviceProgram:
    """The checked program of an initial schedule; `model`: the graph that says its nominal multiply-accumulates, if
    another. If not `checked`, its cycles and what it needs of the memories are as exact, but it must not run."""
    lowered, graph = begun.lowered, begun.lowered.graph
    model = model or graph
    candidate = with_exclusive_inputs(lowered, improve(lowered, begun.candidate))
    table = entries(lowered, candidate)
    program = DeviceProgram(
        lowered.config,
        graph.name,
        candidate.code,
        lowered.images.weight_image,
        lowered.images.param_image,
        lowered.images.table_image,
        table,
        list(graph.inputs),
        [unnamed(port) for port in graph.outputs],
        layers(lowered, candidate, model),
        candidate.cycles,
        sum(executed(lowered, op) for op in graph.ops),
        nominal=model.macs(),
    )
    if checked:
        check_reaching_definitions(lowered, candidate, table)
        program.input_free = input_free(program, candidate.times)
        check(program)
    return program


def map_operations(graph: Graph, config: HwConfig) -> ConstantMemories:
    """What the operations keep in the memories of weights, parameters and tables; `UnsupportedError` as `schedule`."""
    return lower(same_operand(graph), config).images


def unnamed(port: Port) -> Port:
    """An output without the names of the model's nodes in its steps: the same computation makes the same program."""
    return replace(port, steps=tuple({**step, "name": ""} for step in port.steps))


def check_capacity(images: ConstantMemories, config: HwConfig, streams: bool = False) -> None:
    """`DoesNotFitError` E5102 (weights, unless they come in pieces: `streams`), E5103 (parameters) or E5105 (tables),
    with all that is too large."""
    problems = []
    for code, what, used, available, use, field in (
        ("E5102", f"weight words of {config.weight_word} bytes", images.weight_words, config.weight_depth,
         images.weight_use, "weight_depth"),
        ("E5103", f"parameter rows of {config.lanes} entries", len(images.param_image), config.param_depth,
         images.param_use, "param_depth"),
        ("E5105", "tables", len(images.table_image), config.tables, {}, "tables"),
    ):  # fmt: skip
        if used > available and not (streams and code == "E5102"):
            largest = max(use, key=lambda name: use[name]) if use else ""
            detail = f"; largest layer: {largest!r} with {use[largest]}" if largest else ""
            text, share = f"needs {used} {what}, {config.name} has {available}{detail}", used / available - 1
            problems.append((code, text, field, share))
    if problems:
        codes, texts, fields, shares = zip(*problems, strict=True)
        hint = f"a configuration with more {', '.join(fields)}"
        raise DoesNotFitError(codes[0], "; ".join(texts), hint=hint, share=max(shares))


def entries(lowered: LoweredGraph, candidate: ScheduledCandidate) -> dict[str, Entry]:
    """The tensor table: where each tensor lies, and between which vector instructions it is there."""
    graph, makers = lowered.graph, producers(lowered.graph)
    buffers = {name: alias.buffer for name, alias in lowered.aliases.of.items()}
    address = in_memory(candidate.places, lowered.config, np.arange(lowered.config.act_words))
    regions = [access.region for access in accesses(candidate.tasks) if access.writes]
    writes = [(buffers[region.tensor], address[region].ravel()) for region in regions]
    found = {}
    for name, tensor in graph.tensors.items():
        mine = np.zeros(lowered.config.act_words, bool)
        mine[address.of[name].ravel()] = True
        hits = [(index, buffer) for index, (buffer, words) in enumerate(writes) if mine[words].any()]
        ready = max((index + 1 for index, buffer in hits if buffer == buffers[name]), default=0)
        last = min((index for index, _ in hits if index >= ready), default=len(writes))
        op = makers[name].name if name in makers else ""
        found[name] = Entry(name, candidate.places[name], tensor.scale, tensor.zero_point, ready, last, op)
    return found


def executed(lowered: LoweredGraph, op: Op) -> int:
    """The multiply-accumulates that the hardware makes for an operation, of those that the graph has.

    Of a convolution, those of channels that are streamed: a set of columns leaves out input channels at either end that
    meet only weights of 0, and output channels that are constant have no weights.
    """
    streamed, out = lowered.images.multiplied.get(op.name), lowered.graph.tensors[op.output]
    return lowered.graph.macs_of(op) if streamed is None else streamed * out.height * out.width


def layers(lowered: LoweredGraph, candidate: ScheduledCandidate, model: Graph | None = None) -> list[Layer]:
    """One layer per operation, or per group of operations whose array instructions take turns; `model` as in `finish`.

    Every instruction belongs to the layer of the operation that it was made for. From the first to the last, the array
    instructions of two layers do not overlap; those of the vector unit may.
    """
    graph = candidate.point.graph
    mine: dict[str, dict[Unit, list[int]]] = {op.name: {} for op in graph.ops}
    for unit, names in candidate.owners.items():
        for index, name in enumerate(names):
            mine[name].setdefault(unit, []).append(index)
    found: list[Layer] = []
    whole = model or lowered.graph
    nominal = {op.name: whole.macs_of(op) for op in whole.ops}
    kinds = {op.name: type(op).__name__ for op in whole.ops}
    for op in graph.ops:
        runs = {unit: runs_of(indices) for unit, indices in mine[op.name].items()}
        kind = kinds.get(op.name, type(op).__name__)
        layer = Layer(op.name, kind, executed(lowered, op), runs, nominal.get(op.name, 0))
        other = next((known for known in found if _overlap(known, layer)), None)
        if other:
            _merge(other, layer)
        else:
            found.append(layer)
    return found


def _overlap(a: Layer, b: Layer) -> bool:
    one, other = a.span(Unit.ARRAY), b.span(Unit.ARRAY)
    return bool(one and other and one[0] < other[1] and other[0] < one[1])


def _merge(a: Layer, b: Layer) -> None:
    a.name, a.macs, a.nominal = f"{a.name} + {b.name}", a.macs + b.macs, a.nominal + b.nominal
    if b.kind not in a.kind.split(" + "):
        a.kind = f"{a.kind} + {b.kind}"
    for unit in b.instructions:
        a.instructions[unit] = runs_of(sorted(a.indices(unit) + b.indices(unit)))
