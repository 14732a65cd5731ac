"""Rules of graphs: single assignment, scopes, topological order, cycles, namespaces."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import onnx
from onnx import AttributeProto

from . import types
from .descriptions import described
from .findings import Findings, label
from .functions import Functions
from .nodes import node_rules
from .order import cycle
from .signatures import canonical

SCAN_WITH_LENGTHS = 8
"""The operator set whose Scan has an input that its graph does not get: the lengths of its sequences."""
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch


Form = tuple[str | int | bytes, ...]
"""What decides over `node_rules`."""
PLAIN = frozenset(
    [AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.STRING, AttributeProto.FLOATS, AttributeProto.INTS]
)
"""Types of attributes that hold no tensors or graphs."""
SORT = "nodes are sorted at reading where an order exists: mend the other errors of this graph"
"""What to do about nodes that are not in topological order."""
LONGEST = 512
"""Bytes up to which a node with attributes has a form."""


def form(node: onnx.NodeProto, outputs: Sequence[str], plain: set[bytes]) -> Form | None:
    """The node's form; None for nodes that are to be looked at one by one: they hold more than numbers and texts,
    leave something out, or have attributes whose names count in `UnusualNames`. `plain`: attributes that do not, and
    are small, which it notes."""
    inputs = node.input
    if "" in inputs or "" in outputs:
        return None
    first = (node.op_type, node.domain, node.overload, len(inputs), len(outputs))
    if not node.attribute:
        return first
    if node.ByteSize() > LONGEST:
        return None
    texts = [attribute.SerializeToString() for attribute in node.attribute]
    for attribute, text in zip(node.attribute, texts, strict=True) if not plain.issuperset(texts) else ():
        if attribute.type not in PLAIN or not IDENTIFIER(attribute.name):
            return None
        plain.add(text)
    return (*first, *texts)


@dataclass
class UnusualNames:
    """Names that are no C90 identifiers: counted, since every exporter writes them."""

    count: int = 0
    first: str = ""

    def see(self, names: Iterable[str]) -> None:
        """Count those that are not."""
        odd = [name for name in names if name and not IDENTIFIER(name)]
        if odd:
            self.count += len(odd)
            self.first = self.first or min(odd)


@dataclass
class DefinedNames:
    """The value names that are defined so far in a graph, and in those around it; `later`: by nodes still to come."""

    defined: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)
    outer: "DefinedNames | None" = None

    def sees(self, name: str) -> bool:
        """Is the name defined here or around?"""
        return name in self.defined or (self.outer is not None and self.outer.sees(name))

    def will_see(self, name: str) -> bool:
        """Will a node that is still to come define it?"""
        return name in self.later or (self.outer is not None and self.outer.will_see(name))


@dataclass(frozen=True)
class GraphRules:
    """What a graph is checked against."""

    ir_version: int
    sets: dict[str, int]
    functions: Functions
    findings: Findings
    names: UnusualNames
    in_function: bool = False
    sound: set[Form] = field(default_factory=set)
    """Nodes in which nothing was found wrong, but for what they are called and read."""
    plain: set[bytes] = field(default_factory=set)
    """Attributes that hold numbers and texts alone: see `form`."""


def graph_rules(graph: onnx.GraphProto, rules: GraphRules, outer: DefinedNames | None = None) -> set[str]:
    """All rules of a graph and the graphs in it; returns the names that it takes from around."""
    where = f"graph {graph.name!r}"
    if not graph.name:
        rules.findings.error("E3310", where, "a graph must have a name")
    scope = DefinedNames(set(), _outputs(graph.node), outer)
    inputs = _inputs(graph, rules, scope)
    _initializers(graph, inputs, rules, scope)
    free = body_rules(graph.node, where, rules, scope)
    outputs = [value.name for value in graph.output]
    for value in graph.output:
        types.value_type(value, outer is None, rules.ir_version, rules.findings, "output")
    for name in outputs:
        if not name:
            rules.findings.error("E3323", where, "has an output without a name")
        elif not scope.sees(name):
            rules.findings.error("E3319", where, f"nothing produces the output {name!r}")
    free |= {name for name in outputs if name and name not in scope.defined}
    for value in graph.value_info:
        types.value_type(value, False, rules.ir_version, rules.findings, "value")
    if graph.value_info or graph.quantization_annotation:
        described(graph, scope.defined, rules.findings)
    rules.names.see([graph.name, *scope.defined])
    return free


def body_rules(nodes: Sequence[onnx.NodeProto], where: str, rules: GraphRules, scope: DefinedNames) -> set[str]:
    """Rules of a list of nodes in a scope; returns what they take from around it."""
    findings, defined, later = rules.findings, scope.defined, scope.later
    free: set[str] = set()
    uses: list[set[str]] = []
    named: set[str] = set()
    attributes: list[str] = []
    unsorted: list[tuple[onnx.NodeProto, str]] = []
    for node in nodes:
        taken, outputs = set(node.input), list(node.output)
        alike = form(node, outputs, rules.plain)
        if alike is None or alike not in rules.sound:
            before = findings.total
            node_rules(node, rules.sets, rules.functions, rules.in_function, findings)
            taken.discard("")
            if node.attribute:
                taken |= _nested(node, rules, scope)
                attributes += [attribute.name for attribute in node.attribute]
            if alike is not None and findings.total == before:
                rules.sound.add(alike)
        uses.append(taken)
        for name in sorted(taken - defined) if not taken <= defined else ():
            if not scope.sees(name):
                if name in later:
                    unsorted.append((node, name))
                elif name in node.input and not scope.will_see(name):  # what comes later around is said there
                    findings.error("E3313", label(node), f"uses {name!r}, which nothing defines")
            if name not in later:
                free.add(name)
        for name in outputs:
            if name:
                _define(name, node, scope, findings)
        own = node.name
        if own:
            if own in named:
                findings.error("E3318", label(node), f"another node of {where} has the same name")
            named.add(own)
    if unsorted:
        _order(nodes, uses, unsorted, findings)
    rules.names.see(named)
    rules.names.see(attributes)
    return free


def _outputs(nodes: Sequence[onnx.NodeProto]) -> set[str]:
    return {name for node in nodes for name in node.output if name}


def _inputs(graph: onnx.GraphProto, rules: GraphRules, scope: DefinedNames) -> dict[str, onnx.ValueInfoProto]:
    where, names = f"graph {graph.name!r}", [value.name for value in graph.input]
    _once("E3316", "input", names, where, rules.findings)
    for value in graph.input:
        if not value.name:
            rules.findings.error("E3323", where, "has an input without a name")
        elif scope.outer is not None and scope.outer.sees(value.name):
            rules.findings.warning("W3312", where, f"input {value.name!r} hides a value of the graph around it")
        types.value_type(value, scope.outer is None, rules.ir_version, rules.findings, "input")
    scope.defined.update(names)
    return {value.name: value for value in graph.input}


def _initializers(
    graph: onnx.GraphProto, inputs: dict[str, onnx.ValueInfoProto], rules: GraphRules, scope: DefinedNames
) -> None:
    where, findings = f"graph {graph.name!r}", rules.findings
    names = [tensor.name for tensor in graph.initializer]
    names += [sparse.values.name for sparse in graph.sparse_initializer]
    _once("E3320", "initializer", names, where, findings)
    for tensor in graph.initializer:
        if tensor.name in inputs:
            types.initializer(tensor, inputs[tensor.name], findings)
    for name in names:
        if not name:
            findings.error("E3323", where, "has an initializer without a name")
        elif name not in inputs and rules.ir_version < 4:
            findings.error("E3321", where, f"initializer {name!r} must be an input too before IR version 4")
        elif name in inputs and scope.outer is not None and rules.ir_version >= 4:
            findings.error("E3322", where, f"{name!r} is both an input and an initializer of a nested graph")
        elif name not in inputs and scope.outer is not None and scope.outer.sees(name):
            findings.warning("W3312", where, f"initializer {name!r} hides a value of the graph around it")
    scope.defined.update(names)


def _nested(node: onnx.NodeProto, rules: GraphRules, scope: DefinedNames) -> set[str]:
    free: set[str] = set()
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            continue  # the call's graph, which is looked at where it is written
        if attribute.type == onnx.AttributeProto.GRAPH:
            free |= graph_rules(attribute.g, rules, scope)
            if attribute.g.initializer and rules.ir_version < 4:
                _given(node, attribute.g, rules)
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            for graph in attribute.graphs:
                free |= graph_rules(graph, rules, scope)
    return free


def _given(node: onnx.NodeProto, graph: onnx.GraphProto, rules: GraphRules) -> None:
    """E3322 before IR version 4: the inputs that the operator gives come first, and have no initializers."""
    if node.op_type not in ("Loop", "Scan") or canonical(node.domain):
        return
    constants = {tensor.name for tensor in graph.initializer}
    lengths = node.op_type == "Scan" and rules.sets.get("") == SCAN_WITH_LENGTHS
    for value in graph.input[: len(node.input) - lengths]:
        if value.name in constants:
            what = f"gives its graph {graph.name!r} the input {value.name!r}, which is an initializer there"
            rules.findings.error("E3322", label(node), what, "constants are listed after the inputs that are given")


def _define(name: str, node: onnx.NodeProto, scope: DefinedNames, findings: Findings) -> None:
    if name in scope.defined:
        findings.error("E3311", label(node), f"defines {name!r}, which is defined already")
    elif scope.outer is not None and scope.outer.sees(name):
        findings.error("E3312", label(node), f"defines {name!r}, which hides a value of the graph around it")
    scope.defined.add(name)
    scope.later.discard(name)


def _once(code: str, what: str, names: Sequence[str], where: str, findings: Findings) -> None:
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    for name in names:
        if name in seen:
            findings.error(code, where, f"has the {what} {name!r} twice")
        seen.add(name)


def _order(
    nodes: Sequence[onnx.NodeProto],
    uses: Sequence[set[str]],
    unsorted: Sequence[tuple[onnx.NodeProto, str]],
    findings: Findings,
) -> None:
    around = cycle([set(node.output) - {""} for node in nodes], uses)
    if around:
        names = " -> ".join(label(nodes[index]) for index in [*around, around[0]][:12])
        findings.error("E3315", label(nodes[around[0]]), f"is part of a cycle: {names}")
    for node, name in unsorted:
        if not around or name not in {made for index in around for made in nodes[index].output}:
            findings.error("E3314", label(node), f"uses {name!r} before the node that makes it", SORT)
