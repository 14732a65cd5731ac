"""Operators that compute element by element, and Cast."""

import re
from functools import partial
from typing import Any

import numpy as np
from onnx import TensorProto

from ..draw import Draw
from ..values import dtype

FLOATS = [0.0, 1.0, -1.0, 0.5, 2.5, 1e-3, 100.0]


def unary(d: Draw) -> None:
    """One operand of any shape; the float attributes of the schema are drawn."""
    for name, schema in d.operator.schema.attributes.items():
        if schema.type.name == "FLOAT":
            d.attr(name, FLOATS)
        elif schema.type.name == "INTS" and name == "consumed_inputs":
            continue
    variable = next(iter(d.operator.types))
    d.x(d.array(variable, d.shape()))


def clip(d: Draw) -> None:
    if d.has("min"):
        d.attr("min", FLOATS)
        d.attr("max", FLOATS)
        d.x(d.array("T", d.shape()))
        return
    d.x(d.array("T", d.shape()))
    for name in ("min", "max"):
        if d.maybe(name):
            d.x(d.of(d.type("T"), (), "plain" if d.rng.random() < 0.7 else "edges"))
        else:
            d.skip()


def binary(d: Draw) -> None:
    shapes = d.broadcast(2)
    variable = next(iter(d.operator.types))
    for shape in shapes:
        d.x(d.array(variable, shape))


def divide(d: Draw) -> None:
    """Of integers no division by zero, and no lowest value by -1: neither has a result."""
    a, b = d.broadcast(2)
    d.x(d.array("T", a))
    second = d.array("T", b)
    if second.dtype.kind in "iu":
        second = np.where((second == 0) | (second.astype(np.int64) == -1), second.dtype.type(3), second)
    if d.has("fmod"):
        whole = second.dtype.kind in "iu"
        d.attr("fmod", [0, 1] if whole else [1], needed=not whole)
    d.x(second)


def power(d: Draw) -> None:
    a, b = d.broadcast(2)
    base = d.array("T", a)
    whole = base.dtype.kind in "iu"
    d.x(np.asarray(base.astype(np.int64) % 6).astype(base.dtype) if whole else base)
    variable = "T1" if "T1" in d.operator.types else "T"
    exponent = d.array(variable, b)
    if whole:
        exponent = np.asarray(np.abs(np.nan_to_num(exponent.astype(np.float64), posinf=1.0, neginf=1.0)) % 5).astype(
            exponent.dtype
        )
    d.x(exponent)


def shift(d: Draw) -> None:
    d.attr("direction", ["LEFT", "RIGHT"])
    a, b = d.broadcast(2)
    x = d.x(d.array("T", a))
    d.x(d.rng.integers(0, 8 * x.dtype.itemsize, b).astype(x.dtype))


def variadic(d: Draw) -> None:
    count = d.choose("operands", [1, 2, 3, 5])
    shapes = d.broadcast(count) if d.since >= 8 else [d.shape()] * count
    for shape in shapes:
        d.x(d.array("T", shape, "plain" if d.operator.name in ("Sum", "Mean") else ""))


def where(d: Draw) -> None:
    a, b, c = d.broadcast(3)
    d.x(d.of("bool", a))
    d.x(d.array("T", b))
    d.x(d.array("T", c))


def prelu(d: Draw) -> None:
    shape = d.shape(1)
    d.x(d.array("T", shape))
    d.x(d.array("T", d.choose("slope", [shape, shape[-1:], ()])))


def swiglu(d: Draw) -> None:
    d.attr("alpha", FLOATS)
    shape = d.shape()
    d.x(d.array("T", shape))
    d.x(d.array("T", shape))


def gelu(d: Draw) -> None:
    d.attr("approximate", ["none", "tanh"])
    d.x(d.array("T", d.shape()))


def infinite(d: Draw) -> None:
    d.attr("detect_positive", [0, 1])
    d.attr("detect_negative", [0, 1])
    d.x(d.array("T1", d.shape(), "special"))


def code(element: str) -> int:
    """The number of an element type in a file."""
    return int(getattr(TensorProto, element.upper()))


def _castable(d: Draw, source: str, target: str, shape: tuple[int, ...]) -> Any:
    """Values whose conversion the text defines: text that is a number, floats in the range of an integer type."""
    narrow = {"int4": 7, "uint4": 15, "int2": 1, "uint2": 3}
    if source == "string":
        whole = target not in ("float", "double", "float16", "bfloat16") and not target.startswith("float")
        texts = ["0", "1", "12", "7"] if whole else ["1.5", "-2", "0", "1e3", "NaN", "INF", "-INF", "3.14159", "+5"]
        return np.array([d.pick(texts) for _ in range(int(np.prod(shape)))], object).reshape(shape)
    x = d.of(source, shape)
    if target in narrow and source not in narrow and source != "bool":
        return np.clip(np.nan_to_num(x.astype(np.float64)), 0, narrow[target]).astype(dtype(source))
    floating = source in ("float", "double", "float16", "bfloat16") or source.startswith("float")
    if floating and target != "bool" and (target in narrow or dtype(target).kind in "iu"):
        info = None if target in narrow else np.iinfo(dtype(target))
        low, high = (0, 1) if info is None else (max(float(info.min), -(2.0**30)), min(float(info.max), 2.0**30))
        x = np.nan_to_num(x.astype(np.float64), nan=1.0, posinf=1.0, neginf=1.0)
        return np.where((x < low) | (x > high), 1.0, x).astype(dtype(source))
    return x


def cast(d: Draw) -> None:
    like = d.operator.name == "CastLike"
    source, target = d.type("T1"), d.type("T2")
    if d.has("saturate"):
        d.attr("saturate", [0, 1])
    if d.has("round_mode"):
        d.attr("round_mode", ["up", "down", "nearest"])
    d.x(_castable(d, source, target, d.shape()))
    if like:
        d.x(d.of(target, (1,), "plain"))
    else:
        d.attributes["to"] = code(target)
        d.options["to"] = target


def width(element: str) -> int:
    """The bits of an element type, by its name."""
    named = {"float": 32, "double": 64, "bool": 8}
    return named.get(element) or int(re.sub(r"\D*(\d+).*", r"\1", element))


def bitcast(d: Draw) -> None:
    """Between types of one width: others the operator refuses."""
    source = d.type("T1")
    every = [one.removeprefix("tensor(").removesuffix(")") for one in d.operator.types["T2"]]
    target = d.type("T2", [one for one in every if width(one) == width(source)])
    x = d.of(source, d.shape())
    d.x(x)
    d.attributes["to"] = code(target)
    d.options["to"] = target


UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor HardSigmoid HardSwish
IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish
Tan Tanh ThresholdedRelu Identity Size NonZero"""
BINARY = """Add And BitwiseAnd BitwiseOr BitwiseXor Equal Greater GreaterOrEqual Less LessOrEqual Mul Or Sub Xor
StringConcat"""
GENERATORS = {
    **dict.fromkeys(UNARY.split(), unary),
    **dict.fromkeys(BINARY.split(), binary),
    **dict.fromkeys(["Max", "Min", "Sum", "Mean"], variadic),
    **dict.fromkeys(["Div", "Mod"], divide),
    **dict.fromkeys(["Cast", "CastLike"], partial(cast)),
    "Clip": clip,
    "Pow": power,
    "BitShift": shift,
    "Where": where,
    "PRelu": prelu,
    "SwiGLU": swiglu,
    "Gelu": gelu,
    "IsInf": infinite,
    "BitCast": bitcast,
}
