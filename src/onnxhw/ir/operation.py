"""`Operation`: what the compiler asks of an operation of the integer graph. Each in `ops` is its whole specification.

An operation names its operands and its result and carries its constants. `check` says which operands it takes,
`evaluate` what it means, in exact integers; the other members tell passes and scheduler what they may do with it, and
have the careful answer unless an operation says more.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import numpy.typing as npt

from ..errors import InternalError
from ..fixed import INT8_MAX, INT8_MIN, Ints
from .windows import ONE_PIXEL, Window

Array8 = npt.NDArray[np.int8]
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
    elementwise : every element of the result is a function of the operands' elements at its place.
    """

    name: str
    inputs: tuple[str, ...]
    output: str
    nodes: tuple[str, ...] = ()

    moves = False
    elementwise = False

    @property
    def where(self) -> str:
        """For messages."""
        return f"node {self.name!r} ({type(self).__name__})"

    @property
    def window(self) -> Window:
        """The window through which a pixel of the result sees the operands: one pixel, unless it slides a kernel."""
        return ONE_PIXEL

    @property
    def channelwise(self) -> bool:
        """Whether channel c of the result is made of channel c of each operand alone."""
        return self.elementwise

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

    def range(self, inputs: Sequence[Interval]) -> Interval:
        """What the clamp leaves."""
        return self.lo, self.hi

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
