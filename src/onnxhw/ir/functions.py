"""Functions of one element by ONNX's formulas: what fills 256-entry tables, and what the host computes at the edges.

Each takes float32 values and a step (its attributes) and gives float32. Plain arithmetic is rounded to float32 after
every operation, as onnxruntime does it; transcendental functions are computed in float64 and rounded once.
"""

from collections.abc import Callable, Mapping
from math import erf
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Step = Mapping[str, Any]
Function = Callable[[Array, Step], Array]

_erf = np.frompyfunc(erf, 1, 1)


def _single(formula: Callable[[Array, dict[str, np.float32]], Array]) -> Function:
    """Rounded to float32 after every operation."""

    def apply(x: Array, step: Step) -> Array:
        x = np.asarray(x, np.float32)
        attributes = {k: np.float32(v) for k, v in step.items() if isinstance(v, float)}
        with np.errstate(all="ignore"):  # NaN and infinity are results like others
            return np.asarray(formula(x, attributes), np.float32)

    return apply


def _double(formula: Callable[[Array, dict[str, float]], Array]) -> Function:
    """Computed in float64, rounded to float32 once."""

    def apply(x: Array, step: Step) -> Array:
        wide = np.asarray(x, np.float64)
        with np.errstate(all="ignore"):
            return np.asarray(formula(wide, {k: v for k, v in step.items() if isinstance(v, float)}), np.float32)

    return apply


def logistic(x: Array) -> Array:
    """``1 / (1 + exp(-x))``."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -700, 700))))


def _softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(0, x))


def _gelu(x: Array, step: Step) -> Array:
    """The exact form with erf, or the one with tanh."""
    wide = np.asarray(x, np.float64)
    if step["approximate"] == "tanh":
        inner = np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3))
    else:
        inner = np.asarray(_erf(wide / np.sqrt(2)), np.float64)
    return np.asarray(0.5 * wide * (1 + inner), np.float32)


def lookup(x: Array, step: Step) -> Array:
    """A function known by its values: `values` at the float32 numbers `inputs`, which are in ascending order."""
    places = np.searchsorted(np.asarray(step["inputs"], np.float32), x)
    return np.asarray(step["values"], np.float32)[places]


FUNCTIONS: dict[str, Function] = {
    "Abs": _single(lambda x, a: np.abs(x)),
    "Neg": _single(lambda x, a: -x),
    "Floor": _single(lambda x, a: np.floor(x)),
    "Ceil": _single(lambda x, a: np.ceil(x)),
    "Round": _single(lambda x, a: np.rint(x)),
    "Sign": _single(lambda x, a: np.sign(x)),
    "Sqrt": _single(lambda x, a: np.sqrt(x)),
    "Reciprocal": _single(lambda x, a: np.float32(1) / x),
    "Softsign": _single(lambda x, a: x / (np.float32(1) + np.abs(x))),
    "HardSigmoid": _single(lambda x, a: np.clip(a["alpha"] * x + a["beta"], np.float32(0), np.float32(1))),
    "HardSwish": _single(
        lambda x, a: x * np.clip(np.float32(1 / 6) * x + np.float32(0.5), np.float32(0), np.float32(1))
    ),
    "LeakyRelu": _single(lambda x, a: np.where(x >= 0, x, a["alpha"] * x)),
    "BipolarQuant": _single(lambda x, a: np.where(x >= 0, np.float32(1), np.float32(-1))),
    "ThresholdedRelu": _single(lambda x, a: np.where(x > a["alpha"], x, np.float32(0))),
    "Shrink": _single(
        lambda x, a: np.where(x < -a["lambd"], x + a["bias"], np.where(x > a["lambd"], x - a["bias"], np.float32(0)))
    ),
    "Sigmoid": _double(lambda x, a: logistic(x)),
    "Tanh": _double(lambda x, a: np.tanh(x)),
    "Exp": _double(lambda x, a: np.exp(x)),
    "Log": _double(lambda x, a: np.log(x)),
    "Sin": _double(lambda x, a: np.sin(x)),
    "Cos": _double(lambda x, a: np.cos(x)),
    "Tan": _double(lambda x, a: np.tan(x)),
    "Asin": _double(lambda x, a: np.arcsin(x)),
    "Acos": _double(lambda x, a: np.arccos(x)),
    "Atan": _double(lambda x, a: np.arctan(x)),
    "Sinh": _double(lambda x, a: np.sinh(x)),
    "Cosh": _double(lambda x, a: np.cosh(x)),
    "Asinh": _double(lambda x, a: np.arcsinh(x)),
    "Acosh": _double(lambda x, a: np.arccosh(x)),
    "Atanh": _double(lambda x, a: np.arctanh(x)),
    "Erf": _double(lambda x, a: np.asarray(_erf(x), np.float64)),
    "Elu": _double(lambda x, a: np.where(x > 0, x, a["alpha"] * np.expm1(x))),
    "Selu": _double(lambda x, a: a["gamma"] * np.where(x > 0, x, a["alpha"] * np.expm1(x))),
    "Celu": _double(lambda x, a: np.maximum(x, 0) + np.minimum(0, a["alpha"] * np.expm1(x / a["alpha"]))),
    "Softplus": _double(lambda x, a: _softplus(x)),
    "Mish": _double(lambda x, a: x * np.tanh(_softplus(x))),
    "Swish": _double(lambda x, a: x * logistic(a["alpha"] * x)),
    "Pow": _double(lambda x, a: np.power(x, a["value"])),
    "PowOf": _double(lambda x, a: np.power(a["value"], x)),
    "Gelu": _gelu,
    "Lookup": lookup,
}
"""By operator; `Pow` is to the power `value`, `PowOf` is `value` to the power of the element."""
