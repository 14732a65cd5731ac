"""The QONNX dialect: Quant, BipolarQuant, Trunc and MultiThreshold, whose results are real.

weights -> Quant               integers and scales
input -> Quant                 an input port with the operator's own formula
DQ -> ... -> Quant             a table with the operator's own formula, any rounding
Conv -> [Relu] -> Quant        the convolution's clamp and scale, as in the QDQ form; rounding half to even only
"""

from dataclasses import replace

import numpy as np

from ...errors import InvalidModelError
from ...onnxmodel.nodes import Node
from ...onnxmodel.qonnx_formulas import (
    DOMAINS,
    ROUNDING,
    IntQuant,
    Trunc,
    bipolar_quant,
    count_thresholds,
    multi_threshold,
)
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..operators.chain import chained
from ..values import (
    EVERY,
    Array,
    AxisMoves,
    Const,
    Floats,
    GraphInput,
    HostValue,
    Ints,
    QuantConst,
    QuantizedView,
    Step,
    Unquantized,
    Value,
)
from .parameters import SMALLEST_NORMAL, ActivationGrid, bounded, check_scale, merge_blocks
from .qdq import enter_table, into, out_of, same_grid
from .qonnx_parameters import (
    bit_width,
    check_spread,
    check_width,
    numbers,
    quant_parameters,
    unknown_mode,
    zero_points,
)

STEPS = {"FLOOR": "Floor", "CEIL": "Ceil"}
"""Rounding modes that are host steps; after them the integers are there, and half to even changes nothing."""


def quant(context: Context, node: Node) -> Value:
    """Quant, also called IntQuant."""
    form, scale, zero_point = quant_parameters(context, node)
    value = _real(context.required(node, 0))
    if not isinstance(value, Const) or value.array.size > max(value.shape, default=1):
        check_width(context, form.bits, node)
    check_spread(value.shape, scale, zero_point, node)
    if isinstance(value, Const):
        return _constant(value, form, scale, zero_point)
    if scale.size != 1 or zero_point.size != 1:
        raise BlockedError("activations are quantized per channel", "quantize activations per tensor")
    single, zero = np.float32(scale.item()), float(zero_point.item())
    if zero != int(zero):
        raise BlockedError(f"the zero point {zero:g} is not an integer", "round the zero point when exporting")
    if form.bits > 8:
        raise BlockedError(f"activations have {form.bits} bits", "quantize activations to at most 8 bits")
    grid = ActivationGrid.of(single, int(zero), *form.range)
    return _activation(context, node, value, form, grid, int(zero))


def _constant(value: Const, form: IntQuant, scale: Floats, zero_point: Floats) -> QuantConst:
    """Quantized weights: their integers; scales per channel lie along whatever axis they vary."""
    x = bounded(value.array)
    integers = form.integers(x, scale, zero_point)
    if np.isnan(integers).any():
        raise BlockedError("quantizes a constant with NaN, which has no quantized value")
    if not np.array_equal(zero_point, np.rint(zero_point)):
        raise BlockedError("a zero point is not an integer", "round the zero points when exporting")
    q = integers.astype(np.int64)
    if scale.size == zero_point.size == 1:
        return QuantConst(q, scale.reshape(()), zero_point.reshape(()).astype(np.int64), None)
    shape = np.broadcast_shapes(x.shape, scale.shape, zero_point.shape)
    if shape != x.shape:
        raise BlockedError(f"scales of shape {list(scale.shape)} do not broadcast to {list(x.shape)}")
    sizes = np.broadcast_shapes(scale.shape, zero_point.shape)
    lead = x.ndim - len(sizes)
    varying = [lead + axis for axis, size in enumerate(sizes) if size > 1]
    if len(varying) == 1:
        ones = np.ones(x.shape[varying[0]])
        per_slice = (scale.ravel() * ones).astype(np.float32), (zero_point.ravel() * ones).astype(np.int64)
        return QuantConst(q, *per_slice, varying[0])
    return merge_blocks(q, np.broadcast_to(scale, shape), np.broadcast_to(zero_point.astype(np.int64), shape))


