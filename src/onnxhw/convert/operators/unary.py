"""Functions of one element: any chain of them from int8 to int8 is a 256-entry table."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from ...onnxmodel.nodes import Node
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..dialects import integers
from ..values import GraphInput, HostValue, QuantizedView, Step, Unquantized, Value
from .chain import chained, per_channel_formula

UNARY: dict[str, dict[str, Any]] = {
    **{
        op_type: {}
        for op_type in (
            "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor",
            "HardSwish", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh",
            "Softplus", "Softsign", "Sqrt", "Tan", "Tanh",
        )
    },
    "Celu": {"alpha": 1.0},
    "Elu": {"alpha": 1.0},
    "Gelu": {"approximate": "none"},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": {"alpha": 0.01},
    "Selu": {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    "Shrink": {"bias": 0.0, "lambd": 0.5},
    "Swish": {"alpha": 1.0},
    "ThresholdedRelu": {"alpha": 1.0},
}  # fmt: skip
"""Operators of one input, with their attributes' defaults."""


def function(context: Context, value: Value, step: Step, clamp: bool = False) -> Value:
    """`value` followed by an elementwise step, wherever it is computed."""
    if isinstance(value, (GraphInput, HostValue)):
        if value.dtype != "float32":
            raise BlockedError(f"its input is {value.dtype}, not float32")
        return replace(value, steps=(*value.steps, step))
    if isinstance(value, QuantizedView):
        if value.integer:
            raise BlockedError(
                "its input is an integer tensor", f"put {step['op']} between DequantizeLinear and QuantizeLinear"
            )
        return value.then(step)
    if isinstance(value, Unquantized) and value.chain is not None and step["op"] == "Neg":
        values = np.full(value.channels, -1, np.float32)
        return chained(value, (per_channel_formula("Mul", values, False, step["name"]),), step["name"])
    if isinstance(value, Unquantized) and clamp:
        return replace(value, clamps=(*value.clamps, step), nodes=(*value.nodes, step["name"]), with_bias=None)
    if isinstance(value, Unquantized):
        raise BlockedError(
            f"its input comes from {value.nodes[-1]!r} without QuantizeLinear",
            "put QuantizeLinear and DequantizeLinear before it",
        )
    raise BlockedError(
        "its input is a constant", "fold constants first (onnxsim, or onnxruntime's offline optimisation)"
    )


def unary(context: Context, node: Node) -> Value:
    """Any operator of `UNARY`."""
    value = context.required(node, 0)
    if node.op_type == "Relu" and integers.are_integers(value):
        return integers.clamp(context, value, 0, None, node.label, node.output[0])
    return function(context, value, _step(node), clamp=node.op_type == "Relu")


def _step(node: Node) -> Step:
    found = node.attributes
    step: Step = {"op": node.op_type, "name": node.label}
    for name, default in UNARY[node.op_type].items():
        value = found.get(name, default)
        step[name] = float(np.float32(value)) if isinstance(default, float) else value
        if isinstance(default, float) and not np.isfinite(step[name]):
            raise BlockedError(f"{name} is {value}")
    if step.get("approximate", "none") not in ("none", "tanh"):
        raise BlockedError(f"approximate is {step['approximate']!r}", "use none or tanh")
    return step


def cast(context: Context, node: Node) -> Value:
    """Cast of real values to float32, which they are."""
    value = context.required(node, 0)
    target = node.attributes.get("to")
    real = isinstance(value, Unquantized) or (isinstance(value, QuantizedView) and not value.integer)
    if not real or target != onnx.TensorProto.FLOAT:
        raise BlockedError("converts between types", "only a Cast from float32 to float32 is nothing to do")
    return value


def constant_operand(op_type: str, swapped: bool, value: float, name: str) -> Step:
    """The step of a binary operator with a scalar constant, on the left if `swapped`."""
    if op_type == "Pow":
        return {"op": "PowOf" if swapped else "Pow", "name": name, "value": value}
    if op_type in ("Max", "Min"):
        bounds = {"min": value, "max": None} if op_type == "Max" else {"min": None, "max": value}
        return {"op": "Clip", "name": name, **bounds}
    return {"op": op_type, "name": name, "value": value, "swapped": swapped}


def combined(x: QuantizedView, y: QuantizedView, op_type: str, name: str) -> QuantizedView:
    """Two functions of one tensor, combined: a function of the tensor again, known by its values.

    Before: ``a = DQ(q); y = a * Sigmoid(a)``. After: ``y = DQ -> Lookup``.
    """
    functions = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power,
                 "Max": np.maximum, "Min": np.minimum}  # fmt: skip
    first = x.functions[:1]
    inputs = replace(x, functions=first).reals()
    with np.errstate(all="ignore"):
        values = functions[op_type](x.reals(), y.reals())
    step: Step = {
        "op": "Lookup",
        "name": name,
        "inputs": [float(value) for value in inputs],
        "values": [float(value) for value in np.asarray(values, np.float32)],
    }
    return replace(x, functions=(*first, step))


def clip(context: Context, node: Node) -> Value:
    """Clip; its bounds are attributes before opset 11 and constant inputs since."""
    found = node.attributes
    bounds: dict[str, Any] = {}
    for index, name in ((1, "min"), (2, "max")):
        array = context.constant(node, index)
        bound = found.get(name) if array is None else float(array.reshape(()))
        if bound is not None and np.isnan(bound):
            raise BlockedError(f"{name} is NaN")
        bounds[name] = bound if bound is None or np.isfinite(bound) else float(np.clip(bound, -3e38, 3e38))
    value = context.required(node, 0)
    if integers.are_integers(value):
        return integers.clamp(context, value, bounds["min"], bounds["max"], node.label, node.output[0])
    return function(context, value, {"op": "Clip", "name": node.label, **bounds}, clamp=True)


HANDLERS: Handlers = {
    **{("", op_type): unary for op_type in UNARY},
    ("com.microsoft", "Gelu"): unary,
    ("", "Cast"): cast,
    ("", "Clip"): clip,
}
