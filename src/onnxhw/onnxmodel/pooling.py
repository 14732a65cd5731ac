"""`PoolAttributes`, `resolve_pads`: where windows of convolutions and pools lie, over any number of spatial axes."""

from collections.abc import Sequence
from dataclasses import dataclass

Pads = list[tuple[int, int]]
"""Before and after each spatial axis."""


def resolve_pads(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    auto_pad: str,
    pads: Sequence[int] | None,
) -> Pads:
    """Padding before and after each spatial axis; of an odd total, SAME_UPPER puts the larger half after it."""
    if auto_pad == "NOTSET":
        given = list(pads) if pads is not None else [0] * (2 * len(sizes))
        return list(zip(given[: len(sizes)], given[len(sizes) :], strict=True))
    if auto_pad == "VALID":
        return [(0, 0)] * len(sizes)
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        raise ValueError(f"auto_pad {auto_pad!r} is unknown")
    result = []
    for size, extent, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        total = max((-(-size // stride) - 1) * stride + (extent - 1) * dilation + 1 - size, 0)
        small, large = total // 2, total - total // 2
        result.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
    return result


@dataclass(frozen=True)
class PoolAttributes:
    """The attributes of a pooling node."""

    kernel_shape: Sequence[int]
    strides: Sequence[int] = ()
    pads: Sequence[int] | None = None
    dilations: Sequence[int] = ()
    auto_pad: str = "NOTSET"
    ceil_mode: int = 0

    @property
    def steps(self) -> list[int]:
        """Strides, 1 by default."""
        return list(self.strides) or [1] * len(self.kernel_shape)

    @property
    def spread(self) -> list[int]:
        """Dilations, 1 by default."""
        return list(self.dilations) or [1] * len(self.kernel_shape)

    def around(self, sizes: Sequence[int]) -> tuple[Pads, Pads]:
        """Padding of the spatial axes, and how far the last windows of `ceil_mode` reach beyond it.

        A last window that would start behind the input and its padding in front is not made.
        """
        pads = resolve_pads(sizes, self.kernel_shape, self.steps, self.spread, self.auto_pad, self.pads)
        beyond: Pads = []
        for size, (before, after), kernel, step, dilation in zip(
            sizes, pads, self.kernel_shape, self.steps, self.spread, strict=True
        ):
            span = (kernel - 1) * dilation + 1
            rest = size + before + after - span
            if rest < 0:
                raise ValueError(f"a window of {span} does not fit into {size + before + after}")
            extra = -rest % step if self.ceil_mode and self.auto_pad in ("NOTSET", "VALID") else 0
            if extra and (-(-rest // step)) * step >= size + before:
                extra = 0
            beyond.append((0, extra))
        return pads, beyond
