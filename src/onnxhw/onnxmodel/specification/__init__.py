"""The rules of the ONNX IR specification that a model is checked against before anything else looks at it.

diagnose       every finding about a model: errors, warnings, notes     (docs/onnx-ir.md has them row by row)
raise_errors   refuse a model for its errors, all at once
operators      rules of single operators that need shapes               (operators.py)
"""

import onnx

from ...diagnostics import Diagnostic
from .descriptions import devices
from .feature_versions import later_features
from .findings import Findings, SpecificationError, UnknownVersionError, raise_errors
from .functions import Functions, compatible, every_node, identity, interface, spelled
from .graphs import DefinedNames, GraphRules, UnusualNames, body_rules, graph_rules
from .operators import operator_rules
from .types import open_sizes, stated
from .versions import imports, model_fields, version_text

__all__ = [
    "Findings",
    "SpecificationError",
    "UnknownVersionError",
    "diagnose",
    "operator_rules",
    "raise_errors",
    "version_text",
]


def diagnose(model: onnx.ModelProto, where: str = "model") -> list[Diagnostic]:
    """Every finding about a model, in the order of its parts; linear in its size, and it reads no weights.

    `where` (the file's name) is for the summary of names; other findings name their node, graph or field.
    """
    findings, names = Findings(), UnusualNames()
    sets = model_fields(model, findings)
    functions = Functions.of(model, findings)
    rules = GraphRules(model.ir_version, sets, functions, findings, names)
    graph_rules(model.graph, rules)
    for function in functions.table.values():
        _function(function, rules)
    functions.recursion(findings)
    later_features(model, findings)
    open_sizes(model, findings)
    devices(model, findings)
    shapes = known_shapes(model.graph)
    operator_rules(model.graph, sets, shapes, shapes, findings)
    if names.count:
        findings.info(
            "W3310", where, f"{names.count} names are no C90 identifiers, as most exporters write them: {names.first!r}"
        )
    return findings.found


def known_shapes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """The static shapes that a graph states of its inputs and initializers."""
    found: dict[str, tuple[int, ...]] = {}
    for value in graph.input:
        kind = value.type.tensor_type
        if kind.HasField("shape") and all(map(stated, kind.shape.dim)):
            found[value.name] = tuple(dim.dim_value for dim in kind.shape.dim)
    found.update((tensor.name, tuple(tensor.dims)) for tensor in graph.initializer)
    return found


def _function(function: onnx.FunctionProto, rules: GraphRules) -> None:
    where = f"function {spelled(identity(function))!r}"
    findings = rules.findings
    own = imports(function.opset_import, every_node(function.node), where, findings)
    interface(function, findings)
    compatible(function, own, rules.sets, findings)
    scope = DefinedNames({*function.input}, {name for node in function.node for name in node.output if name})
    inside = GraphRules(rules.ir_version, {**own}, rules.functions, findings, rules.names, in_function=True)
    body_rules(function.node, where, inside, scope)
    for name in function.output:
        if name not in scope.defined:
            findings.error("E3319", where, f"nothing produces the output {name!r}")
