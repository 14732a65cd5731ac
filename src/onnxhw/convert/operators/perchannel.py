"""A factor and a term per channel: Add, Sub, Mul, Div with a constant per channel, and BatchNormalization.

    y = f(DQ(x), constant of the channel) -> Q     a 1x1 depthwise convolution ``multiplier * (w * (q - z) + bias)``

Weight, bias and multiplier of each channel are sought until all 256 inputs give the integers of the float formula.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from ... import fixed
from ...ir.graph import Conv, Tensor
from ...onnxmodel.nodes import Node
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..values import (
    Array,
    AxisMoves,
    Const,
    Floats,
    Ints,
    QuantConst,
    QuantizedView,
    QuantizerTarget,
    Unquantized,
    Value,
)
from .arrange import materialise
from .chain import Formula, chained, identity, per_channel_formula
from .operands import binary, plain

INTEGERS = np.arange(-128, 128, dtype=np.int64)
WEIGHTS = np.arange(127, 0, -1, dtype=np.int64)
"""Weights that are tried, largest first: each has a grid of biases of its own."""
LEAST, MOST = 2.0**-23, 2.0**7
"""Multipliers that every requantizer has."""
MOST_AWAY = 1 / 32
"""Steps of the result by which a line may be away from its formula where nothing is equal to it: then about one result
in sixteen differs by a step, at the worst."""


@dataclass(frozen=True)
class ChannelLine:
    """``y = formula(x)`` per channel, close to ``slope * x + offset``; all of shape ``[C]`` or ``[C, 1]`` of x."""

    formula: Callable[[Floats], Floats]
    slope: Floats
    offset: Floats


def channelwise(
    context: Context,
    name: str,
    x: Tensor,
    line: ChannelLine,
    result: QuantizerTarget,
    otherwise: Callable[[QuantizerTarget], Tensor] | None = None,
) -> Tensor:
    """Add the convolution of a line per channel whose result's scale is known now.

    `otherwise` takes over where no constants are found.
    """
    channels = x.channels
    reals = fixed.dequantize(INTEGERS, np.float32(x.scale), x.zero_point)
    values = np.broadcast_to(line.formula(reals[None, :]), (channels, 256))
    if np.isnan(values).any():
        raise BlockedError("its formula gives NaN")
    wanted = np.clip(fixed.quantize(values, result.scale, result.zero_point), result.lo, result.hi)
    slope = np.float64(x.scale) / np.float64(result.scale) * line.slope.astype(np.float64)
    offset = line.offset.astype(np.float64) / np.float64(result.scale)
    entries = [constants(wanted[c], float(slope[c]), float(offset[c]), x.zero_point, result) for c in range(channels)]
    if not all(entry is not None and entry.equal for entry in entries):
        try:
            if otherwise is not None:
                return otherwise(result)
        except BlockedError:
            pass
        away = max(np.inf if entry is None else entry.away for entry in entries)
        if away > MOST_AWAY:
            what = "no integer constants give the float results of every channel"
            raise BlockedError(what, "quantize the constant (QDQ format)")
        context.note_rounded(name, away)
    found = [(entry.weight, entry.bias, entry.multiplier) for entry in entries if entry is not None]
    weights, biases, multipliers = (np.array(column) for column in zip(*found, strict=True))
    made = Conv(
        name,
        (x.name,),
        result.name,
        result.nodes,
        weights.astype(np.int8).reshape(-1, 1, 1, 1),
        biases.astype(np.int32),
        multipliers.astype(np.float32),
        groups=channels,
        lo=result.lo,
        hi=result.hi,
    )
    return context.put(made, x.shape, result.scale, result.zero_point)


@dataclass(frozen=True)
class IntegerLine:
    """A channel's constants: whether all 256 inputs give the integers of the formula, and by how many steps of the
    result the line before rounding is away from the formula's."""

    weight: int
    bias: int
    multiplier: float
    equal: bool = True
    away: float = 0.0


