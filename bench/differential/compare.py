"""`difference`: what differs between two results, within the bound of the operator."""

from typing import Any

import numpy as np

TRANSCENDENTAL = (8, 4, "polynomials of different libraries, each within a few units in the last place")
PERIODIC = (8, 5, "the argument less a multiple of pi, rounded: near a zero an error of the argument's size")
COMPOSED = (8, 5, "polynomials of different libraries, and exp(x) - 1 for expm1(x)")
SUMS = (16, 64, "another order of additions, or wider partial sums")
INTERPOLATED = (16, 64, "weights of an interpolation rounded at another place")
RECURRENT = (64, 256, "sums and activations of every step feed the next")
BOUNDS: dict[str, tuple[int, int, str]] = {
    **dict.fromkeys(
        [
            "Acos",
            "Acosh",
            "Asin",
            "Asinh",
            "Atan",
            "Atanh",
            "Cosh",
            "Erf",
            "Exp",
            "HardSigmoid",
            "HardSwish",
            "Log",
            "Pow",
            "Reciprocal",
            "Sinh",
            "Softsign",
            "Sqrt",
            "Tanh",
            "LeakyRelu",
            "PRelu",
            "Mean",
            "Sum",
            "Div",
            "Mod",
            "MelWeightMatrix",
            "Range",
            "Shrink",
            "ThresholdedRelu",
            "CumSum",
            "CumProd",
            "DequantizeLinear",
        ],
        TRANSCENDENTAL,
    ),
    **dict.fromkeys(
        [
            "Celu",
            "Elu",
            "Gelu",
            "Mish",
            "Selu",
            "Sigmoid",
            "Softplus",
            "Swish",
            "SwiGLU",
            "BlackmanWindow",
            "HammingWindow",
            "HannWindow",
        ],
        COMPOSED,
    ),
    **dict.fromkeys(
        [
            "ReduceL1",
            "ReduceL2",
            "ReduceLogSum",
            "ReduceLogSumExp",
            "ReduceMean",
            "ReduceProd",
            "ReduceSum",
            "ReduceSumSquare",
            "Softmax",
            "LogSoftmax",
            "MatMul",
            "Gemm",
            "Einsum",
            "BatchNormalization",
            "InstanceNormalization",
            "GroupNormalization",
            "LayerNormalization",
            "RMSNormalization",
            "LpNormalization",
            "LRN",
            "MeanVarianceNormalization",
            "Det",
            "NegativeLogLikelihoodLoss",
            "SoftmaxCrossEntropyLoss",
            "Conv",
            "ConvTranspose",
            "DeformConv",
            "AveragePool",
            "LpPool",
            "GlobalAveragePool",
            "GlobalLpPool",
            "Col2Im",
            "DFT",
            "STFT",
            "ScatterElements",
            "ScatterND",
            "AffineGrid",
            "RotaryEmbedding",
            "LinearClassifier",
            "LinearRegressor",
            "Normalizer",
            "SVMClassifier",
            "SVMRegressor",
            "Scaler",
            "TreeEnsemble",
            "TreeEnsembleClassifier",
            "TreeEnsembleRegressor",
            "TfIdfVectorizer",
        ],
        SUMS,
    ),
    **dict.fromkeys(["Cos", "Sin", "Tan"], PERIODIC),
    **dict.fromkeys(["Resize", "Upsample", "GridSample", "RoiAlign", "MaxRoiPool"], INTERPOLATED),
    **dict.fromkeys(
        ["RNN", "GRU", "LSTM", "Attention", "LinearAttention", "CausalConvWithState", "Loop", "Scan"], RECURRENT
    ),
}
"""By operator: units in the last place of the value, of the largest value in the case, and why. Others: equal bytes."""
STASHED = ("LayerNormalization", "RMSNormalization", "GroupNormalization", "HammingWindow", "HannWindow",
           "BlackmanWindow",
           "GridSample", "DeformConv", "DFT", "STFT")  # fmt: skip
"""Operators that one side computes in float32 whatever the type of the result."""
HALF = 8
"""Types of 8 and 16 bits have a smaller factor: their units are large, and both sides compute in float32."""


