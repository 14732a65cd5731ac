"""Operators of two and more activations, element by element: Add, Sub, Mul, Max, Min; with constants as well."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ...ir.graph import Copy, MaxPool, Piece, Tensor
from ...onnxmodel.nodes import Node
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..values import AxisMoves, Const, QuantConst, QuantizedView, QuantizerTarget, Unquantized, Value, form
from .arrange import materialise
from .chain import chained, per_channel_formula
from .layout import channels_first, turned_back
from .operands import aligned_input, binary, broadcast, complement, expanded, on_grid, plain, real
from .perchannel import per_channel, spread_per_channel
from .unary import combined, constant_operand, function

FORMULAS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
"""Of two float32 constants."""


def arithmetic(context: Context, node: Node) -> Value:
    """Add, Sub, Mul, Div, Pow of two values or of a value and a constant."""
    a, b = context.required(node, 0), context.required(node, 1)
    constants = [isinstance(value, (Const, QuantConst)) for value in (a, b)]
    if any(constants):
        constant, other = (a, b) if constants[0] else (b, a)
        assert isinstance(constant, (Const, QuantConst))
        return _with_constant(context, node, other, constant, swapped=constants[0])
    if _same(a, b) and (node.op_type not in ("Add", "Mul") or not (_plain(a) and _plain(b))):
        assert isinstance(a, QuantizedView)
        assert isinstance(b, QuantizedView)
        return combined(a, b, node.op_type, node.label)
    if node.op_type not in ("Add", "Sub", "Mul"):
        raise BlockedError(f"{node.op_type} of two activations", "use Add, Sub or Mul")
    x, y = plain(context, node, 0), plain(context, node, 1)
    if not _alike(x, y) and len(x.shape) == len(y.shape) and (turned := channels_first([x, y])) is not None:
        return turned_back(_of_tensors(context, node, *turned))
    return _of_tensors(context, node, x, y)


def total(context: Context, node: Node) -> Value:
    """Sum, of one value or two: an Add. Those of more round once, and sums of int8 are Adds of two."""
    if len(node.input) == 1:
        return real(context.required(node, 0))
    if len(node.input) > 2:
        raise BlockedError(f"a Sum of {len(node.input)} values", "add two at a time, each sum quantized")
    return arithmetic(context, Node("Add", node.input, node.output, node.label))


def _of_tensors(context: Context, node: Node, x: QuantizedView, y: QuantizedView) -> Unquantized:
    """Add, Sub, Mul of two activations."""
    name = node.label
    if not _alike(x, y):
        x = aligned_input(context, x, y) or x
    if not _alike(x, y):
        y = aligned_input(context, y, x) or y
    if _alike(x, y):
        left, right, moves = x.tensor, y.tensor, x.moves
    else:
        shape = broadcast([x.shape, y.shape])
        left, right = (_operand(context, node, value, shape) for value in (x, y))
        moves = AxisMoves.of(form(shape), shape)
    if node.op_type == "Sub":
        right = complement(context, right, f"{right.name}.negated", f"{name}.negated")
    return Unquantized(partial(binary, context, node.op_type, name, left, right), moves, (name,))


def _same(a: Value, b: Value) -> bool:
    """Are these real values functions of one tensor, element by element?"""
    if not isinstance(a, QuantizedView) or not isinstance(b, QuantizedView) or a.integer or b.integer:
        return False
    return a.tensor.name == b.tensor.name and a.moves.same(b.moves)


def _alike(x: QuantizedView, y: QuantizedView) -> bool:
    """Do the elements of both lie in their tensors alike?"""
    return x.tensor.shape == y.tensor.shape and x.moves.same(y.moves)


def _plain(value: Value) -> bool:
    return isinstance(value, QuantizedView) and value.plain


def _operand(context: Context, node: Node, value: QuantizedView, shape: tuple[int, ...]) -> Tensor:
    """The operand in the result's shape; a Mul repeats an operand of one pixel by itself."""
    whole = form(shape)
    if node.op_type == "Mul" and len(value.shape) == len(shape) and form(value.shape) == (1, whole[1], 1, 1):
        return materialise(context, value)
    return materialise(context, expanded(context, value, shape, node.label))


def extreme(context: Context, node: Node) -> Value:
    """Max and Min of any number of values and scalar constants."""
    name, op_type = node.label, node.op_type
    values = [context.required(node, index) for index in range(len(node.input))]
    activations = [value for value in values if not isinstance(value, (Const, QuantConst))]
    if not activations:
        raise BlockedError("all its operands are constants", "fold constants first")
    bounds = [_scalar(value) for value in values if isinstance(value, (Const, QuantConst))]
    if all(_same(activations[0], value) for value in activations[1:]):
        whole: Value = activations[0]
        for value in activations[1:]:
            assert isinstance(whole, QuantizedView)
            assert isinstance(value, QuantizedView)
            whole = combined(whole, value, op_type, name)
    else:
        operands = [real(value) for value in activations]
        shape = broadcast([operand.shape for operand in operands])
        fitting = [
            expanded(context, operand, shape, name) if isinstance(operand, QuantizedView) else operand
            for operand in operands
        ]
        if any(operand.shape != shape for operand in fitting):
            raise BlockedError("an operand without QuantizeLinear is repeated", "quantize it first")
        finish = partial(extreme_of, context, op_type == "Min", name, fitting)
        whole = Unquantized(finish, AxisMoves.of(form(shape), shape), (name,))
    for bound in bounds:
        whole = function(context, whole, constant_operand(op_type, False, bound, name), clamp=True)
    return whole


