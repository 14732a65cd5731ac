"""`quantizes`: the operators that only quantized models have."""

QONNX = frozenset(["Quant", "IntQuant", "BipolarQuant"])
"""Operators that quantize and dequantize at once."""
QUANTIZERS = frozenset(
    [
        "QuantizeLinear",
        "QGemm",
        "ConvInteger",
        "MatMulInteger",
        *QONNX,
    ]
)
"""A model without any of these and without QLinear operators is not quantized."""


def quantizes(op_type: str) -> bool:
    """Is it an operator that only quantized models have?"""
    return op_type in QUANTIZERS or op_type.startswith("QLinear")
