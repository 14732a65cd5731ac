"""`elements`: how large a result some operands ask for, before anything of that size is allocated.

Of most operators the result is about as large as the inputs. Of these a few bytes can ask for any size.
"""

from collections.abc import Callable, Sequence
from math import ceil, isfinite, prod
from typing import Any

import numpy as np

LARGEST = 1 << 29
"""Elements of one result on the host: as many as a tensor of a model may have by default."""


def elements(op_type: str, operands: Sequence[Any]) -> int:
    """The elements of the first result, or 0 for operators and operands of which this module knows nothing."""
    rule = RULES.get(op_type)
    if rule is None or not all(isinstance(value, (np.ndarray, np.generic)) for value in operands):
        return 0
    return rule(operands)


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


def _number(operand: Any) -> int | float:
    value: int | float = np.asarray(operand).reshape(-1)[0].item()
    return value


def _integers(operand: Any) -> list[int]:
    return [int(value) for value in np.asarray(operand).reshape(-1).tolist()]


RULES: dict[str, Callable[[Sequence[Any]], int]] = {
    "ConstantOfShape": _filled,
    "Expand": _expanded,
    "Tile": _tiled,
    "Range": _counted,
}
"""By operator of the default domain."""