def _scalar(value: Const | QuantConst) -> float:
    array = value.real() if isinstance(value, QuantConst) else value.array
    if array.dtype != np.float32 or array.size != 1 or not np.isfinite(array).all():
        raise BlockedError(
            f"a constant operand of type {array.dtype} and shape {list(array.shape)}", "use a finite float32 scalar"
        )
    return float(array.reshape(()))


def extreme_of(
    context: Context, least: bool, name: str, operands: Sequence[QuantizedView | Unquantized], result: QuantizerTarget
) -> Tensor:
    """Add a Max, or a Min if `least`, whose result's scale is known now: the operands stacked, a window over the stack.

    Rounding to the result's grid is monotone, so operands are quantized first. The minimum is the complement of the
    maximum of complements.
    """
    tensors = []
    for number, operand in enumerate(operands):
        output = f"{result.name}.input{number}"
        tensor = on_grid(context, operand, result, output, f"{name}.input{number}")
        if least:
            tensor = complement(context, tensor, f"{output}.complement", f"{name}.complement{number}")
        tensors.append(tensor)
    out = greatest(context, tensors, f"{result.name}.most" if least else result.name, name, result.nodes)
    return complement(context, out, result.name, f"{name}.least") if least else out


def greatest(context: Context, tensors: list[Tensor], output: str, name: str, nodes: tuple[str, ...]) -> Tensor:
    """The maximum of tensors of one shape and grid, element by element: a window over the stack of them."""
    first, count = tensors[0], len(tensors)
    _, channels, height, width = first.shape
    grid = first.scale, first.zero_point
    pieces = tuple(Piece(n, 0, width, 1, height, width, n * height) for n in range(count))
    copy = Copy(f"{name}.stack", tuple(tensor.name for tensor in tensors), f"{output}.stack", nodes, pieces)
    stack = context.put(copy, (1, channels, count * height, width), *grid)
    pool = MaxPool(name, (stack.name,), output, nodes, (count, 1), dilations=(height, 1))
    return context.put(pool, first.shape, *grid)


def _of_constants(node: Node, other: Const | QuantConst, constant: Const | QuantConst, swapped: bool) -> Const:
    """The result where both operands are constants: sizes that a quantizer took for numbers, say."""
    operands = [value.real() if isinstance(value, QuantConst) else value.array for value in (other, constant)]
    if any(array.dtype != np.float32 for array in operands) or node.op_type not in FORMULAS:
        what = "both operands are constants"
        raise BlockedError(what, "fold constants first (onnxsim, or onnxruntime's offline optimisation)")
    first, second = operands[::-1] if swapped else operands
    try:
        return Const(np.asarray(FORMULAS[node.op_type](first, second), np.float32))
    except ValueError:
        shapes = f"{list(first.shape)} and {list(second.shape)}"
        raise BlockedError(f"constants of shapes {shapes} do not broadcast") from None


def _with_constant(context: Context, node: Node, other: Value, constant: Const | QuantConst, swapped: bool) -> Value:
    """A scalar is a function, a bias joins its Gemm, a constant per channel becomes a depthwise convolution."""
    if isinstance(other, (Const, QuantConst)):
        return _of_constants(node, other, constant, swapped)
    if isinstance(other, Unquantized) and node.op_type == "Add" and other.with_bias is not None:
        bias = _bias_per_channel(constant, other)
        return replace(other.with_bias(bias), moves=other.moves, nodes=(*other.nodes, node.label))
    array = constant.real() if isinstance(constant, QuantConst) else constant.array
    if array.dtype != np.float32:
        raise BlockedError(f"its constant is {array.dtype}, not float32")
    if array.size == 1 and array.ndim <= len(other.shape or ()):
        value = float(array.reshape(()))
        if not np.isfinite(value):
            raise BlockedError(f"its constant is {value}")
        if isinstance(other, Unquantized) and other.chain is not None:
            values = np.full(other.channels, value, np.float32)
            return chained(other, (per_channel_formula(node.op_type, values, swapped, node.label),), node.label)
        return function(context, other, constant_operand(node.op_type, swapped, value, node.label))
    return per_channel(context, node, other, constant, swapped)


def _bias_per_channel(constant: Const | QuantConst, other: Unquantized) -> Const | QuantConst:
    """The constant as one value per channel of the pending operation's tensor; `BlockedError` if it is not that."""
    if isinstance(constant, Const):
        return Const(spread_per_channel(constant.array, other))
    scale, zero_point = constant.along(constant.scale), constant.along(constant.zero_point)
    q, scale, zero_point = (spread_per_channel(values, other) for values in (constant.q, scale, zero_point))
    return QuantConst(q, scale, zero_point, 0)


HANDLERS: Handlers = {
    **{("", op_type): arithmetic for op_type in ("Add", "Sub", "Mul", "Div", "Pow")},
    ("", "Sum"): total,
    ("", "Max"): extreme,
    ("", "Min"): extreme,
}
