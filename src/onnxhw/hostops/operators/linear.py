"""Operators of ai.onnx.ml with onnxruntime's scores, where what it makes of them is not what the text says.

The kernels leave the score of one target as it is whatever the post transform, that of TreeEnsemble takes LOGISTIC for
SOFTMAX, and that of LinearClassifier refuses a model without intercepts.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..onnxruntime_node import NativeNode
from .adapter import Array, HostOp
from .trees import ml_node, transformed

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""Of TreeEnsemble: in the order of their numbers."""


def kernel(op_type: str, version: int, x: Array, attributes: Mapping[str, Any], outputs: int = 1) -> tuple[Array, ...]:
    """What onnxruntime's kernel gives for these attributes (None where one is left out)."""
    return NativeNode(ml_node(op_type, attributes, outputs), version).run([x])


def linear_classifier(x: Array, **attributes: Any) -> tuple[Array, ...]:
    """LinearClassifier without intercepts: they are 0, one for each row of coefficients.

    A row is that of a class; of two classes one row may be both. `ValueError` for other numbers of features.
    """
    labels = attributes.get("classlabels_ints") or attributes.get("classlabels_strings") or ()
    count, columns = len(attributes["coefficients"]), np.shape(x)[-1]
    rows = len(labels) if len(labels) > 2 else max(1, round(count / max(columns, 1)))
    if rows * columns != count:
        raise ValueError(f"{count} coefficients are no {rows} rows of {columns}, one for each feature")
    return kernel("LinearClassifier", 1, x, {**attributes, "intercepts": [0.0] * rows}, 2)


def post_transformed(op_type: str, version: int) -> Callable[..., Array]:
    """The operator with its post transform computed here, of one target too."""

    def apply(x: Array, post_transform: Any = None, **attributes: Any) -> Array:
        (scores,) = kernel(op_type, version, x, attributes)
        name = TRANSFORMS[post_transform] if isinstance(post_transform, int) else post_transform or "NONE"
        with np.errstate(all="ignore"):
            return transformed(scores.astype(np.float64), name).astype(scores.dtype)

    return apply


OPERATORS = (
    HostOp("ai.onnx.ml", "LinearClassifier", linear_classifier),
    HostOp("ai.onnx.ml", "LinearRegressor", post_transformed("LinearRegressor", 1)),
    HostOp("ai.onnx.ml", "TreeEnsembleRegressor", post_transformed("TreeEnsembleRegressor", 1), until=2),
    HostOp("ai.onnx.ml", "TreeEnsembleRegressor", post_transformed("TreeEnsembleRegressor", 3), since=3, until=4),
    HostOp("ai.onnx.ml", "TreeEnsemble", post_transformed("TreeEnsemble", 5), since=5),
)
