"""`adopt`: QONNX operators that old exports of FINN and Brevitas put in the default domain."""

import onnx

from ..diagnostics import Diagnostic
from .qonnx_formulas import DOMAINS

NAMES = frozenset(["Quant", "IntQuant", "BipolarQuant", "Trunc", "MultiThreshold"])
"""Their operators, none of which the default domain has."""


def adopt(model: onnx.ModelProto, where: str) -> list[Diagnostic]:
    """Move such nodes of the main graph to QONNX's domain, version 1, in place; W3600 says that it happened.

    Before: ``Quant`` of "". After: ``Quant`` of "qonnx.custom_op.general", which is imported.
    """
    defined = {function.name for function in model.functions if function.domain in ("", "ai.onnx")}
    found = [
        node
        for node in model.graph.node
        if node.domain in ("", "ai.onnx") and node.op_type in NAMES and node.op_type not in defined
    ]
    if not found:
        return []
    for node in found:
        node.domain = DOMAINS[0]
    if all(entry.domain != DOMAINS[0] for entry in model.opset_import):
        model.opset_import.add(domain=DOMAINS[0], version=1)
    kinds = ", ".join(sorted({node.op_type for node in found}))
    what = f"{kinds} in the default domain: taken for operators of {DOMAINS[0]!r}"
    return [Diagnostic("W3600", "warning", where, what, "export again with a newer Brevitas or QONNX")]
