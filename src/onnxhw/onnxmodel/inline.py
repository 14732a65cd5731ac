"""`inline`: a model without model-local functions.

Every call is replaced by the function's body under fresh names; attributes of the call, or their defaults, stand
where the body refers to them. How many nodes that makes is computed before the first one is copied.
"""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field

import onnx

from ..diagnostics import Diagnostic
from ..onnxfile.limits import DEFAULT, Limits
from .nodes import reads
from .specification.findings import Findings, SpecificationError, label, raise_errors
from .specification.functions import Functions, Key, compatible, every_node, identity, key, spelled
from .specification.nodes import needs
from .specification.signatures import canonical, newest, signature
from .specification.versions import imports, model_fields
from .subgraph_copy import BodyNames, FreshNames, copy_attribute, copy_node, nested
from .trailing_names import trim

SATURATED = 1 << 62
"""Sizes are not counted beyond this."""


@dataclass(frozen=True)
class BodySize:
    """What a body becomes: nodes, bytes, and how deep graphs are nested in it."""

    nodes: int = 0
    bytes: int = 0
    depth: int = 0


def inline(model: onnx.ModelProto, limits: Limits = DEFAULT, where: str = "model") -> onnx.ModelProto:
    """The same model without functions; the model itself if it has none. The domain ``ai.onnx`` becomes ``""``.

    `InvalidModelError` E3360 to E3369 for functions that contradict themselves (see `spec.functions`), E3373 for calls
    that leave out what is needed; nodes that lack an input, and whose results nothing needs, go. `LimitError`
    E3370 for more than `limits.expansion` nodes, E3371 for more than `limits.total_bytes`, E3372 for graphs nested
    deeper than `limits.subgraph_depth` after inlining.
    """
    if not model.functions and not _renamed_default(model):
        return model
    functions, sets = _checked(model, where)
    size = expanded(model, functions)
    limits.check("E3370", "expansion", size.nodes, "inlining its functions would make a number of nodes of", where)
    limits.check("E3371", "total_bytes", size.bytes, "inlining its functions would make a number of bytes of", where)
    limits.check("E3372", "subgraph_depth", size.depth, "inlining its functions would nest graphs to a depth of", where)
    made = deepcopy(model)
    del made.functions[:], made.graph.node[:], made.opset_import[:]
    local = {domain for domain, _, _ in functions.table}
    made.opset_import.extend(onnx.helper.make_opsetid(domain, version) for domain, version in sets.items())
    inliner = _Inliner(functions, FreshNames.of(model.graph), limits, where, sets)
    made.graph.node.extend(inliner.expand(model.graph.node, BodyNames()))
    _leave_out(made.graph, inliner.lacking, where)
    unused = local - {canonical(node.domain) for node in every_node(made.graph.node)} - {""}
    kept = [entry for entry in made.opset_import if entry.domain not in unused]
    del made.opset_import[:]
    made.opset_import.extend(kept)
    return made


def _renamed_default(model: onnx.ModelProto) -> bool:
    """Does the model call the default domain by its long name, or import it only by implication?"""
    domains = {entry.domain for entry in model.opset_import}
    return domains.isdisjoint([""]) or any(node.domain == "ai.onnx" for node in every_node(model.graph.node))


def _checked(model: onnx.ModelProto, where: str) -> tuple[Functions, dict[str, int]]:
    """The functions, and the operator sets of the model that they are inlined into: its own, then theirs."""
    findings = Findings()
    functions = Functions.of(model, findings)
    sets = model_fields(model, Findings())
    for function in functions.table.values():
        own = imports(function.opset_import, every_node(function.node), spelled(identity(function)), findings)
        compatible(function, own, sets, findings)
        sets = own | sets
    for body in (model.graph.node, *(function.node for function in functions.table.values())):
        for node in every_node(body):
            if functions.call(node) is not None:
                functions.check_call(node, findings)
            elif functions.missing(node):
                findings.error("E3362", label(node), f"calls a function that there is not: {functions.near(node)}")
    functions.recursion(findings)
    raise_errors(findings.found, where)
    return functions, sets


