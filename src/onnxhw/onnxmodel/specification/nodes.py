"""Rules of one node: its operator, its arity, what it may leave out."""

from collections.abc import Sequence

import onnx

from .attributes import attributes
from .com_microsoft import CONTRIB, contributed
from .findings import Findings, label
from .functions import Functions
from .signatures import Formal, Signature, canonical, first, newest, signature

INSTEAD = {"Scatter": "ScatterElements, which means the same", "Upsample": "Resize", "GroupNormalization": "version 21"}
"""What came in the place of a deprecated operator."""


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
            hint = f"use {INSTEAD[node.op_type]}" if node.op_type in INSTEAD else "import an older operator set"
            what = f"the operator is deprecated in operator set version {known.since}"
            findings.error("E3331", label(node), what, hint)
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


TRAINING = "ai.onnx.preview.training"
TENSORS = {"Adagrad": (3, 2), "Adam": (4, 3), "Momentum": (3, 2)}
"""Inputs and outputs of a step for each tensor that is optimized; two more inputs are of all."""


def _training(node: onnx.NodeProto, findings: Findings) -> None:
    """Variadic inputs and outputs that belong to each other."""
    read, written = TENSORS[node.op_type]
    count, rest = divmod(len(node.input) - 2, read)
    if rest or count < 1:
        what = f"has {len(node.input)} inputs, the operator takes 2 and {read} for each tensor"
        findings.error("E3332", label(node), what)
    elif len(node.output) != written * count:
        what = f"has {len(node.output)} outputs, of {count} tensors the operator gives {written * count}"
        findings.error("E3333", label(node), what)


def _arity(node: onnx.NodeProto, known: Signature, findings: Findings) -> None:
    inputs, outputs = list(node.input), list(node.output)
    if canonical(node.domain) == TRAINING and node.op_type in TENSORS:
        _training(node, findings)
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
