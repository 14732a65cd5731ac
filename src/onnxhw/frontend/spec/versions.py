"""The model's own fields: versions, operator sets, domain, metadata, training information."""

from collections import Counter

import onnx

from .findings import Findings
from .signatures import EXTENSIONS, OLDEST_OPSET, canonical, implied, newest

OLDEST_IR = 3
"""Earlier versions of the IR have no operator set imports."""
WITH_FUNCTIONS = 8
WITH_TRAINING = 7


def imports(entries: "list[onnx.OperatorSetIdProto]", where: str, findings: Findings) -> dict[str, int]:
    """Version by domain; E3302 for a domain imported twice, E3303 for a version below 1, E4501 for one too new."""
    found: dict[str, int] = {}
    for entry in entries:
        domain = canonical(entry.domain)
        name = domain or "ai.onnx"
        if domain in found:
            findings.error(
                "E3302",
                where,
                f"operator set {name!r} is imported twice, as versions {found[domain]} and {entry.version}",
                "the default domain is called '' or 'ai.onnx': import it once",
            )
        if entry.version < 1:
            findings.error("E3303", where, f"operator set {name!r} has version {entry.version}, which cannot be")
        elif entry.version > newest().get(domain, entry.version):
            findings.error(
                "E4501",
                where,
                f"operator set {name!r} {entry.version} is newer than {newest()[domain]}, the newest that is known",
                "update onnx, or convert the model with onnx.version_converter",
            )
        found[domain] = max(found.get(domain, 0), entry.version)
    return found


def model_fields(model: onnx.ModelProto, findings: Findings) -> dict[str, int]:
    """Everything but graph and functions; returns the imported operator sets, the implied default one included."""
    _ir_version(model, findings)
    sets = imports(list(model.opset_import), "opset_import", findings)
    if not model.opset_import:
        findings.error("E3301", "opset_import", "the model imports no operator set", "export the model again")
    if "" not in sets:
        sets[""] = implied(max(model.ir_version, 1))
        if model.opset_import and any(canonical(node.domain) == "" for node in model.graph.node):
            findings.warning(
                "W3302",
                "opset_import",
                f"the default operator set is not imported by name; version {sets['']}, the newest of this IR version,"
                " is implied",
            )
    elif sets[""] < OLDEST_OPSET:
        findings.warning(
            "W3300",
            "opset_import",
            f"operator set {sets['']} is older than {OLDEST_OPSET}: its nodes run on the host",
            "convert the model with onnx.version_converter",
        )
    local = {canonical(function.domain) for function in model.functions}
    for domain in sorted(set(sets) - set(newest()) - EXTENSIONS - local):
        findings.warning("W3301", "opset_import", f"nothing is known about the operators of domain {domain!r}")
    _descriptive(model, findings)
    return sets


def _ir_version(model: onnx.ModelProto, findings: Findings) -> None:
    version = model.ir_version
    if version < 1:
        findings.error("E3300", "ir_version", f"the IR version is {version}, which is none", "export the model again")
    elif not OLDEST_IR <= version <= onnx.IR_VERSION:
        findings.error(
            "E4500",
            "ir_version",
            f"IR version {version} is not between {OLDEST_IR} and {onnx.IR_VERSION}",
            "export the model again with another version of onnx",
        )
    if model.functions and version < WITH_FUNCTIONS:
        findings.warning("W3308", "functions", f"IR version {version} has no functions; they are used all the same")
    if model.training_info:
        early = f" (and IR version {version} has none)" if version < WITH_TRAINING else ""
        findings.warning("W3306", "training_info", f"training information is ignored: this is inference{early}")


def _descriptive(model: onnx.ModelProto, findings: Findings) -> None:
    if not model.domain:
        findings.info("W3303", "domain", "the model does not say its domain")
    if model.model_version < 0:
        findings.warning("W3304", "model_version", f"the model's version {model.model_version} is negative")
    for key, count in Counter(entry.key for entry in model.metadata_props).items():
        if count > 1:
            findings.warning("W3305", "metadata_props", f"key {key!r} is there {count} times; the last one counts")


def version_text(version: int) -> str:
    """A `model_version` as people write it: semantic where major or minor is not zero, else the plain number."""
    major, minor, patch = version >> 48 & 0xFFFF, version >> 32 & 0xFFFF, version & 0xFFFFFFFF
    return f"{major}.{minor}.{patch}" if major or minor else str(version)
