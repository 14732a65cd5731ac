"""The golden model beside onnxruntime, for `bench/accuracy.py` and the tests.

session     onnxruntime sessions                            (runtime/session.py)
Kernel      one Conv or Gemm as its integer kernel          (kernel.py)
layers      each operation on onnxruntime's own operands    (layers.py)
top1        classes of whole runs                           (top1.py)
rates       how often single operators differ               (rates.py, operators.py)
"""

from .data import inputs, load_data
from .kernel import Kernel
from .layers import Layer, as_tensor, compare_layers
from .operators import CASES
from .rates import Rate, rate
from .session import exposed, fused_operators, session
from .top1 import Top1, compare_top1

__all__ = [
    "CASES",
    "Kernel",
    "Layer",
    "Rate",
    "Top1",
    "as_tensor",
    "compare_layers",
    "compare_top1",
    "exposed",
    "fused_operators",
    "inputs",
    "load_data",
    "rate",
    "session",
]
