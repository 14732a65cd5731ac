"""`GUARDS`: operands and attributes that a kernel must not see, because it would end the process or not end itself.

Each raises `ValueError` with what is wrong. (How large results may get is said in `sizes`.)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

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


def _ngrams(attributes: Mapping[str, Any], operands: Sequence[Any]) -> None:
    if attributes.get("max_skip_count", 0) > LONGEST_SKIP:
        raise ValueError(f"max_skip_count {attributes['max_skip_count']} is above {LONGEST_SKIP}")
    indexes = attributes.get("ngram_indexes", [])
    if not all(0 <= index < MOST_NGRAMS for index in indexes):
        raise ValueError(f"ngram_indexes are not all between 0 and {MOST_NGRAMS - 1}")


GUARDS: dict[tuple[str, str], Guard] = {
    **{("", name): _present for name in ("Concat", "Max", "Mean", "Min", "Sum", "Einsum", "SequenceConstruct")},
    ("ai.onnx.ml", "FeatureVectorizer"): _present,
    ("", "GatherND"): _gather_nd,
    ("com.microsoft", "GatherND"): _gather_nd,
    ("", "TfIdfVectorizer"): _ngrams,
}
"""By domain and operator."""
