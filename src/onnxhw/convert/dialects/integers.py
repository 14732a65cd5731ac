"""`clamp`: Clip and Relu on the quantized integers themselves.

Q -> Clip -> DQ, as exporters write what has fewer than 8 bits, is Q with a narrower clamp.
"""

from dataclasses import replace

import numpy as np

from ...ir.graph import Tensor
from ..blockers import BlockedError
from ..context import Context
from ..values import Array, Const, GraphInput, Ints, QuantizedView, Value
from .parameters import RANGES
from .qdq import enter_table


def are_integers(value: Value) -> bool:
    """Are these quantized integers, or constant ones?"""
    if isinstance(value, QuantizedView):
        return value.integer
    return isinstance(value, Const) and str(value.array.dtype) in RANGES


def clamp(context: Context, value: Value, low: float | None, high: float | None, name: str, output: str) -> Value:
    """``min(max(q, low), high)`` of integers for which `are_integers` holds; None is no bound."""
    if isinstance(value, Const):
        return Const(_clipped(value.array.astype(np.int64), low, high).astype(value.array.dtype))
    if isinstance(value, GraphInput) or not isinstance(value, QuantizedView):
        raise BlockedError("clips integers that the hardware does not hold")
    shift = 128 if value.unsigned else 0
    table = _clipped(np.arange(-128, 128) + shift, low, high) - shift
    lo, hi = int(table.min()), int(table.max())
    if lo < -128 or hi > 127:
        raise BlockedError(f"clips to {lo + shift}..{hi + shift}, outside the integers' own type")
    if (lo, hi) == (-128, 127):
        return value
    tensor = _narrowed(context, value.tensor, lo, hi, name, output)
    if tensor is None:
        old = value.tensor
        tensor = enter_table(context, old, table, output, old.scale, old.zero_point, (name,))
    return replace(value, tensor=tensor)


def _narrowed(context: Context, tensor: Tensor, lo: int, hi: int, name: str, output: str) -> Tensor | None:
    """The result of the operation that makes `tensor` with a narrower clamp, if it has a clamp.

    Before: ``op[lo, hi] -> tensor``. After: the same, and ``op[narrower] -> output``; the first goes when nothing else
    needs it.
    """
    if (fed := context.fed(tensor, tensor.shape)) is not None:
        step = {"op": "Clip", "name": name, "min": lo, "max": hi}
        return context.feed(fed, output, (step,), tensor.scale, tensor.zero_point)
    op = next((op for op in reversed(context.graph.ops) if op.output == tensor.name), None)
    narrowed = op.clamped(lo, hi) if op else None
    if op is None or narrowed is None:
        return None
    narrowed = replace(narrowed, output=output, nodes=(*op.nodes, name))
    return context.put(narrowed, tensor.shape, tensor.scale, tensor.zero_point)


def _clipped(q: Ints, low: float | None, high: float | None) -> Array:
    """Bounds are applied in ONNX's order: a maximum below the minimum wins."""
    if low is not None:
        q = np.maximum(q, int(np.ceil(low)))
    return q if high is None else np.minimum(q, int(np.floor(high)))
