"""The typed integer graph: what a model means to the hardware, in integers.

Every tensor here is int8, rank 4, batch 1: ``(1, C, H, W)``. A matrix ``[1, K]`` is ``(1, K, 1, 1)``;
uint8 tensors are shifted by 128 when the graph is made. Operations are listed in topological order and
each names its operands by tensor name. The host's part (quantize at the inputs, dequantize and
softmax at the outputs) is described by `Port`.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array8 = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Tensor:
    """An int8 activation: ``real = (q - zero_point) * scale``."""

    name: str
    shape: tuple[int, int, int, int]
    scale: float
    zero_point: int

    @property
    def channels(self) -> int:
        """C."""
        return self.shape[1]

    @property
    def height(self) -> int:
        """H."""
        return self.shape[2]

    @property
    def width(self) -> int:
        """W."""
        return self.shape[3]


@dataclass(frozen=True)
class Op:
    """Base of the operations. `nodes`: the ONNX nodes it stands for, for messages and reports."""

    name: str
    inputs: tuple[str, ...]
    output: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conv(Op):
    """2-D convolution, also every Gemm and MatMul with constant weights.

    ``acc[o, y, x] = bias[o] + sum((in[i] - zero_point) * weight[o, i, kh, kw])``, then
    `onnxhw.fixed.requantize` with ``multiplier[o]``, clamped to ``lo .. hi``. `weight` is int8
    ``[O, I / groups, KH, KW]`` with zero point 0, `bias` int32 ``[O]``, `multiplier` float32 ``[O]``.
    Positions in the padding contribute nothing. `pads` is (top, left, bottom, right); a negative one leaves out
    as many rows or columns of the input.
    """

    weight: Array8 = field(default_factory=lambda: np.zeros((0, 0, 0, 0), np.int8))
    bias: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    multiplier: npt.NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True)
class Add(Op):
    """``onnxhw.fixed.add``: `ratio_a` = scale of the first input / scale of the output, `ratio_b` alike."""

    ratio_a: float = 1.0
    ratio_b: float = 1.0
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True)
class Mul(Op):
    """``onnxhw.fixed.multiply``; an operand of height and width 1 is broadcast over the other's pixels."""

    ratio: float = 1.0
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True)
class MatMul(Op):
    """A product of two activations per channel: ``(1, H, M, K) @ (1, H, K, N)``, the result ``(1, H, M, N)``.

    ``acc[h, m, n] = sum over k of (a[h, m, k] - za) * (b[h, k, n] - zb)``, then `onnxhw.fixed.requantize` with
    `multiplier` (a float32: scales of the operands / scale of the result). With `transposed_a` the first operand lies
    as ``(1, H, K, M)``, with `transposed_b` the second as ``(1, H, N, K)``.
    """

    multiplier: float = 1.0
    transposed_a: bool = False
    transposed_b: bool = False
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True)
class MaxPool(Op):
    """Maximum over a window; output and input have the same scale and zero point."""

    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)


@dataclass(frozen=True)
class AveragePool(Op):
    """``onnxhw.fixed.average`` over a window; `ratio` = input scale / output scale.

    With `count_pad` positions in the padding count as zeros, else they are not counted. A global average
    pool is a window of the whole input.
    """

    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    ratio: float = 1.0
    count_pad: bool = False
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True)
class Table(Op):
    """Any int8 -> int8 function: ``out = table[in + 128]``, int8 ``[256]``."""

    table: Array8 = field(default_factory=lambda: np.arange(-128, 128).astype(np.int8))


@dataclass(frozen=True)
class Concat(Op):
    """Concatenation along the channels; all inputs have the output's scale and zero point."""


@dataclass(frozen=True)
class Reshape(Op):
    """Same elements in ONNX (C, H, W) order under another shape; free when a layout exists for it."""


@dataclass(frozen=True)
class Piece:
    """Pixels of one input put into the result: a grid of `rows` x `cols` of them.

    Pixel (i, j) of the grid is pixel ``start + i * row + j * col`` of input `source`, counted row by row, and
    becomes pixel ``(y + i * dy, x + j * dx)`` of the result.
    """

    source: int
    start: int
    row: int
    col: int
    rows: int
    cols: int
    y: int = 0
    x: int = 0
    dy: int = 1
    dx: int = 1


@dataclass(frozen=True)
class Copy(Op):
    """Pixels of the inputs, with all their channels, in a new arrangement: what slices, joins, repeats or turns planes.

    No two `pieces` write the same pixel; pixels that none writes hold `fill`. All tensors have the same channels,
    scale and zero point.
    """

    pieces: tuple[Piece, ...] = ()
    fill: int = 0

    def index(self, inputs: list[Tensor], y: Tensor) -> npt.NDArray[np.int64]:
        """``[H, W]``: which pixel each pixel of the result is, counted through all inputs; -1 where it is `fill`."""
        first = np.cumsum([0, *(tensor.height * tensor.width for tensor in inputs)])
        index = np.full(y.shape[2:], -1, np.int64)
        for piece in self.pieces:
            i, j = np.arange(piece.rows)[:, None], np.arange(piece.cols)
            index[piece.y + i * piece.dy, piece.x + j * piece.dx] = (
                first[piece.source] + piece.start + i * piece.row + j * piece.col
            )
        return index


@dataclass(frozen=True)
class Port:
    """A model input or output as its user sees it, and the host steps between it and the hardware.

    `steps` are ONNX node descriptions executed on the host by `onnxhw.golden.host`, in order: for an input
    from the model's input to the int8 tensor, for an output from the int8 tensor to the model's output.
    Each is a dict ``{"op": ..., "name": ..., attributes...}`` of JSON values.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    tensor: str
    steps: tuple[dict[str, Any], ...] = ()


@dataclass
class Graph:
    """A model: tensors by name, operations in order, inputs and outputs."""

    name: str
    tensors: dict[str, Tensor]
    ops: list[Op]
    inputs: list[Port]
    outputs: list[Port]

    def macs(self) -> int:
        """Multiply-accumulates of all operations."""
        return sum(self.macs_of(op) for op in self.ops)

    def macs_of(self, op: Op) -> int:
        """Multiply-accumulates of a convolution, padding included, or of a product of activations; of others 0."""
        out = self.tensors[op.output]
        if isinstance(op, Conv):
            return int(op.weight.size) * out.height * out.width
        if isinstance(op, MatMul):
            a = self.tensors[op.inputs[0]]
            return a.channels * a.height * a.width * out.width
        return 0
