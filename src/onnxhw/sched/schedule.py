"""`schedule`: a typed integer graph onto one accelerator, as a checked program."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.graph import Conv, Graph, Op, Port
from ..isa.units import Unit
from ..program.layout import Place
from ..program.model import Entry, Layer, Program, runs_of
from ..program.traffic import Rates, Traffic, traffic
from ..program.variant import Variant
from .check import check
from .held import prove
from .images import Images
from .lower import Plan, lower
from .places import producers
from .rewrite import same_operand
from .search import Candidate, apart, first, improve
from .window import input_free
from .work import Region


def schedule(graph: Graph, config: HwConfig) -> Program:
    """The program of a graph; it has passed `check`.

    `UnsupportedError` (E43xx) names what cannot be mapped, `DoesNotFitError` (E51xx) what is too large,
    with the numbers.
    """
    return finish(draft(graph, config))


def fastest(groups: Sequence[Sequence[Variant]], config: HwConfig, rates: Rates | None = None) -> Program:
    """The fastest program of graphs of one meaning, compared before the search for cuts; else as `schedule`.

    Fastest is what takes the fewest cycles, or with `rates` the least time of line and core. Of each group the first
    that can be scheduled counts; the first of all is the model itself. Of equally fast ones the first is taken. If none
    can be scheduled, the error is that of the last which is too large, if the model is too large, and else the model's.
    """
    variant, chosen = _best(groups, config, rates)
    program = finish(chosen, groups[0][0].graph)
    for name, (kept, shape) in variant.kept.items():
        program.tensors[name] = replace(program.tensors[name], kept=kept, model=shape)
    return program


def draft_cycles(
    groups: Sequence[Sequence[Variant]], config: HwConfig, rates: Rates | None = None
) -> tuple[int, Traffic]:
    """Cycles of `fastest` before the search for cuts, which only takes away from them, and what travels for an
    inference; errors as there."""
    draft = _best(groups, config, rates)[1]
    return draft.candidate.cycles, _moved(draft)


def _best(
    groups: Sequence[Sequence[Variant]], config: HwConfig, rates: Rates | None = None
) -> "tuple[Variant, Draft]":
    """The fastest draft of the first of each group that can be scheduled."""
    drafts: list[tuple[Variant, Draft]] = []
    errors: list[DoesNotFitError | UnsupportedError] = []
    for group in groups:
        if found := _first(group, config, errors):
            drafts.append(found)
    if not drafts:
        raise _heaviest(errors)
    return min(drafts, key=lambda each: _waited(each[1], rates) if rates else each[1].candidate.cycles)


def _waited(draft: "Draft", rates: Rates) -> float:
    """Milliseconds of an inference: what its inputs and outputs take on the line, and the core."""
    return rates.wait_ms(draft.candidate.cycles, _moved(draft))


def _moved(draft: "Draft") -> Traffic:
    graph, places = draft.plan.graph, draft.candidate.places
    inputs = dict.fromkeys(port.tensor for port in graph.inputs)
    outputs = [port.tensor for port in graph.outputs]
    into, out = ([places[name] for name in names] for names in (inputs, outputs))
    return traffic(into, out, draft.plan.config.word)


def require_room(groups: Sequence[Sequence[Variant]], config: HwConfig) -> None:
    """The errors of `fastest`, without the search for its program."""
    errors: list[DoesNotFitError | UnsupportedError] = []
    if not any(_first(group, config, errors) for group in groups):
        raise _heaviest(errors)


def _first(
    group: Sequence[Variant], config: HwConfig, errors: list[DoesNotFitError | UnsupportedError]
) -> "tuple[Variant, Draft] | None":
    """The first that can be scheduled; `errors` of those before it are added."""
    for variant in group:
        try:
            return variant, draft(variant.graph, config)
        except (DoesNotFitError, UnsupportedError) as error:
            errors.append(error)
    return None


def _heaviest(errors: Sequence[DoesNotFitError | UnsupportedError]) -> DoesNotFitError | UnsupportedError:
    """What `fastest` raises if no variant can be scheduled."""
    too_large = [error for error in errors if isinstance(error, DoesNotFitError)]
    return too_large[-1] if isinstance(errors[0], DoesNotFitError) else errors[0]


@dataclass(frozen=True)
class Draft:
    """A graph ready to be scheduled, and its program before the search for better cuts."""

    plan: Plan
    candidate: Candidate


def draft(graph: Graph, config: HwConfig) -> Draft:
    """The first program of a graph; errors as `schedule`."""
    plan = lower(same_operand(graph), config)
    check_capacity(plan.images, config)
    return Draft(plan, first(plan))


def finish(begun: Draft, model: Graph | None = None) -> Program:
    """The checked program of a draft; `model` is the graph that says its nominal multiply-accumulates, if another."""
    plan, graph = begun.plan, begun.plan.graph
    model = model or graph
    candidate = apart(plan, improve(plan, begun.candidate))
    table = entries(plan, candidate)
    prove(plan, candidate, table)
    program = Program(
        plan.config,
        graph.name,
        candidate.code,
        plan.images.weight_image,
        plan.images.param_image,
        plan.images.table_image,
        table,
        list(graph.inputs),
        [unnamed(port) for port in graph.outputs],
        layers(plan, candidate, model),
        candidate.cycles,
        sum(executed(plan, op) for op in graph.ops),
        nominal=model.macs(),
    )
    program.input_free = input_free(program)
    check(program)
    return program


def map_operations(graph: Graph, config: HwConfig) -> Images:
    """What the operations keep in the memories of weights, parameters and tables; `UnsupportedError` as `schedule`."""
    return lower(same_operand(graph), config).images


def unnamed(port: Port) -> Port:
    """An output without the names of the model's nodes in its steps: the same computation makes the same program."""
    return replace(port, steps=tuple({**step, "name": ""} for step in port.steps))


