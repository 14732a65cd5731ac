"""ConvTranspose: one convolution per phase of the result's pixels, then the phases put in place.

    y[s t + r] = sum over taps k with (r + p - d k) divisible by s of  x[t + (r + p - d k) / s] * w[k]

For each phase r the taps that take part are a constant distance apart, so a phase is a convolution of x with some of
the weights in reverse order; where it begins after x's start, or ends before x's end, its padding is negative.
"""

from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from ...ir.graph import Array8, Copy, Piece, Tensor
from ...onnxmodel.nodes import Node
from ...onnxmodel.shapes import Shape
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..values import AxisMoves, Const, Ints, QuantConst, QuantizerTarget, Unquantized, Value
from .affine_sum import MOST_PARTS, Affine
from .arrange import materialise
from .conv_gemm_matmul import weights
from .operands import plain
from .window import Window

MOST_PHASES = 16
"""Strides of 4 x 4. Each phase is a convolution with weights and drains of its own and a piece of the Copy behind, so
a result of many phases costs more in instructions than in products. Not measured: models have strides of 2."""


@dataclass(frozen=True)
class Phase:
    """Along one axis: the taps in the order of the input, the step between their inputs, padding, and positions."""

    taps: tuple[int, ...]
    step: int
    before: int
    after: int
    count: int


