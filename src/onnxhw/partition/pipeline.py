"""`read` and `load`: a model from its file to its parts."""

from collections.abc import Mapping

import onnx

from ..batch import Batch
from ..convert.blockers import Excluded, UnsupportedNodesError
from ..convert.conversion import Conversion, convert
from ..convert.static_model import StaticModel
from ..diagnostics import Diagnostic
from ..ir.graph import Graph
from ..ir.parts import Dim, GoldenPart, HardwarePart, Part, ValueInfo
from ..onnxfile.limits import Limits
from ..onnxmodel.declared_shapes import CONTAINERS
from ..onnxmodel.prepared import Prepared, Source, name_of, prepare
from ..onnxmodel.quantizers import quantizes
from ..onnxmodel.shapes import Shape, require_static
from ..onnxmodel.specification import Findings
from ..onnxmodel.specification.signatures import nowhere
from ..worker import worker_scope
from .host_parts import host_parts
from .node_report import APPROXIMATE, HINT, MEAN, MEAN_HINT, PARTS, PARTS_HINT, ROUNDED, ROUNDED_HINT, node_placements
from .partitioned import PartitionedModel, nothing_on_hardware, require_sized
from .stages import GOLDEN, KINDS, Constraints, integer_parts, stages


@worker_scope()
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
    return parts_of(*converted(prepare(source, limits, shapes), excluded, exact_softmax), runnable)


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
    where = name_of(source)
    made, _, batch = converted(prepare(source, limits, shapes), exact_softmax=exact_softmax)
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


@worker_scope()
def converted(
    prepared: Prepared, excluded: Excluded | None = None, exact_softmax: bool = False
) -> tuple[Conversion, list[Diagnostic], Batch | None]:
    """The conversion: for one sample of a larger batch, if that is proved and the hardware runs some of it."""
    noted, made, batch, large_constants = Findings(), None, prepared.batch, prepared.large_constants
    if one := prepared.one_sample:
        made = convert(StaticModel.of(one.model, one.shapes, large_constants), excluded, exact_softmax, prepared.limits)
        if stages(made).operations:
            batch = one.batch
            inputs = ", ".join(map(repr, sorted(batch.inputs)))
            what = f"its batch of {batch.size} runs as {batch.size} inferences of one sample each"
            noted.info("W3402", f"input {inputs}", what)
        else:
            made = None
    if made is None:
        whole = StaticModel.of(prepared.model, prepared.shapes, large_constants, prepared.others)
        made = convert(whole, excluded, exact_softmax, prepared.limits)
    for name in sorted(made.context.integer_softmax):
        noted.info("W3403", f"node {name!r}", APPROXIMATE, HINT)
    if parted := made.context.parts:
        first, count = next(iter(parted.items()))
        others = f" and {len(parted) - 1} others" if len(parted) > 1 else ""
        noted.info("W3404", f"node {first!r}{others}", PARTS.format(count), PARTS_HINT)
    for name in sorted(made.context.means):
        noted.info("W3407", f"node {name!r}", MEAN, MEAN_HINT)
    if rounded := made.context.rounded:
        worst = max(rounded, key=rounded.__getitem__)
        others = f" and {len(rounded) - 1} others" if len(rounded) > 1 else ""
        noted.warning("W3601", f"node {worst!r}{others}", ROUNDED.format(rounded[worst]), ROUNDED_HINT)
    return made, [*prepared.diagnostics, *noted.found], batch


def parts_of(
    made: Conversion,
    diagnostics: list[Diagnostic],
    batch: Batch | None = None,
    runnable: bool = True,
    constraints: Constraints | None = None,
) -> PartitionedModel:
    """The parts of a conversion and its placement; `runnable` as in `read`, `constraints` as of `stages`."""
    constraints = constraints or Constraints()
    found = stages(made, constraints)
    graphs, hosts = integer_parts(made, found), host_parts(made, found, runnable)
    order = sorted({*graphs, *hosts})
    parts = [_part(stage, graphs[stage]) if stage in graphs else hosts[stage] for stage in order]
    rows = node_placements(made, found, graphs, {stage: number for number, stage in enumerate(order)}, constraints)
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


def _value(made: Conversion, value: onnx.ValueInfoProto, optional: bool = False) -> ValueInfo:
    known: Shape | None = made.context.shapes.get(value.name)
    kind = value.type.tensor_type
    dims: tuple[Dim, ...] | None = known
    if known is None and value.type.HasField("tensor_type") and kind.HasField("shape"):
        dims = _sizes(kind)
    elements = None if value.type.HasField("tensor_type") else _elements(value.type)
    return ValueInfo(value.name, dims, made.context.dtypes.get(value.name, ""), optional, elements)


def _elements(kind: onnx.TypeProto) -> tuple[Dim, ...] | None:
    """The shape of the tensors in a sequence, an optional or a map, however deep."""
    while (name := kind.WhichOneof("value")) in CONTAINERS:
        kind = kind.map_type.value_type if name == "map_type" else getattr(kind, name).elem_type
    return _sizes(kind.tensor_type) if name == "tensor_type" and kind.tensor_type.HasField("shape") else None


def _sizes(kind: onnx.TypeProto.Tensor) -> tuple[Dim, ...]:
    return tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in kind.shape.dim)
