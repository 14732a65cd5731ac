"""Operators of com.microsoft that are two of the default domain in one: FusedConv, FusedGemm.

onnxruntime writes them into the files that it saves with extended optimisations. Each is converted as the operators
that it was made of.
"""

from typing import Any

import numpy as np

from ...onnxmodel.nodes import Node
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..dialects.qoperator import MICROSOFT, Expansion
from ..values import Const, Value

PARAMETERS = {"Relu": (), "Sigmoid": (), "Tanh": (), "LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}
"""The activations with their attributes, in the order of `activation_params`; Clip takes its bounds as inputs."""
OWN = ("activation", "activation_params", "activation_alpha", "activation_beta", "activation_gamma")
CLIP_INPUTS = 11
"""The operator set from which Clip takes its bounds as inputs."""


def fused(op_type: str) -> Any:
    """A handler: the operator inside, then its activation."""

    def handler(context: Context, node: Node) -> Value:
        if len(node.input) > 3 and node.input[3]:
            raise BlockedError("a tensor is added before its activation", "save the model without optimisations")
        given = {name: value for name, value in node.attributes.items() if name not in OWN}
        with Expansion(context, node) as inner:
            y = inner.apply(op_type, [name for name in node.input[:3] if name], given)
            return _activated(inner, y, node)

    return handler


def _activated(inner: Expansion, y: Value, node: Node) -> Value:
    kind, given = node.attributes.get("activation", ""), node.attributes
    listed = [given[name] for name in OWN[2:] if name in given]
    numbers = list(given.get("activation_params", listed))
    if not kind:
        return y
    if kind == "Clip" and len(numbers) == 2:
        if inner.context.opset < CLIP_INPUTS:
            return inner.apply("Clip", [inner.enter(y)], {"min": numbers[0], "max": numbers[1]})
        bounds = [inner.enter(Const(np.asarray(value, np.float32))) for value in numbers]
        return inner.apply("Clip", [inner.enter(y), *bounds])
    if kind not in PARAMETERS:
        raise BlockedError(f"its activation is {kind!r}", "save the model without optimisations")
    return inner.apply(kind, [inner.enter(y)], dict(zip(PARAMETERS[kind], numbers, strict=False)))


HANDLERS: Handlers = {(MICROSOFT, "FusedConv"): fused("Conv"), (MICROSOFT, "FusedGemm"): fused("Gemm")}
