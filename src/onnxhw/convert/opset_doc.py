"""Operator set documents (``ONNXOPSET``): read them, hold a model against them, write what the hardware supports.

read     file or bytes -> OperatorSetProto
check    what a model uses that no document has
written  the operators of one domain that have a hardware handler
"""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx.onnx_operators_pb import OperatorProto, OperatorSetProto

from .. import __version__
from ..diagnostics import Diagnostic
from ..errors import InvalidModelError
from ..onnxmodel.specification.findings import Findings, label
from ..onnxmodel.specification.functions import Functions, every_node
from ..onnxmodel.specification.signatures import canonical, first, newest, signature
from ..onnxmodel.specification.versions import model_fields
from .handlers import HANDLERS

MAGIC = "ONNXOPSET"
LARGEST = 1 << 26
"""Bytes of a document that is read; ONNX's own has less than a megabyte."""
OLDEST = 10
"""The version of ONNX's own set from which on the hardware takes operators: QuantizeLinear came with it."""
STABLE = 1
"""OperatorStatus STABLE."""


def read(source: "str | os.PathLike[str] | bytes") -> OperatorSetProto:
    """The document, if it is one.

    Raises `InvalidModelError`: E3420 cannot be read, E3421 no operator set document, E3422 an operator twice or
    without a name, E3423 a version that cannot be.
    """
    where = "document" if isinstance(source, bytes) else str(source)
    data = source if isinstance(source, bytes) else _bytes(Path(source))
    found = OperatorSetProto()
    try:
        found.ParseFromString(data)
    except (DecodeError, ValueError) as error:
        raise InvalidModelError("E3421", "is no operator set document", where=where) from error
    if found.magic != MAGIC:
        raise InvalidModelError(
            "E3421", f"is no operator set document: its magic is {found.magic[:20]!r}, not {MAGIC!r}", where=where
        )
    if found.opset_version < 1 or found.ir_version < 1:
        raise InvalidModelError(
            "E3423", f"has operator set version {found.opset_version} of IR version {found.ir_version}", where=where
        )
    names = [operator.op_type for operator in found.operator] + [function.name for function in found.functions]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice or "" in names:
        raise InvalidModelError(
            "E3422", f"operators must be named, each once: {', '.join(twice[:10]) or 'one has no name'}", where=where
        )
    for operator in found.operator:
        if not 1 <= operator.since_version <= found.opset_version:
            raise InvalidModelError(
                "E3423",
                f"{operator.op_type!r} came with version {operator.since_version}, which cannot be",
                where=where,
            )
    return found


def _bytes(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise InvalidModelError("E3420", "is not a regular file", where=str(path))
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise InvalidModelError("E3420", f"cannot be read: {error}", where=str(path)) from error
    if len(data) > LARGEST:
        raise InvalidModelError("E3420", f"is larger than {LARGEST} bytes", where=str(path))
    return data


def check(model: onnx.ModelProto, documents: Sequence[OperatorSetProto]) -> list[Diagnostic]:
    """What the nodes of a model use that the documents do not have, by node.

    Two documents of one domain are E3424. E4520: no document of a node's domain; E4521: no operator of its name;
    E4522: the document means another version of the operator; W3420: an experimental operator.
    """
    findings = Findings()
    sets = model_fields(model, Findings())
    functions = Functions.of(model, Findings())
    known: dict[str, OperatorSetProto] = {}
    operators: dict[tuple[str, str], OperatorProto] = {}
    for document in documents:
        domain = canonical(document.domain)
        if domain in known:
            findings.error("E3424", f"domain {domain or 'ai.onnx'!r}", "has two operator set documents")
        known[domain] = document
        operators |= {(domain, operator.op_type): operator for operator in document.operator}
        for function in document.functions:
            operators[domain, function.name] = OperatorProto(
                op_type=function.name, since_version=document.opset_version, status="STABLE"
            )
    bodies = [model.graph.node, *(function.node for function in model.functions)]
    for node in (node for body in bodies for node in every_node(body)):
        domain = canonical(node.domain)
        if functions.call(node) is not None:
            continue
        found = operators.get((domain, node.op_type))
        if domain not in known:
            findings.error("E4520", label(node), f"there is no operator set document of domain {domain or 'ai.onnx'!r}")
        elif found is None:
            findings.error("E4521", label(node), f"the operator set document has no operator {node.op_type!r}")
        elif not _same(found, domain, sets.get(domain, 0), known[domain].opset_version):
            findings.error(
                "E4522",
                label(node),
                f"version {sets.get(domain, 0)} of the set may mean another {node.op_type!r} than the document's"
                f" version {found.since_version}",
            )
        elif found.status != STABLE:
            findings.warning("W3420", label(node), f"{node.op_type!r} is experimental")
    return findings.found


def _same(operator: OperatorProto, domain: str, imported: int, documented: int) -> bool:
    """Is the operator of the imported version of its set the documented one?"""
    if imported <= documented:
        return operator.since_version <= imported
    theirs = signature(operator.op_type, domain, imported) if domain in newest() else None
    return theirs is not None and operator.since_version <= theirs.since <= documented


def written(domain: str = "", version: int = 0) -> OperatorSetProto:
    """The operators of a domain that have a hardware handler, as of one version (0: the newest) of its set.

    `since_version` is the oldest declaration that is taken: of version `OLDEST` of ONNX's own set, or the first since.
    Whether a node does run on the hardware depends on its quantization and its sizes too; ``onnxhw check`` tells.
    """
    domain = canonical(domain)
    version = version or newest().get(domain, 1)
    made = OperatorSetProto(
        magic=MAGIC,
        ir_version=onnx.IR_VERSION,
        domain=domain,
        opset_version=version,
        doc_string=f"What onnxhw {__version__} maps onto its hardware in quantized form. Others run on the host.",
    )
    for known, op_type in sorted(HANDLERS):
        if known != domain:
            continue
        schema = signature(op_type, domain, version) if domain in newest() else None
        if schema is not None and not schema.deprecated:
            oldest = signature(op_type, domain, min(OLDEST, version))
            since = oldest.since if oldest else first(op_type, domain) or schema.since
            made.operator.append(OperatorProto(op_type=op_type, since_version=since, status="STABLE"))
        elif domain not in newest():
            made.operator.append(OperatorProto(op_type=op_type, since_version=1, status="STABLE"))
    return made


def domains() -> list[str]:
    """The domains of which the hardware supports operators."""
    return sorted({domain for domain, _ in HANDLERS})
