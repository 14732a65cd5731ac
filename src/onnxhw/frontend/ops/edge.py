"""Operators that run on the host at the model's edges."""

from dataclasses import replace

import onnx

from ..blockers import BlockedError
from ..context import Context, Handlers, attributes, label
from ..values import Fed, Held, Hosted, Step, Value


def softmax(context: Context, node: onnx.NodeProto) -> Value:
    """Softmax: one axis since opset 13, all axes from `axis` on before."""
    value = context.required(node, 0)
    rank = len(value.shape or ())
    recent = context.opset >= 13
    axis = int(attributes(node).get("axis", -1 if recent else 1))
    if not -rank <= axis < rank:
        raise BlockedError(f"axis {axis} is not an axis of rank {rank}")
    axes = [axis % rank] if recent else list(range(axis % rank, rank))
    step: Step = {"op": "Softmax", "name": label(node), "axes": axes}
    if isinstance(value, (Fed, Hosted)):
        return replace(value, steps=(*value.steps, step))
    if isinstance(value, Held) and not value.integer:
        return Hosted(value.tensor, value.shape, (*value.steps(), step))
    raise BlockedError("its input is not quantized", "put QuantizeLinear and DequantizeLinear before it")


HANDLERS: Handlers = {
    ("", "Softmax"): softmax,
}
