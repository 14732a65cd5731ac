"""Rules of one node: its operator, its arity, what it may leave out."""

from collections.abc import Sequence

import onnx

from .attributes import attributes
from .contributed import CONTRIB, contributed
from .findings import Findings, label
from .functions import Functions
from .signatures import Formal, Signature, canonical, first, newest, signature


def node_rules(
    node: onnx.NodeProto, sets: dict[str, int], functions: Functions, in_function: bool, findings: Findings
) -> None:
    """Everything about a node that needs no other node."""
    if not node.op_type:
        findings.error("E3336", label(node), "names no operator")
        return
    domain = canonical(node.domain)
    called = functions.call(node) is not None
    if called:
        functions.check_call(node, findings)
    if domain not in sets:
        findings.error(
            "E3304",
            label(node),
            f"is of domain {domain!r}, of which no operator set is imported",
            "the exporter must add the domain to opset_import",
        )
    if called or domain not in sets:
        attributes(node, None, in_function, findings)
        return
    if functions.missing(node):
        findings.error(
            "E3362", label(node), f"calls a function that domain {domain!r} does not have: {functions.near(node)}"
        )
    known = signature(node.op_type, domain, sets[domain]) if domain in newest() and sets[domain] > 0 else None
    if domain in newest() and known is None and 0 < sets[domain] <= newest()[domain]:
        _unknown(node, domain, sets[domain], findings)
    attributes(node, known, in_function, findings)
    if known is not None:
        if known.deprecated:
            findings.error("E3331", label(node), f"the operator is deprecated in operator set version {known.since}")
        else:
            _arity(node, known, findings)
    elif domain == CONTRIB and (defined := contributed(node.op_type)) is not None:
        _arity(node, defined, findings)
    elif not node.output:
        findings.error("E3333", label(node), "has no outputs; a node has one or more")


def _unknown(node: onnx.NodeProto, domain: str, version: int, findings: Findings) -> None:
    """An operator of a later version is an error; one of no version may be of a later release, or somebody's own."""
    since = first(node.op_type, domain)
    what = f"operator set {domain or 'ai.onnx'!r} {version} has no operator {node.op_type!r}"
    if since is not None:
        findings.error("E3330", label(node), what, f"it came with version {since}")
    else:
        findings.warning("W3330", label(node), f"{what}, nor has any other version", "is the node's domain missing?")


def _arity(node: onnx.NodeProto, known: Signature, findings: Findings) -> None:
    inputs, outputs = list(node.input), list(node.output)
    if (
        known.least_inputs <= len(inputs) <= known.most_inputs
        and known.least_outputs <= len(outputs) <= known.most_outputs
        and all(inputs)
        and all(outputs)
    ):
        return
    _count("E3332", "input", inputs, known.inputs, known.least_inputs, known.most_inputs, node, findings)
    _count("E3333", "output", outputs, known.outputs, known.least_outputs, known.most_outputs, node, findings)


def _count(
    code: str,
    what: str,
    names: Sequence[str],
    formals: tuple[Formal, ...],
    least: int,
    most: int,
    node: onnx.NodeProto,
    findings: Findings,
) -> None:
    if not least <= len(names) <= most:
        wanted = str(least) if least == most else f"at least {least}" if most > 1 << 20 else f"{least} to {most}"
        findings.error(code, label(node), f"has {len(names)} {what}s, the operator takes {wanted}")
        return
    if all(names):
        return
    for index, name in enumerate(names):
        if not name and needs(formals, index, least, what == "input"):
            formal = formals[min(index, len(formals) - 1)]
            findings.error(
                "E3334" if what == "input" else "E3335",
                label(node),
                f"{what} {index} ({formal.name}) must not be left out",
            )


def needs(formals: Sequence[Formal], index: int, least: int, an_input: bool = True) -> bool:
    """Must the input or output of this index be there? Of variadic ones every input, and the first `least` outputs."""
    if not an_input and formals[min(index, len(formals) - 1)].option == "variadic":
        return index < least
    return formals[min(index, len(formals) - 1)].option != "optional"
