"""Comparison of outputs with what the suite expects."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from ..onnxmodel.batching_rules import RANDOM
from ..program.result import first_difference

BFLOAT16_RTOL = 2.0**-6
"""Two units in the last place of bfloat16: the least that the suite's own runner grants to that type."""


def random(model: onnx.ModelProto) -> bool:
    """Whether an output depends on a random generator: the suite expects one draw of another one."""
    return any(node.op_type in RANDOM for node in model.graph.node)


def implausible(expected: Sequence[Any], found: Sequence[Any]) -> str:
    """What makes random outputs wrong: another type or shape, or a value out of the range of the expected ones."""
    for wanted, given in zip(expected, found, strict=True):
        if wanted.dtype != given.dtype or wanted.shape != given.shape:
            return f"expected {wanted.dtype}{list(wanted.shape)}, found {given.dtype}{list(given.shape)}"
        if not np.isin(given, np.unique(wanted)).all():
            return f"values {np.unique(given).tolist()} are not among {np.unique(wanted).tolist()}"
    return ""


def difference(expected: Any, found: Any, rtol: float, atol: float) -> str:
    """What differs between expected and found values, empty if nothing does; the suite's tolerances, types exactly."""
    if isinstance(expected, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(expected):
            size = len(found) if isinstance(found, (list, tuple)) else type(found).__name__
            return f"expected a sequence of {len(expected)}, found {size}"
        parts = (difference(e, f, rtol, atol) for e, f in zip(expected, found, strict=True))
        return next((f"element {i}: {part}" for i, part in enumerate(parts) if part), "")
    if expected is None or found is None:
        return "" if expected is found else f"expected {expected!r}, found {type(found).__name__}"
    if isinstance(expected, dict):
        return "" if expected == found else f"expected {expected}, found {found}"
    wanted, given = np.asarray(expected), np.asarray(found)
    if wanted.dtype.kind in "OUST" and given.dtype.kind in "OUST":
        return "" if np.array_equal(wanted.astype(object), given.astype(object)) else "strings differ"
    if wanted.dtype != given.dtype or wanted.shape != given.shape:
        return f"expected {wanted.dtype}{list(wanted.shape)}, found {given.dtype}{list(given.shape)}"
    if wanted.dtype.name == "bfloat16":
        rtol = max(rtol, BFLOAT16_RTOL)
    if wanted.dtype.kind not in "biufc":
        wanted, given = wanted.astype(np.float32), given.astype(np.float32)
    close = np.isclose(given, wanted, rtol, atol, equal_nan=True)
    differs = first_difference(wanted, given, close)
    if differs is None:
        return ""
    first = f"first at {list(differs.element)}: expected {differs.expected}, found {differs.got}"
    return f"{differs.different} of {differs.of} elements differ, {first}"
