"""`guard`: operands that a kernel must not see: it would end the process, not end itself, or read memory
that is not its own.
How large results may get is said in `sizes`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import ranges

Guard = Callable[[Mapping[str, Any], Sequence[Any]], None]


def _present(attributes: Mapping[str, Any], operands: Sequence[Any]) -> None:
    """Variadic operands cannot be left out: the kernel reads them all."""
    for index, value in enumerate(operands):
        if value is None:
            raise ValueError(f"operand {index} is left out, but it is one of a variadic input")


def _gather_nd(attributes: Mapping[str, Any], operands: Sequence[Any]) -> None:
    count = attributes.get("batch_dims", 0)
    if not 0 <= count < min(np.ndim(operands[0]), np.ndim(operands[1])):
        ranks = f"{np.ndim(operands[0])} and {np.ndim(operands[1])}"
        raise ValueError(f"batch_dims {count} is not below the ranks of data and indices, {ranks}")


def _square(attributes: Mapping[str, Any], operands: Sequence[Any]) -> None:
    """The kernel of Inverse reads as many columns as there are rows."""
    shape = np.shape(operands[0])
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"the matrices of {list(shape)} are not square")


def _linear(attributes: Mapping[str, Any], operands: Sequence[Any]) -> None:
    """Coefficients of every row: the kernel of LinearClassifier reads as many as there are intercepts."""
    shape, count = np.shape(operands[0]), len(attributes.get("coefficients", ()))
    rows = len(attributes.get("intercepts", ()))
    if shape and rows * shape[-1] > count:
        raise ValueError(f"{count} coefficients are fewer than {rows} rows of {shape[-1]}, one for each feature")


GUARDS: dict[tuple[str, str], Guard] = {
    **{("", name): look for name, look in ranges.GUARDS.items()},
    **{("", name): _present for name in ("Concat", "Max", "Mean", "Min", "Sum", "Einsum", "SequenceConstruct")},
    ("ai.onnx.ml", "FeatureVectorizer"): _present,
    ("", "GatherND"): _gather_nd,
    ("com.microsoft", "GatherND"): _gather_nd,
    ("com.microsoft", "Inverse"): _square,
    ("ai.onnx.ml", "LinearClassifier"): _linear,
}
"""By domain and operator: what looks at operands."""


def guard(domain: str, op_type: str, attributes: Mapping[str, Any], operands: Sequence[Any]) -> None:
    """`ValueError` for operands that a kernel must not see; `specification.lengths` looks at attributes alone."""
    if (look := GUARDS.get((domain, op_type))) is not None:
        look(attributes, operands)
