"""`HANDLERS`: every operator that can be converted, from the modules of handlers."""

from ..onnxmodel.nodes import Node
from .blockers import BlockedError
from .context import Handler, Handlers
from .dialects import qdq, qonnx, qoperator
from .operators import (
    conv_gemm_matmul,
    edge_nodes,
    elementwise,
    fused,
    layout,
    movement,
    perchannel,
    pool,
    prelu,
    reduce,
    resize,
    transposed,
    unary,
)

MODULES = (
    qdq,
    qoperator,
    qonnx,
    conv_gemm_matmul,
    transposed,
    unary,
    elementwise,
    perchannel,
    prelu,
    pool,
    reduce,
    layout,
    movement,
    resize,
    edge_nodes,
    fused,
)
"""Each exports `HANDLERS`, by domain and operator; no two name the same operator."""


HANDLERS: Handlers = {key: handle for module in MODULES for key, handle in module.HANDLERS.items()}


def handler(node: Node) -> Handler:
    """The node's handler; `BlockedError` if there is none."""
    found = HANDLERS.get(node.key)
    if found is not None:
        return found
    domain, op_type = node.key
    if domain and not any(known == domain for known, _ in HANDLERS):
        raise BlockedError(f"the hardware has no {op_type}, nor other operators of domain {domain!r}")
    raise BlockedError("the hardware has no operation for it", "docs/operators.md lists what becomes operations")
