"""`numbers`: arrays of every element type, drawn near the edges of it."""

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

Array = npt.NDArray[Any]
WORDS = (
    "",
    "a",
    "A",
    "bc",
    "Bc",
    "the",
    "The",
    "né",
    "NÉ",
    "Straße",
    "0",
    "1",
    "-1",
    "3.5",
    "x y",
    " x",
    "b,c",
    "日本",
    "zz",
)


def dtype(element: str) -> np.dtype[Any]:
    """numpy's type of an element type as schemas name it."""
    if element == "string":
        return np.dtype(object)
    return np.dtype(helper.tensor_dtype_to_np_dtype(getattr(TensorProto, element.upper())))


def numbers(rng: np.random.Generator, element: str, shape: tuple[int, ...], style: str) -> Array:
    """Values of an element type.

    "plain" are moderate, "ties" are multiples of a half, or few different integers; "edges" reach to the ends of the
    type's range; "special" has NaN and infinities, for integers the ends alone; "positive" is above zero; "sums" is
    moderate, so that the order of additions costs a few units in the last place only.
    """
    kind = dtype(element)
    if element == "string":
        return np.array([WORDS[i] for i in rng.integers(len(WORDS), size=int(np.prod(shape)))], object).reshape(shape)
    if element == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if kind.kind in "iu":
        return _integers(rng, kind, shape, style)
    if element in ("int4", "uint4", "int2", "uint2"):
        low, high = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}[element]
        return rng.integers(low, high + 1, shape).astype(np.int8).astype(kind)
    if kind.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(kind)
    with np.errstate(over="ignore"):
        return _floats(rng, element, shape, style).astype(kind)


def _integers(rng: np.random.Generator, kind: np.dtype[Any], shape: tuple[int, ...], style: str) -> Array:
    info = np.iinfo(kind)
    low = max(int(info.min), -100)
    if style == "positive":
        return rng.integers(1, 20, shape).astype(kind)
    if style == "ties":
        return rng.integers(max(int(info.min), -2), 3, shape).astype(kind)
    if style in ("plain", "sums"):
        return rng.integers(low, 101, shape).astype(kind)
    ends = np.array([info.min, info.min + 1, info.max - 1, info.max, 0, 1], kind)
    inner = rng.integers(info.min, info.max, shape, endpoint=True, dtype=kind)
    share = 0.3 if style == "edges" else 1.0
    return np.where(rng.random(shape) < share, rng.choice(ends, shape), inner).astype(kind)


def _floats(rng: np.random.Generator, element: str, shape: tuple[int, ...], style: str) -> Array:
    largest, tiny = {"float16": (65504.0, 6e-8), "bfloat16": (3.38e38, 9e-41), "double": (1.7e308, 5e-324)}.get(
        element, (448.0, 2.0**-9) if element.startswith("float8") else (3.4e38, 1e-45)
    )
    plain = rng.standard_normal(shape) * rng.choice([0.5, 2.0, 10.0])
    if style == "positive":
        return np.asarray(np.abs(plain) + 0.1)
    if style in ("plain", "sums"):
        return np.asarray(plain)
    if style == "ties":
        return np.asarray(rng.integers(-8, 9, shape) / 2)
    if style == "edges":
        some = rng.choice(
            [0.0, -0.0, 1.0, -1.0, 0.5, largest, -largest, tiny, -tiny, 1e-3, 88.0, -104.0, 2.0**24 + 1], shape
        )
    else:
        some = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], shape)
    return np.where(rng.random(shape) < 0.4, some, plain)