def constants(
    wanted: Ints, slope: float, offset: float, zero_point: int, result: QuantizerTarget
) -> IntegerLine | None:
    """The constants of a channel that give `wanted` for all 256 integers, else those that do for most; None if there
    are none near the line."""
    if (wanted == wanted[0]).all():
        return IntegerLine(0, int(wanted[0]) - result.zero_point, 1.0)
    centred = INTEGERS - zero_point
    multipliers = (abs(slope) / WEIGHTS).astype(np.float32)
    fits = (multipliers >= LEAST) & (multipliers <= MOST)
    weights, multipliers = (WEIGHTS * int(np.sign(slope)))[fits], multipliers[fits]
    biases = np.rint(offset / multipliers.astype(np.float64))
    fits = np.abs(biases) < 1 << 30
    weights, multipliers, biases = weights[fits], multipliers[fits], biases[fits].astype(np.int64)
    if not len(weights):
        return None
    sums = weights[:, None] * centred + biases[:, None]
    found = fixed.requantize(sums, multipliers[:, None], result.zero_point, result.lo, result.hi)
    wrong = (found != wanted).sum(axis=1)
    at = int(wrong.argmin())  # of equals the first, with the largest weight
    away = float(np.abs(sums[at] * np.float64(multipliers[at]) - (slope * centred + offset)).max())
    return IntegerLine(int(weights[at]), int(biases[at]), float(multipliers[at]), not wrong[at], away)


def per_channel(context: Context, node: Node, other: Value, constant: Const | QuantConst, swapped: bool) -> Unquantized:
    """Add, Sub, Mul, Div of an activation and a constant that is the same on all pixels."""
    real = constant.real() if isinstance(constant, QuantConst) else constant.array
    if isinstance(other, Unquantized) and other.chain is not None:
        picked = spread_per_channel(real, other)
        return chained(other, (per_channel_formula(node.op_type, picked, swapped, node.label),), node.label)
    x = plain(context, node, 1 if swapped else 0)
    x, values = laid_per_channel(context, real, x)
    if values is None:
        raise BlockedError(
            f"{node.op_type} with a constant of shape {list(real.shape)}", "use a scalar or one value per channel"
        )
    c, one, none = values[:, None], np.ones_like(values), np.zeros_like(values)
    lines = {
        "Add": ChannelLine(lambda v: v + c, one, values),
        "Sub": ChannelLine(lambda v: c - v, -one, values) if swapped else ChannelLine(lambda v: v - c, one, -values),
        "Mul": ChannelLine(lambda v: v * c, values, none),
        "Div": ChannelLine(lambda v: np.asarray(v / c, np.float32), np.reciprocal(values), none),
    }
    line = lines.get(node.op_type)
    if line is None or (node.op_type == "Div" and swapped) or not np.isfinite(line.slope).all():
        raise BlockedError(f"{node.op_type} with a constant per channel", "use a scalar")
    otherwise = None
    if isinstance(constant, QuantConst) and constant.axis is None and node.op_type in ("Add", "Mul"):
        q = per_channel_values(constant.q.astype(np.int64), x)
        assert q is not None
        otherwise = partial(with_constant, context, node.op_type, node.label, x.tensor, constant, q)
    formulas = (per_channel_formula(node.op_type, values, swapped, node.label),)
    return _channelwise(context, node, x, line, formulas, otherwise)


def _channelwise(
    context: Context,
    node: Node,
    x: QuantizedView,
    line: ChannelLine,
    formulas: tuple[Formula, ...],
    otherwise: Callable[[QuantizerTarget], Tensor] | None = None,
) -> Unquantized:
    tensor = x.tensor
    chain = identity(context, node.label, tensor).then(formulas)

    def finish(result: QuantizerTarget) -> Tensor:
        if result.formula is not None:
            return chain.finish(result)
        return channelwise(context, node.label, tensor, line, result, otherwise or chain.finish)

    return Unquantized(finish, x.moves, (node.label,), channels=tensor.channels, chain=chain, chained=True)


def spread_per_channel(values: Array, other: Unquantized) -> Array:
    """A constant as one value per channel of the pending operation's tensor; `BlockedError` if it is not that."""
    size = prod(other.shape)
    places = np.arange(size) if other.moves.index is None else other.moves.index.ravel()
    channel = places // (size // other.channels)
    refusal = BlockedError(
        f"a constant of shape {list(values.shape)} is not one value per channel of {list(other.shape)}"
    )
    try:
        spread = np.broadcast_to(values, other.shape).ravel()
    except ValueError:
        raise refusal from None
    picked = np.zeros(other.channels, values.dtype)
    picked[channel] = spread
    if not np.array_equal(picked[channel], spread):
        raise refusal
    return picked


def laid_per_channel(context: Context, values: Array, x: QuantizedView) -> tuple[QuantizedView, Array | None]:
    """The operand, and a constant as one value per channel of its tensor: as it lies (channels last, say, or the result
    of a MatMul), or else as its shape says. None if the constant differs between pixels or does not fit."""
    found = per_channel_values(values, x)
    if found is not None:
        return x, found
    tensor = materialise(context, x)
    x = replace(x, tensor=tensor, moves=AxisMoves.of(tensor.shape, x.shape))
    return x, per_channel_values(values, x)


