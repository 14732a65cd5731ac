"""`unroll`: If, Loop and Scan whose course is known become plain nodes; the others stay, and run on the host.

If     with a known condition            -> the nodes of its branch
Loop   with a known course, bounded      -> its body, once per iteration
Scan   along an axis of known length     -> its body, once per element
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

from .bodies import Fresh, Scope, copy_attribute, copy_node, nested
from .constants import Array, Constants
from .reading.limits import DEFAULT, Limits
from .spec.functions import every_node

STATIC = ("If", "Loop", "Scan")
SCAN_WITHOUT_BATCH = 9
"""The operator set from which Scan has no batch axis of its own."""
AXES_AS_INPUT = 13
"""The operator set from which Unsqueeze takes its axes as an input."""


class _DynamicError(Exception):
    """The course of a node is not known, or too long."""


def unroll(model: onnx.ModelProto, limits: Limits = DEFAULT) -> onnx.ModelProto:
    """The same model with every If, Loop and Scan of a known course replaced; the model itself if it has none.

    A Loop of more than `limits.loop_trips` iterations stays, and so does what would make the model larger than
    `limits.expansion` nodes. Values keep their names, except those inside of what was replaced.
    """
    everything = every_node(model.graph.node)
    if not any(node.op_type in STATIC and not node.domain for node in everything):
        return model
    opset = max((entry.version for entry in model.opset_import if entry.domain == ""), default=1)
    known = Constants(opset)
    graph = model.graph
    overridable = {value.name for value in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in overridable:
            known.add(tensor.name, tensor)
    budget = _Budget(limits.expansion - len(everything), 2 * limits.expansion)
    unroller = _Unroller(Fresh.of(graph), limits, opset, budget, _lengths(model, everything))
    nodes = unroller.nodes(graph.node, Scope(), known)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    made.graph.initializer.extend(unroller.initializers)
    made.graph.sparse_initializer.extend(unroller.sparse)
    return made


def _lengths(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> dict[str, list[int]]:
    """Static shapes by name, which only Scan needs."""
    if not any(node.op_type == "Scan" for node in nodes):
        return {}
    try:
        graph = shape_inference.infer_shapes(model).graph
    except (shape_inference.InferenceError, ValueError, RuntimeError):
        graph = model.graph
    found = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for value in [*graph.input, *graph.value_info]:
        dims = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in dims):
            found[value.name] = [dim.dim_value for dim in dims]
    return found


@dataclass
class _Budget:
    """Nodes that may still be added; `work` also counts those of attempts that failed."""

    left: int
    work: int

    def take(self, count: int) -> None:
        """Raise if that many are not left."""
        self.work -= count
        if count > self.left or self.work < 0:
            raise _DynamicError
        self.left -= count


@dataclass
class _Unroller:
    fresh: Fresh
    limits: Limits
    opset: int
    budget: _Budget
    lengths: dict[str, list[int]]
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    sparse: list[onnx.SparseTensorProto] = field(default_factory=list)

    def nodes(self, nodes: Iterable[onnx.NodeProto], scope: Scope, known: Constants) -> list[onnx.NodeProto]:
        """The nodes under the scope's names, those of a known course replaced."""
        made: list[onnx.NodeProto] = []
        for node in nodes:
            replaced = None
            if node.op_type in STATIC and not node.domain:
                replaced = self._replaced(node, scope, known)
            if replaced is None:
                copied = self._plain(node, scope, known)
                known.node(copied)
                replaced = [copied]
            made.extend(replaced)
        return made

    def _plain(self, node: onnx.NodeProto, scope: Scope, known: Constants) -> onnx.NodeProto:
        hidden = frozenset(value.name for graph in nested(node) for value in graph.input)

        def inside(nodes: Iterable[onnx.NodeProto], inner: Scope) -> list[onnx.NodeProto]:
            return self.nodes(nodes, inner, Constants(known.opset, outer=known, hidden=hidden))

        return copy_node(node, scope, lambda one, around: copy_attribute(one, around, inside))

    def _replaced(self, node: onnx.NodeProto, scope: Scope, known: Constants) -> list[onnx.NodeProto] | None:
        """The nodes that stand for a node of a known course; None if it is not known."""
        initializers, sparse, left = len(self.initializers), len(self.sparse), self.budget.left
        attempt = Constants(known.opset, outer=known)
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
            self.budget.left = left
            return None
        known.values.update(attempt.values)
        return made

    def _if(
        self, node: onnx.NodeProto, attributes: dict[str, onnx.AttributeProto], scope: Scope, known: Constants
    ) -> list[onnx.NodeProto]:
        condition = _truth(known, scope.use(node.input[0]))
        branch = attributes["then_branch" if condition else "else_branch"].g
        prefix = self.fresh.call(node.name or "If")
        inner = Scope(self.fresh, prefix, self._shared(branch, prefix, known), scope)
        made = self._body(branch, inner, known)
        return made + self._identities([inner.use(value.name) for value in branch.output], node, scope)

    def _loop(
        self, node: onnx.NodeProto, body: onnx.GraphProto, scope: Scope, known: Constants
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
        condition = self._constant(np.array(True), node, known)
        iteration, prefix = 0, self.fresh.call(node.name or "Loop")
        shared = self._shared(body, prefix, known)
        while going and iteration < trips:
            if iteration == self.limits.loop_trips:
                raise _DynamicError
            number = self._constant(np.array(iteration, np.int64), node, known)
            actual = dict(zip(inputs, [number, condition, *carried], strict=True))
            inner = Scope(self.fresh, f"{prefix}.{iteration}", {**shared, **actual}, scope)
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
        self, node: onnx.NodeProto, attributes: dict[str, onnx.AttributeProto], scope: Scope, known: Constants
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
            inner = Scope(self.fresh, f"{prefix}.{step}", {**shared, **actual}, scope)
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

    def _shared(self, body: onnx.GraphProto, prefix: str, known: Constants) -> dict[str, str]:
        """A body's initializers, once for all iterations; their new names by the old."""
        scope = Scope(self.fresh, prefix)
        for tensor in body.initializer:
            made = onnx.TensorProto()
            made.CopyFrom(tensor)
            made.name = scope.define(tensor.name)
            self.initializers.append(made)
            known.add(made.name, made)
        for sparse in body.sparse_initializer:
            copied = onnx.SparseTensorProto()
            copied.CopyFrom(sparse)
            copied.values.name = scope.define(sparse.values.name)
            self.sparse.append(copied)
        return scope.mapping

    def _body(self, graph: onnx.GraphProto, scope: Scope, known: Constants) -> list[onnx.NodeProto]:
        """One copy of a graph's nodes in the graph around."""
        self.budget.take(len(every_node(graph.node)) + 1)
        return self.nodes(graph.node, scope, known)

    def _constant(self, value: Array, node: onnx.NodeProto, known: Constants) -> str:
        name = self.fresh.name(node.name or node.op_type, "constant")
        self.initializers.append(numpy_helper.from_array(value, name))
        known.values[name] = value
        return name

    def _stacked(
        self, names: Sequence[str], axis: int, node: onnx.NodeProto, made: list[onnx.NodeProto], known: Constants
    ) -> str:
        """The values of all iterations along a new axis."""
        if not names:
            raise _DynamicError  # an empty tensor of a shape that nothing says
        self.budget.take(len(names) + 1)
        parts = []
        for name in names:
            parts.append(self.fresh.name(node.name or node.op_type, "part"))
            if self.opset >= AXES_AS_INPUT:
                axes = self._constant(np.array([axis], np.int64), node, known)
                made.append(helper.make_node("Unsqueeze", [name, axes], [parts[-1]], name=parts[-1]))
            else:
                made.append(helper.make_node("Unsqueeze", [name], [parts[-1]], name=parts[-1], axes=[axis]))
        whole = self.fresh.name(node.name or node.op_type, "stacked")
        made.append(helper.make_node("Concat", parts, [whole], name=whole, axis=axis))
        return whole

    def _identities(self, results: Sequence[str], node: onnx.NodeProto, scope: Scope) -> list[onnx.NodeProto]:
        """The node's outputs under their names."""
        self.budget.take(len(node.output))
        made = []
        for name, result in zip(node.output, results, strict=False):
            if name:
                wanted = scope.define(name)
                label = self.fresh.name(node.name or node.op_type, "result")
                made.append(helper.make_node("Identity", [result], [wanted], name=label))
        return made


def _known(known: Constants, name: str) -> int:
    value = known.get(name)
    if value is None or value.size != 1 or value.dtype.kind not in "iub":
        raise _DynamicError
    return int(value.ravel()[0])


def _truth(known: Constants, name: str) -> bool:
    return bool(_known(known, name))


def _ints(attributes: dict[str, onnx.AttributeProto], name: str, count: int) -> list[int]:
    """A list attribute of Scan; zeros by default."""
    values = list(attributes[name].ints) if name in attributes else [0] * count
    if len(values) != count:
        raise _DynamicError
    return values
