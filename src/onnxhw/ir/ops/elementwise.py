"""`Add`, `Mul` and `Table`: operations on the elements at one place."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ... import fixed
from ...fixed import Ints
from ..operation import Array8, Clamped, Interval, Operation, Tensor, centred


@dataclass(frozen=True)
class Add(Clamped):
    """``onnxhw.fixed.add``: `ratio_a` = scale of the first input / scale of the output, `ratio_b` alike."""

    ratio_a: float = 1.0
    ratio_b: float = 1.0
    lo: int = -128
    hi: int = 127

    elementwise = True

    def check(self, inputs: list[Tensor], y: Tensor) -> None:
        self.require_count(inputs, 2)
        self.require(inputs[0].shape == inputs[1].shape == y.shape, "operands and result must have one shape")
        self.require_positive("ratio", self.ratio_a, self.ratio_b)
        self.require_clamp()

    def evaluate(self, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
        a, b = centred(arrays, inputs)
        return fixed.add(a, b, self.ratio_a, self.ratio_b, y.zero_point, self.lo, self.hi)


@dataclass(frozen=True)
class Mul(Clamped):
    """``onnxhw.fixed.multiply``; an operand of height and width 1 is broadcast over the other's pixels."""

    ratio: float = 1.0
    lo: int = -128
    hi: int = 127

    elementwise = True

    def check(self, inputs: list[Tensor], y: Tensor) -> None:
        self.require_count(inputs, 2)
        for x in inputs:
            fits = x.shape == y.shape or x.shape == (1, y.channels, 1, 1)
            self.require(fits, "operand of shape {} does not broadcast to {}", x.shape, y.shape)
        self.require_positive("ratio", self.ratio)
        self.require_clamp()

    def evaluate(self, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
        a, b = centred(arrays, inputs)
        return fixed.multiply(a, b, self.ratio, y.zero_point, self.lo, self.hi)


@dataclass(frozen=True)
class Table(Operation):
    """Any int8 -> int8 function: ``out = table[in + 128]``, int8 ``[256]``."""

    table: Array8 = field(default_factory=lambda: np.arange(-128, 128).astype(np.int8))

    elementwise = True

    def check(self, inputs: list[Tensor], y: Tensor) -> None:
        self.require_count(inputs, 1)
        self.require(self.table.shape == (256,) and self.table.dtype == np.int8, "table must be int8 [256]")
        self.require(inputs[0].shape == y.shape, "a table keeps the shape")

    def evaluate(self, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
        return self.table[arrays[0].astype(np.int64) + 128].astype(np.int64)

    def range(self, inputs: Sequence[Interval]) -> Interval:
        """Of the entries that the operand can choose."""
        low, high = inputs[0]
        reached = self.table[low + 128 : high + 129]
        return int(reached.min()), int(reached.max())
