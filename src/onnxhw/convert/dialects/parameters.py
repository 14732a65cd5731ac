"""Scale and zero point: `Parameters` of a QuantizeLinear or DequantizeLinear node, `ActivationGrid` of an activation.

Integer types are those that ONNX can quantize to, by numpy's names; those of up to 8 bits can be activations.
"""

from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from ...errors import InvalidModelError
from ...ir.graph import Array8
from ...onnxmodel.nodes import Node
from ..blockers import BlockedError
from ..context import Context
from ..values import Array, Floats, Ints, QuantConst

SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)
RANGES = {
    "int2": (-2, 1),
    "uint2": (0, 3),
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int32": (-(1 << 31), (1 << 31) - 1),
}
"""Smallest and largest value of each integer type."""
MOST_WEIGHTS = 1 << 24
"""Elements of a quantized constant; 32 times the bytes of the largest preset's weight memory."""
SHORT_FLOATS = ("float16", "bfloat16")
"""Types of scales that are float32 numbers, but with which an operator computes in their own precision."""


@cache
def dtype_name(kind: "np.dtype[Any]") -> str:
    """numpy's name of an element type; numpy itself takes long to spell it."""
    return str(kind)


def check_scale(scale: Floats, where: str) -> None:
    """`InvalidModelError` E3020 unless every scale is finite, positive and normal."""
    if scale.size == 1 and SMALLEST_NORMAL <= float(scale.reshape(())) < float("inf"):
        return
    good = np.isfinite(scale) & (scale >= SMALLEST_NORMAL)
    if not bool(np.all(good)):
        bad = scale.ravel()[~good.ravel()][0]
        raise InvalidModelError("E3020", f"scale must be finite, positive and normal, not {bad}", where=where)


@dataclass(frozen=True)
class ActivationGrid:
    """Where an activation's integers lie in int8: ``lo .. hi``, 128 lower than in the model if `unsigned`.

    ``real = (q - zero_point) * scale``.
    """

    scale: np.float32
    zero_point: int
    unsigned: bool
    lo: int
    hi: int

    @classmethod
    def of(cls, scale: np.float32, zero_point: int, lo: int, hi: int) -> "ActivationGrid":
        """The grid of the model's integers ``lo .. hi`` with the model's zero point."""
        unsigned = lo >= 0
        shift = 128 if unsigned else 0
        if hi - lo > 255 or not -128 <= zero_point - shift <= 127:
            raise BlockedError(
                f"activations of {lo}..{hi} with zero point {zero_point} do not fit int8",
                "quantize activations to int8 or uint8",
            )
        return cls(np.float32(scale), zero_point - shift, unsigned, lo - shift, hi - shift)

    @property
    def whole(self) -> bool:
        """Are all 256 values of int8 allowed?"""
        return (self.lo, self.hi) == (-128, 127)


