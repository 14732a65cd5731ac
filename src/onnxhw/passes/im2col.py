"""`as_im2col`: an input that convolutions read is loaded as the patches that their window meets.

    x (1, C, H, W)                         x' (1, KH * KW * C, OH, OW), patches of x
    y = Conv KHxKW(x)                ->    y = Conv 1x1(x')

An array of R rows multiplies R input channels at a time, and a first layer has one or three. Loading is the
host's, who can as well write each pixel as often as windows meet it. Rows or columns of the window alone can go into
the channels, too: the other axis stays a window of the convolution.
"""

import dataclasses

from ..ir.graph import Array8, Conv, Graph, Op
from ..program.kept import Kept, Patches, Shape
from ..program.variant import Variant

Axes = tuple[bool, bool]
WINDOWS: tuple[Axes, ...] = ((True, True), (False, True), (True, False))
"""Which axes, rows and columns, go into the channels: the whole window, its columns, its rows."""


def as_im2col(graph: Graph, axes: Axes) -> Variant | None:
    """The graph with the `axes` of the windows on its inputs as channels; None if that changes nothing.

    An input qualifies if only convolutions of one window, without groups, read it, if that window is larger than 1
    along each of the axes, and if the input is no output of the model.
    """
    outputs = {port.tensor for port in graph.outputs}
    readers: dict[str, list[Op]] = {port.tensor: [] for port in graph.inputs if port.tensor not in outputs}
    for op in graph.ops:
        for name in readers.keys() & op.inputs:
            readers[name].append(op)
    tensors = dict(graph.tensors)
    kept: dict[str, tuple[Kept, Shape]] = {}
    for name, of_input in readers.items():
        window = _window(of_input, axes)
        if window is None:
            continue
        x = graph.tensors[name]
        kept[name] = window, x.shape
        tensors[name] = dataclasses.replace(x, shape=window.kept(x.shape))
    ops = [_convolved(op, axes) if isinstance(op, Conv) and op.inputs[0] in kept else op for op in graph.ops]
    return Variant(dataclasses.replace(graph, tensors=tensors, ops=ops), kept) if kept else None


def _window(readers: list[Op], axes: Axes) -> Patches | None:
    """The window along `axes` that all readers of an input share, if it qualifies."""
    windows = set()
    for op in readers:
        if not isinstance(op, Conv) or op.groups > 1:
            return None
        kernel = op.weight.shape[2], op.weight.shape[3]
        if any(packed and size == 1 for packed, size in zip(axes, kernel, strict=True)):
            return None
        windows.add((kernel, op.strides, op.dilations, op.pads))
    if len(windows) != 1:
        return None
    kernel, strides, dilations, pads = windows.pop()
    return Patches(
        _along(axes, kernel),
        _along(axes, strides),
        _along(axes, dilations),
        (pads[0] * axes[0], pads[1] * axes[1], pads[2] * axes[0], pads[3] * axes[1]),
    )


def _along(axes: Axes, numbers: tuple[int, int]) -> tuple[int, int]:
    """The numbers of the axes; 1 for the others."""
    rows, cols = numbers
    return rows if axes[0] else 1, cols if axes[1] else 1


def _convolved(op: Conv, axes: Axes) -> Conv:
    """The convolution over patches: the window's `axes` are channels, ``(kh * KW + kw) * C + c``."""
    others = not axes[0], not axes[1]
    top, left, bottom, right = op.pads
    return dataclasses.replace(
        op,
        weight=_weights(op.weight, axes),
        strides=_along(others, op.strides),
        dilations=_along(others, op.dilations),
        pads=(top * others[0], left * others[1], bottom * others[0], right * others[1]),
    )


def _weights(weight: Array8, axes: Axes) -> Array8:
    outputs, channels, kh, kw = weight.shape
    inner_h, inner_w = _along(axes, (kh, kw))
    outer_h, outer_w = kh // inner_h, kw // inner_w
    split = weight.reshape(outputs, channels, inner_h, outer_h, inner_w, outer_w)
    return split.transpose(0, 2, 4, 1, 3, 5).reshape(outputs, inner_h * inner_w * channels, outer_h, outer_w)