def _activation(context: Context, node: Node, value: Value, form: IntQuant, grid: ActivationGrid, zero: int) -> Value:
    name, output = node.label, node.output[0]
    if isinstance(value, QuantizedView):
        key = (form, grid, repr([{**step, "name": ""} for step in value.functions]))
        integers: Array | None = context.tables.get(key)
        if integers is None:
            integers = form.integers(_values(value), np.float32(grid.scale), np.float32(zero))
            context.tables[key] = integers
        return _table(context, node, value, integers, grid)
    if isinstance(value, Unquantized):
        return _dequantized(context, _summed(context, value, form, grid, zero, name, output), grid, node)
    rounds = ROUNDING[form.mode] is np.rint or form.mode in STEPS
    if not form.bipolar and not rounds:
        raise BlockedError(f"rounding {form.mode} of a value of the host", "use rounding_mode ROUND there")
    if not isinstance(value, (GraphInput, HostValue)):
        raise BlockedError("its input is not known")
    if value.dtype != "float32":
        raise BlockedError(f"its input is {value.dtype}, not float32")
    if isinstance(value, GraphInput):
        steps = _steps(name, grid, zero, grid.zero_point - zero, "int8", form)
        tensor = context.feed(value, output, steps, float(grid.scale), grid.zero_point)
        context.ranges[tensor.name] = grid.lo, grid.hi
        view = QuantizedView(tensor, AxisMoves.of(tensor.shape, value.shape), unsigned=grid.unsigned)
        return _dequantized(context, view, grid, node)
    steps = _steps(name, grid, zero, 0, "uint8" if grid.unsigned else "int8", form)
    last: Step = {"op": "DequantizeLinear", "name": name, "scale": float(grid.scale), "zero_point": zero}
    return replace(value, steps=(*value.steps, *steps, last))


def _summed(
    context: Context, value: Unquantized, form: IntQuant, grid: ActivationGrid, zero: int, name: str, output: str
) -> QuantizedView:
    """Behind sums: the operator's own formula where functions per channel come before it, or a rounding of its own."""
    half_even = ROUNDING[form.mode] is np.rint and not form.bipolar
    if half_even and not value.chained:
        return into(context, value, grid, name, output)
    if value.chain is None:
        what = "a sign" if form.bipolar else f"rounding {form.mode}"
        raise BlockedError(
            f"{what} of what is not yet on an int8 grid cannot be exact in the requantizer",
            "use rounding_mode ROUND there; any mode is exact after another Quant",
        )
    shift = grid.zero_point - zero

    def formula(x: Floats) -> Ints:
        return form.integers(x, grid.scale, np.float32(zero)).astype(np.int64) + shift

    try:
        return into(context, chained(value, (), name), grid, name, output, formula)
    except BlockedError:
        if not half_even:
            raise
        return into(context, value, grid, name, output)


def _steps(name: str, grid: ActivationGrid, zero: int, shift: int, dtype: str, form: IntQuant) -> tuple[Step, ...]:
    """The host steps of the operator's formula: integers plus `shift`, which is what `dtype` holds.

    With the zero point 0 and rounding half to even these are those of a QuantizeLinear.
    """
    rounding = STEPS.get(form.mode)
    if form.bipolar:
        return (
            {"op": "Div", "name": name, "value": float(grid.scale), "swapped": False},
            {"op": "Add", "name": name, "value": float(zero), "swapped": False},
            {"op": "BipolarQuant", "name": name},
            {"op": "QuantizeLinear", "name": name, "scale": 1.0, "zero_point": shift, "dtype": dtype},
        )
    low, high = (bound - grid.zero_point + zero for bound in (grid.lo, grid.hi))
    if zero == 0 and rounding is None:
        last: Step = {
            "op": "QuantizeLinear", "name": name, "scale": float(grid.scale), "zero_point": shift, "dtype": dtype
        }  # fmt: skip
        if grid.whole:
            return (last,)
        bounds = {"min": low * float(grid.scale), "max": high * float(grid.scale)}
        return ({"op": "Clip", "name": name, **bounds}, last)
    return (
        {"op": "Div", "name": name, "value": float(grid.scale), "swapped": False},
        {"op": "Add", "name": name, "value": float(zero), "swapped": False},
        {"op": "Clip", "name": name, "min": float(low), "max": float(high)},
        *([{"op": rounding, "name": name}] if rounding else []),
        {"op": "QuantizeLinear", "name": name, "scale": 1.0, "zero_point": shift, "dtype": dtype},
    )


