"""Rules of single operators that their schemas do not state: windows, groups, axes, permutations, reshapes."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import onnx

from ..nodes import needed
from .attributes import plain_values
from .com_microsoft import CONTRIB
from .enumerations import choice_rules
from .findings import Findings, label
from .functions import every_node
from .indices import OPERATORS as INDEXED
from .indices import SEQUENCES, decoded, index_rules, sequence_rules
from .lengths import length_rules
from .operand_shapes import Shape as OpenShape
from .operand_shapes import shape_rules
from .operands import operand_rules
from .signatures import canonical
from .windows import window

SHOWN = 8
"""Most shapes in a message."""

Shape = tuple[int, ...]
CONTRIBUTED_WINDOWS = frozenset(["FusedConv", "NhwcMaxPool", "QLinearAveragePool", "QLinearConv"])
"""Operators of com.microsoft with windows, whose channels may come last."""
LARGEST_OPERAND = 64
"""Elements of a constant operand (a shape, a slice's ends) that is looked at."""

@dataclass(frozen=True)
class CheckedNode:
    """A node with its attributes by name, the static shapes that are known, and its small constant operands."""

    proto: onnx.NodeProto
    attributes: dict[str, Any]
    shapes: Mapping[str, Shape]
    constants: Mapping[str, onnx.TensorProto]
    sound: set[tuple[Hashable, ...]]
    """What decides over windows in which nothing was found wrong."""

    def shape(self, index: int) -> Shape | None:
        """The static shape of an input."""
        return self.shapes.get(self.proto.input[index]) if index < len(self.proto.input) else None

    def constant(self, index: int, kinds: str = "iu") -> list[Any] | None:
        """The values of a small constant input, if numpy calls their kind one of `kinds`: integers by default."""
        tensor = self.constants.get(self.proto.input[index]) if index < len(self.proto.input) else None
        if tensor is None or prod(tensor.dims) > LARGEST_OPERAND or min(tensor.dims, default=0) < 0:
            return None
        array = decoded(tensor)
        return list(array.ravel().tolist()) if array is not None and array.dtype.kind in kinds else None


def operator_rules(
    graph: onnx.GraphProto, versions: Mapping[str, int], shapes: Mapping[str, Shape], partial: Mapping[str, OpenShape],
    findings: Findings,
) -> None:
    """Rules of every node of a graph and the graphs in it, as far as shapes are known: all of one, or some sizes
    (`partial`). `versions`: of the operator sets that the model imports, by domain.

    Attributes that refer to a function's are skipped: they are seen again when the function is inlined.
    """
    constants = {tensor.name: tensor for tensor in graph.initializer}
    sound: set[tuple[Hashable, ...]] = set()
    for proto in every_node(graph.node):
        choice_rules(proto, versions, findings)
        length_rules(proto, findings)
        operand_rules(proto, shapes, findings)
        shape_rules(proto, versions, partial, findings)
        rule = RULES.get(proto.op_type) if canonical(proto.domain) == "" else None
        if proto.domain == CONTRIB and proto.op_type in CONTRIBUTED_WINDOWS:
            rule = _window
        if rule is not None:
            rule(CheckedNode(proto, plain_values(proto), shapes, constants, sound), findings)
    _indices(graph, shapes, constants, findings)


def _indices(
    graph: onnx.GraphProto, shapes: Mapping[str, Shape], constants: Mapping[str, onnx.TensorProto], findings: Findings
) -> None:
    """`index_rules` and `sequence_rules` of the nodes of a graph that an output needs: the others, and branches, need
    not run."""
    indexed = any(node.op_type in INDEXED and len(node.input) > 1 and node.input[0] in shapes for node in graph.node)
    if not indexed and not any(node.op_type in SEQUENCES for node in graph.node):
        return
    made = {one.output[0]: value.t for one in graph.node if one.op_type == "Constant" and one.output
            for value in one.attribute if value.name == "value"}  # fmt: skip
    run = needed(graph)
    sequence_rules(run, {**made, **constants}, findings)
    for node in run:
        if node.op_type in INDEXED and len(node.input) > 1 and canonical(node.domain) == "":
            shape = shapes.get(node.input[0])
            indices = constants.get(node.input[1], made.get(node.input[1]))
            if shape is not None and indices is not None:
                index_rules(node, shape, indices, findings)


def _window(node: CheckedNode, findings: Findings) -> None:
    conv = node.proto.op_type in ("Conv", "ConvTranspose", "ConvInteger", "FusedConv", "QLinearConv")
    shape = node.shape(0)
    if shape and (node.proto.op_type == "NhwcMaxPool" or node.attributes.get("channels_last")):
        shape = (shape[0], *shape[-1:], *shape[1:-1])
    weight = node.shape(3 if node.proto.op_type == "QLinearConv" else 1) if conv else None
    attributes = (value if isinstance(value, int | str) else tuple(value) for value in node.attributes.values())
    key = (node.proto.op_type, shape, weight, *node.attributes, *attributes)
    if key not in node.sound:
        before = len(findings.found)
        window(node.proto, node.attributes, shape, weight, findings)
        if len(findings.found) == before:
            node.sound.add(key)


def _axis(extra: int = 0, inclusive: int = 0) -> Callable[[CheckedNode, Findings], None]:
    """A rule: attribute axis lies in ``[-r, r - 1]``; of an output with `extra` dimensions, or up to r `inclusive`."""

    def rule(node: CheckedNode, findings: Findings) -> None:
        shape, axis = node.shape(0), node.attributes.get("axis")
        if shape is None or axis is None:
            return
        rank = len(shape) + extra
        if not -rank <= axis < rank + inclusive and rank > 0:
            last = rank - 1 + inclusive
            findings.error("E3386", label(node.proto), f"axis {axis} is not between {-rank} and {last} (rank {rank})")

    return rule


def _axes(node: CheckedNode, findings: Findings) -> None:
    shape = node.shape(0)
    axes = node.attributes.get("axes")
    axes = list(axes) if axes is not None else node.constant(1)
    if shape is None or not axes:
        return
    rank = len(shape) + (len(axes) if node.proto.op_type == "Unsqueeze" else 0)
    if any(not -rank <= axis < rank for axis in axes):
        findings.error("E3386", label(node.proto), f"axes {axes} are not between {-rank} and {rank - 1} (rank {rank})")
    elif len({axis % rank for axis in axes}) < len(axes):
        findings.error("E3387", label(node.proto), f"axes {axes} name an axis twice")


def _transpose(node: CheckedNode, findings: Findings) -> None:
    perm, shape = node.attributes.get("perm"), node.shape(0)
    if perm is not None and sorted(perm) != list(range(len(perm) if shape is None else len(shape))):
        of = f" of rank {len(shape)}" if shape is not None else ""
        findings.error("E3387", label(node.proto), f"perm {list(perm)} is no permutation of the axes{of}")


def _reshape(node: CheckedNode, findings: Findings) -> None:
    wanted = list(node.attributes["shape"]) if "shape" in node.attributes else node.constant(1)
    shape = node.shape(0)
    if wanted is None:
        return
    if sum(size == -1 for size in wanted) > 1 or any(size < -1 for size in wanted):
        findings.error("E3390", label(node.proto), f"shape {wanted} has more than one -1, or other negative sizes")
        return
    if shape is None:
        return
    if not node.attributes.get("allowzero"):
        if any(size == 0 and axis >= len(shape) for axis, size in enumerate(wanted)):
            findings.error(
                "E3390", label(node.proto), f"shape {wanted} copies a dimension that {list(shape)} does not have"
            )
            return
        wanted = [shape[axis] if size == 0 else size for axis, size in enumerate(wanted)]
    rest = prod(size for size in wanted if size != -1)
    fits = prod(shape) == rest if -1 not in wanted else rest > 0 and prod(shape) % rest == 0
    if not fits and not (rest == 0 and prod(shape) == 0):
        findings.error("E3390", label(node.proto), f"cannot make {wanted} of {list(shape)}: other elements")


def _concat(node: CheckedNode, findings: Findings) -> None:
    """E3357 for inputs of several ranks, E3393 for sizes that differ elsewhere than along the axis."""
    _axis()(node, findings)
    shapes = [shape for index in range(len(node.proto.input)) if (shape := node.shape(index)) is not None]
    axis = node.attributes.get("axis", 1)
    if not shapes:
        return
    if len({len(shape) for shape in shapes}) > 1:
        findings.error("E3357", label(node.proto), f"inputs must be of one rank, their shapes are {_listed(shapes)}")
    elif -len(shapes[0]) <= axis < len(shapes[0]):
        along = axis % len(shapes[0])
        if len({(*shape[:along], *shape[along + 1 :]) for shape in shapes}) > 1:
            what = f"inputs may differ along axis {axis} only, their shapes are {_listed(shapes)}"
            findings.error("E3393", label(node.proto), what)


def _listed(shapes: Sequence[Sequence[int]]) -> str:
    more = ", ..." if len(shapes) > SHOWN else ""
    return ", ".join(str(list(shape)) for shape in shapes[:SHOWN]) + more


def _range(node: CheckedNode, findings: Findings) -> None:
    if node.constant(2, "iuf") == [0]:
        findings.error("E3391", label(node.proto), "delta is 0")


def _split(node: CheckedNode, findings: Findings) -> None:
    _axis()(node, findings)
    sizes, shape = node.attributes.get("split"), node.shape(0)
    sizes = list(sizes) if sizes is not None else node.constant(1)
    axis = node.attributes.get("axis", 0)
    if sizes is None or shape is None or not -len(shape) <= axis < len(shape):
        return
    if min(sizes, default=0) < 0 or sum(sizes) != shape[axis]:
        findings.error(
            "E3392", label(node.proto), f"split {sizes} does not divide the {shape[axis]} elements of axis {axis}"
        )


Rule = Callable[[CheckedNode, Findings], None]
RULES: dict[str, Rule] = {
    **dict.fromkeys(
        [
            "Conv",
            "ConvInteger",
            "QLinearConv",
            "ConvTranspose",
            "MaxPool",
            "AveragePool",
            "LpPool",
        ],
        _window,
    ),
    **dict.fromkeys(
        [
            "ArgMax",
            "ArgMin",
            "CumSum",
            "Gather",
            "GatherElements",
            "Hardmax",
            "LayerNormalization",
            "LogSoftmax",
            "LpNormalization",
            "ScatterElements",
            "Softmax",
            "TopK",
        ],
        _axis(),
    ),
    "Concat": _concat,
    "Flatten": _axis(inclusive=1),
    "OneHot": _axis(extra=1),
    **dict.fromkeys(["ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceProd", "Squeeze", "Unsqueeze"], _axes),
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Range": _range,
    "Split": _split,
}
"""By operator of the default domain."""