def expanded(model: onnx.ModelProto, functions: Functions) -> BodySize:
    """The size of the main graph after inlining, callees first, without making anything; counts saturate."""
    sizes: dict[Key, BodySize] = {}
    for start in functions.table:
        stack = [start]
        while stack:
            found = stack[-1]
            todo = [callee for callee in functions.callees(found) if callee not in sizes] if found not in sizes else []
            if todo:
                stack.extend(todo)
            else:
                stack.pop()
                if found not in sizes:
                    sizes[found] = _size(functions.table[found].node, sizes)
    return _size(model.graph.node, sizes)


def _size(nodes: Iterable[onnx.NodeProto], sizes: dict[Key, BodySize]) -> BodySize:
    count = size = depth = 0
    left = [(node, 0) for node in nodes]
    while left:
        node, level = left.pop()
        callee = sizes.get(key(node))
        if callee is None:
            count, size, depth = count + 1, size + (node.ByteSize() if level == 0 else 0), max(depth, level)
        else:
            count, size = count + callee.nodes, size + callee.bytes
            depth = max(depth, level + callee.depth)
        left.extend((inner, level + 1) for graph in nested(node) for inner in graph.node)
    return BodySize(min(count, SATURATED), min(size, SATURATED), min(depth, SATURATED))


@dataclass
class _Body(BodyNames):
    """The scope of one call: also the attributes that the body may refer to."""

    attributes: dict[str, onnx.AttributeProto] = field(default_factory=dict)
    call: str = ""


