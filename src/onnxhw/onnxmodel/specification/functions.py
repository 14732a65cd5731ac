"""Rules of model-local functions: identity, signature, imports, calls, recursion."""

from dataclasses import dataclass, field

import onnx

from ..subgraph_copy import GRAPHS, nested
from .findings import Findings, label
from .signatures import EXTENSIONS, canonical, newest, signature

Key = tuple[str, str, str]
"""Domain, name and overload: what identifies a function."""


def key(node: onnx.NodeProto) -> Key:
    """The function that a node would call."""
    return (canonical(node.domain), node.op_type, node.overload)


def identity(function: onnx.FunctionProto) -> Key:
    """A function's own key."""
    return (canonical(function.domain), function.name, function.overload)


def spelled(found: Key) -> str:
    """A key for people."""
    return f"{found[0] or 'ai.onnx'}::{found[1]}" + (f":{found[2]}" if found[2] else "")


@dataclass
class Functions:
    """The functions of a model by key."""

    table: dict[Key, onnx.FunctionProto]
    _domains: frozenset[str] = field(init=False)
    _bound: dict[Key, tuple[int, int, frozenset[str], frozenset[str]]] = field(init=False)

    def __post_init__(self) -> None:
        self._domains = frozenset(domain for domain, _, _ in self.table)
        self._bound = {
            found: (
                len(function.input),
                len(function.output),
                frozenset(function.attribute),
                frozenset(attribute.name for attribute in function.attribute_proto),
            )
            for found, function in self.table.items()
        }

    @classmethod
    def of(cls, model: onnx.ModelProto, findings: Findings) -> "Functions":
        """E3360 for a second function of one identity, E3361 for one without a name or a domain."""
        table: dict[Key, onnx.FunctionProto] = {}
        for function in model.functions:
            found = identity(function)
            if not function.name or not function.domain:
                findings.error("E3361", f"function {spelled(found)!r}", "needs a name and a domain")
            if found in table:
                findings.error("E3360", f"function {spelled(found)!r}", "is defined twice")
            table.setdefault(found, function)
        return cls(table)

    def call(self, node: onnx.NodeProto) -> onnx.FunctionProto | None:
        """The function that a node calls; a model's own function comes before an operator of the same name."""
        return self.table.get(key(node)) if self.table else None

    def missing(self, node: onnx.NodeProto) -> bool:
        """Is the node's domain one of functions only, without this one?"""
        domain = canonical(node.domain)
        return bool(node.overload) or (
            domain in self._domains and domain not in newest() and domain not in EXTENSIONS and self.call(node) is None
        )

    def near(self, node: onnx.NodeProto) -> str:
        """What the domain has instead."""
        domain, name, _ = key(node)
        same = [spelled(found) for found in self.table if found[:2] == (domain, name)]
        other = [spelled(found) for found in self.table if found[0] == domain]
        return f"{spelled(key(node))}; it has {', '.join(sorted(same or other)[:5]) or 'none'}"

    def check_call(self, node: onnx.NodeProto, findings: Findings) -> None:
        """E3366 for too many inputs or outputs; W3334 for a missing attribute, W3360 for an unknown one."""
        inputs, outputs, required, defaults = self._bound[key(node)]
        if len(node.input) > inputs or len(node.output) > outputs:
            findings.error(
                "E3366",
                label(node),
                f"has {len(node.input)} inputs and {len(node.output)} outputs, the function {inputs} and {outputs}",
            )
        given = {attribute.name for attribute in node.attribute}
        for name in sorted(required - given):
            what = f"does not give the function's attribute {name!r}: the defaults of the operators inside apply"
            findings.warning("W3334", label(node), what)
        for name in sorted(given - required - defaults):
            findings.warning("W3360", label(node), f"the function has no attribute {name!r}; it is dropped")

    def recursion(self, findings: Findings) -> None:
        """E3363 for functions that call themselves, directly or not."""
        done: set[Key] = set()
        for start in self.table:
            path: list[Key] = []
            stack: list[tuple[Key, bool]] = [(start, False)]
            while stack:
                found, leaving = stack.pop()
                if leaving:
                    done.add(path.pop())
                elif found in path:
                    cycle = " -> ".join(spelled(one) for one in [*path[path.index(found) :], found])
                    findings.error("E3363", f"function {spelled(found)!r}", f"calls itself: {cycle}")
                elif found not in done:
                    path.append(found)
                    stack.append((found, True))
                    stack.extend((callee, False) for callee in sorted(self.callees(found)))

    def callees(self, found: Key) -> set[Key]:
        """The functions that a function calls, in nested graphs too."""
        return {key(node) for node in every_node(self.table[found].node) if key(node) in self.table}


def every_node(nodes: "list[onnx.NodeProto]") -> "list[onnx.NodeProto]":
    """The nodes, each followed by those of its nested graphs."""
    found, left = list(nodes), []
    if not any(attribute.type in GRAPHS for node in found if node.attribute for attribute in node.attribute):
        return found
    found, left = [], found[::-1]
    while left:
        node = left.pop()
        found.append(node)
        left.extend([inner for graph in nested(node) for inner in graph.node][::-1])
    return found


def interface(function: onnx.FunctionProto, findings: Findings) -> None:
    """E3364: names of inputs, outputs and attributes of a function are each given once."""
    where = f"function {spelled(identity(function))!r}"
    attributes = [*function.attribute, *(attribute.name for attribute in function.attribute_proto)]
    for what, names in (("input", function.input), ("output", function.output), ("attribute", attributes)):
        if len(set(names)) < len(names) or "" in names:
            findings.error("E3364", where, f"names an {what} twice or not at all")


def compatible(function: onnx.FunctionProto, own: dict[str, int], sets: dict[str, int], findings: Findings) -> None:
    """E3365: a function's operator sets must mean the same operators as the model's, wherever its body uses them."""
    differing = {domain for domain, version in own.items() if sets.get(domain, version) != version} & set(newest())
    if not differing:
        return
    for node in every_node(function.node):
        domain = canonical(node.domain)
        if domain in differing:
            ours = signature(node.op_type, domain, sets[domain])
            theirs = signature(node.op_type, domain, own[domain])
            if (ours and ours.since) != (theirs and theirs.since):
                findings.error(
                    "E3365",
                    f"function {spelled(identity(function))!r}",
                    f"{label(node)} means another operator in version {own[domain]} than in the model's {sets[domain]}",
                    "convert the function to the model's operator set",
                )
                return
