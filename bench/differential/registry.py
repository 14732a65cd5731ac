"""`operators`: what there is to try, from onnx's schemas and onnxruntime's kernels."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx
from onnxruntime.capi import onnxruntime_pybind11_state as ort

DOMAINS = ("", "ai.onnx.ml")
OLDEST = 7
"""onnxruntime guarantees nothing before this operator set; a version that ends earlier is tried in its last one."""
ENDLESS = 1000
"""No operator set is that high: the end of a kernel that has none."""
NOT_ONNX = "an operator of early onnxruntime, without a schema in onnx"


@dataclass(frozen=True)
class Operator:
    """One version of an operator; `opset` is the operator set its models import; `types` by type variable."""

    domain: str
    name: str
    since: int
    opset: int
    schema: Any
    types: dict[str, tuple[str, ...]]

    @property
    def key(self) -> str:
        """For example ``Add-14``, ``ai.onnx.ml.Scaler-1``."""
        return f"{self.domain + '.' if self.domain else ''}{self.name}-{self.since}"


@cache
def _kernels() -> dict[tuple[str, str], list[Any]]:
    found = defaultdict(list)
    for kernel in ort.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and kernel.domain in DOMAINS:
            found[kernel.domain, kernel.op_name].append(kernel)
    return found


@cache
def operators() -> tuple[list[Operator], dict[str, str]]:
    """Every version of every operator that onnxruntime implements, and the operators left out with the reason."""
    newest = {domain: max(end for kernels in [_kernels()] for key, all_ in kernels.items() if key[0] == domain
                          for end in [kernel.version_range[0] for kernel in all_]) for domain in DOMAINS}  # fmt: skip
    newest[""] = min(newest[""], onnx.defs.onnx_opset_version())
    found, left = [], {}
    schemas = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain in DOMAINS:
            schemas[schema.domain, schema.name].append(schema)
    for key in _kernels():
        if key not in schemas:
            left[key[1]] = NOT_ONNX
    for (domain, name), versions in sorted(schemas.items()):
        versions.sort(key=lambda schema: schema.since_version)
        for schema, after in zip(versions, [*versions[1:], None], strict=True):
            until = after.since_version - 1 if after else newest[domain]
            opset = min(until, max(schema.since_version, OLDEST)) if domain == "" else schema.since_version
            types = _types(domain, name, opset, schema)
            if schema.deprecated:
                left[f"{name}-{schema.since_version}"] = "deprecated in this version: the specification refuses it"
            elif types is not None and opset <= newest[domain]:
                found.append(Operator(domain, name, schema.since_version, opset, schema, types))
        if not any((one.domain, one.name) == (domain, name) for one in found) and not versions[0].deprecated:
            left[name] = "onnxruntime has neither a kernel for it nor is it a function of operators that have one"
    return found, left


def _serves(versions: tuple[int, int], since: int, opset: int) -> bool:
    """Whether onnxruntime takes a kernel of these versions: one without an end serves its first only."""
    low, high = versions
    return low == since or (high < ENDLESS and low <= since <= high) or (since < OLDEST and low <= opset <= high)


def _types(domain: str, name: str, opset: int, schema: Any) -> dict[str, tuple[str, ...]] | None:
    """The types that schema and kernels have, by type variable; None if onnxruntime does not implement the version."""
    allowed = {one.type_param_str: tuple(one.allowed_type_strs) for one in schema.type_constraints}
    kernels = [
        one for one in _kernels().get((domain, name), []) if _serves(one.version_range, schema.since_version, opset)
    ]
    if not kernels:
        return allowed if schema.has_function or schema.has_context_dependent_function or name == "Constant" else None
    known: dict[str, set[str]] = defaultdict(set)
    for kernel in kernels:
        for variable, types in kernel.type_constraints.items():
            known[variable] |= set(types)
    return {
        one: tuple(t for t in types if one not in known or t in known[one]) or types for one, types in allowed.items()
    }