@dataclass
class _Inliner:
    functions: Functions
    fresh: FreshNames
    limits: Limits
    where: str
    sets: dict[str, int]
    lacking: dict[str, str] = field(default_factory=dict)
    """By first output, what is wrong with a node whose input a call has left out."""
    _nodes: int = 0
    _bytes: int = 0

    def expand(self, nodes: Iterable[onnx.NodeProto], scope: BodyNames) -> list[onnx.NodeProto]:
        """The nodes with all calls replaced; calls in calls need no stack of Python's."""
        made: list[onnx.NodeProto] = []
        stack: list[tuple[Iterator[onnx.NodeProto], BodyNames]] = [(iter(nodes), scope)]
        while stack:
            left, scope = stack[-1]
            node = next(left, None)
            if node is None:
                stack.pop()
                continue
            function = self.functions.call(node)
            if function is None:
                made.append(self._plain(node, scope))
            else:
                body = self._enter(node, function, scope)
                made.extend(self._returned(function, body, node, scope))
                stack.append((iter(function.node), body))
        return made

    def _plain(self, node: onnx.NodeProto, scope: BodyNames) -> onnx.NodeProto:
        made = copy_node(node, scope, self._attribute)
        if "" in made.input and made.output:
            self._lacks(node, made, scope)
        trim(made, self.sets)
        if len(made.attribute) < len(node.attribute):
            self._required(node, made, scope)
        if made.domain == "ai.onnx":
            made.domain = ""
        self._count(1, 0)
        return made

    def _lacks(self, node: onnx.NodeProto, made: onnx.NodeProto, scope: BodyNames) -> None:
        """Note it if an input that the operator must have is one that the call leaves out."""
        domain = canonical(node.domain)
        known = signature(node.op_type, domain, self.sets.get(domain, 1)) if domain in newest() else None
        for index, (before, after) in enumerate(zip(node.input, made.input, strict=True)):
            if known is not None and before and not after and needs(known.inputs, index, known.least_inputs):
                body = _body(scope)
                call = body.call if body else ""
                self.lacking[made.output[0]] = f"{call} leaves out input {before!r}, which {label(node)} in it needs"

    def _required(self, node: onnx.NodeProto, made: onnx.NodeProto, scope: BodyNames) -> None:
        """E3367 if the call leaves out an attribute that the operator must have."""
        domain, body = canonical(node.domain), _body(scope)
        known = signature(node.op_type, domain, self.sets.get(domain, 1)) if domain in newest() else None
        given = {attribute.name for attribute in made.attribute}
        missing = next((name for name in known.required if name not in given), None) if known else None
        if missing is not None:
            outer = next(one.ref_attr_name for one in node.attribute if one.name == missing)
            what = f"does not give the function's attribute {outer!r}, which {label(node)} in it must have"
            self._refuse("E3367", body.call if body else "", what)

    def _attribute(self, attribute: onnx.AttributeProto, scope: BodyNames) -> onnx.AttributeProto | None:
        if not attribute.ref_attr_name:
            return copy_attribute(attribute, scope, self.expand)
        given = _given(scope, attribute.ref_attr_name)
        if given is None:
            return None
        if given.type != attribute.type:
            what = f"takes the function's attribute {attribute.ref_attr_name!r} as another type than was given"
            self._refuse("E3369", f"attribute {attribute.name!r}", what)
        made = deepcopy(given)
        made.name = attribute.name
        # A graph or tensor that was passed to a function is copied wherever the body refers to it.
        passed = _size([onnx.NodeProto(attribute=[made])], {})
        self._count(passed.nodes - 1, passed.bytes)
        self.limits.check("E3372", "subgraph_depth", passed.depth, "inlining nests graphs to a depth of", self.where)
        return made

    def _enter(self, node: onnx.NodeProto, function: onnx.FunctionProto, scope: BodyNames) -> _Body:
        body = _Body(self.fresh, self.fresh.call(node.name or function.name), call=f"the call {label(node)}")
        for index, name in enumerate(function.input):
            body.mapping[name] = scope.use(node.input[index]) if index < len(node.input) else ""
        for index, name in enumerate(function.output):
            if index < len(node.output) and node.output[index]:
                made = scope.define(node.output[index])
                if name not in body.mapping:
                    body.mapping[name] = made
        body.attributes = {attribute.name: attribute for attribute in function.attribute_proto}
        for attribute in node.attribute:
            copied = self._attribute(attribute, scope)
            if copied is not None:
                body.attributes[attribute.name] = copied
        return body

    def _returned(
        self, function: onnx.FunctionProto, body: _Body, call: onnx.NodeProto, scope: BodyNames
    ) -> list[onnx.NodeProto]:
        """An Identity for every output that is an input of the function."""
        made = []
        inputs = set(function.input)
        for name, wanted in zip(function.output, call.output, strict=False):
            if name in inputs and wanted:
                outer = body.mapping[name]
                if not outer:
                    what = f"the function returns its input {name!r}, which is not given"
                    self._refuse("E3368", label(call), what)
                made.append(onnx.helper.make_node("Identity", [outer], [scope.define(wanted)]))
        return made

    def _refuse(self, code: str, where: str, what: str) -> None:
        raise SpecificationError([Diagnostic(code, "error", where, what)], self.where)

    def _count(self, nodes: int, size: int) -> None:
        """What was not counted before, passed graphs and tensors, is counted as it is copied."""
        self._nodes, self._bytes = self._nodes + nodes, self._bytes + size
        self.limits.check(
            "E3370", "expansion", self._nodes, "inlining its functions makes a number of nodes of", self.where
        )
        self.limits.check(
            "E3371", "total_bytes", self._bytes, "inlining its functions makes a number of bytes of", self.where
        )


def _given(scope: BodyNames | None, name: str) -> onnx.AttributeProto | None:
    """The attribute of the call that a body, or a graph in it, belongs to."""
    body = _body(scope)
    return body.attributes.get(name) if body else None


def _body(scope: BodyNames | None) -> _Body | None:
    """The body that a scope belongs to."""
    while scope is not None and not isinstance(scope, _Body):
        scope = scope.outer
    return scope


def _leave_out(graph: onnx.GraphProto, lacking: dict[str, str], where: str) -> None:
    """Remove nodes that lack an input and what reads their results; E3373 if an output of the graph needs them."""
    if not any(node.output and node.output[0] in lacking for node in graph.node):
        return
    gone: set[str] = set()
    kept: list[onnx.NodeProto] = []
    why: dict[str, str] = {}
    for node in graph.node:
        cause = lacking.get(node.output[0]) if node.output else None
        cause = cause or next((why[name] for name in reads(node) if name in gone), None)
        if cause is None:
            kept.append(node)
            continue
        gone.update(node.output)
        why |= dict.fromkeys(node.output, cause)
    findings = Findings()
    for cause in dict.fromkeys(why[value.name] for value in graph.output if value.name in gone):
        findings.error("E3373", "", cause)
    raise_errors(findings.found, where)
    del graph.node[:]
    graph.node.extend(kept)
