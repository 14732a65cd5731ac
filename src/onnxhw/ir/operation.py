"""`Operation`: what the compiler asks of an operation of the integer graph. Each in `ops` is its whole specification.

An operation names its operands and its result and carries its constants. `check` says which operands it takes,
`evaluate` what it means, in exact integers; the other members tell passes and scheduler what they may do with it, and
have the careful answer unless an operation says more.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ..errors import InternalError
from ..fixed import INT8_MAX, INT8_MIN, Ints
from .boxes import Box
from .channels import VARIES, Mask, Order, constant_planes
from .windows import ONE_PIXEL, Pads, Window

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11

Array8 = npt.NDArray[np.int8]
NONE: Array8 = np.zeros((0, 0, 0, 0), np.int8)
"""The constants of an operation that has none of the kind."""
Interval = tuple[int, int]
"""Smallest and largest value, both included."""


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
class Operation(ABC):
    """Base of the operations. `nodes`: the ONNX nodes it stands for, for messages and reports.

    Members
    -------
    moves : it only moves elements: no value is computed from another.
    joins : the result is the operands' elements in (C, H, W) order, one operand after the other.
    elementwise : every element of the result is a function of the operands' elements at its place.
    clamps : its `range` is the same whatever the operands.
    weight : what memory keeps of its weights, int8 ``[O, ...]``.
    table : int8 ``[256]``, if it is a function of the elements of one operand by a table.
    """

    name: str
    inputs: tuple[str, ...]
    output: str
    nodes: tuple[str, ...] = ()

    moves = False
    joins = False
    elementwise = False
    clamps = False
    weight = NONE
    table = NONE

    @property
    def where(self) -> str:
        """For messages."""
        return f"node {self.name!r} ({type(self).__name__})"

    @property
    def window(self) -> Window:
        """The window through which a pixel of the result sees the operands: one pixel, unless it slides a kernel."""
        return ONE_PIXEL

    @property
    def taps(self) -> int:
        """Steps over the kernel that `evaluate` takes, 0 if it slides none."""
        return 0

    @property
    def channelwise(self) -> bool:
        """Whether channel c of the result is made of channel c of each operand alone."""
        return self.elementwise

    @property
    def any_order(self) -> bool:
        """Whether the channels of operand and result may each have an order of their own: `select` takes any."""
        return False

    @abstractmethod
    def check(self, inputs: list[Tensor], y: Tensor) -> None:
        """`InternalError` E1302 unless operands, constants and result agree."""

    @abstractmethod
    def evaluate(self, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
        """The definition: int64 values in -128..127 ``[N, C, H, W]`` from operands int8 ``[N, C, H, W]``, of which
        `inputs` tell the zero points. All arithmetic that rounds is `onnxhw.fixed`'s."""

    def range(self, inputs: Sequence[Interval]) -> Interval:
        """Which values the result can have if the operands have these."""
        return INT8_MIN, INT8_MAX

    def macs(self, inputs: list[Tensor], y: Tensor) -> int:
        """Multiply-accumulates."""
        return 0

    def least_macs(self, inputs: list[Tensor], y: Tensor) -> int:
        """Those of them that no schedule leaves out."""
        return self.macs(inputs, y)

    def constant_channels(self, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
        """Per channel of the result the value that all its elements have, else `VARIES`; `known`: of the operands.

        Constant where all operands are and what is made of them is the same at all pixels.
        """
        if not self.channelwise:
            return np.full(y.channels, VARIES, np.int64)
        varies = np.logical_or.reduce([values == VARIES for values in known])
        planes = [
            np.broadcast_to(np.where(varies, x.zero_point, values).astype(np.int8)[:, None, None], x.shape)
            for values, x in zip(known, inputs, strict=True)
        ]
        made = constant_planes(self.evaluate(planes, inputs, y).reshape(y.channels, -1))
        return np.where(varies, VARIES, made)

    def restore_channels(self, known: list[Ints], inputs: list[Tensor], drop: list[Mask], y: Mask) -> None:
        """Take back, in `drop` of the operands and `y` of the result, which constant channels it cannot do without."""
        masks = [y, *drop]
        both = np.logical_and.reduce(masks) if self.channelwise else False
        for mask in masks:
            mask &= both

    def select(self, known: list[Ints], inputs: list[Tensor], orders: list[Order], y: Order) -> "Self | None":
        """The operation between the channels that stay; None if there is none."""
        return self

    def padding(self, inputs: list[Tensor], y: Tensor) -> Pads | None:
        """The padding with zero points that it amounts to, negative where it cuts; None if it does anything else."""
        return None

    def padded(self, pads: Pads) -> "Self | None":
        """The operation on its operand with that padding taken away; None if it cannot pad so."""
        return None

    def clamped(self, lo: int, hi: int) -> "Self | None":
        """The operation with its results clamped to ``lo .. hi``, too; None if it has no clamp."""
        return None

    @property
    def crops(self) -> tuple[bool, bool, bool]:
        """Whether `part` can cut the result along channels, rows and columns."""
        return self.elementwise, self.elementwise, self.elementwise

    def needed(self, box: Box, inputs: list[Tensor], y: Tensor) -> list[Box]:
        """Of each operand the box that a box of the result is made of; empty where the operand has no part in it."""
        if not self.elementwise:
            return [Box.whole(x.shape) for x in inputs]
        return [
            Box(*((0, 1) if size == 1 else span for span, size in zip(box.spans, x.shape[1:], strict=True)))
            for x in inputs
        ]

    def part(self, box: Box, inputs: list[Tensor], y: Tensor) -> "Self | None":
        """The operation that makes this box of the result alone, out of the boxes `needed` of the operands that have a
        part in it; None if there is none."""
        return self if self.elementwise or box == Box.whole(y.shape) else None

    def reading(self, inputs: tuple[str, ...], output: str) -> "Self":
        """The operation between other tensors, for no node: what `dataclasses.replace` makes, without its checks."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, inputs=inputs, output=output, nodes=())
        return made

    def require(self, holds: bool, what: str, *values: object) -> None:
        """E1302 unless it holds; `what` is only formatted then, for that takes longer than to look."""
        if not holds:
            raise InternalError("E1302", what.format(*values), where=self.name)

    def require_count(self, inputs: list[Tensor], wanted: int) -> None:
        """E1302 unless there are so many operands."""
        self.require(len(inputs) == wanted, "must have {} operands, not {}", wanted, len(inputs))

    def require_positive(self, what: str, *factors: float) -> None:
        """E1302 unless the factors are finite and positive."""
        self.require(all(isfinite(factor) and factor > 0 for factor in factors), f"{what} must be positive")

    def require_same_scale(self, inputs: list[Tensor], y: Tensor) -> None:
        """E1302 unless all tensors have one scale and zero point."""
        same = all((x.scale, x.zero_point) == (y.scale, y.zero_point) for x in inputs)
        self.require(same, "operands must have the result's scale and zero point")

    def require_window(self, x: Tensor, y: Tensor) -> None:
        """E1302 unless the result has the size that the window gives."""
        window, (top, left, bottom, right) = self.window, self.window.pads
        self.require(min(*window.strides, *window.dilations, *window.kernel) >= 1, "window is not positive")
        left_out = max(0, -top) + max(0, -bottom) < x.height and max(0, -left) + max(0, -right) < x.width
        self.require(left_out, "pads {} leave nothing of the input", window.pads)
        size = window.size((x.height, x.width))
        self.require(size == y.shape[2:], "result must be {} x {}, not {} x {}", *size, *y.shape[2:])


class Clamped(Operation):
    """An operation whose result is clamped to ``lo .. hi``, whatever the operands."""

    lo: int
    hi: int
    clamps = True

    def range(self, inputs: Sequence[Interval]) -> Interval:
        """What the clamp leaves."""
        return self.lo, self.hi

    def clamped(self, lo: int, hi: int) -> "Self | None":
        whole: Any = self  # `lo` and `hi` are fields of each
        low, high = (min(max(end, lo), hi) for end in (self.lo, self.hi))
        return cast("Self", replace(whole, lo=low, hi=high))

    def require_clamp(self) -> None:
        """E1302 unless ``lo .. hi`` is a range of int8."""
        holds = INT8_MIN <= self.lo <= self.hi <= INT8_MAX
        self.require(holds, "lo..hi must be a range inside -128..127, not {}..{}", self.lo, self.hi)


def hull(inputs: Sequence[Interval]) -> Interval:
    """The values that any of these has: the range of what only chooses among its operands' elements."""
    return min(low for low, _ in inputs), max(high for _, high in inputs)


def centred(arrays: list[Array8], inputs: list[Tensor]) -> list[Ints]:
    """The values less their zero points."""
    return [x.astype(np.int64) - tensor.zero_point for x, tensor in zip(arrays, inputs, strict=True)]
