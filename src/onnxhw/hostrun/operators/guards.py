"""`guard`: operands and attributes that a kernel must not see: it would end the process, not end itself, or read memory
that is not its own.
How large results may get is said in `sizes`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Fault = Callable[[Mapping[str, Any]], str]
Guard = Callable[[Mapping[str, Any], Sequence[Any]], None]
LONGEST_SKIP = 1 << 20
"""Elements that TfIdfVectorizer may leave out between two: it tries every number up to it."""
MOST_NGRAMS = 1 << 29
"""Elements of a row of TfIdfVectorizer's result: as many as a tensor may have by default."""


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


def _ngrams(attributes: Mapping[str, Any]) -> str:
    if attributes.get("max_skip_count", 0) > LONGEST_SKIP:
        return f"max_skip_count {attributes['max_skip_count']} is above {LONGEST_SKIP}"
    indexes = attributes.get("ngram_indexes", [])
    if not all(0 <= index < MOST_NGRAMS for index in indexes):
        return f"ngram_indexes are not all between 0 and {MOST_NGRAMS - 1}"
    return ""


def _intercepts(attributes: Mapping[str, Any]) -> str:
    """The kernel of LinearRegressor reads one for each target."""
    count, targets = len(attributes.get("intercepts", ())), attributes.get("targets", 1)
    return f"{count} intercepts for {targets} targets" if count not in (0, targets) else ""


def _rows(attributes: Mapping[str, Any]) -> str:
    """Without intercepts LinearClassifier has a row of coefficients for each class, or one for two classes."""
    labels = attributes.get("classlabels_ints") or attributes.get("classlabels_strings") or ()
    count = len(attributes.get("coefficients", ()))
    if len(labels) == 1:
        return "one class label: a classifier has two or more"
    if not attributes.get("intercepts") and len(labels) > 2 and count % len(labels):
        return f"{count} coefficients are no {len(labels)} rows, one for each class"
    return ""


def _linear(attributes: Mapping[str, Any], operands: Sequence[Any]) -> None:
    """Coefficients of every row: the kernel of LinearClassifier reads as many as there are intercepts."""
    shape, count = np.shape(operands[0]), len(attributes.get("coefficients", ()))
    rows = len(attributes.get("intercepts", ()))
    if shape and rows * shape[-1] > count:
        raise ValueError(f"{count} coefficients are fewer than {rows} rows of {shape[-1]}, one for each feature")


FAULTS: dict[tuple[str, str], Fault] = {
    ("", "TfIdfVectorizer"): _ngrams,
    ("ai.onnx.ml", "LinearClassifier"): _rows,
    ("ai.onnx.ml", "LinearRegressor"): _intercepts,
}
"""By domain and operator: what is wrong with attributes alone, which is known before a run."""
GUARDS: dict[tuple[str, str], Guard] = {
    **{("", name): _present for name in ("Concat", "Max", "Mean", "Min", "Sum", "Einsum", "SequenceConstruct")},
    ("ai.onnx.ml", "FeatureVectorizer"): _present,
    ("", "GatherND"): _gather_nd,
    ("com.microsoft", "GatherND"): _gather_nd,
    ("com.microsoft", "Inverse"): _square,
    ("ai.onnx.ml", "LinearClassifier"): _linear,
}
"""By domain and operator: what looks at operands too."""


def fault(domain: str, op_type: str, attributes: Mapping[str, Any]) -> str:
    """What is wrong with the attributes of a node, empty if nothing is."""
    found = FAULTS.get((domain, op_type))
    return found(attributes) if found is not None else ""


def guard(domain: str, op_type: str, attributes: Mapping[str, Any], operands: Sequence[Any]) -> None:
    """`ValueError` for attributes or operands that a kernel must not see."""
    if wrong := fault(domain, op_type, attributes):
        raise ValueError(wrong)
    if (look := GUARDS.get((domain, op_type))) is not None:
        look(attributes, operands)