def bipolar(context: Context, node: Node) -> Value:
    """BipolarQuant: on constants and on what is on an int8 grid."""
    scale = numbers(context, node, 1)
    check_scale(scale, node.label)
    value = _real(context.required(node, 0))
    check_spread(value.shape, scale, np.zeros((), np.float32), node)
    if isinstance(value, Const):
        ones = np.rint(bipolar_quant(value.array, np.float32(1)))
        form = IntQuant(1, True, False, "ROUND")
        return _constant(Const(ones), form, scale, np.zeros((), np.float32))
    if scale.size != 1:
        raise BlockedError("activations are quantized per channel", "quantize activations per tensor")
    grid = ActivationGrid.of(np.float32(scale.item()), 0, -1, 1)
    if isinstance(value, QuantizedView):
        return _table(context, node, value, bipolar_quant(_values(value), np.float32(1)), grid)
    return _sign(context, node, value, grid)


def _sign(context: Context, node: Node, value: Value, grid: ActivationGrid) -> Value:
    """BipolarQuant of what is not on an int8 grid."""
    name = node.label
    if isinstance(value, Unquantized) and value.chain is not None:

        def formula(x: Floats) -> Ints:
            return np.where(x >= 0, np.int64(1), np.int64(-1))

        signs = into(context, chained(value, (), name), grid, name, node.output[0], formula)
        return _dequantized(context, signs, grid, node)
    if isinstance(value, (GraphInput, HostValue)) and value.dtype == "float32":
        steps: tuple[Step, ...] = (
            {"op": "BipolarQuant", "name": name},
            {"op": "QuantizeLinear", "name": name, "scale": 1.0, "zero_point": 0, "dtype": "int8"},
        )
        last: Step = {"op": "DequantizeLinear", "name": name, "scale": float(grid.scale), "zero_point": 0}
        if isinstance(value, HostValue):
            return replace(value, steps=(*value.steps, *steps, last))
        tensor = context.feed(value, node.output[0], steps, float(grid.scale), 0)
        context.ranges[tensor.name] = -1, 1
        return _dequantized(context, QuantizedView(tensor, AxisMoves.of(tensor.shape, value.shape)), grid, node)
    raise BlockedError(
        "a sign of what is not yet on an int8 grid cannot be exact in the requantizer", "quantize to 8 bits before it"
    )


def trunc(context: Context, node: Node) -> Value:
    """Trunc, version 1 (five inputs) and 2 (six): on what is on an int8 grid."""
    inputs = [None, *(context.constant(node, index) for index in range(1, len(node.input)))]
    if len(inputs) not in (5, 6) or any(value is None or value.size != 1 for value in inputs[1:]):
        raise BlockedError("its scale, zero point and bit widths must be scalar constants")
    check_scale(numbers(context, node, 1), node.label)
    zero_points(context, node, 2)
    for index in (3, len(inputs) - 1):
        check_width(context, bit_width(context, node, index), node)
    if len(inputs) == 6:
        check_scale(numbers(context, node, 4), node.label)
    try:
        form = Trunc.of(node.attributes, inputs)
    except KeyError as error:
        raise unknown_mode(error, node) from None
    value = _real(context.required(node, 0))
    if isinstance(value, Const):
        return Const(form.real(value.array))
    if not isinstance(value, QuantizedView):
        raise BlockedError("truncates what is not yet on an int8 grid", "put a Quant before it")
    zero = form.out_zero_point
    if zero != int(zero):
        raise BlockedError(f"its zero point becomes {zero:g}, which is not an integer")
    integers = form.integers(_values(value))
    low, high = float(integers.min()), float(integers.max())
    limits = (-128, 127) if low >= -128 and high <= 127 else (0, 255)
    if low < limits[0] or high > limits[1] or np.isnan(low):
        raise BlockedError(f"its integers {low:g}..{high:g} do not fit 8 bits")
    return _table(context, node, value, integers, ActivationGrid.of(np.float32(form.out_scale), int(zero), *limits))


