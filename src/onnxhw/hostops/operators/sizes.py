"""`elements`: how large a result some operands ask for, before anything of that size is allocated.

Of most operators the result is about as large as the inputs. Of these a few bytes can ask for any size.
"""

from collections.abc import Callable, Sequence
from math import ceil, inf, isfinite, prod
from typing import Any

import numpy as np

LARGEST = 1 << 29
"""Elements of one result on the host: as many as a tensor of a model may have by default."""


def elements(op_type: str, operands: Sequence[Any]) -> int:
    """The elements of the first result, or 0 for operators and operands of which this module knows nothing.

    `operands`: arrays, None where one is left out."""
    rule = RULES.get(op_type)
    if rule is None or not all(value is None or isinstance(value, (np.ndarray, np.generic)) for value in operands):
        return 0
    try:
        return rule(operands)
    except (IndexError, ValueError, TypeError, AttributeError):  # operands that the operator does not have
        return 0


def _filled(operands: Sequence[Any]) -> int:
    return prod(_integers(operands[0]))


def _expanded(operands: Sequence[Any]) -> int:
    own, wanted = list(operands[0].shape), _integers(operands[1])
    rank = max(len(own), len(wanted))
    pairs = zip([1] * (rank - len(own)) + own, [1] * (rank - len(wanted)) + wanted, strict=True)
    return prod(size if want == 1 else want for size, want in pairs)


def _tiled(operands: Sequence[Any]) -> int:
    return int(operands[0].size) * prod(_integers(operands[1]))


def _counted(operands: Sequence[Any]) -> int:
    start, limit, delta = (_number(operand) for operand in operands)
    if delta == 0 or not all(map(isfinite, (start, limit, delta))):
        return 0
    if isinstance(start, int) and isinstance(limit, int) and isinstance(delta, int):
        return max(0, -((start - limit) // delta))
    steps = (limit - start) / delta
    return max(0, ceil(steps)) if isfinite(steps) else LARGEST + 1


def _resized(operands: Sequence[Any]) -> int:
    """Resize and Upsample: sizes, or scales of the dimensions, whichever come last; for some of the axes from 18 on."""
    shape, last = operands[0].shape, operands[-1]
    if len(operands) == 1:
        return 0  # no scales among them
    if len(operands) > 3:
        return _scaled_up(shape, [size / max(1, own) for size, own in zip(_integers(last), shape, strict=False)])
    return _scaled_up(shape, np.asarray(last, np.float64).reshape(-1).tolist())


def _scaled_up(shape: Sequence[int], scales: Sequence[float]) -> int:
    """Elements of a shape with some of its dimensions scaled, of which nobody says here which: a bound."""
    total = float(prod(shape))
    for scale in scales:
        total *= scale if isfinite(scale) and scale > 1 else 1 if isfinite(scale) else inf
    return int(total) if total < LARGEST else LARGEST + 1


def _padded(operands: Sequence[Any]) -> int:
    """Each of the pads widens one axis; with axes given, nobody says here which: a bound."""
    shape, pads = operands[0].shape, _integers(operands[1])
    count = len(pads) // 2
    if count == len(shape):
        return prod(size + max(0, pads[axis] + pads[axis + count]) for axis, size in enumerate(shape))
    added = max([0, *pads])
    return prod(shape) if not added else prod(size + 2 * added for size in sorted(shape)[-count:]) * prod(
        sorted(shape)[: len(shape) - count]
    )


def _one_hot(operands: Sequence[Any]) -> int:
    return int(operands[0].size) * max(0, int(_number(operands[1])))


def _windowed(operands: Sequence[Any]) -> int:
    return max(0, int(_number(operands[0])))


def _mel(operands: Sequence[Any]) -> int:
    return max(0, int(_number(operands[0]))) * (max(0, int(_number(operands[1]))) // 2 + 1)


def _asked(operands: Sequence[Any]) -> int:
    """A shape, or some of its dimensions, in the second operand."""
    return prod(max(1, size) for size in _integers(operands[1]))


def _transformed(operands: Sequence[Any]) -> int:
    """A DFT of some length."""
    length = max(1, int(_number(operands[1]))) if len(operands) > 1 and operands[1] is not None else 1
    return int(operands[0].size) * length if length > max(operands[0].shape, default=1) else int(operands[0].size)


def _framed(operands: Sequence[Any]) -> int:
    """An STFT: as many frames as steps, each of the frame's length."""
    step = int(_number(operands[1]))
    window = max([1, *(int(np.size(one)) for one in operands[2:3] if one is not None),
                  *(int(_number(one)) for one in operands[3:4] if one is not None)])  # fmt: skip
    return int(operands[0].size) // max(1, step) * window * 2


def _scattered(operands: Sequence[Any]) -> int:
    """MaxUnpool of the shape that its third operand says."""
    return prod(_integers(operands[2])) if len(operands) > 2 and operands[2] is not None else 0


def _number(operand: Any) -> int | float:
    value: int | float = np.asarray(operand).reshape(-1)[0].item()
    return value


def _integers(operand: Any) -> list[int]:
    return [int(value) for value in np.asarray(operand).reshape(-1).tolist()]


RULES: dict[str, Callable[[Sequence[Any]], int]] = {
    "AffineGrid": _asked,
    **dict.fromkeys(["BlackmanWindow", "HammingWindow", "HannWindow"], _windowed),
    "CenterCropPad": _asked,
    "Col2Im": _asked,
    "ConstantOfShape": _filled,
    "DFT": _transformed,
    "Expand": _expanded,
    "MaxUnpool": _scattered,
    "MelWeightMatrix": _mel,
    "OneHot": _one_hot,
    "Pad": _padded,
    "Resize": _resized,
    "STFT": _framed,
    "Tile": _tiled,
    "Upsample": _resized,
    "Range": _counted,
}
"""By operator of the default domain."""
