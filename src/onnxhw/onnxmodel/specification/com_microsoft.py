"""`contributed`: the signatures of com.microsoft's operators, of which onnxruntime has the definitions."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from .signatures import Formal, Signature, signature

CONTRIB = "com.microsoft"


def defined(op_type: str, domain: str, version: int) -> Signature | None:
    """What onnx or onnxruntime defines of an operator of a version of its domain, or None if neither does."""
    return contributed(op_type) if domain == CONTRIB else signature(op_type, domain, version)


@cache
def contributed(op_type: str) -> Signature | None:
    """What onnxruntime defines, or None for an operator that it does not have.

    Attributes are not in it: files of other releases of onnxruntime have some that this one does not know.
    """
    schema = schemas().get(op_type)
    if schema is None:
        return None
    inputs, outputs = (tuple(Formal(formal.name, _option(formal)) for formal in formals)
                       for formals in (schema.inputs, schema.outputs))  # fmt: skip
    return Signature(
        schema.since_version, schema.deprecated, inputs, outputs,
        schema.min_input, schema.max_input, schema.min_output, schema.max_output, {}, (),
    )  # fmt: skip


@cache
def schemas() -> Mapping[str, Any]:
    """onnxruntime's schemas of com.microsoft by operator, those of the newest version."""
    from onnxruntime.capi import onnxruntime_pybind11_state as native  # only here: it takes long to import

    found = sorted((one for one in native.get_all_operator_schema() if one.domain == CONTRIB),
                   key=lambda one: int(one.since_version))  # fmt: skip
    return {one.name: one for one in found}


def _option(formal: Any) -> str:
    return str(formal.option).rpartition(".")[2].lower()
