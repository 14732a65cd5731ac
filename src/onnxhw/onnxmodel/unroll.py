"""`unroll`: If, Loop and Scan whose course is known become plain nodes; the others stay, and run on the host.

If     with a known condition            -> the nodes of its branch
Loop   with a known course, bounded      -> its body, once per iteration
Scan   along an axis of known length     -> its body, once per element
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

from ..onnxfile.limits import DEFAULT, Limits
from .constants import Array, KnownConstants
from .in_worker import infer_shapes
from .inference import Shape
from .specification.functions import every_node
from .subgraph_copy import BodyNames, FreshNames, copy_attribute, copy_node, nested

STATIC = ("If", "Loop", "Scan")
SCAN_WITHOUT_BATCH = 9
"""The operator set from which Scan has no batch axis of its own."""
AXES_AS_INPUT = 13
"""The operator set from which Unsqueeze takes its axes as an input."""

CONDITION = 1
"""Which input of a Loop's body is its condition."""
COPIED = 1024
"""Bytes of a Constant in a body that every iteration gets a copy of; larger ones become initializers."""


class _DynamicError(Exception):
    """The course of a node is not known, or too long."""


def unroll(model: onnx.ModelProto, limits: Limits = DEFAULT) -> onnx.ModelProto:
    """The same model with every If, Loop and Scan of a known course replaced; the model itself if it has none.

    A Loop of more than `limits.loop_trips` iterations stays, and so does what would make the model larger than
    `limits.expansion` nodes, or copy more than `limits.folded_bytes`. Constants of bodies become initializers that all
    iterations share. Values keep their names, except those inside of what was replaced.
    """
    everything = every_node(model.graph.node)
    if not any(node.op_type in STATIC and not node.domain for node in everything):
        return model
    opset = max((entry.version for entry in model.opset_import if entry.domain == ""), default=1)
    known = KnownConstants(opset)
    graph = model.graph
    overridable = {value.name for value in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in overridable:
            known.add(tensor.name, tensor)
    budget = _Budget(limits.expansion - len(everything), 2 * limits.expansion, limits.folded_bytes)
    unroller = _Unroller(FreshNames.of(graph), limits, opset, budget, _lengths(model, everything))
    nodes = unroller.nodes(graph.node, BodyNames(), known)
    made = deepcopy(model)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    made.graph.initializer.extend(unroller.initializers)
    made.graph.sparse_initializer.extend(unroller.sparse)
    return made


def _lengths(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> dict[str, Shape]:
    """Static shapes by name, which only Scan needs."""
    if not any(node.op_type == "Scan" for node in nodes):
        return {}
    try:
        graph = infer_shapes(model).graph
    except (shape_inference.InferenceError, ValueError, RuntimeError):
        graph = model.graph
    found = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in [*graph.input, *graph.value_info]:
        dims = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in dims):
            found[value.name] = tuple(dim.dim_value for dim in dims)
    return found


@dataclass
class _Budget:
    """Nodes and bytes that may still be added; `work` also counts the nodes of attempts that failed."""

    left: int
    work: int
    bytes: int

    def take(self, count: int, size: int = 0) -> None:
        """Raise if that many nodes, or bytes, are not left."""
        self.work -= count
        if count > self.left or size > self.bytes or self.work < 0:
            raise _DynamicError
        self.left -= count
        self.bytes -= size

    def needs(self, count: int) -> None:
        """Raise if that many nodes are not left, before any is made."""
        if count > min(self.left, self.work):
            raise _DynamicError


@dataclass
class _Unroller:
    fresh: FreshNames
    limits: Limits
    opset: int
    budget: _Budget
    lengths: dict[str, Shape]
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    sparse: list[onnx.SparseTensorProto] = field(default_factory=list)
    once: dict[int, tuple[onnx.TensorProto | onnx.SparseTensorProto, str]] = field(default_factory=dict)
    """By its identity, a constant of a body (kept: nothing else gets its identity) and its name as an initializer."""

    def nodes(self, nodes: Iterable[onnx.NodeProto], scope: BodyNames, known: KnownConstants) -> list[onnx.NodeProto]:
        """The nodes under the scope's names, those of a known course replaced."""
        made: list[onnx.NodeProto] = []
        for node in nodes:
            replaced = None
            if node.op_type in STATIC and not node.domain:
                replaced = self._replaced(node, scope, known)
            if replaced is None:
                if scope.fresh is not None:
                    self.budget.take(0, node.ByteSize())
                copied = self._plain(node, scope, known)
                known.node(copied)
                replaced = [copied]
            made.extend(replaced)
        return made

    def _plain(self, node: onnx.NodeProto, scope: BodyNames, known: KnownConstants) -> onnx.NodeProto:
        hidden = frozenset(value.name for graph in nested(node) for value in graph.input)

        def inside(nodes: Iterable[onnx.NodeProto], inner: BodyNames) -> list[onnx.NodeProto]:
            return self.nodes(nodes, inner, KnownConstants(known.opset, outer=known, hidden=hidden))

        return copy_node(node, scope, lambda one, around: copy_attribute(one, around, inside))

    def _replaced(self, node: onnx.NodeProto, scope: BodyNames, known: KnownConstants) -> list[onnx.NodeProto] | None:
        """The nodes that stand for a node of a known course; None if it is not known."""
        initializers, sparse, once = len(self.initializers), len(self.sparse), len(self.once)
        left, size = self.budget.left, self.budget.bytes
        attempt = KnownConstants(known.opset, outer=known)
        attributes = {attribute.name: attribute for attribute in node.attribute}
        try:
            if node.op_type == "If":
                made = self._if(node, attributes, scope, attempt)
            elif node.op_type == "Loop":
                made = self._loop(node, attributes["body"].g, scope, attempt)
            else:
                made = self._scan(node, attributes, scope, attempt)
        except (_DynamicError, KeyError):
            del self.initializers[initializers:], self.sparse[sparse:]
            for key in list(self.once)[once:]:
                del self.once[key]
            self.budget.left, self.budget.bytes = left, size
            return None
        known.values.update(attempt.values)
        return made

    def _if(
        self, node: onnx.NodeProto, attributes: dict[str, onnx.AttributeProto], scope: BodyNames, known: KnownConstants
    ) -> list[onnx.NodeProto]:
        condition = _truth(known, scope.use(node.input[0]))
        branch = attributes["then_branch" if condition else "else_branch"].g
        prefix = self.fresh.call(node.name or "If")
        inner = BodyNames(self.fresh, prefix, self._shared(branch, prefix, known), scope)
        made = self._body(branch, inner, known)
        return made + self._identities([inner.use(value.name) for value in branch.output], node, scope)

    def _loop(
        self, node: onnx.NodeProto, body: onnx.GraphProto, scope: BodyNames, known: KnownConstants
    ) -> list[onnx.NodeProto]:
        trips = self.limits.loop_trips + 1
        if node.input[0]:
            trips = min(trips, int(_known(known, scope.use(node.input[0]))))
        going = len(node.input) < 2 or not node.input[1] or _truth(known, scope.use(node.input[1]))
        carried = [scope.use(name) for name in node.input[2:]]
        scanned: list[list[str]] = [[] for _ in body.output[1 + len(carried) :]]
        made: list[onnx.NodeProto] = []
        inputs = [value.name for value in body.input]
        if len(inputs) != 2 + len(carried) or len(node.output) > len(body.output) - 1:
            raise _DynamicError
        if going and trips <= self.limits.loop_trips and self._steady(body, scope, known):
            self.budget.needs(trips * self._size(body, scope, known))
        condition = self._constant(np.array(True), node, known)
        iteration, prefix = 0, self.fresh.call(node.name or "Loop")
        shared = self._shared(body, prefix, known)
        while going and iteration < trips:
            if iteration == self.limits.loop_trips:
                raise _DynamicError
            number = self._constant(np.array(iteration, np.int64), node, known)
            actual = dict(zip(inputs, [number, condition, *carried], strict=True))
            inner = BodyNames(self.fresh, f"{prefix}.{iteration}", {**shared, **actual}, scope)
            made += self._body(body, inner, known)
            results = [inner.use(value.name) for value in body.output]
            condition, carried = results[0], results[1 : 1 + len(carried)]
            for column, name in zip(scanned, results[1 + len(carried) :], strict=True):
                column.append(name)
            iteration += 1
            going = iteration >= trips or _truth(known, condition)
        results = carried + [self._stacked(column, 0, node, made, known) for column in scanned]
        return made + self._identities(results, node, scope)

    def _scan(
        self, node: onnx.NodeProto, attributes: dict[str, onnx.AttributeProto], scope: BodyNames, known: KnownConstants
    ) -> list[onnx.NodeProto]:
        body, count = attributes["body"].g, attributes["num_scan_inputs"].i
        states = len(node.input) - count
        if self.opset < SCAN_WITHOUT_BATCH or count < 1 or states < 0 or len(body.input) != len(node.input):
            raise _DynamicError
        outputs = len(body.output) - states
        axes = _ints(attributes, "scan_input_axes", count)
        backwards = _ints(attributes, "scan_input_directions", count)
        out_axes = _ints(attributes, "scan_output_axes", outputs)
        out_backwards = _ints(attributes, "scan_output_directions", outputs)
        sources = [scope.use(name) for name in node.input[states:]]
        lengths = {
            self.lengths[name][axis] for name, axis in zip(sources, axes, strict=True) if self._ranked(name, axis)
        }
        if len(lengths) != 1 or not 0 < max(lengths) <= self.limits.loop_trips:
            raise _DynamicError
        length = lengths.pop()
        carried = [scope.use(name) for name in node.input[:states]]
        scanned: list[list[str]] = [[] for _ in range(outputs)]
        made: list[onnx.NodeProto] = []
        prefix = self.fresh.call(node.name or "Scan")
        shared = self._shared(body, prefix, known)
        for step in range(length):
            elements = []
            for name, axis, back in zip(sources, axes, backwards, strict=True):
                index = self._constant(np.array(length - 1 - step if back else step, np.int64), node, known)
                elements.append(self.fresh.name(prefix, f"element.{step}"))
                made.append(helper.make_node("Gather", [name, index], [elements[-1]], name=elements[-1], axis=axis))
            self.budget.take(len(elements))
            actual = dict(zip([value.name for value in body.input], [*carried, *elements], strict=True))
            inner = BodyNames(self.fresh, f"{prefix}.{step}", {**shared, **actual}, scope)
            made += self._body(body, inner, known)
            results = [inner.use(value.name) for value in body.output]
            carried = results[:states]
            for column, name in zip(scanned, results[states:], strict=True):
                column.append(name)
        results = list(carried)
        for column, axis, back in zip(scanned, out_axes, out_backwards, strict=True):
            results.append(self._stacked(column[::-1] if back else column, axis, node, made, known))
        return made + self._identities(results, node, scope)

    def _ranked(self, name: str, axis: int) -> bool:
        shape = self.lengths.get(name)
        if shape is None or not -len(shape) <= axis < len(shape):
            raise _DynamicError
        return True

    def _shared(self, body: onnx.GraphProto, prefix: str, known: KnownConstants) -> dict[str, str]:
        """A body's initializers, once for all iterations; their new names by the old."""
        names = {tensor.name: self._once(tensor, tensor.name, prefix, known) for tensor in body.initializer}
        for sparse in body.sparse_initializer:
            if id(sparse) not in self.once:
                copied = deepcopy(sparse)
                copied.values.name = self.fresh.name(prefix, sparse.values.name)
                self.sparse.append(copied)
                self.once[id(sparse)] = (sparse, copied.values.name)
            names[sparse.values.name] = self.once[id(sparse)][1]
        return names

    def _once(self, tensor: onnx.TensorProto, name: str, prefix: str, known: KnownConstants) -> str:
        """A constant of a body as an initializer of the model, made when it is first met; its name."""
        if id(tensor) not in self.once:
            made = deepcopy(tensor)
            made.name = self.fresh.name(prefix, name)
            self.initializers.append(made)
            self.once[id(tensor)] = (tensor, made.name)
        known.add(self.once[id(tensor)][1], tensor)
        return self.once[id(tensor)][1]

    def _body(self, graph: onnx.GraphProto, scope: BodyNames, known: KnownConstants) -> list[onnx.NodeProto]:
        """One copy of a graph's nodes in the graph around; its large constants are not copied."""
        self.budget.take(len(every_node(graph.node)) + 1)
        kept = []
        for node in graph.node:
            tensor = _large(node)
            if tensor is None:
                kept.append(node)
            else:
                scope.mapping[node.output[0]] = self._once(tensor, node.output[0], scope.prefix, known)
        return self.nodes(kept, scope, known)

    def _size(self, body: onnx.GraphProto, scope: BodyNames, known: KnownConstants) -> int:
        """The nodes that a copy of a body counts as, Loops in it that will surely be unrolled as what they become."""
        inner, own = BodyNames(outer=scope), KnownConstants(known.opset, outer=known)
        for node in body.node:
            if node.op_type == "Constant" and _large(node) is None:
                inner.mapping.update((name, f"{id(inner)} {name}") for name in node.output)  # no name of the model's
                own.node(copy_node(node, inner, lambda one, _: one))
        count = len(every_node(body.node)) + 1
        for node in body.node:
            if node.op_type != "Loop" or node.domain or not node.input or not node.input[0]:
                continue
            trips = own.get(inner.use(node.input[0]))
            graph = next((one.g for one in node.attribute if one.name == "body"), None)
            if trips is None or trips.size != 1 or graph is None or not self._steady(graph, inner, own):
                continue
            once = self._size(graph, inner, own)
            more = max(0, int(trips.ravel()[0])) * once
            count += more if more <= self.budget.left and trips.max() <= self.limits.loop_trips else once
        return count

    def _steady(self, body: onnx.GraphProto, scope: BodyNames, known: KnownConstants) -> bool:
        """Will a Loop surely not end before its trips are done: is its condition passed on, or known to be true?"""
        if len(body.input) < CONDITION + 1 or not body.output:
            return False
        made = {name: node for node in body.node for name in node.output}
        name, own = body.output[0].name, KnownConstants(known.opset)
        for _ in body.node:
            if name in made and made[name].op_type == "Identity" and made[name].input:
                name = made[name].input[0]
        if name in made:
            own.node(made[name])
        value = own.get(name) if name in made else known.get(scope.use(name))
        return name == body.input[CONDITION].name or (value is not None and bool(value.all()))

    def _constant(self, value: Array, node: onnx.NodeProto, known: KnownConstants) -> str:
        name = self.fresh.name(node.name or node.op_type, "constant")
        self.initializers.append(numpy_helper.from_array(value, name))
        known.values[name] = value
        return name

    def _stacked(
        self, names: Sequence[str], axis: int, node: onnx.NodeProto, made: list[onnx.NodeProto], known: KnownConstants
    ) -> str:
        """The values of all iterations along a new axis."""
        if not names:
            raise _DynamicError  # an empty tensor of a shape that nothing says
        self.budget.take(len(names) + 1)
        parts = []
        axes = self._constant(np.array([axis], np.int64), node, known) if self.opset >= AXES_AS_INPUT else ""
        for name in names:
            parts.append(self.fresh.name(node.name or node.op_type, "part"))
            if axes:
                made.append(helper.make_node("Unsqueeze", [name, axes], [parts[-1]], name=parts[-1]))
            else:
                made.append(helper.make_node("Unsqueeze", [name], [parts[-1]], name=parts[-1], axes=[axis]))
        whole = self.fresh.name(node.name or node.op_type, "stacked")
        made.append(helper.make_node("Concat", parts, [whole], name=whole, axis=axis))
        return whole

    def _identities(self, results: Sequence[str], node: onnx.NodeProto, scope: BodyNames) -> list[onnx.NodeProto]:
        """The node's outputs under their names."""
        self.budget.take(len(node.output))
        made = []
        for name, result in zip(node.output, results, strict=False):
            if name:
                wanted = scope.define(name)
                label = self.fresh.name(node.name or node.op_type, "result")
                made.append(helper.make_node("Identity", [result], [wanted], name=label))
        return made


def _large(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """The tensor of a Constant, if copying it for every iteration would be a waste."""
    if node.op_type != "Constant" or node.domain or len(node.output) != 1 or not node.output[0]:
        return None
    found = [one.t for one in node.attribute if one.name == "value" and one.type == onnx.AttributeProto.TENSOR]
    return found[0] if len(found) == 1 and found[0].ByteSize() > COPIED else None


def _known(known: KnownConstants, name: str) -> int:
    value = known.get(name)
    if value is None or value.size != 1 or value.dtype.kind not in "iub":
        raise _DynamicError
    return int(value.ravel()[0])


def _truth(known: KnownConstants, name: str) -> bool:
    return bool(_known(known, name))


def _ints(attributes: dict[str, onnx.AttributeProto], name: str, count: int) -> list[int]:
    """A list attribute of Scan; zeros by default."""
    values = list(attributes[name].ints) if name in attributes else [0] * count
    if len(values) != count:
        raise _DynamicError
    return values
