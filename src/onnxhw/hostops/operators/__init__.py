"""Operators of our own for host nodes: those that must be exact, and what onnxruntime lacks.

deviations   where the host does not ask onnxruntime although it has a kernel, and why
ranges       operands that no implementation may see
adapter      a plain function as an operator of the reference evaluator
quantized    the quantized operators of the default domain, on `onnxhw.fixed`
contrib      those of com.microsoft
qonnx        Quant, BipolarQuant, Trunc, MultiThreshold
control      If, Loop, Scan
arithmetic   integer division, logarithms of sums
dense        convolution, and normalization over flattened axes as before operator set 13
recurrent    RNN, GRU, LSTM
pools        MaxPool, AveragePool, LpPool
sizes        what a node's operands may ask for
old_opsets   operators as they were before operator set 7
reference_gaps  Scatter, Upsample, MaxRoiPool, Optional, and the maps of ai.onnx.ml
resizing     Resize with tf_half_pixel_for_nn
sampling     Multinomial
missing_types  casts, pads, labels and unique values of types that onnxruntime lacks
linear       post transforms of onnxruntime's scores, LinearClassifier without intercepts
text         RegexFullMatch, StringNormalizer
trees        TreeEnsembleClassifier of two classes
"""

from onnx.reference.op_run import OpRun

from . import (
    arithmetic,
    contrib,
    control,
    dense,
    linear,
    missing_types,
    old_opsets,
    pools,
    qonnx,
    quantized,
    recurrent,
    reference_gaps,
    resizing,
    sampling,
    text,
    trees,
)
from .adapter import select

__all__ = ["implementations", "is_ours"]

EXACT = (
    *quantized.OPERATORS,
    *contrib.OPERATORS,
    *qonnx.OPERATORS,
    *sampling.OPERATORS,
    *text.OPERATORS,
)
"""Operators that are computed here in every version: in integers as the hardware does, or safely."""
OPERATORS = (
    *EXACT,
    *arithmetic.OPERATORS,
    *dense.OPERATORS,
    *pools.OPERATORS,
    *recurrent.OPERATORS,
    *reference_gaps.OPERATORS,
    *old_opsets.OPERATORS,
    *resizing.OPERATORS,
    *missing_types.OPERATORS,
    *linear.OPERATORS,
    *trees.OPERATORS,
)


def implementations(opsets: dict[str, int]) -> list[type[OpRun]]:
    """Our operators for the given version of each domain."""
    return [*select(OPERATORS, opsets), *control.versions(opsets.get("", 0))]


_OURS = frozenset((op.domain, op.name) for op in EXACT) | {("", name) for name in ("If", "Loop", "Scan")}


def is_ours(domain: str, op_type: str) -> bool:
    """Is the operator computed here whatever onnxruntime has?"""
    return (domain, op_type) in _OURS
