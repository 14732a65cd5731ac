"""`Box`: a part of a tensor, and what a window sees of an operand for a box of its result."""

from typing import NamedTuple

from .windows import Pads, Window

Span = tuple[int, int]
"""From the first on, before the second."""
Shape = tuple[int, int, int, int]


class Box(NamedTuple):
    """Elements of a tensor ``(1, C, H, W)`` whose indices lie in these spans."""

    channels: Span
    rows: Span
    cols: Span

    @classmethod
    def whole(cls, shape: Shape) -> "Box":
        """All elements."""
        return cls((0, shape[1]), (0, shape[2]), (0, shape[3]))

    @property
    def shape(self) -> Shape:
        """Of the tensor of these elements alone."""
        (c0, c1), (y0, y1), (x0, x1) = self.channels, self.rows, self.cols
        return 1, c1 - c0, y1 - y0, x1 - x0

    @property
    def size(self) -> int:
        """Elements; 0: it is empty."""
        (c0, c1), (y0, y1), (x0, x1) = self.channels, self.rows, self.cols
        return (c1 - c0) * (y1 - y0) * (x1 - x0)

    @property
    def slices(self) -> tuple[slice, slice, slice, slice]:
        """Index of these elements in an array ``[N, C, H, W]``."""
        return slice(None), slice(*self.channels), slice(*self.rows), slice(*self.cols)

    def hull(self, other: "Box") -> "Box":
        """The least box with both; an empty one has no place."""
        if not self.size or not other.size:
            return self if self.size else other
        if self == other:
            return self
        pairs = zip(self.spans, other.spans, strict=True)
        return Box(*[(min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs])

    def meets(self, other: "Box") -> bool:
        """Whether they have an element in common."""
        return all(max(a[0], b[0]) < min(a[1], b[1]) for a, b in zip(self.spans, other.spans, strict=True))

    def inside(self, other: "Box") -> bool:
        """Whether the other has all its elements."""
        return all(b[0] <= a[0] and a[1] <= b[1] for a, b in zip(self.spans, other.spans, strict=True))

    @property
    def spans(self) -> tuple[Span, Span, Span]:
        """Channels, rows, columns."""
        return self.channels, self.rows, self.cols


def window_view(window: Window, box: Box, shape: Shape) -> tuple[Span, Span, Pads] | None:
    """Rows and columns of an operand of this shape that a window meets for a box of its result, and the padding that is
    left around them; None if it meets nothing but padding."""
    rows, cols = (_axis(*window.axis(axis), box.spans[1 + axis], shape[2 + axis]) for axis in (0, 1))
    if rows is None or cols is None:
        return None
    (span_y, top, bottom), (span_x, left, right) = rows, cols
    return span_y, span_x, (top, left, bottom, right)


def _axis(
    before: int, _: int, kernel: int, stride: int, dilation: int, span: Span, size: int
) -> tuple[Span, int, int] | None:
    """Along one axis: what is met, and the padding before and after it."""
    first = span[0] * stride - before
    end = (span[1] - 1) * stride - before + dilation * (kernel - 1) + 1
    low, high = max(first, 0), min(end, size)
    return ((low, high), low - first, end - high) if low < high else None
