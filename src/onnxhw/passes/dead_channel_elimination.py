"""`eliminate_dead_channels`: channels that hold one value whatever the input are not computed.

    h = Conv(x)      channel 3 has no weights: it is requantize(bias[3]) everywhere
    y = Conv(h)
    ->
    h' = Conv(x)     without channel 3
    y = Conv(h')     bias + sum over taps of weight[:, 3] * (constant - zero point)

A constant other than the zero point is seen at the border of a padded window, where it stops. There the sum is not
the same for all pixels, and the channel stays. What each operation can do without is its own to say
(`Operation.restore_channels`, `select`).
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from ..fixed import Ints
from ..ir.channels import VARIES, Mask
from ..ir.graph import Graph, Op
from ..program.storage import ElidedChannels, Shape, StorageFormat
from ..program.variant import Variant
from .constant_channels_last import constant_channels_last
from .constant_propagation import constant_channels, has_constants


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
        values, orders = [known[name] for name in op.inputs], [order[name] for name in op.inputs]
        reduced = op.select(values, graph.operands(op), orders, order[op.output])
        if reduced is None:
            return None
        ops.append(reduced)
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
        values, masks = [known[name] for name in op.inputs], [drop[name] for name in op.inputs]
        op.restore_channels(values, graph.operands(op), masks, drop[op.output])
        for name, count in zip(names, before, strict=True):
            drop[name][0] &= not drop[name].all()
            if drop[name].sum() < count:
                pending |= dict.fromkeys(user.name for user in users[name])
    return drop
