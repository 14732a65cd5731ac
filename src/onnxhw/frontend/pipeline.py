"""`read` and `load`: the frontend's steps in order."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import onnx

from ..ir.graph import Graph
from ..ir.parts import Batch, Dim, GoldenPart, HardwarePart, Part, Value
from .batch import OneSample, at_sizes, one_sample, open_batch, prove_open
from .blockers import Excluded, UnsupportedNodesError
from .confined import guarded
from .control import unroll
from .convert import Conversion, convert
from .declared import CONTAINERS
from .diagnostics import Diagnostic
from .functions import inline
from .hostparts import host_parts
from .load import read as reading_of
from .normal import normalise
from .openings import settled
from .partition import GOLDEN, KINDS, Division, integer_parts, stages
from .partitioned import PartitionedModel, nothing_on_hardware, quantizes, require_sized
from .placement import APPROXIMATE, HINT, PARTS, PARTS_HINT, ROUNDED, ROUNDED_HINT, placement
from .quant.exports import adopt
from .reading.apart import Apart
from .reading.limits import DEFAULT, Limits
from .shapes import Shape, require_static
from .spec import Findings, diagnose, raise_errors
from .spec.signatures import nowhere
from .static import Static

Source = str | os.PathLike[str] | bytes | onnx.ModelProto
"""A path, the bytes of an ONNX file, or a model in memory."""


def read(
    source: Source,
    *,
    limits: Limits | None = None,
    shapes: Mapping[str, int] | None = None,
    excluded: Excluded | None = None,
    exact_softmax: bool = False,
    runnable: bool = True,
) -> PartitionedModel:
    """The model, placed on hardware and host.

    Parameters
    ----------
    limits : how large a model may be.
    shapes : values of dynamic dimensions by name.
    excluded : nodes by label that shall run on the host, why, and what to do.
    exact_softmax : see `convert`.
    runnable : False leaves large constants out of the host parts, which are then good for looking at only.

    `InvalidModelError` (E3xxx) for what is not a valid model. What the hardware cannot run is a host node, and what
    nothing can run a refused one: neither is an error. A model with a batch of N in the file is placed for one sample
    where that puts some of it on the hardware and samples are proved independent: `PartitionedModel.batch`.
    """
    with guarded():
        return prepare(source, limits, shapes).placed(excluded, exact_softmax, runnable)


def load(
    source: Source,
    *,
    limits: Limits | None = None,
    shapes: Mapping[str, int] | None = None,
    exact_softmax: bool = False,
) -> Graph:
    """The integer graph of a model that runs on the hardware as a whole; of one sample, if its batch is larger.

    Raises `InvalidModelError` (E3xxx) for what is not a valid model and `UnsupportedError` for what does not run on
    the hardware: E4001 lists every node, E4002 a float model, E4006 a model without operations.
    """
    where = _where(source)
    made, _, batch = prepare(source, limits, shapes).converted(exact_softmax=exact_softmax)
    require_sized(batch, where)
    require_static(made.static.model, made.context.shapes, where)
    unknown = [made.reasons[index] for index, node in enumerate(made.host.nodes)
               if index in made.reasons and nowhere(node.op_type, node.domain)]  # fmt: skip
    if not any(quantizes(node.op_type) for node in made.host.nodes):
        raise UnsupportedNodesError(unknown, where) if unknown else nothing_on_hardware(where, False)
    if made.blockers:
        raise UnsupportedNodesError(made.blockers, where)
    found = stages(made)
    graphs = list(integer_parts(made, found).values())
    if not graphs:
        raise nothing_on_hardware(where, True)
    if len(graphs) > 1 or found.nodes:
        raise UnsupportedNodesError([made.reasons[index] for index in sorted(found.nodes)], where)
    return graphs[0]


def _where(source: Source) -> str:
    return "model" if isinstance(source, (bytes, onnx.ModelProto)) else str(source)


@dataclass(frozen=True)
class Prepared:
    """A model that was read, checked and specialised: all that does not depend on which nodes shall run on the host.

    known : static shapes of the values of `model`.
    batch : of a model that leaves it open.
    one : the model of one sample, of a quantized model with a batch of more in the file.
    others : see `Static`.
    """

    where: str
    limits: Limits
    apart: Apart
    diagnostics: tuple[Diagnostic, ...]
    model: onnx.ModelProto
    known: Mapping[str, Shape]
    batch: Batch | None = None
    one: OneSample | None = None
    others: Callable[[], list[Mapping[str, Shape]]] | None = None

    @cached_property
    def whole(self) -> Static:
        """The model as it is, to be converted."""
        return Static.of(self.model, self.known, self.apart, self.others)

    @cached_property
    def sample(self) -> Static:
        """The model of one sample, to be converted."""
        assert self.one is not None
        return Static.of(self.one.model, self.one.shapes, self.apart)

    def placed(
        self,
        excluded: Excluded | None = None,
        exact_softmax: bool = False,
        runnable: bool = True,
    ) -> PartitionedModel:
        """The model, placed; parameters as of `read`."""
        return parts_of(*self.converted(excluded, exact_softmax), runnable)

    def converted(
        self, excluded: Excluded | None = None, exact_softmax: bool = False
    ) -> tuple[Conversion, list[Diagnostic], Batch | None]:
        """The conversion: for one sample of a larger batch, if that is proved and the hardware runs some of it."""
        with guarded():
            return self._converted(excluded, exact_softmax)

    def _converted(
        self, excluded: Excluded | None, exact_softmax: bool
    ) -> tuple[Conversion, list[Diagnostic], Batch | None]:
        noted, made, batch = Findings(), None, self.batch
        if self.one:
            made = convert(self.sample, excluded, exact_softmax, self.limits)
            if stages(made).operations:
                batch = self.one.batch
                inputs = ", ".join(map(repr, sorted(batch.inputs)))
                what = f"its batch of {batch.size} runs as {batch.size} inferences of one sample each"
                noted.info("W3402", f"input {inputs}", what)
            else:
                made = None
        made = made or convert(self.whole, excluded, exact_softmax, self.limits)
        for name in sorted(made.context.integer_softmax):
            noted.info("W3403", f"node {name!r}", APPROXIMATE, HINT)
        if parted := made.context.parts:
            first, count = next(iter(parted.items()))
            others = f" and {len(parted) - 1} others" if len(parted) > 1 else ""
            noted.info("W3404", f"node {first!r}{others}", PARTS.format(count), PARTS_HINT)
        if rounded := made.context.rounded:
            worst = max(rounded, key=rounded.__getitem__)
            others = f" and {len(rounded) - 1} others" if len(rounded) > 1 else ""
            noted.warning("W3601", f"node {worst!r}{others}", ROUNDED.format(rounded[worst]), ROUNDED_HINT)
        return made, [*self.diagnostics, *noted.found], batch


def prepare(source: Source, limits: Limits | None = None, shapes: Mapping[str, int] | None = None) -> Prepared:
    """The model, ready to be placed; parameters and errors as of `read`."""
    with guarded():
        return _prepared(source, limits, shapes)


def _prepared(source: Source, limits: Limits | None, shapes: Mapping[str, int] | None) -> Prepared:
    where, limits, shapes = _where(source), limits or DEFAULT, shapes or {}
    file = source.SerializeToString() if isinstance(source, onnx.ModelProto) else source
    reading = reading_of(file, limits, apart=True)
    diagnostics = [*reading.warnings, *adopt(reading.model, where), *diagnose(reading.model, where)]
    raise_errors(diagnostics, where)
    normalise(reading.model)
    model = unroll(inline(reading.model, limits, where), limits)
    noted = Findings()
    found = settled(model, where, shapes, limits, noted)
    static, known, batch = found.model, found.shapes, found.batch
    quantized = any(quantizes(node.op_type) for node in static.graph.node)
    one, others = None, None
    if batch is not None:
        pass  # its size is not 1, so that nothing can be proved of one sample
    elif opened := open_batch(model, shapes):
        others = partial(at_sizes, model, shapes, opened)
        unproved = Batch(0, opened, mixing="the model is not quantized")
        batch = prove_open(model, known, shapes, opened) if quantized else unproved
        if quantized and batch.mixing:
            _mixing(noted, batch.mixing, "a session places the model anew for each batch that it is fed")
    elif quantized:
        one = one_sample(static, known)  # or why there is none
        if isinstance(one, str) and one:
            _mixing(noted, one, "its batch stays whole, and but for matrices on the host")
    sample = one if isinstance(one, OneSample) else None
    return Prepared(where, limits, reading.apart, (*diagnostics, *noted.found), static, known, batch, sample, others)


def _mixing(noted: Findings, reason: str, what: str) -> None:
    noted.info("W3401", "model", f"samples of the batch may meet: {reason}; {what}")


def parts_of(
    made: Conversion,
    diagnostics: list[Diagnostic],
    batch: Batch | None = None,
    runnable: bool = True,
    division: Division | None = None,
) -> PartitionedModel:
    """The parts of a conversion and its placement; `runnable` as in `read`, `division` as of `stages`."""
    division = division or Division()
    found = stages(made, division)
    graphs, hosts = integer_parts(made, found), host_parts(made, found, runnable)
    order = sorted({*graphs, *hosts})
    parts = [_part(stage, graphs[stage]) if stage in graphs else hosts[stage] for stage in order]
    rows = placement(made, found, graphs, {stage: number for number, stage in enumerate(order)}, division)
    graph = made.static.model.graph
    constants = {tensor.name for tensor in graph.initializer}
    return PartitionedModel(
        graph.name or "model",
        tuple(_value(made, value, value.name in constants) for value in graph.input),
        tuple(_value(made, value) for value in graph.output),
        tuple(parts),
        tuple(rows),
        tuple(diagnostics),
        batch,
    )


def _part(stage: int, graph: Graph) -> Part:
    return GoldenPart(graph) if stage % KINDS == GOLDEN else HardwarePart(graph)


def _value(made: Conversion, value: onnx.ValueInfoProto, optional: bool = False) -> Value:
    known: Shape | None = made.context.shapes.get(value.name)
    kind = value.type.tensor_type
    dims: tuple[Dim, ...] | None = known
    if known is None and value.type.HasField("tensor_type") and kind.HasField("shape"):
        dims = _sizes(kind)
    elements = None if value.type.HasField("tensor_type") else _elements(value.type)
    return Value(value.name, dims, made.context.dtypes.get(value.name, ""), optional, elements)


def _elements(kind: onnx.TypeProto) -> tuple[Dim, ...] | None:
    """The shape of the tensors in a sequence, an optional or a map, however deep."""
    while (name := kind.WhichOneof("value")) in CONTAINERS:
        kind = kind.map_type.value_type if name == "map_type" else getattr(kind, name).elem_type
    return _sizes(kind.tensor_type) if name == "tensor_type" and kind.tensor_type.HasField("shape") else None


def _sizes(kind: onnx.TypeProto.Tensor) -> tuple[Dim, ...]:
    return tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in kind.shape.dim)