class Parameters:
    """Scale and zero point of a Q or DQ node, checked. `dtype` is that of the quantized integers.

    Raises `InvalidModelError` E3020 for a scale that is none, E3021 for a zero point of another shape, E3024 for a zero
    point of int32 other than 0;
    `BlockedError` for what is not constant or not computed in float32.
    """

    def __init__(self, context: Context, node: Node) -> None:
        found, where = node.attributes, node.label
        scale, zero_point = context.constant(node, 1), context.constant(node, 2)
        if scale is None:
            raise BlockedError("has no scale")
        self.scale: Floats = _single(scale, node, found)
        check_scale(self.scale, where)
        if zero_point is not None:
            if zero_point.size == scale.size == 1:  # [] and [1] mean the same: one for the tensor
                zero_point = zero_point.reshape(scale.shape)
            if zero_point.shape != scale.shape:
                raise InvalidModelError(
                    "E3021",
                    f"zero point must have the scale's shape {list(scale.shape)}, not {list(zero_point.shape)}",
                    where=where,
                )
            self.dtype = dtype_name(zero_point.dtype)
            if self.dtype == "int32" and zero_point.any():
                raise InvalidModelError("E3024", "the zero point of int32 must be 0", where=where)
        else:
            code = found.get("output_dtype", 0) if node.op_type == "QuantizeLinear" else 0
            self.dtype = str(onnx.helper.tensor_dtype_to_np_dtype(code)) if code else "uint8"
        if self.dtype not in RANGES:
            raise BlockedError(f"quantizes to {self.dtype}, which has no integers", "quantize to int8 or uint8")
        self.zero_point: Ints = np.zeros(scale.shape, np.int64) if zero_point is None else zero_point.astype(np.int64)
        self.explicit = zero_point is not None
        self.axis, self.block = int(found.get("axis", 1)), int(found.get("block_size", 0))
        self._single: ActivationGrid | None = None
        """The grid of every activation with these, once it is known."""

    @classmethod
    def of(cls, context: Context, node: Node) -> "Parameters":
        """The same, made once for all nodes that name the same scale and zero point and have no attributes."""
        if node.attributes or len(node.input) < 2:
            return cls(context, node)
        key = (node.op_type, *node.input[1:])
        found: Parameters | None = context.parameters.get(key)
        if found is None:
            found = context.parameters[key] = cls(context, node)
        return found

    @classmethod
    def named(cls, context: Context, op_type: str, scale: str, zero_point: str, where: str) -> "Parameters":
        """Those of a node without attributes, "" if it has no zero point; also made once."""
        found: Parameters | None = context.parameters.get((op_type, scale, zero_point))
        if found is None:
            found = cls.of(context, Node(op_type, ["", scale, zero_point], [], where))
        return found

    def typed(self, dtype: str) -> "Parameters":
        """The same scale and zero point for integers of type `dtype`."""
        if dtype == self.dtype:
            return self
        made = copy(self)
        made.dtype, made._single = dtype, None
        return made

    def activation(self, shape: tuple[int, ...] | None, where: str) -> ActivationGrid:
        """The grid of an activation of this shape with these parameters; `InvalidModelError` if they do not fit it."""
        if self._single is not None:
            return self._single
        if shape is not None and (self.block or self.scale.size != 1):
            self.spread(shape, where)
        if self.block:
            raise BlockedError("activations are quantized in blocks", "quantize activations per tensor")
        if self.scale.size != 1:
            raise BlockedError("activations are quantized per channel", "quantize activations per tensor")
        if self.dtype in ("int16", "uint16", "int32"):
            raise BlockedError(f"activations are {self.dtype}", "quantize activations to int8 or uint8")
        self._single = ActivationGrid.of(
            np.float32(self.scale.item()), int(self.zero_point.item()), *RANGES[self.dtype]
        )
        return self._single

    def spread(self, shape: tuple[int, ...], where: str) -> tuple[Floats, Ints]:
        """Scale and zero point as arrays that broadcast against a tensor of this shape."""
        if self.scale.size == 1 and not self.block:
            return self.scale.reshape(()), self.zero_point.reshape(())
        axis = self._axis(shape, where)
        if self.block:
            wanted = tuple(-(-size // self.block) if i == axis else size for i, size in enumerate(shape))
            if self.scale.shape != wanted:
                raise InvalidModelError(
                    "E3600",
                    f"blocks of {self.block} along axis {axis} of shape {list(shape)} have scales of shape "
                    f"{list(wanted)}, not {list(self.scale.shape)}",
                    where=where,
                )
            block = np.arange(shape[axis]) // self.block
            return self.scale.take(block, axis), self.zero_point.take(block, axis)
        lined = [-1 if i == axis else 1 for i in range(len(shape))]
        return self.scale.reshape(lined), self.zero_point.reshape(lined)

    def constant(self, q: Array, where: str) -> QuantConst:
        """The dequantized form of constant integers."""
        if dtype_name(q.dtype) not in RANGES:
            raise BlockedError(f"dequantizes {q.dtype}, which has no integers", "quantize to int8 or uint8")
        if self.block:
            return merge_blocks(wide(q), *self.spread(q.shape, where), self._axis(q.shape, where))
        whole = integers(q)
        if self.scale.size == 1:
            return QuantConst(whole, self.scale.reshape(()), self.zero_point.reshape(()), None)
        return QuantConst(whole, self.scale, self.zero_point, self._axis(q.shape, where))

    def _axis(self, shape: tuple[int, ...], where: str) -> int:
        axis = self.axis + len(shape) if self.axis < 0 else self.axis
        fits = 0 <= axis < len(shape) and (
            bool(self.block) or (self.scale.ndim == 1 and self.scale.size == shape[axis])
        )
        if not fits or self.block < 0:
            raise InvalidModelError(
                "E3022", f"{self.scale.size} scales do not fit axis {self.axis} of shape {list(shape)}", where=where
            )
        return axis


def bounded(values: Array) -> Array:
    """The same constant; `BlockedError` for more than `MOST_WEIGHTS` elements, before any copy is made."""
    if values.size > MOST_WEIGHTS:
        raise BlockedError(f"a constant of {values.size:,} elements fits no accelerator", "split it")
    return values


def wide(q: Array) -> Ints:
    """Constant integers to compute with; `bounded`."""
    return bounded(q).astype(np.int64)


def integers(q: Array) -> Ints | Array8:
    """Constant integers: int8 as they are, others to compute with; `bounded`."""
    return bounded(q) if q.dtype == np.int8 else wide(q)


def merge_blocks(q: Ints, scale: Floats, zero_point: Ints, along: int = -1) -> QuantConst:
    """Integers of blocks with scales of their own as integers with one scale, or one per slice of an axis, exactly.

    Before: ``(q - z[b]) * s[b]``. After: ``((q - z[b]) * r[b]) * s``, where s is the smallest scale and every
    ``r[b] = s[b] / s`` is an integer. One scale is chosen if int8 is enough, then one per slice of an axis, that of the
    blocks, `along`, last. `BlockedError` if nothing does.
    """
    axes = sorted(range(q.ndim), key=lambda axis: axis == along)
    for axis in (None, *axes):
        others = tuple(i for i in range(q.ndim) if i != axis)
        least = scale.min(axis=others, keepdims=True).astype(np.float64)
        ratio = np.rint(scale.astype(np.float64) / least)
        if not np.array_equal(ratio * least, scale.astype(np.float64)) or float(ratio.max(initial=1)) >= 1 << 16:
            continue
        merged = (q - zero_point) * ratio.astype(np.int64)
        if axis is not None or not merged.size or (merged.min() >= -128 and merged.max() <= 127):
            single = least.astype(np.float32).reshape(-1 if axis is not None else ())
            return QuantConst(merged, single, np.zeros(single.shape, np.int64), axis)
    raise BlockedError(
        "the scales of its blocks are not integer multiples of one scale per output channel",
        "quantize per output channel, or choose block scales that differ by powers of two",
    )


def _single(scale: Array, node: Node, found: dict[str, Any]) -> Floats:
    """The scale in float32, if the node computes in float32."""
    kind = dtype_name(scale.dtype)
    precision = int(found.get("precision" if node.op_type == "QuantizeLinear" else "output_dtype", 0))
    if kind == "float32" and (precision in (0, TensorProto.FLOAT)):
        return scale
    if kind in SHORT_FLOATS and precision == TensorProto.FLOAT:
        return scale.astype(np.float32)
    if kind in ("float32", *SHORT_FLOATS) and node.op_type == "QuantizeLinear":
        raise BlockedError("divides in another type than float32", "use a float32 scale, or precision FLOAT")
    if kind in ("float32", *SHORT_FLOATS):
        raise BlockedError("its result is not float32", "use a float32 scale, or output_dtype FLOAT")
    raise BlockedError(f"scale is {kind}, not float32", "use a float32 scale")
