"""`Conv`: convolution with constant weights."""

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ... import fixed
from ...fixed import Ints
from ..boxes import Box, Span, window_view
from ..channels import VARIES, Mask, Order, spans_padding
from ..operation import Array8, Clamped, Operation, Tensor
from ..windows import Pads, Window, joined_pads

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11

INT8, INT32, FLOAT32 = np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.float32)
"""Types, as arrays have them: quicker to compare."""


@dataclass(frozen=True)
class Conv(Clamped):
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
    pads: Pads = (0, 0, 0, 0)
    groups: int = 1
    lo: int = -128
    hi: int = 127

    @cached_property
    def window(self) -> Window:
        return Window((self.weight.shape[2], self.weight.shape[3]), self.strides, self.dilations, self.pads)

    @property
    def taps(self) -> int:
        return prod(self.window.kernel)

    @property
    def channelwise(self) -> bool:
        """Depthwise, one output channel for each input channel."""
        return self.weight.shape[:2] == (self.groups, 1)

    @property
    def any_order(self) -> bool:
        """Without groups."""
        return self.groups == 1

    @property
    def tiles(self) -> "tuple[PackedTile, ...]":
        """How the operand is read, if it is packed."""
        return ()

    @property
    def pitch(self) -> tuple[int, int]:
        """Bytes from one position to the next, if it is packed."""
        return 0, 0

    def streamed(self) -> npt.NDArray[np.bool_]:
        """Of each input channel as the array streams it, whether it has elements of the model."""
        return np.ones(self.weight.shape[1] * self.groups, bool)

    def check(self, inputs: list[Tensor], y: Tensor) -> None:
        self.require_count(inputs, 1)
        weight, channels = self.weight, inputs[0].channels
        whole = weight.dtype == INT8 and weight.ndim == 4
        self.require(whole, "weights must be int8 of rank 4, not {}", weight.dtype)
        divided = self.groups >= 1 and weight.shape[0] % self.groups == 0
        self.require(divided, "groups {} do not divide the outputs", self.groups)
        taken, made = weight.shape[1] * self.groups, weight.shape[:1]
        self.require(taken == channels, "weights take {} channels, not {}", taken, channels)
        self.require(made == (y.channels,), "weights make {} channels, not {}", *made, y.channels)
        self.require(self.bias.dtype == INT32 and self.bias.shape == made, "bias must be int32 [O]")
        scales = self.multiplier
        self.require(scales.dtype == FLOAT32 and scales.shape == made, "multiplier must be float32 [O]")
        self.require(_positive(scales.tobytes()), "multipliers must be finite and positive")
        self.require_window(inputs[0], y)
        self.require_clamp()

    def evaluate(self, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
        sums = accumulate(self, arrays[0], inputs[0]) + self.bias.astype(np.int64)[:, None, None]
        return fixed.requantize(sums, self.multiplier[:, None, None], y.zero_point, self.lo, self.hi)

    def macs(self, inputs: list[Tensor], y: Tensor) -> int:
        """Padding included."""
        return int(self.weight.size) * y.height * y.width

    def least_macs(self, inputs: list[Tensor], y: Tensor) -> int:
        """Those of weights other than 0."""
        return int(np.count_nonzero(self.weight)) * y.height * y.width

    def constant_channels(self, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
        """Constant where weights meet no channel that varies and, at taps that padding can reach, none but zero
        points."""
        (x,), (values,) = inputs, known
        outputs, depth = self.weight.shape[:2]
        values = values[np.arange(outputs)[:, None] // (outputs // self.groups) * depth + np.arange(depth)]
        centred = np.where(values == VARIES, 0, values - x.zero_point)
        met = self.weight.any(axis=(2, 3))
        cut = self.weight[:, :, self._spans_padding(x)].any(axis=2)
        varies = ((values == VARIES) & met | (centred != 0) & cut).any(1)
        sums = self.bias + (self.weight.astype(np.int64).sum(axis=(2, 3)) * centred).sum(1)
        return np.where(varies, VARIES, fixed.requantize(sums, self.multiplier, y.zero_point, self.lo, self.hi))

    def restore_channels(self, known: list[Ints], inputs: list[Tensor], drop: list[Mask], y: Mask) -> None:
        """Inputs go if the outputs that stay can have them in their bias; with groups, whole groups go or stay."""
        (x,), (mine,) = inputs, drop
        if self.groups == 1:
            cut = self.weight[~y][:, :, self._spans_padding(x)].any(axis=(0, 2))
            mine &= ~cut | (known[0] == x.zero_point)
            return
        gone = mine.reshape(self.groups, -1).all(1) & y.reshape(self.groups, -1).all(1)
        mine &= np.repeat(gone, len(mine) // self.groups)
        y &= np.repeat(gone, len(y) // self.groups)

    def select(self, known: list[Ints], inputs: list[Tensor], orders: list[Order], y: Order) -> "Self | None":
        """None if a bias would leave int32."""
        weight, bias = self.weight[y], self.bias[y].astype(np.int64)
        if self.groups == 1:
            centred = known[0] - inputs[0].zero_point
            centred[orders[0]] = 0
            bias = bias + weight.astype(np.int64).sum(axis=(2, 3)) @ centred
            weight = weight[:, orders[0]]
        if np.abs(bias).max() >= 1 << 31:
            return None
        groups = self.groups if self.groups == 1 else self.groups * len(weight) // len(self.weight)
        scales = self.multiplier[y]
        return replace(self, weight=weight, bias=bias.astype(np.int32), multiplier=scales, groups=groups)

    def padded(self, pads: Pads) -> "Self | None":
        joined = joined_pads(pads, self.pads)
        return joined and replace(self, pads=joined)

    @property
    def crops(self) -> tuple[bool, bool, bool]:
        return True, True, True

    def needed(self, box: Box, inputs: list[Tensor], y: Tensor) -> list[Box]:
        """All input channels of the groups that the box meets."""
        (x,), depth = inputs, self.weight.shape[1]
        first, end = self._groups_of(box.channels)
        met = window_view(self.window, box, x.shape)
        rows, cols = met[:2] if met else ((0, 0), (0, 0))
        return [Box((first * depth, end * depth), rows, cols)]

    def part(self, box: Box, inputs: list[Tensor], y: Tensor) -> "Self | None":
        """None where a window meets only padding, or where the box has whole groups and a part of another."""
        met, (first, end) = window_view(self.window, box, inputs[0].shape), self._groups_of(box.channels)
        each = len(self.weight) // self.groups
        if met is None or (end - first > 1 and box.channels != (first * each, end * each)):
            return None
        mine = slice(*box.channels)
        return replace(
            self, weight=self.weight[mine], bias=self.bias[mine], multiplier=self.multiplier[mine], pads=met[2],
            groups=end - first,
        )  # fmt: skip

    def _groups_of(self, channels: Span) -> Span:
        """The groups that make these channels of the result."""
        each = len(self.weight) // self.groups
        return channels[0] // each, -(-channels[1] // each)

    def _spans_padding(self, x: Tensor) -> Mask:
        return spans_padding(self.window, (x.height, x.width))


@dataclass(frozen=True)
class PackedTile:
    """What one read of a packed operand brings: bytes from `first` on, those from lane `split` on `jump` words further;
    `split` 0: there is no jump."""

    first: int
    split: int = 0
    jump: int = 0


@dataclass(frozen=True)
class PackedConv(Conv):
    """A convolution whose operand's elements are bytes in a row: the W channels of n pixels, one pixel after the other.

    `weight` is ``[O, T * W, 1, 1]``: channel ``t * W + lane`` of the result's pixel (y, x) meets byte
    ``first + y * pitch[0] + x * pitch[1] + lane``, and `jump` * W bytes further from lane `split` of tile t on.
    """

    pitch: tuple[int, int] = (1, 1)
    tiles: tuple[PackedTile, ...] = ()
    elements: tuple[bool, ...] = ()
    """Whether channel ``t * W + lane`` meets an element of the window; the weights of others are 0."""

    crops = Operation.crops
    needed = Operation.needed
    part = Operation.part

    def streamed(self) -> npt.NDArray[np.bool_]:
        return np.array(self.elements, bool)

    def operand(self, x: Tensor, y: Tensor) -> Tensor:
        """The tensor ``(1, T * W, OH, OW)`` of what is read."""
        return replace(x, shape=(1, len(self.tiles) * x.channels, y.height, y.width))

    def reads(self, x: Tensor, y: Tensor) -> Ints:
        """Which bytes are read: ``[T, W, OH, OW]``."""
        lane = np.arange(x.channels)
        offsets = [tile.first + lane + (lane >= tile.split) * (tile.split > 0) * tile.jump * x.channels
                   for tile in self.tiles]  # fmt: skip
        rows, cols = np.arange(y.height)[:, None] * self.pitch[0], np.arange(y.width) * self.pitch[1]
        return np.array(offsets, np.int64)[:, :, None, None] + rows + cols

    def check(self, inputs: list[Tensor], y: Tensor) -> None:
        self.require_count(inputs, 1)
        (x,) = inputs
        self.require(bool(self.tiles) and x.height == 1, "must read bytes in a row")
        super().check([self.operand(x, y)], y)
        marked = len(self.elements) == self.weight.shape[1]
        marked = marked and not self.weight[:, ~np.array(self.elements, bool)].any()
        self.require(marked, "weights beyond the window must be 0")
        reads = self.reads(x, y)
        inside = int(reads.min()) >= 0 and int(reads.max()) < x.channels * x.width
        self.require(inside, "reads bytes {} .. {} of {}", reads.min(), reads.max(), x.channels * x.width)

    def evaluate(self, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
        (x,), operand = inputs, self.operand(inputs[0], y)
        flat = arrays[0].transpose(0, 2, 3, 1).reshape(len(arrays[0]), -1)
        taken = flat[:, self.reads(x, y).reshape(operand.shape[1:])]
        return super().evaluate([taken], [operand], y)


@lru_cache(maxsize=256)
def _positive(scales: bytes) -> bool:
    """Are these float32 finite and positive? Operations that are alike have the same."""
    values = np.frombuffer(scales, np.float32)
    return bool((np.isfinite(values) & (values > 0)).all())


def accumulate(op: Conv, x: Array8, tensor: Tensor) -> Ints:
    """The sums of a convolution, without bias: int64 ``[N, O, OH, OW]``.

    Computed in floating point of a width in which every partial sum is exact, for the sake of BLAS.
    """
    reach = 128 + abs(tensor.zero_point)
    bound = int(np.abs(op.weight.astype(np.int64)).sum(axis=(1, 2, 3)).max()) * reach
    real: type[np.floating] = np.float32 if bound < 1 << 24 else np.float64
    outputs, depth, height, width = op.weight.shape
    weight = op.weight.astype(real).reshape(op.groups, outputs // op.groups, depth, height, width)
    values = x.astype(real) - real(tensor.zero_point)
    total: npt.NDArray[np.floating] | None = None
    for kh, kw, seen in op.window.taps(values, 0):
        n, _, rows, cols = seen.shape
        pixels = seen.reshape(n, op.groups, depth, rows * cols)
        tap = weight[:, :, :, kh, kw]
        part = tap * pixels if depth == 1 else tap @ pixels
        total = part if total is None else total + part
    assert total is not None
    return total.reshape(n, outputs, rows, cols).astype(np.int64)
