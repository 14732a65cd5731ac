"""Operators that run on the host at the model's edges; a Softmax before operations of the hardware runs there too."""

from dataclasses import replace

from ...onnxmodel.nodes import Node
from ...onnxmodel.shapes import Shape
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..values import GraphInput, HostValue, QuantizedView, Step, Value
from .operands import plain
from .softmax import softmax as integer_softmax


def softmax(context: Context, node: Node) -> Value:
    """Softmax: one axis since opset 13, all axes from `axis` on before.

    A step of the host's, so float, unless `Context.integer_softmax` names it.
    """
    value = context.required(node, 0)
    rank = len(value.shape or ())
    recent = context.opset >= 13
    axis = _axis(node, -1 if recent else 1, rank)
    axes = [axis] if recent else list(range(axis, rank))
    if node.label in context.integer_softmax:
        return integer_softmax(context, node.label, plain(context, node, 0), axes)
    step: Step = {"op": "Softmax", "name": node.label, "axes": axes}
    if isinstance(value, (GraphInput, HostValue)):
        if value.dtype != "float32":
            raise BlockedError(f"its input is {value.dtype}, not float32")
        return replace(value, steps=(*value.steps, step))
    if isinstance(value, QuantizedView) and not value.integer:
        return HostValue(value.tensor, value.shape, (*value.steps(), step), softmax=node.label)
    raise BlockedError("its input is not quantized", "put QuantizeLinear and DequantizeLinear before it")


def arg(context: Context, node: Node) -> Value:
    """ArgMax and ArgMin, of quantized integers or of what the host makes of them."""
    value = context.required(node, 0)
    if not isinstance(value, (QuantizedView, HostValue)):
        raise BlockedError("its input is not quantized", "put QuantizeLinear and DequantizeLinear before it")
    found, rank = node.attributes, len(value.shape)
    axis, keep = _axis(node, 0, rank), bool(found.get("keepdims", 1))
    step: Step = {
        "op": node.op_type, "name": node.label, "axis": axis, "keepdims": keep,
        "last": bool(found.get("select_last_index", 0)),
    }  # fmt: skip
    shape: Shape = (*value.shape[:axis], *((1,) if keep else ()), *value.shape[axis + 1 :])
    steps = value.steps() if isinstance(value, QuantizedView) else value.steps
    return HostValue(value.tensor, shape, (*steps, step), "int64")


def _axis(node: Node, default: int, rank: int) -> int:
    """The attribute `axis`, from 0."""
    axis = int(node.attributes.get("axis", default))
    if not -rank <= axis < rank:
        raise BlockedError(f"axis {axis} is not an axis of rank {rank}")
    return axis % rank


HANDLERS: Handlers = {
    ("", "Softmax"): softmax,
    ("", "ArgMax"): arg,
    ("", "ArgMin"): arg,
}