def phase(size: int, wanted: int, first: int, stride: int, dilation: int, kernel: int, before: int) -> Phase:
    """Positions ``first, first + stride, ...`` of `wanted`; without taps that meet the input, it is all zeros."""
    count = -(-(wanted - first) // stride)
    met = [k for k in range(kernel - 1, -1, -1) if (first + before - dilation * k) % stride == 0]
    step = dilation // gcd(dilation, stride)
    if met:
        start = (first + before - dilation * met[0]) // stride
        end = start + count - 1 + step * (len(met) - 1)
        if start < size and end >= 0:
            return Phase(tuple(met), step, -start, end + 1 - size, count)
    return Phase((), 1, 0, count - size, count)


@dataclass(frozen=True)
class Transposed:
    """A transposed convolution that waits for its result's scale; `weight` is ``[O, I / groups, KH, KW]``."""

    context: Context
    name: str
    tensor: Tensor
    weight: Ints | Array8
    scale: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
    bias: Const | QuantConst | None
    groups: int
    strides: tuple[int, int]
    phases: tuple[tuple[Phase, ...], tuple[Phase, ...]]

    def finish(self, result: QuantizerTarget) -> Tensor:
        """Add the convolutions and what interleaves them."""
        parts: list[Tensor] = []
        pieces: list[Piece] = []
        for y, down in enumerate(self.phases[0]):
            for x, across in enumerate(self.phases[1]):
                alone = len(self.phases[0]) == len(self.phases[1]) == 1
                tensor = self._convolved(down, across, result, "" if alone else f".phase{y}.{x}")
                if alone:
                    return tensor
                grid = (down.count, across.count, y, x, *self.strides)
                pieces.append(Piece(len(parts), 0, across.count, 1, *grid))
                parts.append(tensor)
        height, width = (sum(part.count for part in axis) for axis in self.phases)
        shape = (1, len(self.weight), height, width)
        names = tuple(part.name for part in parts)
        made = Copy(self.name, names, result.name, result.nodes, tuple(pieces))
        return self.context.put(made, shape, result.scale, result.zero_point)

    def _convolved(self, down: Phase, across: Phase, result: QuantizerTarget, suffix: str) -> Tensor:
        taps = [axis.taps or (0,) for axis in (down, across)]
        weight = self.weight[:, :, taps[0]][:, :, :, taps[1]]
        if not down.taps or not across.taps:
            weight = np.zeros_like(weight)
        window = Window(
            (len(taps[0]), len(taps[1])),
            (1, 1),
            (down.step, across.step),
            (down.before, across.before, down.after, across.after),
        )
        made = Affine(self.context, self.name + suffix, self.tensor, weight, self.scale, self.bias, window, self.groups)
        return made.finish(replace(result, name=result.name + suffix))


def conv_transpose(context: Context, node: Node) -> Value:
    """ConvTranspose with constant weights, 1-D or 2-D."""
    found, name = node.attributes, node.label
    x = plain(context, node, 0)
    groups = int(found.get("group", 1))
    q, scale = weights(context.required(node, 1), 1, name, MOST_PARTS)
    rank = q.ndim - 2
    if len(x.shape) != q.ndim or rank not in (1, 2) or groups < 1 or q.shape[0] != x.shape[1] or q.shape[0] % groups:
        raise BlockedError(f"weights {list(q.shape)} in {groups} groups do not fit an input {list(x.shape)}")
    bias = context.operand(node, 2)
    if bias is not None and not isinstance(bias, (Const, QuantConst)):
        raise BlockedError("the bias is not constant")
    strides = _listed(found, "strides", rank, 1)
    dilations = _listed(found, "dilations", rank, 1)
    if int(np.prod(strides)) > MOST_PHASES:
        raise BlockedError(f"strides {list(strides)} make more than {MOST_PHASES} phases")
    befores, wanted = _placed(found, x.shape[2:], q.shape[2:], strides, dilations, context.shapes.get(node.output[0]))
    phases = [
        tuple(
            phase(x.shape[2 + a], wanted[a], r, strides[a], dilations[a], q.shape[2 + a], befores[a])
            for r in range(min(strides[a], wanted[a]))
        )
        for a in range(rank)
    ]
    tensor = materialise(context, x)
    if rank == 1:
        phases.insert(0, (Phase((0,), 1, 0, 0, 1),))
    made = Transposed(
        context,
        name,
        tensor,
        _by_output(q, groups, rank),
        np.tile(scale, groups),
        bias,
        groups,
        (1, strides[0]) if rank == 1 else (strides[0], strides[1]),
        (phases[0], phases[1]),
    )
    shape = (1, q.shape[1] * groups, *wanted)
    form = (1, shape[1], 1, wanted[0]) if rank == 1 else (1, shape[1], wanted[0], wanted[1])
    return Unquantized(made.finish, AxisMoves.of(form, shape), (name,))


def _by_output(q: Ints | Array8, groups: int, rank: int) -> Ints | Array8:
    """Weights ``[I, O / groups, ...]`` as ``[O, I / groups, KH, KW]``."""
    split = q.reshape(groups, q.shape[0] // groups, *q.shape[1:]).swapaxes(1, 2)
    kernel = q.shape[2:] if rank == 2 else (1, *q.shape[2:])
    return split.reshape(groups * q.shape[1], q.shape[0] // groups, *kernel)


def _listed(found: dict[str, object], name: str, rank: int, default: int) -> Shape:
    given = found.get(name)
    values = tuple(int(v) for v in given) if isinstance(given, (list, tuple)) else (default,) * rank
    if len(values) != rank or min(values) < default:
        raise BlockedError(f"{name} {list(values)} do not fit {rank} dimensions")
    return values


def _placed(
    found: dict[str, object], size: Shape, kernel: Shape, strides: Shape, dilations: Shape, inferred: Shape | None
) -> tuple[Shape, Shape]:
    """Padding before, and the result's size, of each axis."""
    rank = len(size)
    added = _listed(found, "output_padding", rank, 0)
    full = tuple(strides[a] * (size[a] - 1) + added[a] + dilations[a] * (kernel[a] - 1) + 1 for a in range(rank))
    auto = found.get("auto_pad", "NOTSET") or "NOTSET"
    if auto == "NOTSET" and "output_shape" not in found:
        pads = _listed(found, "pads", 2 * rank, 0)
        befores = pads[:rank]
        wanted = tuple(full[a] - pads[a] - pads[rank + a] for a in range(rank))
    elif auto == "VALID" and "output_shape" not in found:
        befores, wanted = (0,) * rank, full
    else:
        wanted = tuple(min(size[a] * strides[a], full[a]) for a in range(rank))
        if "output_shape" in found:
            wanted = _listed(found, "output_shape", rank, 1)
        total = [full[a] - wanted[a] for a in range(rank)]
        if min(total) < 0:
            raise BlockedError("output_shape is larger than the kernel reaches", "use output_padding")
        befores = tuple(t // 2 if auto == "SAME_UPPER" else t - t // 2 for t in total)
    if min(wanted) < 1 or (inferred is not None and inferred[2:] != wanted):
        raise BlockedError(f"its result has the shape {list(wanted)}, onnx infers {inferred}")
    return befores, wanted


HANDLERS: Handlers = {("", "ConvTranspose"): conv_transpose}
