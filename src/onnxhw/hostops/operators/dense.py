"""Float convolutions as matrix products; normalizations, and the softmax family of older operator sets."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import helper

from .adapter import Array, HostOp
from .windows import convolve

EPSILON = float(np.float32(1e-5))
"""The default of `epsilon`, an attribute in float32."""


def conv(x: Array, w: Array, bias: Array | None = None, kernel_shape: Any = None, **window: Any) -> Array:
    """Conv: sums in float64, rounded to the type of `x` once, so that equal channels stay equal."""
    if kernel_shape is not None and tuple(kernel_shape) != w.shape[2:]:
        raise ValueError(f"kernel_shape {list(kernel_shape)} is not that of the weights, {w.shape[2:]}")
    sums = convolve(x.astype(np.float64), w.astype(np.float64), **window)
    if bias is not None:
        sums = sums + bias.astype(np.float64).reshape((-1,) + (1,) * (sums.ndim - 2))
    return np.asarray(sums.astype(x.dtype))


def conv_transpose(
    x: Array,
    w: Array,
    bias: Array | None = None,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Any = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """ConvTranspose ``[N, M, *out]`` of ``x[N, C, *in]`` with ``w[C, M / group, *kernel]``.

    It is the convolution of `x`, with ``stride - 1`` zeros between its elements, with the mirrored weights. Padding
    takes from it, and is never negative: SAME gives ``in * stride`` or what windows reach if that is less; an
    output_shape beyond, by less than a stride, has zeros at its end, as onnxruntime has it.
    """
    spatial, kernel = x.ndim - 2, w.shape[2:]
    ones = [1] * spatial
    steps, spread, extra = strides or ones, dilations or ones, output_padding or [0] * spatial
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, spread, strict=True)]
    wide = [(size - 1) * step + 1 for size, step in zip(x.shape[2:], steps, strict=True)]
    loose = np.zeros((*x.shape[:2], *wide))
    loose[(slice(None), slice(None), *(slice(None, None, step) for step in steps))] = x
    mirrored = np.flip(w.astype(np.float64), tuple(range(2, w.ndim))).reshape(group, -1, *w.shape[1:]).swapaxes(1, 2)
    mirrored = mirrored.reshape(group * w.shape[1], w.shape[0] // group, *kernel)
    margin = [span - 1 for span in spans]
    full = convolve(loose, mirrored, group, ones, spread, pads=[*margin, *margin])
    if output_shape is None and auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        reached = [n + e for n, e in zip(full.shape[2:], extra, strict=True)]
        output_shape = [min(size * step, n) for size, step, n in zip(x.shape[2:], steps, reached, strict=True)]
    begin, end = [0] * spatial, [0] * spatial
    if output_shape is not None:
        asked = list(zip(full.shape[2:], extra, steps, output_shape, strict=True))
        if any(not 1 <= o <= n + max(e, step - 1) for n, e, step, o in asked):
            raise ValueError(f"output_shape {list(output_shape)} is not what windows make, {list(full.shape[2:])}")
        extra = [max(e, o - n) for n, e, _, o in asked]
        total = [n + e - o for n, e, o in zip(full.shape[2:], extra, output_shape, strict=True)]
        begin = [t // 2 if auto_pad == "SAME_UPPER" else t - t // 2 for t in total]
        end = [t - b for t, b in zip(total, begin, strict=True)]
    elif auto_pad == "NOTSET" and pads is not None:
        begin, end = list(pads[:spatial]), list(pads[spatial:])
    edges = [(max(-b, 0), max(e - c, 0)) for b, e, c in zip(begin, extra, end, strict=True)]
    padded = np.pad(full, [(0, 0), (0, 0), *edges])
    cuts = [slice(max(b, 0), n - max(c - e, 0)) for b, c, e, n in zip(begin, end, extra, padded.shape[2:], strict=True)]
    sums = padded[(slice(None), slice(None), *cuts)]
    if bias is not None:
        sums = sums + bias.astype(np.float64).reshape((-1,) + (1,) * spatial)
    return np.asarray(sums.astype(x.dtype))


def batch_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    var: Array,
    epsilon: float = EPSILON,
    momentum: float = 0.9,
    spatial: int = 1,
    is_test: int = 1,
) -> Array:
    """``scale * (x - mean) / sqrt(var + epsilon) + bias`` for each channel: BatchNormalization of one output."""
    if not spatial or not is_test:
        raise NotImplementedError("spatial = 0 and training are not supported")
    trailing = (-1,) + (1,) * (x.ndim - 2)
    scale, bias, mean, var = (part.astype(np.float64).reshape(trailing) for part in (scale, bias, mean, var))
    return np.asarray((scale * (x - mean) / np.sqrt(var + epsilon) + bias).astype(x.dtype))


def training_batch_normalization(
    *operands: Array, epsilon: float = EPSILON, momentum: float = float(np.float32(0.9)), training_mode: int = 0
) -> Array | tuple[Array, Array, Array]:
    """BatchNormalization since operator set 14: training takes mean and variance of `x`, and gives the running ones."""
    x, scale, bias, mean, var = operands
    if not training_mode:
        return batch_normalization(x, scale, bias, mean, var, epsilon)
    axes = (0, *range(2, x.ndim))
    wide = x.astype(np.float64)
    now = wide.mean(axes), wide.var(axes)
    y = batch_normalization(x, scale, bias, *now, epsilon)
    running = (old * momentum + new * (1 - momentum) for old, new in zip((mean, var), now, strict=True))
    after_mean, after_var = (value.astype(mean.dtype) for value in running)
    return y, after_mean, after_var


def batch_normalization_by_outputs(
    *operands: Array, outputs: int, epsilon: float = EPSILON, momentum: float = float(np.float32(0.9)), spatial: int = 1
) -> Array | tuple[Array, ...]:
    """BatchNormalization of operator sets 7 to 13: it trains where the node names more outputs than Y, which only the
    training mode has. Variances are those of the population, as the text says from operator set 14 on."""
    x, scale, bias, mean, var = operands
    if outputs == 1:
        return batch_normalization(x, scale, bias, mean, var, epsilon, spatial=spatial)
    if not spatial:
        raise NotImplementedError("spatial = 0 and training are not supported")
    found = training_batch_normalization(x, scale, bias, mean, var, epsilon=epsilon, momentum=momentum, training_mode=1)
    axes, wide = (0, *range(2, x.ndim)), x.astype(np.float64)
    return *found, wide.mean(axes).astype(mean.dtype), wide.var(axes).astype(var.dtype)


def old_batch_normalization(*operands: Array, is_test: int = 0, consumed_inputs: Any = None, **more: Any) -> Array:
    """BatchNormalization before operator set 7, which trains unless told otherwise."""
    x, scale, bias, mean, var = operands
    return batch_normalization(x, scale, bias, mean, var, is_test=is_test, **more)


def instance_normalization(
    x: Array, scale: Array, bias: Array, epsilon: float = EPSILON, consumed_inputs: Any = None
) -> Array:
    """``scale * (x - mean) / sqrt(variance + epsilon) + bias`` for each channel of each example, in float64."""
    wide, axes, trailing = x.astype(np.float64), tuple(range(2, x.ndim)), (-1,) + (1,) * (x.ndim - 2)
    distance = wide - wide.mean(axes, keepdims=True)
    normal = distance / np.sqrt((distance**2).mean(axes, keepdims=True) + epsilon)
    scale, bias = (part.astype(np.float64).reshape(trailing) for part in (scale, bias))
    return np.asarray((scale * normal + bias).astype(x.dtype))


def layer_normalization(
    x: Array, scale: Array, bias: Array | None = None, axis: int = -1, epsilon: float = EPSILON, stash_type: int = 1
) -> tuple[Array, Array, Array]:
    """LayerNormalization: mean and ``1 / sqrt(variance + epsilon)`` have the type of `stash_type`; scale and bias apply
    in the type of `x`."""
    wide, axes = x.astype(np.float64), tuple(range(axis % max(x.ndim, 1), x.ndim))
    stash = helper.tensor_dtype_to_np_dtype(stash_type)
    mean = wide.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(((wide - mean) ** 2).mean(axes, keepdims=True) + epsilon)
    y = ((wide - mean) * inverse).astype(stash).astype(x.dtype) * scale
    return np.asarray(y if bias is None else y + bias), mean.astype(stash), inverse.astype(stash)


def softmax(x: Array) -> Array:
    """``exp(x - max) / sum`` over the last axis."""
    raised = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True), x.dtype)


def log_softmax(x: Array) -> Array:
    """``x - max - log(sum(exp(x - max)))`` over the last axis."""
    if x.size == 0:
        return x
    less = x - x.max(-1, keepdims=True)
    return np.asarray(less - np.log(np.exp(less).sum(-1, keepdims=True)), x.dtype)


def hardmax(x: Array) -> Array:
    """1 at the first maximum of the last axis, else 0."""
    return np.asarray(np.arange(x.shape[-1]) == x.argmax(-1)[..., None]).astype(x.dtype)


def flattened(function: Callable[[Array], Array]) -> Callable[..., Array]:
    """The function over all axes from `axis` on, taken as one."""

    def apply(x: Array, axis: int = 1) -> Array:
        if x.size == 0:
            return x
        rows = int(np.prod(x.shape[: axis + x.ndim if axis < 0 else axis]))
        return function(x.reshape(rows, -1)).reshape(x.shape)

    return apply


def log_softmax_of_axis(x: Array, axis: int = -1) -> Array:
    """`log_softmax` along one axis."""
    return np.moveaxis(log_softmax(np.moveaxis(x, axis, -1)), -1, axis)


OPERATORS = (
    HostOp("", "Conv", conv),
    HostOp("", "ConvTranspose", conv_transpose),
    HostOp("", "BatchNormalization", old_batch_normalization, until=6),
    HostOp("", "BatchNormalization", batch_normalization_by_outputs, since=7, until=13, counted=True),
    HostOp("", "BatchNormalization", training_batch_normalization, since=14),
    HostOp("", "InstanceNormalization", instance_normalization),
    HostOp("", "LayerNormalization", layer_normalization, since=17),
    HostOp("", "Softmax", flattened(softmax), until=12),
    HostOp("", "LogSoftmax", flattened(log_softmax), until=12),
    HostOp("", "LogSoftmax", log_softmax_of_axis, since=13),
    HostOp("", "Hardmax", flattened(hardmax), until=12),
)
