"""Operators as they were before operator set 7: broadcasting on request and along an axis, attributes for inputs."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from .adapter import Array, HostOp
from .arithmetic import divide
from .reference_gaps import upsample

BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Pow": np.power,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Equal": np.equal,
    "Less": np.less,
    "Greater": np.greater,
}
"""By operator; their results have the first operand's type where they are numbers."""


def aligned(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """A function of two operands of one shape; with `broadcast`, the second's axes are the first's from `axis` on.

    Without `axis` they are its last ones. ValueError for other shapes: the first operand is never repeated.
    """

    def apply(a: Array, b: Array, broadcast: int = 0, axis: int | None = None, consumed_inputs: Any = None) -> Array:
        if not broadcast and a.shape != b.shape:
            raise ValueError(f"shapes {a.shape} and {b.shape} differ, and broadcast is 0")
        if broadcast:
            first = a.ndim - b.ndim if axis is None or b.size == 1 else axis + a.ndim if axis < 0 else axis
            behind = a.ndim - b.ndim - first
            if b.size == 1:
                b = b.reshape(())
            elif min(first, behind) < 0:
                raise ValueError(f"the shape {b.shape} is no part of {a.shape} from axis {axis} on")
            else:
                b = b.reshape(b.shape + (1,) * behind)
            if np.broadcast_shapes(a.shape, b.shape) != a.shape:
                raise ValueError(f"the shape {b.shape} is no part of {a.shape}")
        result = np.asarray(function(a, b))
        return result if result.dtype == bool else result.astype(a.dtype)

    return apply


def gemm(
    a: Array,
    b: Array,
    c: Array,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    broadcast: int = 0,
) -> Array:
    """``alpha * a @ b + beta * c``."""
    product = np.float32(alpha) * ((a.T if transA else a) @ (b.T if transB else b))
    if not broadcast and c.shape != product.shape:
        raise ValueError(f"C has shape {c.shape}, not {product.shape}, and broadcast is 0")
    return np.asarray(product + np.float32(beta) * c).astype(a.dtype)


def dropout(x: Array, ratio: float = 0.5, is_test: int = 0, consumed_inputs: Any = None) -> Array:
    """Dropout in inference, whatever `is_test` says, whose default was training; its mask is not computed."""
    return x


def reshape(x: Array, shape: Sequence[int], consumed_inputs: Any = None) -> Array:
    """The shape is an attribute; 0 copies a size, -1 is what is left."""
    return x.reshape([x.shape[axis] if size == 0 else size for axis, size in enumerate(shape)])


def concat(*arrays: Array, axis: int = 1) -> Array:
    """Along the channels unless told otherwise."""
    return np.concatenate(arrays, axis)


def clip(x: Array, min: float | None = None, max: float | None = None, consumed_inputs: Any = None) -> Array:
    """Bounds are attributes."""
    low, high = (None if bound is None else x.dtype.type(bound) for bound in (min, max))
    return x if low is None and high is None else np.asarray(np.clip(x, low, high))


def cast(x: Array, to: str) -> Array:
    """The type is text."""
    kind = onnx.TensorProto.DataType.Value(to.upper())
    return x.astype(helper.tensor_dtype_to_np_dtype(kind))


def tile(x: Array, tiles: Array, axis: Array) -> Array:
    """Repeated along one axis."""
    return np.concatenate([x] * int(tiles.reshape(-1)[0]), int(axis.reshape(-1)[0]))


def selu(x: Array, alpha: float = 1.6732, gamma: float = 1.0507, consumed_inputs: Any = None) -> Array:
    """Other default constants than later."""
    low = np.float32(alpha) * np.exp(x) - np.float32(alpha)
    return np.asarray(np.float32(gamma) * np.where(x > 0, x, low)).astype(x.dtype)


def upsample_image(x: Array, height_scale: float, width_scale: float, mode: str = "nearest") -> Array:
    """Upsample of the last two of four axes."""
    return upsample(x, np.array([1, 1, height_scale, width_scale], np.float32), mode)


def split(
    x: Array, lengths: Array | None = None, *, outputs: int, axis: int = 0, split: Sequence[int] = ()
) -> tuple[Array, ...]:
    """Parts of these lengths along an axis, of one length without any. ValueError for others than the axis has."""
    sizes = list(split) if lengths is None else [int(size) for size in lengths.reshape(-1)]
    sizes = sizes or [x.shape[axis] // outputs] * outputs
    if len(sizes) != outputs or min(sizes) < 0 or sum(sizes) != x.shape[axis]:
        raise ValueError(f"{outputs} parts of {sizes} do not make up the {x.shape[axis]} elements of axis {axis}")
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


OPERATORS = (
    *(HostOp("", name, aligned(function), until=6) for name, function in BINARY.items()),
    HostOp("", "Div", aligned(divide), until=6),
    HostOp("", "Gemm", gemm, until=6),
    HostOp("", "Dropout", dropout, until=6),
    HostOp("", "Reshape", reshape, until=4),
    HostOp("", "Split", split, until=1, counted=True),
    HostOp("", "Concat", concat, until=3),
    HostOp("", "Clip", clip, until=5),
    HostOp("", "Cast", cast, until=5),
    HostOp("", "Tile", tile, until=5),
    HostOp("", "Selu", selu, until=5),
    HostOp("", "Upsample", upsample_image, until=6),
)
