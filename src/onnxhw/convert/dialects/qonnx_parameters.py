"""Scales, zero points, bit widths and rounding modes that a QONNX node names, and what is wrong with them."""

import numpy as np

from ...errors import InvalidModelError
from ...onnxmodel.nodes import Node
from ...onnxmodel.qonnx_formulas import ROUNDING, IntQuant
from ..context import Context
from ..values import Floats
from .parameters import check_scale

MOST_BITS = 32
"""The widest integers, those of a bias."""


def quant_parameters(context: Context, node: Node) -> tuple[IntQuant, Floats, Floats]:
    """Formula, scale and zero point of Quant, made once for all nodes with the same inputs and attributes."""
    key = ("Quant", *node.input[1:], repr(node.attributes))
    found: tuple[IntQuant, Floats, Floats] | None = context.parameters.get(key)
    if found is None:
        scale, zero_point = numbers(context, node, 1), zero_points(context, node, 2)
        bits = bit_width(context, node, 3)
        check_scale(scale, node.label)
        try:
            found = IntQuant.of(node.attributes, bits), scale, zero_point
        except KeyError as error:
            raise unknown_mode(error, node) from None
        context.parameters[key] = found
    return found


def numbers(context: Context, node: Node, index: int) -> Floats:
    """A constant input as float32; what `Context.known` raises."""
    return context.known(node, index).astype(np.float32)


def zero_points(context: Context, node: Node, index: int) -> Floats:
    """A zero point's numbers; `InvalidModelError` E3606 unless all are finite."""
    found = numbers(context, node, index)
    if not np.isfinite(found).all():
        raise InvalidModelError("E3606", "the zero point must be finite", where=node.label)
    return found


def check_spread(shape: tuple[int, ...] | None, scale: Floats, zero_point: Floats, node: Node) -> None:
    """`InvalidModelError` E3022 unless scale and zero point broadcast with a value of this shape."""
    if shape is None or scale.size == zero_point.size == 1:
        return
    try:
        np.broadcast_shapes(shape, scale.shape, zero_point.shape)
    except ValueError:
        raise InvalidModelError(
            "E3022",
            f"scales {list(scale.shape)} and zero points {list(zero_point.shape)} do not fit shape {list(shape)}",
            where=node.label,
        ) from None


def bit_width(context: Context, node: Node, index: int) -> int:
    """A bit width; `InvalidModelError` E3604 unless it is one whole number from 1 to `MOST_BITS`."""
    found = numbers(context, node, index)
    if found.size != 1 or not 1 <= found.item() <= MOST_BITS or found.item() % 1:
        raise InvalidModelError(
            "E3604", f"the bit width must be one whole number from 1 to {MOST_BITS}", where=node.label
        )
    return int(found.item())


def check_width(context: Context, bits: int, node: Node) -> None:
    """E3607 for more bits than `Limits.quant_bits`; vectors may have `MOST_BITS`, for biases are that wide."""
    context.limits.check("E3607", "quant_bits", bits, "bits of its integers:", node.label)


def unknown_mode(error: KeyError, node: Node) -> InvalidModelError:
    """The error of a rounding mode that a formula does not know."""
    return InvalidModelError(
        "E3605", f"no rounding mode {error.args[0]!r}", where=node.label, hint=f"known: {', '.join(sorted(ROUNDING))}"
    )
