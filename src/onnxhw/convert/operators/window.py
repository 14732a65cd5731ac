"""Kernel, stride, dilation and padding attributes of convolution and pooling."""

from functools import lru_cache
from typing import Any

from ...errors import InvalidModelError
from ...ir.windows import Window
from ...onnxmodel.shapes import Shape
from ..blockers import BlockedError

__all__ = ["Window", "window"]

READ = ("auto_pad", "ceil_mode", "dilations", "pads", "strides")
"""The attributes that make a window."""


def window(attributes: dict[str, Any], kernel: Shape, spatial: Shape, where: str) -> Window:
    """The window of a node over an input of the given spatial shape (one or two dimensions).

    `InvalidModelError` E3030 for attributes that make no window; `BlockedError` for more than two dimensions.
    ``ceil_mode`` becomes padding after the end, which is exact where padding is not counted.
    """
    given = [(name, attributes[name]) for name in READ if name in attributes]
    alike = tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in given)
    try:
        return _window(alike, kernel, spatial)
    except InvalidModelError as error:
        raise InvalidModelError(error.code, error.what, where=where) from None


@lru_cache(maxsize=1024)
def _window(given: tuple[tuple[str, Any], ...], kernel: Shape, spatial: Shape) -> Window:
    attributes = dict(given)
    rank = len(spatial)
    if rank not in (1, 2):
        raise BlockedError(f"{rank} spatial dimensions", "use one or two")

    def listed(name: str, count: int, default: int, least: int) -> list[int]:
        values = [int(v) for v in attributes.get(name, [default] * count)]
        if len(values) != count or min(values) < least:
            raise InvalidModelError("E3030", f"{name} must be {count} integers of at least {least}, not {values}")
        return values

    if len(kernel) != rank or min(kernel) < 1:
        raise InvalidModelError("E3030", f"kernel_shape must be {rank} positive integers, not {list(kernel)}")
    strides, dilations = listed("strides", rank, 1, 1), listed("dilations", rank, 1, 1)
    auto = attributes.get("auto_pad", "NOTSET") or "NOTSET"
    extents = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    if auto == "NOTSET":
        pads = listed("pads", 2 * rank, 0, 0)
    elif auto == "VALID":
        pads = [0] * (2 * rank)
    elif auto in ("SAME_UPPER", "SAME_LOWER"):
        total = [max(0, (-(-n // s) - 1) * s + e - n) for n, s, e in zip(spatial, strides, extents, strict=True)]
        less, more = [t // 2 for t in total], [t - t // 2 for t in total]
        pads = less + more if auto == "SAME_UPPER" else more + less
    else:
        raise InvalidModelError(
            "E3030", f"auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, not {auto!r}"
        )
    if attributes.get("ceil_mode", 0):
        for axis in range(rank):
            pads[rank + axis] += _ceil(spatial[axis], pads[axis], pads[rank + axis], extents[axis], strides[axis])
    if rank == 1:
        made = Window((1, kernel[0]), (1, strides[0]), (1, dilations[0]), (0, pads[0], 0, pads[1]))
        plane = (1, spatial[0])
    else:
        made = Window(
            (kernel[0], kernel[1]),
            (strides[0], strides[1]),
            (dilations[0], dilations[1]),
            (pads[0], pads[1], pads[2], pads[3]),
        )
        plane = (spatial[0], spatial[1])
    if min(made.size(plane)) < 1:
        raise InvalidModelError("E3031", f"a window of {list(kernel)} does not fit an input of {list(spatial)}")
    return made


def _ceil(size: int, before: int, after: int, extent: int, stride: int) -> int:
    """Padding after the end that makes the last, partial window of ceil mode a whole one."""
    room = size + before + after - extent
    positions = -(-room // stride) + 1
    if (positions - 1) * stride >= size + before:
        raise BlockedError(
            "ceil_mode with a last window that starts in the padding: implementations disagree whether it counts",
            "use explicit pads and ceil_mode=0",
        )
    return max(0, (positions - 1) * stride - room)
