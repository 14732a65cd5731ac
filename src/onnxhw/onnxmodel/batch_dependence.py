"""`kinds`: what each value is to the samples of a batch, or the node in which samples may meet.

    WHOLE   it does not depend on the batch: the same for all samples and any number of them
    ROWS    its first dimension is N * k, and rows k*i to k*i + k - 1 depend on sample i alone, as at batch 1
    SIZE    integers that depend on the size N of the batch alone, and affinely: a + b * N

A node is allowed if a rule says that its result has such a form (`batching_rules`). What no rule knows is refused.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from math import prod

import onnx

from .batching_rules import LINEAR, RANDOM, ROWS, RULES, SIZE, SIZED, WHOLE, Array, Kind, NodeView
from .nodes import DEFAULT, Node, needed
from .shapes import Shape
from .subgraph_copy import nested
from .tensors import array, constant_node

KNOWN = 1024
"""Elements of a constant up to which its values are looked at."""
OLDEST = 7
"""In older operator sets broadcasting has attributes of its own."""


class SampleDependenceError(Exception):
    """Samples may meet in `node`, because of `reason`."""

    def __init__(self, node: str, reason: str) -> None:
        super().__init__(f"{node}: {reason}")
        self.node, self.reason = node, reason


def kinds(model: onnx.ModelProto, shapes: Mapping[str, Shape], batched: Collection[str], size: int) -> dict[str, Kind]:
    """The kind of every value that an output needs, if the inputs `batched` are the ones with a row per sample.

    `shapes` are those at a batch of `size`, at least 2. Raises `SampleDependenceError`. The kinds are proved on
    condition that shapes at batch 1 are those of `at_one`: see `batch_analysis`.
    """
    graph = model.graph
    opset = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)
    constants = constants_of(model)
    found: dict[str, Kind] = {tensor.name: WHOLE for tensor in graph.initializer}
    found |= {value.name: ROWS if value.name in batched else WHOLE for value in graph.input}
    for node in map(Node.of, needed(graph)):
        kind = _kind(NodeView(node, opset, shapes, found, constants))
        for name in filter(None, node.output):
            shape = shapes.get(name)
            if kind == ROWS and (not shape or 0 in shape or shape[0] % size):
                raise SampleDependenceError(node.label, f"the shape of {name!r} does not begin with the batch")
            found[name] = kind
    for value in graph.output:
        if found[value.name] == SIZE:
            raise SampleDependenceError(value.name, "the output tells the size of the batch")
    return found


class SmallConstants(Mapping[str, Array]):
    """Small constants by name, decoded when they are looked at: of thousands, a few are shapes."""

    def __init__(self, tensors: Iterable[onnx.TensorProto]) -> None:
        self._tensors = {tensor.name: tensor for tensor in tensors if prod(tensor.dims) <= KNOWN}
        self._arrays: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._arrays:
            self._arrays[name] = array(self._tensors[name])
        return self._arrays[name]

    def __contains__(self, name: object) -> bool:
        return name in self._arrays or name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter({**self._tensors, **self._arrays})

    def __len__(self) -> int:
        return len({**self._tensors, **self._arrays})

    def add(self, name: str, values: Array) -> None:
        """One more."""
        self._arrays[name] = values


def constants_of(model: onnx.ModelProto) -> Mapping[str, Array]:
    """The values of the model's small constants: initializers and Constant nodes."""
    found = SmallConstants(model.graph.initializer)
    for node in model.graph.node:
        if node.op_type == "Constant" and node.domain in DEFAULT:
            values = constant_node(node)
            if values is not None and values.size <= KNOWN:
                found.add(node.output[0], values)
    return found


def at_one(shape: Shape, kind: Kind, size: int) -> Shape:
    """The shape that a value has at batch 1, from the one at batch `size`."""
    return (shape[0] // size, *shape[1:]) if kind == ROWS else shape


def _kind(seen: NodeView) -> Kind:
    node = seen.node
    if nested(node.proto):
        raise SampleDependenceError(node.label, "control flow is not looked into")
    if node.op_type in RANDOM:
        raise SampleDependenceError(node.label, "its result is random")
    read = {seen.kinds[name] for name in filter(None, node.input)}
    if read <= {WHOLE}:
        return WHOLE
    if seen.opset < OLDEST:
        raise SampleDependenceError(node.label, f"operator set {seen.opset} is older than {OLDEST}")
    operator = node.key
    if operator in (("", "Shape"), ("", "Size")) and ROWS in read:
        return SIZE
    if operator in LINEAR and ROWS not in read and LINEAR[operator](seen):
        return SIZE
    if SIZE in read and any(seen.kind(i) == SIZE for i in range(len(node.input)) if (operator, i) not in SIZED):
        raise SampleDependenceError(node.label, "it computes with the size of the batch")
    for index, name in enumerate(node.input):
        if name and name not in seen.shapes and (operator, index) not in SIZED:
            raise SampleDependenceError(node.label, f"the shape of {name!r} is not known")
    rule = RULES.get(operator)
    reason = rule(seen) if rule else f"nothing is known about {node.op_type}"
    if reason:
        raise SampleDependenceError(node.label, reason)
    return ROWS