def difference(operator: str, first: Any, second: Any, scale: float, unit: float = 0.0) -> str:
    """What differs, empty if nothing.

    `scale` is the largest finite magnitude among the operands, `unit` the coarsest unit of their types.
    """
    if isinstance(first, (list, tuple)) or isinstance(second, (list, tuple)):
        if type(first) is not type(second) or len(first) != len(second):
            return f"{_kind(first)} and {_kind(second)}"
        parts = (difference(operator, a, b, scale, unit) for a, b in zip(first, second, strict=True))
        return next((part for part in parts if part), "")
    if isinstance(first, dict) or isinstance(second, dict):
        if not isinstance(first, dict) or not isinstance(second, dict) or first.keys() != second.keys():
            return f"{_kind(first)} and {_kind(second)}"
        pairs = (np.array([one[key] for key in first], np.float64) for one in (first, second))
        return difference(operator, *pairs, scale, max(unit, unit_of(np.dtype(np.float32))))
    if first is None or second is None:
        return "" if first is second else f"{_kind(first)} and {_kind(second)}"
    return _arrays(operator, np.asarray(first), np.asarray(second), scale, unit)


def _kind(value: Any) -> str:
    return f"{type(value).__name__} of {len(value)}" if hasattr(value, "__len__") else type(value).__name__


def _arrays(operator: str, a: Any, b: Any, scale: float, coarsest: float) -> str:
    text = a.dtype.kind in "OUST"
    if text != (b.dtype.kind in "OUST") or (not text and a.dtype != b.dtype):
        return f"type {a.dtype} and {b.dtype}"
    if a.shape != b.shape:
        return f"shape {list(a.shape)} and {list(b.shape)}"
    if text:
        same = a.astype(object) == b.astype(object)
    elif a.dtype.kind in "iub":
        same = a == b
    else:
        same = _floats(operator, a, b, scale, coarsest)
    if np.all(same):
        return ""
    place = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0]) if a.ndim else ()
    return f"{int((~np.asarray(same)).sum())} of {a.size} values, {a[place]!r} and {b[place]!r} at {list(place)}"


def _floats(operator: str, a: Any, b: Any, scale: float, coarsest: float) -> Any:
    relative, absolute, _ = BOUNDS.get(operator, (0, 0, ""))
    unit = max(unit_of(a.dtype), coarsest)
    if operator in STASHED:
        unit = max(unit, unit_of(np.dtype(np.float32)))
    if a.dtype.kind == "c":
        return np.isclose(a, b, 1e-5, 1e-5, equal_nan=True) if relative else a == b
    x, y = a.astype(np.float64), b.astype(np.float64)
    equal = (x == y) & (np.signbit(x) == np.signbit(y)) | (np.isnan(x) & np.isnan(y))
    if not relative:
        return equal
    relative, absolute = (min(relative, HALF), min(absolute, HALF)) if unit > 1e-4 else (relative, absolute)
    finite = np.abs(np.where(np.isfinite(x) & np.isfinite(y), x, 0))
    largest = max(float(finite.max(initial=0.0)), scale) if absolute > 4 else float(finite.max(initial=0.0))
    with np.errstate(all="ignore"):
        near = np.abs(x - y) <= unit * (
            relative * np.abs(x) + absolute * max(largest if absolute > 4 else 0.0, 2.0**-10)
        )
    return equal | near | (x == y)


def unit_of(dtype: Any) -> float:
    """The unit in the last place of 1 in a float type; of other types 0."""
    if dtype.kind == "f" and dtype.isbuiltin == 1:
        return float(np.finfo(dtype).eps)
    return {"bfloat16": 2.0**-7}.get(dtype.name, 2.0**-2 if dtype.name.startswith("float") else 0.0)


def bound(operator: str) -> str:
    """The bound in words."""
    if operator not in BOUNDS:
        return "equal bytes"
    relative, absolute, reason = BOUNDS[operator]
    of = "the largest value" if absolute > 4 else "2^-10"
    return f"{relative} units in the last place, or {absolute} of {of}: {reason}"
