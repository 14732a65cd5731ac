"""QuantizeLinear and DequantizeLinear: where real values become IR tensors and back.

DQ -> op -> [Relu | Clip]* -> Q     an IR operation with a clamp
DQ -> elementwise* -> Q             a table, filled by the ONNX formulas
DQ -> Q with the same parameters    nothing
input -> Q                          an input port
"""

from dataclasses import replace

import numpy as np
import onnx

from ... import fixed
from ...errors import InvalidModelError, UsageError
from ...ir.graph import Table, Tensor
from ...ir.steps import apply
from ..blockers import BlockedError
from ..context import Context, attributes, label
from ..values import Const, Fed, Floats, Held, Hosted, Ints, Moves, Pending, QuantConst, Result, Step, Value, form

SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)


def check_scale(scale: Floats, where: str) -> None:
    """`InvalidModelError` E3020 unless every scale is finite, positive and normal."""
    if not bool(np.all(np.isfinite(scale) & (scale >= SMALLEST_NORMAL))):
        bad = scale.ravel()[~(np.isfinite(scale.ravel()) & (scale.ravel() >= SMALLEST_NORMAL))][0]
        raise InvalidModelError("E3020", f"scale must be finite, positive and normal, not {bad}", where=where)


class Parameters:
    """Scale and zero point of a Q or DQ node, checked. `dtype` is that of the quantized integers."""

    def __init__(self, context: Context, node: onnx.NodeProto) -> None:
        found = attributes(node)
        scale, zero_point = context.constant(node, 1), context.constant(node, 2)
        if scale is None:
            raise BlockedError("has no scale")
        if scale.dtype != np.float32:
            raise BlockedError(f"scale is {scale.dtype}, not float32")
        if found.get("block_size", 0):
            raise BlockedError("blocked quantization", "quantize per tensor or per output channel")
        self.scale: Floats = scale
        check_scale(scale, label(node))
        if zero_point is not None:
            if zero_point.size == scale.size == 1:  # [] and [1] mean the same: one for the tensor
                zero_point = zero_point.reshape(scale.shape)
            if zero_point.shape != scale.shape:
                raise InvalidModelError(
                    "E3021",
                    f"zero point must have the scale's shape {list(scale.shape)}, not {list(zero_point.shape)}",
                    where=label(node),
                )
            self.dtype = str(zero_point.dtype)
        else:
            code = found.get("output_dtype", 0) if node.op_type == "QuantizeLinear" else 0
            self.dtype = str(onnx.helper.tensor_dtype_to_np_dtype(code)) if code else "uint8"
        zeros = np.zeros(scale.shape, np.int64)
        self.zero_point: Ints = zeros if zero_point is None else zero_point.astype(np.int64)
        self.explicit = zero_point is not None
        self.axis = int(found.get("axis", 1))

    def activation(self) -> tuple[np.float32, int, bool]:
        """Scale, zero point moved into int8, and whether the model's integers are unsigned."""
        if self.scale.size != 1:
            raise BlockedError("activations are quantized per channel", "quantize activations per tensor")
        if self.dtype not in ("int8", "uint8"):
            raise BlockedError(f"activations are {self.dtype}", "quantize activations to int8 or uint8")
        unsigned = self.dtype == "uint8"
        return np.float32(self.scale.item()), int(self.zero_point.item()) - (128 if unsigned else 0), unsigned

    def constant(self, q: np.ndarray[tuple[int, ...], np.dtype[np.generic]], where: str) -> QuantConst:
        """The dequantized form of constant integers."""
        if self.scale.size == 1:
            return QuantConst(q.astype(np.int64), self.scale.reshape(()), self.zero_point.reshape(()), None)
        axis = self.axis + q.ndim if self.axis < 0 else self.axis
        if self.scale.ndim != 1 or not 0 <= axis < q.ndim or self.scale.size != q.shape[axis]:
            raise InvalidModelError(
                "E3022", f"{self.scale.size} scales do not fit axis {self.axis} of shape {list(q.shape)}", where=where
            )
        return QuantConst(q.astype(np.int64), self.scale, self.zero_point, axis)


