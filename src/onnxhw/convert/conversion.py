"""`convert`: from a checked ONNX model to IR operations and host nodes, node by node in the model's order.

A node whose handler raises `BlockedError` runs on the host; its outputs are inputs of the hardware from then on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from ..errors import InternalError, InvalidModelError
from ..ir.graph import Graph, Op
from ..onnxfile.limits import DEFAULT as LIMITS
from ..onnxfile.limits import Limits
from ..onnxmodel.inference import undeclared
from ..onnxmodel.nodes import DEFAULT, Node
from .blockers import BlockedError, Blocker, Excluded
from .channels_last import channels_last
from .constant_folding import FOLDABLE, fold
from .context import Context
from .handlers import HANDLERS, handler
from .host_nodes import HostNodes
from .static_model import StaticModel
from .values import Const, GraphInput, HostValue, QuantConst, QuantizedView, Unknown, Unquantized, Value

OLDEST_OPSET = 7
"""In older operator sets the same names have other meanings."""
LONGEST_CHAIN = 64
"""Most steps between a tensor and a value; what is longer is cut by a host node, so that time stays linear."""

LARGEST = 1 << 24
"""Elements of a tensor on the hardware, far more than any preset has memory for: what is computed of a tensor while it
is placed takes some 30 bytes per element."""
CONSTANT = (Const, QuantConst)


@dataclass
class Conversion:
    """What became of each node.

    `host` has the host nodes and the order of everything. `reasons` says by node index why one runs there;
    `blockers` are those whose own fault it is, in the model's order.
    """

    static: StaticModel
    context: Context
    host: HostNodes
    reasons: dict[int, Blocker] = field(default_factory=dict)
    blockers: list[Blocker] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)
    """The first node of each label."""
    softmax: set[str] = field(default_factory=set)
    """Labels of the Softmaxes at the edge whose results a node needs that the hardware could run."""


def convert(
    static: StaticModel, excluded: Excluded | None = None, exact_softmax: bool = False, limits: Limits = LIMITS
) -> Conversion:
    """The conversion of a model.

    Parameters
    ----------
    excluded : nodes by label that shall run on the host, why, and what to do.
    exact_softmax : a Softmax before operations of the hardware is the host's, in float, instead of the hardware's.
    limits : how wide integers of QONNX may be.

    `InvalidModelError` E302x and E303x for contradictory quantization or windows; `LimitError` E3607.
    """
    hosted, inner, edge = dict(excluded or {}), frozenset[str](), set[str]()
    while True:
        made = _converted(static, hosted, inner, limits)
        here = inner - {made.host.nodes[index].label for index in made.reasons}
        idle = unread(made.context.graph, here)
        new = made.softmax - inner - edge - hosted.keys()
        if not idle and not new:
            made.context.integer_softmax = here
            return made
        edge |= idle
        inner -= idle
        if exact_softmax:
            hosted |= dict.fromkeys(new, ("it stays in float, as asked for", ""))
        else:
            inner |= new


def unread(graph: Graph, names: frozenset[str]) -> set[str]:
    """The nodes among `names` of whose results no operation computes anything. Moving them does not count."""
    readers: dict[str, list[Op]] = {}
    makers: dict[str, list[Op]] = {}
    for op in graph.ops:
        for tensor in dict.fromkeys(op.inputs):
            readers.setdefault(tensor, []).append(op)
        for name in names.intersection(op.nodes):
            makers.setdefault(name, []).append(op)
    return {name for name in names if not _is_read(makers.get(name, []), readers)}


def _is_read(made: list[Op], readers: Mapping[str, list[Op]]) -> bool:
    """Does any other operation compute with what these make, moved or not?"""
    left, seen = list(made), {op.output for op in made}
    while left:
        for op in readers.get(left.pop().output, ()):
            if op.output in seen:
                continue
            if not op.moves:
                return True
            seen.add(op.output)
            left.append(op)
    return False


def _converted(static: StaticModel, excluded: Excluded, integer_softmax: frozenset[str], limits: Limits) -> Conversion:
    source, nodes = static.model.graph, static.nodes
    opset = max((entry.version for entry in static.model.opset_import if entry.domain in DEFAULT), default=1)
    graph = Graph(source.name or "model", {}, [], [], [])
    context = Context(graph, opset, dict(static.shapes), static.dtypes, HANDLERS)
    context.channels_last = channels_last(static)
    context.integer_softmax, context.limits, context.tables = integer_softmax, limits, static.tables
    context.values.update(static.constants)
    host = HostNodes(context, nodes, static.inputs)
    for name in static.inputs:
        context.values[name] = host.result(name)
    made = Conversion(static, context, host)
    for index, node in enumerate(nodes):
        made.index.setdefault(node.label, index)
    with np.errstate(all="ignore"):  # what leaves float32's range is found by its value, not by a warning
        for index, node in enumerate(nodes):
            _node(made, index, node, excluded)
        for value in source.output:
            _output(made, value.name)
    host.note_operations()
    return made


def _node(made: Conversion, index: int, node: Node, excluded: Excluded) -> None:
    context, host = made.context, made.host
    named = [name for name in node.input if name]
    operands = [context.values[name] for name in named]
    try:
        if context.opset < OLDEST_OPSET and node.domain in DEFAULT:
            raise BlockedError(
                f"operator set {context.opset} is older than {OLDEST_OPSET}", "convert it with onnx.version_converter"
            )
        folded = fold(context, node, lambda: _wanted(made, node))
        if folded is not None:
            context.values[node.output[0]] = folded
            return
        if excluded and node.label in excluded:
            raise BlockedError(*excluded[node.label])
        convert_node = handler(node)
        _examine(named, operands)
        _fitting(context, node)
        results = convert_node(context, node)
        values = results if isinstance(results, tuple) else (results,)
        for value in values:
            if _length(value) > LONGEST_CHAIN:
                raise BlockedError(f"more than {LONGEST_CHAIN} operators between two quantizations")
        _enter(made, node, values)
        host.note_operations()
    except BlockedError as blocked:
        _block(made, index, node, operands, blocked)


def _examine(names: Iterable[str], operands: Iterable[Value]) -> None:
    """`BlockedError` for operands that no operation of the hardware can have."""
    for name, value in zip(names, operands, strict=True):
        if isinstance(value, CONSTANT):
            continue
        shape = value.shape
        if isinstance(value, Unknown) or shape is None:
            raise BlockedError(
                f"the shape or type of input {name!r} is not known before the run",
                "give dynamic dimensions a value: --shape NAME=VALUE",
            )
        if 0 in shape:
            raise BlockedError(f"input {name!r} has no elements")


def _fitting(context: Context, node: Node) -> None:
    """`BlockedError` for tensors so large that no preset has room for them, before anything of that size is made.

    A result without elements is refused, too: one of its other sizes may be anything.
    """
    for name in (*node.input, *node.output):
        elements = prod(context.shapes.get(name, ()))
        if not elements and name in node.output:
            raise BlockedError(f"result {name!r} has no elements")
        if elements > LARGEST:
            raise BlockedError(f"{name!r} has {elements:,} elements, the hardware takes {LARGEST:,} at most")


def _enter(made: Conversion, node: Node, values: tuple[Value, ...]) -> None:
    """Enter the values of the node's outputs, if their shapes are those that onnx infers, and the shapes where it
    infers none (of a Pad by sizes that were computed, say).

    `InvalidModelError` E3400 if they are not those that the model declares, where onnx infers none.
    """
    context = made.context
    for output, value in zip(node.output, values, strict=False):
        known = context.shapes.get(output)
        if known is not None and value.shape != known:
            where, what = node.label, f"result {output!r} has shape {list(value.shape or ())}"
            if undeclared(made.static.model).get(output) == known:
                raise InternalError("E1303", f"{what}, onnx infers {list(known)}", where=where)
            raise InvalidModelError(
                "E3400", f"{what}, the model says it is {list(known)}", where=where, hint="export the model again"
            )
        context.values[output] = value
        if known is None and output and value.shape is not None:
            context.shapes[output] = value.shape


def _block(made: Conversion, index: int, node: Node, operands: list[Value], blocked: BlockedError) -> None:
    """Run the node on the host, and note whose fault it is."""
    context = made.context
    # A QuantizeLinear that completes an operation speaks for that operation.
    pending = next((value for value in operands if isinstance(value, Unquantized)), None)
    guilty = index
    if pending is not None and node.op_type in ("QuantizeLinear", "Quant", "IntQuant"):
        guilty = made.index.get(pending.nodes[0], index)
    follows = any(_from_host(context, value) for value in operands)
    if _has_handler(node):
        made.softmax.update(value.softmax for value in operands if isinstance(value, HostValue) and value.softmax)
    new = made.host.put(index)
    if guilty not in made.host.hosted:  # its sums leave the hardware as they are
        guilty = index
    own = made.host.nodes[guilty]
    blocker = Blocker(own.label, own.op_type, blocked.reason, blocked.hint)
    if guilty not in made.reasons:
        made.reasons[guilty] = blocker
        if not follows or not _has_handler(node):
            made.blockers.append(blocker)
    for other in new:
        reason = f"its real result is needed on the host by {node.label!r}"
        if other == index:
            reason = f"it quantizes the result of {own.label!r}, which runs on the host"
        made.reasons.setdefault(other, Blocker(made.host.nodes[other].label, made.host.nodes[other].op_type, reason))


def _wanted(made: Conversion, node: Node) -> bool:
    """May an operation of the hardware read what the node makes?"""
    readers = (reader for name in node.output for reader in made.static.readers.get(name, ()))
    return any(reader.op_type in FOLDABLE or _has_handler(reader) for reader in readers)


def _has_handler(node: Node) -> bool:
    try:
        handler(node)
    except BlockedError:
        return False
    return True


def _from_host(context: Context, value: Value) -> bool:
    """Is the operand the result of a host node, so that the node's own reason may be a consequence of that one's?"""
    return isinstance(value, Unknown) or (isinstance(value, GraphInput) and value.port in context.hosted)


def _length(value: Value) -> int:
    if isinstance(value, QuantizedView):
        return len(value.functions) + len(value.moves.steps)
    if isinstance(value, Unquantized):
        return len(value.clamps) + len(value.moves.steps)
    return 0 if isinstance(value, (Const, QuantConst, Unknown)) else len(value.steps)


def _output(made: Conversion, name: str) -> None:
    """Make an output available to the host, which gives it to the caller."""
    value, host = made.context.values[name], made.host
    new = host.need(name)
    if not new:
        return
    if isinstance(value, Unquantized):
        guilty = made.index.get(value.nodes[0], host.producer[name])
        node = host.nodes[guilty]
        blocker = Blocker(
            node.label,
            node.op_type,
            f"its result is the float output {name!r}",
            "put QuantizeLinear and DequantizeLinear on the model's outputs",
        )
        if guilty not in made.reasons:
            made.blockers.append(blocker)
            made.reasons[guilty] = blocker
    for other in new:
        node = host.nodes[other]
        made.reasons.setdefault(
            other, Blocker(node.label, node.op_type, f"output {name!r} is computed without the hardware")
        )
