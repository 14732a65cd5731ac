"""The model's own fields: versions, operator sets, domain, metadata, training information."""

from collections import Counter
from collections.abc import Iterable

import onnx

from .findings import Findings
from .functions import every_node
from .signatures import EXTENSIONS, OLDEST_OPSET, canonical, implied, newest

OLDEST_IR = 3
"""Earlier versions of the IR have no operator set imports."""
WITH_FUNCTIONS = 8
WITH_TRAINING = 7


ASSUMED = 1
"""The version of a domain of `EXTENSIONS` that is used and not imported: each was published with this one."""


def imports(
    entries: Iterable[onnx.OperatorSetIdProto], nodes: Iterable[onnx.NodeProto], where: str, findings: Findings
) -> dict[str, int]:
    """Version by domain, of a model or a function with these nodes.

    W3331 for a domain imported twice: the highest version binds (onnx.proto on opset_import). W3332 for one of
    `EXTENSIONS` that a node has and nothing imports: `ASSUMED`. E3303 for a version below 1, E4501 for one too new.
    """
    versions: dict[str, list[int]] = {}
    for entry in entries:
        versions.setdefault(canonical(entry.domain), []).append(entry.version)
    found = {domain: max(several) for domain, several in versions.items()}
    for domain, several in versions.items():
        name = domain or "ai.onnx"
        if len(several) > 1:
            listed = " and ".join(map(str, several))
            what = f"operator set {name!r} is imported as versions {listed}: {found[domain]} binds"
            findings.warning("W3331", where, what, "the default domain is called '' or 'ai.onnx': import it once")
        if min(several) < 1:
            findings.error("E3303", where, f"operator set {name!r} has version {min(several)}, which cannot be")
        elif found[domain] > newest().get(domain, found[domain]):
            findings.error(
                "E4501",
                where,
                f"operator set {name!r} {found[domain]} is newer than {newest()[domain]}, the newest that is known",
                "update onnx, or convert the model with onnx.version_converter",
            )
    for domain in sorted(EXTENSIONS.intersection(node.domain for node in nodes) - found.keys()):
        what = f"operator set {domain!r} is used but not imported; version {ASSUMED} is assumed"
        findings.warning("W3332", where, what, "the exporter must add the domain to opset_import")
        found[domain] = ASSUMED
    return found


def model_fields(model: onnx.ModelProto, findings: Findings) -> dict[str, int]:
    """Everything but graph and functions; returns the imported operator sets, the implied default one included."""
    _ir_version(model, findings)
    everything = every_node(model.graph.node)
    sets = imports(model.opset_import, everything, "opset_import", findings)
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
    used = {node.domain for nodes in (everything, *map(_body, model.functions)) for node in nodes}
    local = {canonical(function.domain) for function in model.functions}
    for domain in sorted(used.intersection(sets) - set(newest()) - EXTENSIONS - local):
        findings.warning("W3301", "opset_import", f"nothing is known about the operators of domain {domain!r}")
    _descriptive(model, findings)
    return sets


def _body(function: onnx.FunctionProto) -> list[onnx.NodeProto]:
    return every_node(function.node)


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
    elif model.model_version:
        findings.info("W3338", "model_version", f"the model is version {version_text(model.model_version)}")
    for key, count in Counter(entry.key for entry in model.metadata_props).items():
        if count > 1:
            findings.warning("W3305", "metadata_props", f"key {key!r} is there {count} times; the last one counts")


def version_text(version: int) -> str:
    """A `model_version` as people write it: semantic where major or minor is not zero, else the plain number."""
    major, minor, patch = version >> 48 & 0xFFFF, version >> 32 & 0xFFFF, version & 0xFFFFFFFF
    return f"{major}.{minor}.{patch}" if major or minor else str(version)
