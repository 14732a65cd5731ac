"""`Signature`: what an operator's schema says about its nodes, and which domains there are."""

from dataclasses import dataclass
from functools import lru_cache

import onnx
from onnx import defs

OLDEST_OPSET = 7
"""Before it, operators of the default domain broadcast otherwise; their nodes run on the host."""

EXTENSIONS = frozenset(
    ["com.microsoft", "com.microsoft.nchwc", "qonnx.custom_op.general", "finn.custom_op.general", "onnx.brevitas"]
)
"""Domains without schemas in onnx of which this release knows operators."""

HIGHEST = (1 << 31) - 1
"""The highest version that onnx can be asked for."""


@dataclass(frozen=True)
class Formal:
    """An input or output of a signature: "single", "optional" or "variadic"."""

    name: str
    option: str


@dataclass(frozen=True)
class Signature:
    """An operator at one version of its set. `attributes`: types by name; `required`: those without a default."""

    since: int
    deprecated: bool
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    least_inputs: int
    most_inputs: int
    least_outputs: int
    most_outputs: int
    attributes: dict[str, int]
    required: tuple[str, ...]


def canonical(domain: str) -> str:
    """A domain by its one name: ``ai.onnx`` is the default domain."""
    return "" if domain == "ai.onnx" else domain


@lru_cache(maxsize=1)
def newest() -> dict[str, int]:
    """The newest version of every operator set that onnx defines."""
    found: dict[str, int] = {}
    for schema in defs.get_all_schemas():
        domain = canonical(schema.domain)
        found[domain] = max(found.get(domain, 0), schema.since_version)
    found[""] = defs.onnx_opset_version()
    for domain, least in (("ai.onnx.ml", 5), ("ai.onnx.training", 1), ("ai.onnx.preview.training", 1)):
        found[domain] = max(found.get(domain, 0), least)
    return found


@lru_cache(maxsize=4096)
def signature(op_type: str, domain: str, version: int) -> Signature | None:
    """What onnx defines, or None for an operator that the set does not have at that version."""
    if version < 1:  # a file may say anything, and onnx takes 32 bits
        return None
    try:
        schema = defs.get_schema(op_type, min(version, HIGHEST), canonical(domain))
    except defs.SchemaError:
        return None
    return Signature(
        schema.since_version,
        schema.deprecated,
        tuple(Formal(formal.name, _option(formal)) for formal in schema.inputs),
        tuple(Formal(formal.name, _option(formal)) for formal in schema.outputs),
        schema.min_input,
        schema.max_input,
        schema.min_output,
        schema.max_output,
        {name: _type(attribute) for name, attribute in schema.attributes.items()},
        tuple(name for name, attribute in schema.attributes.items() if attribute.required),
    )


@lru_cache(maxsize=4096)
def nowhere(op_type: str, domain: str) -> bool:
    """Does no version of one of onnx's own operator sets have the operator?"""
    version = newest().get(canonical(domain))
    return version is not None and signature(op_type, canonical(domain), version) is None


@lru_cache(maxsize=64)
def first(op_type: str, domain: str) -> int | None:
    """The version of onnx's operator set with which the operator came; None if no version has it."""
    schemas = defs.get_all_schemas_with_history()
    names = (canonical(domain), op_type)
    return min((one.since_version for one in schemas if (canonical(one.domain), one.name) == names), default=None)


@lru_cache(maxsize=64)
def first_with(op_type: str, domain: str, attribute: str) -> int | None:
    """The version of onnx's operator set with which the operator got an attribute; None if no version has it."""
    names = (canonical(domain), op_type)
    found = (
        one.since_version for one in defs.get_all_schemas_with_history()
        if (canonical(one.domain), one.name) == names and attribute in one.attributes
    )  # fmt: skip
    return min(found, default=None)


def _option(formal: defs.OpSchema.FormalParameter) -> str:
    options = defs.OpSchema.FormalParameterOption
    return {options.Optional: "optional", options.Variadic: "variadic"}.get(formal.option, "single")


def _type(attribute: defs.OpSchema.Attribute) -> int:
    return int(onnx.AttributeProto.AttributeType.Value(str(attribute.type).rpartition(".")[2]))


@lru_cache(maxsize=64)
def implied(ir_version: int) -> int:
    """The default operator set that a model imports implicitly: the newest one published with its IR version."""
    table = [row[2] for row in onnx.helper.VERSION_TABLE if row[1] <= ir_version]
    return max(table, default=1)
