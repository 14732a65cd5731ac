"""`MatMul`: product of two activations."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ... import fixed
from ...fixed import Ints
from ..boxes import Box
from ..operation import Array8, Clamped, Tensor, centred

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11


@dataclass(frozen=True)
class MatMul(Clamped):
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

    channelwise = True

    def check(self, inputs: list[Tensor], y: Tensor) -> None:
        self.require_count(inputs, 2)
        (m, k), (rows, n) = (
            x.shape[2:][:: -1 if turned else 1]
            for x, turned in zip(inputs, (self.transposed_a, self.transposed_b), strict=True)
        )
        self.require(k == rows, "a row of {} does not fit a column of {}", k, rows)
        self.require((m, n) == y.shape[2:], "result must be {} x {}, not {} x {}", m, n, y.height, y.width)
        self.require(all(x.channels == y.channels for x in inputs), "operands must have the result's channels")
        self.require_positive("multiplier", self.multiplier)
        self.require_clamp()

    def evaluate(self, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
        a, b = centred(arrays, inputs)
        a = a.swapaxes(2, 3) if self.transposed_a else a
        b = b.swapaxes(2, 3) if self.transposed_b else b
        return fixed.requantize(a @ b, self.multiplier, y.zero_point, self.lo, self.hi)

    def macs(self, inputs: list[Tensor], y: Tensor) -> int:
        a = inputs[0]
        return a.channels * a.height * a.width * y.width

    @property
    def crops(self) -> tuple[bool, bool, bool]:
        return True, True, True

    def needed(self, box: Box, inputs: list[Tensor], y: Tensor) -> list[Box]:
        """Rows of the first operand, columns of the second."""
        k = (0, inputs[0].height if self.transposed_a else inputs[0].width)
        first = (k, box.rows) if self.transposed_a else (box.rows, k)
        second = (box.cols, k) if self.transposed_b else (k, box.cols)
        return [Box(box.channels, *first), Box(box.channels, *second)]

    def part(self, box: Box, inputs: list[Tensor], y: Tensor) -> "Self":
        return self