def check_capacity(images: Images, config: HwConfig) -> None:
    """`DoesNotFitError` E5102 (weights), E5103 (parameters) or E5105 (tables), with all that is too large."""
    problems = []
    for code, what, used, available, use, field in (
        ("E5102", f"weight words of {config.weight_word} bytes", len(images.weight_image), config.weight_depth,
         images.weight_use, "weight_depth"),
        ("E5103", f"parameter rows of {config.lanes} entries", len(images.param_image), config.param_depth,
         images.param_use, "param_depth"),
        ("E5105", "tables", len(images.table_image), config.tables, {}, "tables"),
    ):  # fmt: skip
        if used > available:
            largest = max(use, key=lambda name: use[name]) if use else ""
            detail = f"; largest layer: {largest!r} with {use[largest]}" if largest else ""
            problems.append((code, f"needs {used} {what}, {config.name} has {available}{detail}", field))
    if problems:
        code = problems[0][0]
        fields = ", ".join(field for _, _, field in problems)
        text = "; ".join(text for _, text, _ in problems)
        raise DoesNotFitError(code, text, hint=f"a configuration with more {fields}")


def _words(place: Place, region: Region) -> npt.NDArray[np.int64]:
    planes, rows, cols = (np.arange(*span) for span in (region.planes, region.rows, region.cols))
    return (place.base + planes[:, None, None] * place.plane + rows[:, None] * place.row + cols).ravel()


def entries(plan: Plan, candidate: Candidate) -> dict[str, Entry]:
    """The tensor table: where each tensor lies, and between which vector instructions it is there."""
    graph, makers = plan.graph, producers(plan.graph)
    roots = {name: home.root for name, home in plan.homes.of.items()}
    writes = [(roots[region.tensor], _words(candidate.places[region.tensor], region)) for region in candidate.writes]
    found = {}
    for name, tensor in graph.tensors.items():
        place = candidate.places[name]
        mine = np.zeros(plan.config.act_words, bool)
        mine[place.addresses(plan.config.word).ravel()] = True
        hits = [(index, root) for index, (root, words) in enumerate(writes) if mine[words].any()]
        ready = max((index + 1 for index, root in hits if root == roots[name]), default=0)
        last = min((index for index, _ in hits if index >= ready), default=len(writes))
        op = makers[name].name if name in makers else ""
        found[name] = Entry(name, place, tensor.scale, tensor.zero_point, ready, last, op)
    return found


def executed(plan: Plan, op: Op) -> int:
    """The multiply-accumulates that the hardware makes for an operation, of those that the graph has.

    Of a convolution, those of channels that are streamed: a set of columns leaves out input channels at either end that
    meet only weights of 0, and output channels that are constant have no weights.
    """
    if isinstance(op, Conv):
        out = plan.graph.tensors[op.output]
        return plan.images.multiplied[op.name] * out.height * out.width
    return plan.graph.macs_of(op)


def layers(plan: Plan, candidate: Candidate, model: Graph | None = None) -> list[Layer]:
    """One layer per operation, or per group of operations whose array instructions take turns; `model` as in `finish`.

    Every instruction belongs to the layer of the operation that it was made for. From the first to the last, the array
    instructions of two layers do not overlap; those of the vector unit may.
    """
    graph = candidate.setting.graph
    mine: dict[str, dict[Unit, list[int]]] = {op.name: {} for op in graph.ops}
    for unit, names in candidate.owners.items():
        for index, name in enumerate(names):
            mine[name].setdefault(unit, []).append(index)
    found: list[Layer] = []
    whole = model or plan.graph
    nominal = {op.name: whole.macs_of(op) for op in whole.ops}
    for op in graph.ops:
        runs = {unit: runs_of(indices) for unit, indices in mine[op.name].items()}
        layer = Layer(op.name, type(op).__name__, executed(plan, op), runs, nominal.get(op.name, 0))
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