def quantize(context: Context, node: onnx.NodeProto) -> Value:
    """QuantizeLinear."""
    value, parameters = context.required(node, 0), Parameters(context, node)
    if isinstance(value, QuantConst):
        value = Const(value.real())
    if isinstance(value, Const):
        return _fold(value, parameters, node)
    scale, zero_point, unsigned = parameters.activation()
    name, output = label(node), node.output[0]
    step: Step = {
        "op": "QuantizeLinear",
        "name": name,
        "scale": float(scale),
        "zero_point": zero_point,
        "dtype": "int8",
    }
    if isinstance(value, Fed):
        tensor = context.feed(value, output, (step,), float(scale), zero_point)
        return Held(tensor, Moves.of(tensor.shape, value.shape), unsigned=unsigned)
    if isinstance(value, Held):
        if value.integer:
            raise BlockedError("quantizes integers")
        if value.plain and (value.tensor.scale, value.tensor.zero_point) == (float(scale), zero_point):
            return replace(value, functions=(), unsigned=unsigned)
        tensor = add_table(context, value.tensor, (*value.functions, step), output, float(scale), zero_point, name)
        return Held(tensor, value.moves, unsigned=unsigned)
    if isinstance(value, Pending):
        lo, hi = (
            int(q)
            for q in fixed.quantize(apply(value.clamps, np.array([-np.inf, np.inf], np.float32)), scale, zero_point)
        )
        tensor = value.finish(Result(output, scale, zero_point, lo, hi, (*value.nodes, name)))
        return Held(tensor, value.moves, unsigned=unsigned)
    assert isinstance(value, Hosted)
    host: Step = {**step, "zero_point": int(parameters.zero_point.item()), "dtype": parameters.dtype}
    return replace(value, steps=(*value.steps, host))


def dequantize(context: Context, node: onnx.NodeProto) -> Value:
    """DequantizeLinear."""
    value, parameters = context.required(node, 0), Parameters(context, node)
    name = label(node)
    if isinstance(value, Const):
        if parameters.explicit and str(value.array.dtype) != parameters.dtype:
            raise InvalidModelError(
                "E3023", f"zero point is {parameters.dtype}, the integers are {value.array.dtype}", where=name
            )
        return parameters.constant(value.array, name)
    if isinstance(value, Fed):
        parameters.dtype = value.dtype
    if isinstance(value, Held):
        parameters.dtype = "uint8" if value.unsigned else "int8"
    scale, zero_point, unsigned = parameters.activation()
    step: Step = {"op": "DequantizeLinear", "name": name, "scale": float(scale), "zero_point": zero_point}
    if isinstance(value, Fed):
        last: tuple[Step, ...] = ({"op": "ToInt8", "name": name},) if unsigned else ()
        tensor = context.feed(value, node.input[0], last, float(scale), zero_point)
        return Held(tensor, Moves.of(tensor.shape, value.shape), (step,))
    if isinstance(value, Held) and value.integer:
        tensor = value.tensor
        if (tensor.scale, tensor.zero_point) != (float(scale), zero_point):
            tensor = add_table(context, tensor, (), node.output[0], float(scale), zero_point, name)
        return Held(tensor, value.moves, (step,))
    if isinstance(value, Hosted):
        host: Step = {**step, "zero_point": int(parameters.zero_point.item())}
        return replace(value, steps=(*value.steps, host))
    raise BlockedError("dequantizes a value that is not quantized")


def add_table(
    context: Context, tensor: Tensor, steps: tuple[Step, ...], name: str, scale: float, zero_point: int, node: str
) -> Tensor:
    """The tensor after `steps`, elementwise from int8 to int8, as a 256-entry table."""
    try:
        with np.errstate(all="ignore"):
            table = apply(steps, np.arange(-128, 128).astype(np.int8))
    except UsageError as error:
        raise BlockedError(f"its function has no quantized value everywhere: {error.what}") from error
    out = context.tensor(name, tensor.shape, scale, zero_point)
    nodes = tuple(dict.fromkeys([*(step["name"] for step in steps), node]))
    context.add(Table(node, (tensor.name,), out.name, nodes, table.astype(np.int8)))
    return out


def placeholder(context: Context, node: onnx.NodeProto) -> Value:
    """A tensor in place of a blocked value, so that what follows is examined too."""
    scale, zero_point, unsigned = Parameters(context, node).activation()
    shape = context.shapes[node.output[0]]
    tensor = context.tensor(node.output[0], form(shape), float(scale), zero_point)
    return Held(tensor, Moves.of(tensor.shape, shape), unsigned=unsigned)


def _fold(value: Const, parameters: Parameters, node: onnx.NodeProto) -> Const:
    if parameters.dtype not in ("int8", "uint8") or value.array.dtype != np.float32:
        raise BlockedError(f"quantizes a {value.array.dtype} constant to {parameters.dtype}")
    info = np.iinfo(parameters.dtype)
    template = parameters.constant(np.zeros(value.array.shape, np.int64), label(node))
    rounded = np.rint(value.array / template.along(template.scale)).astype(np.float64)
    return Const(np.clip(rounded + template.along(template.zero_point), info.min, info.max).astype(parameters.dtype))
