"""Operators of our own for host nodes, where onnx's reference implementation is missing, incomplete, wrong or slow.

adapter      a plain function as an operator of the reference evaluator
quantized    the quantized operators of the default domain, on `onnxhw.fixed`
contrib      those of com.microsoft
qonnx        Quant, BipolarQuant, Trunc, MultiThreshold
control      If, Loop, Scan
dense        convolution, and normalization over flattened axes as before operator set 13
recurrent    RNN, GRU, LSTM
pools        MaxPool and AveragePool
sizes        what a node's operands may ask for
early        operators as they were before operator set 7
moved        Scatter, Upsample, Optional, and the maps of ai.onnx.ml
regions      MaxRoiPool
sampling     Multinomial
text         RegexFullMatch
"""

from onnx.reference.op_run import OpRun

from . import contrib, control, dense, early, moved, pools, qonnx, quantized, recurrent, regions, sampling, text
from .adapter import select

__all__ = ["implementations"]

OPERATORS = (
    *quantized.OPERATORS,
    *contrib.OPERATORS,
    *qonnx.OPERATORS,
    *dense.OPERATORS,
    *pools.OPERATORS,
    *recurrent.OPERATORS,
    *moved.OPERATORS,
    *early.OPERATORS,
    *regions.OPERATORS,
    *sampling.OPERATORS,
    *text.OPERATORS,
)


def implementations(opsets: dict[str, int]) -> list[type[OpRun]]:
    """Our operators for the given version of each domain."""
    return [*select(OPERATORS, opsets), *control.versions(opsets.get("", 0))]
