"""Quantized operators and the two that quantize."""

import numpy as np

from ..draw import Draw
from .elementwise import code
from .windowed import window


def _scale(d: Draw, shape: tuple[int, ...] = (), element: str = "float") -> np.ndarray:
    powers = d.choose("scales", ["powers of two", "any"]) == "powers of two"
    value = 2.0 ** d.rng.integers(-5, 2, shape) if powers else d.rng.uniform(0.01, 0.5, shape)
    return np.asarray(value).astype(d.of(element, (), "plain").dtype)


def linear(d: Draw) -> None:
    """QuantizeLinear and DequantizeLinear: per tensor, per axis, per block."""
    down = d.operator.name == "QuantizeLinear"
    grains = ["tensor"] + (["axis"] if d.since >= 13 else []) + (["block"] if d.since >= 21 else [])
    grain = d.choose("granularity", grains)
    shape = d.shape(1 if grain != "tensor" else 0, 4, empty=grain == "tensor")
    axis, rank = 1, len(shape)
    scale: tuple[int, ...] = ()
    if grain != "tensor":
        axis = d.pick([0, rank - 1, -1, -rank])
        d.attributes["axis"] = axis
        d.options["axis"] = "negative" if axis < 0 else "positive"
        scale = (shape[axis],)
    if grain == "block":
        block = d.choose("block_size", [1, 2])
        d.attributes["block_size"] = block
        shape = tuple(n * block if i == axis % rank else n for i, n in enumerate(shape))
        scale = tuple(n // block if i == axis % rank else n for i, n in enumerate(shape))
    types = d.operator.types
    if down:
        zeros = "T3" if "T3" in types else "T2"
        kind = d.type(zeros)
        source = d.type("T1")
        second = ("T2" if "T3" in types else None) if d.since >= 23 else None
        x = (
            d.of(source, shape, d.choose("values", ["plain", "ties", "edges"]))
            if source.startswith(("float", "double", "bfloat"))
            else d.of(source, shape, "plain")
        )
        d.x(x)
        d.x(_scale(d, scale, source if second is None and d.since >= 19 else d.type(second) if second else "float"))
        if d.has("saturate") and kind.startswith("float8"):
            d.attr("saturate", [0, 1])
    else:
        kind = d.type("T1" if "T1" in types else "T")
        d.x(d.of(kind, shape, "edges"))
        source = d.type("T2") if "T2" in types and d.since >= 19 else "float"
        d.x(_scale(d, scale, source))
    if d.maybe("zero point") or (down and kind != "uint8" and not d.has("output_dtype")):
        zero = d.of(kind, scale, "plain")
        d.x(zero * 0 if kind == "int32" or kind.startswith("float") else zero, True)
    elif down and d.has("output_dtype") and kind != "uint8":
        d.attributes["output_dtype"] = code(kind)
        d.options["output_dtype"] = kind


def dynamic(d: Draw) -> None:
    d.x(d.array("T1", d.shape(empty=False), d.choose("values", ["plain", "ties", "positive"])))
    d.outputs = 3


def matmul_integer(d: Draw) -> None:
    m, k, n = d.integer(1, 4), d.choose("inner size", [1, 3, 17]), d.integer(1, 4)
    batch = d.choose("rank", ["2-D", "3-D"])
    d.x(d.array("T1", (m, k) if batch == "2-D" else (2, m, k), "edges"))
    b = d.x(d.array("T2", (k, n), "edges"))
    if d.maybe("a_zero_point"):
        d.x(d.array("T1", (), "plain"))
    else:
        d.skip()
    if d.maybe("b_zero_point"):
        d.x(np.asarray(d.array("T2", d.choose("zero point", [(), (n,)]), "plain"), b.dtype))


def conv_integer(d: Draw) -> None:
    spatial = d.choose("spatial axes", [1, 2])
    kernel, sizes, _ = window(d, spatial)
    group = d.attr("group", [1, 2])
    c, m = group * d.integer(1, 3), group * d.integer(1, 3)
    if d.maybe("kernel_shape"):
        d.attributes["kernel_shape"] = kernel
    d.x(d.array("T1", (1, c, *sizes), "edges"))
    d.x(d.array("T2", (m, c // group, *kernel), "edges"))
    if d.maybe("x_zero_point"):
        d.x(d.array("T1", (), "plain"))
    else:
        d.skip()
    if d.maybe("w_zero_point"):
        d.x(d.array("T2", (), "plain"))


def qlinear_matmul(d: Draw) -> None:
    m, k, n = d.integer(1, 4), d.choose("inner size", [1, 3, 17]), d.integer(1, 4)
    scale = d.type("TS") if "TS" in d.operator.types else "float"
    for variable, shape in (("T1", (m, k)), ("T2", (k, n))):
        d.x(d.array(variable, shape, "edges"))
        d.x(_scale(d, (), scale), True)
        d.x(d.array(variable, (), "plain"), True)
    d.x(_scale(d, (), scale) * 20, True)
    d.x(d.array("T3", (), "plain"), True)


def qlinear_conv(d: Draw) -> None:
    kernel, sizes, _ = window(d, d.choose("spatial axes", [1, 2]))
    group = d.attr("group", [1, 2])
    c, m = group * d.integer(1, 3), group * d.integer(1, 3)
    if d.maybe("kernel_shape"):
        d.attributes["kernel_shape"] = kernel
    grain = d.choose("granularity", [(), (m,)])
    d.options["granularity"] = "channel" if grain else "tensor"
    d.existing["granularity"] = ["channel", "tensor"]
    d.x(d.array("T1", (1, c, *sizes), "edges"))
    d.x(_scale(d), True)
    d.x(d.array("T1", (), "plain"), True)
    w = d.x(d.array("T2", (m, c // group, *kernel), "edges"), True)
    d.x(_scale(d, grain), True)
    d.x(np.zeros(grain, w.dtype) if w.dtype == np.int8 or grain else d.array("T2", (), "plain"), True)
    d.x(_scale(d) * np.float32(20), True)
    d.x(d.array("T3", (), "plain"), True)
    if d.maybe("B"):
        d.x(d.of("int32", (m,), "plain"), True)


GENERATORS = {
    **dict.fromkeys(["QuantizeLinear", "DequantizeLinear"], linear),
    "DynamicQuantizeLinear": dynamic,
    "MatMulInteger": matmul_integer,
    "ConvInteger": conv_integer,
    "QLinearMatMul": qlinear_matmul,
    "QLinearConv": qlinear_conv,
}