def per_channel_values(values: Array, x: QuantizedView) -> Array | None:
    """One value per channel of the operand's tensor, or None if the constant differs between pixels or does not fit."""
    try:
        spread = np.broadcast_to(values, x.shape).ravel()
    except ValueError:
        return None
    if x.moves.index is not None:
        laid = np.empty_like(spread)
        laid[x.moves.index.ravel()] = spread
        spread = laid
    rows = spread.reshape(x.tensor.channels, -1)
    return rows[:, 0] if bool((rows == rows[:, :1]).all()) else None


def with_constant(
    context: Context, op_type: str, name: str, x: Tensor, constant: QuantConst, q: Ints, result: QuantizerTarget
) -> Tensor:
    """Add an Add or Mul with a quantized constant made into a tensor, `q` per channel; the result's scale is known now.

    A convolution with weights of 0 has its bias as the result: the constant's integers.
    """
    zero, channels = int(constant.zero_point.reshape(())), x.channels
    shift = 128 if zero > 127 or int(q.max()) > 127 else 0
    zero, q = zero - shift, q - shift
    if int(q.min()) < -128 or int(q.max()) > 127 or not -128 <= zero <= 127:
        raise BlockedError("the constant is not int8 or uint8", "quantize it to int8")
    zeros, ones = np.zeros((channels, 1, 1, 1), np.int8), np.ones(channels, np.float32)
    bias, wanted = (q - zero).astype(np.int32), f"{result.name}.constant"
    conv = Conv(f"{name}.constant", (x.name,), wanted, (name,), zeros, bias, ones, groups=channels)
    made = context.put(conv, x.shape, np.float32(constant.scale.reshape(())), zero)
    return binary(context, op_type, name, x, made, result)


def batch_normalization(context: Context, node: Node) -> Value:
    """BatchNormalization of a quantized value: ``(x - mean) * scale / sqrt(var + epsilon) + bias``."""
    found = node.attributes
    if found.get("training_mode", 0) or any(node.output[1:]):
        raise BlockedError("it trains", "export the model for inference")
    if not found.get("spatial", 1):
        raise BlockedError("it normalizes every element by itself (spatial is 0)")
    value = context.required(node, 0)
    if isinstance(value, Unquantized) and value.chain is not None:
        factor, term = _factor_and_term(context, node, value.channels)
        if len(value.shape) < 2 or not np.array_equal(
            spread_per_channel(np.arange(value.channels).reshape(-1, *[1] * (len(value.shape) - 2)), value),
            np.arange(value.channels),
        ):
            raise BlockedError("its channels are not those of the operation before")
        return chained(value, _normalization(factor, term, node.label), node.label)
    x = plain(context, node, 0)
    tensor = materialise(context, x)
    factor, term = _factor_and_term(context, node, tensor.channels)
    line = ChannelLine(lambda v: v * factor[:, None] + term[:, None], factor, term)
    x = replace(x, tensor=tensor, moves=AxisMoves.of(tensor.shape, x.shape))
    return _channelwise(context, node, x, line, _normalization(factor, term, node.label))


def _normalization(factor: Floats, term: Floats, name: str) -> tuple[Formula, ...]:
    multiplied = per_channel_formula("Mul", factor, False, name)
    return multiplied, per_channel_formula("Add", term, False, name)


def _factor_and_term(context: Context, node: Node, channels: int) -> tuple[Floats, Floats]:
    """What a BatchNormalization multiplies by and adds, rounded as onnxruntime does."""
    parameters = []
    for index in range(1, 5):
        given = context.required(node, index)
        array = given.real() if isinstance(given, QuantConst) else context.constant(node, index)
        if array is None or array.dtype != np.float32 or array.shape != (channels,):
            raise BlockedError(f"input {index} is not one float32 per channel")
        parameters.append(array)
    scale, bias, mean, variance = parameters
    with np.errstate(all="ignore"):
        root = np.sqrt(variance + np.float32(node.attributes.get("epsilon", 1e-5)))
        factor = (np.float32(1) / root * scale).astype(np.float32)
        term = (bias - mean * factor).astype(np.float32)
    if not np.isfinite(factor).all() or not np.isfinite(term).all():
        raise BlockedError("its parameters are not finite")
    return factor, term


HANDLERS: Handlers = {("", "BatchNormalization"): batch_normalization}
