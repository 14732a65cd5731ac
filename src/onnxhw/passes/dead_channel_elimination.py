"""`eliminate_dead_channels`: channels that hold one value whatever the input are not computed.

    h = Conv(x)      channel 3 has no weights: it is requantize(bias[3]) everywhere
    y = Conv(h)
    ->
    h' = Conv(x)     without channel 3
    y = Conv(h')     bias + sum over taps of weight[:, 3] * (constant - zero point)

A constant other than the zero point is seen at the border of a padded window, where it stops. There the sum is not
the same for all pixels, and the channel stays (`spans_padding`).
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from ..fixed import Ints
from ..ir.graph import Concat, Conv, Graph, Op, Reshape, Tensor
from ..program.storage import ElidedChannels, Shape, StorageFormat
from ..program.variant import Variant
from .constant_channels_last import Order, constant_channels_last
from .constant_propagation import VARIES, constant_channels, has_constants, spans_padding

Mask = npt.NDArray[np.bool_]


def eliminate_dead_channels(graph: Graph) -> Variant | None:
    """The graph without the constant channels that nothing needs to see; None if that changes nothing.

    Every tensor keeps a channel at least. Tensors of the result are the model's less these channels, and constant
    ones that stay come last (`constant_channels_last`).
    """
    if not has_constants(graph):
        return None
    known = constant_channels(graph)
    drop = _droppable(graph, known)
    order = constant_channels_last(graph, known, drop)
    storage: dict[str, tuple[StorageFormat, Shape]] = {
        name: (ElidedChannels(_numbers(order[name]), _numbers(known[name][mask])), graph.tensors[name].shape)
        for name, mask in drop.items()
        if not np.array_equal(order[name], np.arange(len(mask)))
    }
    if not storage:
        return None
    tensors = {
        name: dataclasses.replace(tensor, shape=(1, len(order[name]), *tensor.shape[2:]))
        for name, tensor in graph.tensors.items()
    }
    ops: list[Op] = []
    for op in graph.ops:
        if isinstance(op, Conv):
            reduced = _reduced(op, graph.tensors[op.inputs[0]], known[op.inputs[0]], order)
            if reduced is None:
                return None
            op = reduced
        ops.append(op)
    return Variant(dataclasses.replace(graph, tensors=tensors, ops=ops), storage)


def _numbers(values: npt.NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def _droppable(graph: Graph, known: dict[str, Ints]) -> dict[str, Mask]:
    """Per tensor the channels to leave out: the largest choice with which every operation still means the same."""
    drop = {name: values != VARIES for name, values in known.items()}
    users: dict[str, list[Op]] = {name: [] for name in drop}
    for op in graph.ops:
        for name in {*op.inputs, op.output}:
            users[name].append(op)
    pending = dict.fromkeys(op.name for op in graph.ops)
    ops = {op.name: op for op in graph.ops}
    while pending:
        op = ops[next(iter(pending))]
        del pending[op.name]
        names = *op.inputs, op.output
        before = [drop[name].sum() for name in names]
        _agree(op, graph, known, drop)
        for name, count in zip(names, before, strict=True):
            drop[name][0] &= not drop[name].all()
            if drop[name].sum() < count:
                pending |= dict.fromkeys(user.name for user in users[name])
    return drop


def _agree(op: Op, graph: Graph, known: dict[str, Ints], drop: dict[str, Mask]) -> None:
    """Take back what one operation cannot do without."""
    y = drop[op.output]
    if isinstance(op, Conv):
        _agree_conv(op, graph.tensors[op.inputs[0]], known[op.inputs[0]], drop)
    elif isinstance(op, Concat):
        start = 0
        for name in op.inputs:
            mine = y[start : start + len(drop[name])]
            mine &= drop[name]
            drop[name] &= mine
            start += len(mine)
    elif isinstance(op, Reshape):
        x, pixels = drop[op.inputs[0]], graph.tensors[op.inputs[0]].height * graph.tensors[op.inputs[0]].width
        elements = np.repeat(x, pixels) & np.repeat(y, len(x) * pixels // len(y))
        x &= elements.reshape(len(x), -1).all(1)
        y &= elements.reshape(len(y), -1).all(1)
    else:
        masks = [y, *(drop[name] for name in op.inputs)]
        both = np.logical_and.reduce(masks) if op.channelwise else False
        for mask in masks:
            mask &= both


def _agree_conv(op: Conv, x: Tensor, known: Ints, drop: dict[str, Mask]) -> None:
    """Inputs go if the outputs that stay can have them in their bias; with groups, whole groups go or stay."""
    mine, y = drop[x.name], drop[op.output]
    if op.groups == 1:
        cut = op.weight[~y][:, :, spans_padding(op, x)].any(axis=(0, 2))
        mine &= ~cut | (known == x.zero_point)
        return
    gone = mine.reshape(op.groups, -1).all(1) & y.reshape(op.groups, -1).all(1)
    mine &= np.repeat(gone, len(mine) // op.groups)
    y &= np.repeat(gone, len(y) // op.groups)


def _reduced(op: Conv, x: Tensor, known: Ints, order: dict[str, Order]) -> Conv | None:
    """The convolution between the channels that stay, in their order; None if a bias would leave int32."""
    inputs, outputs = order[x.name], order[op.output]
    weight, bias = op.weight[outputs], op.bias[outputs].astype(np.int64)
    if op.groups == 1:
        centred = known - x.zero_point
        centred[inputs] = 0
        bias = bias + weight.astype(np.int64).sum(axis=(2, 3)) @ centred
        weight = weight[:, inputs]
    if np.abs(bias).max() >= 1 << 31:
        return None
    groups = op.groups if op.groups == 1 else op.groups * len(weight) // len(op.weight)
    return dataclasses.replace(
        op, weight=weight, bias=bias.astype(np.int32), multiplier=op.multiplier[outputs], groups=groups
    )