def thresholds(context: Context, node: Node) -> Value:
    """MultiThreshold on what is on an int8 grid, with the same thresholds for all channels."""
    rows = context.constant(node, 1)
    if rows is None or rows.ndim != 2 or not rows.size or np.isnan(rows).any():
        raise InvalidModelError("E3603", "thresholds must be numbers of shape [C or 1, B]", where=node.label)
    if (rows[:, 1:] < rows[:, :-1]).any():
        raise InvalidModelError("E3603", "thresholds must ascend within each channel", where=node.label)
    value = _real(context.required(node, 0))
    found = node.attributes
    layout = str(found.get("data_layout", "NCHW")).upper()
    if layout not in ("NCHW", "NHWC", "NC"):
        raise BlockedError(f"data_layout is {layout!r}", "use NCHW or NHWC")
    shape = value.shape or ()
    channels = shape[-1 if layout == "NHWC" else 1] if len(shape) > 1 else 1
    if value.shape is not None and len(rows) not in (1, channels):
        raise InvalidModelError(
            "E3603", f"{len(rows)} rows of thresholds do not fit {channels} channels", where=node.label
        )
    if isinstance(value, Const):
        return Const(multi_threshold(value.array, rows, found))
    if not isinstance(value, QuantizedView):
        raise BlockedError("its input is not yet on an int8 grid", "export the model with Quant nodes, before FINN")
    if not bool((rows == rows[:1]).all()):
        raise BlockedError(
            "its channels have thresholds of their own", "export the model with Quant nodes, before FINN"
        )
    scale, bias = np.float32(found.get("out_scale", 1.0)), np.float32(found.get("out_bias", 0.0))
    counts = count_thresholds(_values(value), rows[0])
    with np.errstate(all="ignore"):
        wanted = counts.astype(np.float32) * scale + bias
    for step in (scale, np.float32(scale / 2)):
        with np.errstate(all="ignore"):
            zero = float(-bias / step)
        if step >= SMALLEST_NORMAL and np.isfinite(zero) and zero == int(zero):
            integers = np.rint(counts * float(scale / step))
            real = (integers - zero).astype(np.float32) * step
            limits = (-128, 127) if -128 <= zero <= 127 and integers.max() <= 127 else (0, 255)
            if np.array_equal(real, wanted) and integers.max() <= limits[1] and limits[0] <= zero <= limits[1]:
                return _table(context, node, value, integers, ActivationGrid.of(step, int(zero), *limits))
    raise BlockedError(
        f"its results, steps of {scale:g} from {bias:g} on, are not on an int8 grid with an integer zero point"
    )


def unsupported(context: Context, node: Node) -> Value:
    """FloatQuant: its results are minifloats."""
    raise BlockedError("quantizes to a small floating-point type, not to integers", "quantize to integers")


# -- pieces ----------------------------------------------------------------------------------------


def _table(context: Context, node: Node, value: QuantizedView, integers: Array, grid: ActivationGrid) -> QuantizedView:
    """The operator as a table: `integers` for each int8 value of the tensor, in the model's own numbering."""
    if np.isnan(integers).any():
        raise BlockedError("its function has no quantized value everywhere")
    shift = 128 if grid.unsigned else 0
    table = (integers.astype(np.int64) - shift).astype(np.int8)
    name = node.label
    tensor = value.tensor
    if not (same_grid(tensor, grid) and np.array_equal(table, EVERY)):
        nodes = tuple(dict.fromkeys([*(step["name"] for step in value.functions), name]))
        tensor = enter_table(context, tensor, table, node.output[0], float(grid.scale), grid.zero_point, nodes)
    return _dequantized(context, QuantizedView(tensor, value.moves, unsigned=grid.unsigned), grid, node)


def _dequantized(context: Context, integers: QuantizedView, grid: ActivationGrid, node: Node) -> QuantizedView:
    """Quantized integers as the real numbers that a QONNX operator gives."""
    return out_of(context, integers, grid, node.label, node.output[0], node.output[0])


def _values(value: QuantizedView) -> Array:
    """What the value is for each int8 value of its tensor."""
    if value.integer:
        raise BlockedError("its input is an integer tensor", "dequantize it first")
    return value.reals()


def _real(value: Value) -> Value:
    return Const(value.real()) if isinstance(value, QuantConst) else value


HANDLERS: Handlers = {
    (domain, op): function
    for domain in DOMAINS
    for op, function in (
        ("Quant", quant),
        ("IntQuant", quant),
        ("BipolarQuant", bipolar),
        ("Trunc", trunc),
        ("MultiThreshold", thresholds),
        ("FloatQuant", unsupported),
    )
}
