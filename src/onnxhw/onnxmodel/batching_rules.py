"""`RULES`: by operator, whether the rows of its result depend on the same rows of its operands alone.

Rules know the shapes at one batch of two or more; what holds for that batch by its numbers only is caught by
comparing shapes with those at batch 1 (`batch`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import onnx

from .nodes import Node
from .qonnx_formulas import DOMAINS
from .shapes import Shape

Array = npt.NDArray[np.generic]
Kind = Literal["whole", "rows", "size"]
WHOLE: Kind = "whole"
ROWS: Kind = "rows"
SIZE: Kind = "size"
END = 2**31 - 1
"""A Slice to here or beyond goes to the end."""


@dataclass(frozen=True)
class NodeView:
    """A node with what its rule may look at."""

    node: Node
    opset: int
    shapes: Mapping[str, Shape]
    kinds: Mapping[str, Kind]
    constants: Mapping[str, Array]

    def name(self, index: int) -> str:
        """The name of an operand, "" where it is omitted."""
        return self.node.input[index] if index < len(self.node.input) else ""

    def kind(self, index: int) -> Kind:
        """What an operand is; an omitted one is whole."""
        return self.kinds.get(self.name(index), WHOLE)

    def shape(self, index: int) -> Shape:
        """An operand's shape; () for one that is omitted. Rules see no node with operands of unknown shape, but for
        those in `SIZED`."""
        return self.shapes.get(self.name(index), ())

    def one(self, index: int) -> bool:
        """Is the operand omitted, or one element?"""
        return not self.name(index) or prod(self.shapes.get(self.name(index), (0,))) == 1

    def values(self, index: int) -> list[Any] | None:
        """The elements of a constant operand, [] where it is omitted, None where they are not known."""
        name = self.name(index)
        if not name:
            return []
        known = self.constants.get(name)
        return None if known is None else list(known.ravel().tolist())

    def only(self, *indices: int) -> bool:
        """Are all operands but these whole?"""
        return all(self.kind(i) == WHOLE for i in range(len(self.node.input)) if i not in indices)

    @property
    def out(self) -> Shape:
        """The first result's shape."""
        return self.shapes.get(self.node.output[0], ())


Rule = Callable[[NodeView], str]
"""Of a node that reads ROWS (or a SIZE): the reason why samples may meet in it, "" if its results are ROWS."""


def _elementwise(seen: NodeView) -> str:
    """All rows of one rank and length; what is whole is broadcast along the first dimension."""
    rows = [seen.shape(i) for i in range(len(seen.node.input)) if seen.kind(i) == ROWS]
    first = rows[0]
    if any(shape[:1] != first[:1] or len(shape) != len(first) for shape in rows) or seen.out[:1] != first[:1]:
        return "its operands have samples in different dimensions"
    for i in range(len(seen.node.input)):
        if seen.kind(i) == WHOLE and seen.name(i):
            shape = seen.shapes.get(seen.name(i))
            if shape is None or len(shape) > len(first) or (len(shape) == len(first) and shape[:1] != (1,)):
                return f"operand {seen.name(i)!r} has rows of its own"
    return "" if len(seen.out) == len(first) else "its operands have samples in different dimensions"


def _kept(seen: NodeView) -> str:
    """The first operand has the rows, and the operator works within each of them."""
    if seen.kind(0) != ROWS or not seen.only(0):
        return "another operand than the first depends on the samples"
    return "" if seen.out[:1] == seen.shape(0)[:1] else "it changes the first dimension"


def _single(seen: NodeView) -> str:
    """The same, for its first result alone."""
    if any(seen.node.output[1:]):
        return f"result {seen.node.output[1]!r} is not by sample"
    return _kept(seen)


def _normalization(seen: NodeView) -> str:
    trains = seen.node.attributes.get("training_mode") or any(seen.node.output[1:])
    return "it is in training mode" if trains else _single(seen)


def _dropout(seen: NodeView) -> str:
    if seen.name(2) and seen.values(2) != [0]:
        return "it may be in training mode"
    return _kept(seen)


def _layout(seen: NodeView) -> str:
    """Elements keep their order, so whole samples stay whole where the first dimension is a multiple of the batch."""
    return "" if seen.kind(0) == ROWS and seen.only(0, 1) else "its shape depends on the samples"


def _transpose(seen: NodeView) -> str:
    rank = len(seen.shape(0))
    permutation = seen.node.attributes.get("perm", list(range(rank))[::-1])
    return _kept(seen) if permutation[0] == 0 else "it moves the first dimension"


def _along(default: int) -> Rule:
    """The operator works along an axis, which must not be the first; an old Softmax along those from `axis` on."""

    def rule(seen: NodeView) -> str:
        axis = int(seen.node.attributes.get("axis", default))
        return _kept(seen) if axis % max(1, len(seen.shape(0))) else "it works along axis 0"

    return rule


def _softmax(seen: NodeView) -> str:
    return _along(-1 if seen.opset >= 13 else 1)(seen)


def _quantize(seen: NodeView) -> str:
    """One scale, or one for each index of another axis than the first."""
    if seen.one(1) and seen.one(2):
        return _kept(seen)
    if seen.node.attributes.get("block_size", 0) or any(len(seen.shape(i)) > 1 for i in (1, 2)):
        return "it has blocks of scales"
    return _along(1)(seen)


def _cumulate(seen: NodeView) -> str:
    axis = seen.values(1)
    return _kept(seen) if axis and axis[0] % max(1, len(seen.shape(0))) else "it works along axis 0, or may"


def _one_hot(seen: NodeView) -> str:
    axis = int(seen.node.attributes.get("axis", -1)) % (len(seen.shape(0)) + 1)
    return _kept(seen) if axis else "it works along axis 0"


def _concat(seen: NodeView) -> str:
    count = len(seen.node.input)
    rank = max(1, len(seen.shape(0)))
    if int(seen.node.attributes.get("axis", 1)) % rank == 0:
        return "it works along axis 0"
    return "" if all(seen.kind(i) == ROWS for i in range(count)) else "an operand has rows of its own"


def _qlinear_concat(seen: NodeView) -> str:
    """Scale and zero point of the result; then tensor, scale and zero point of each operand."""
    data = range(2, len(seen.node.input), 3)
    if int(seen.node.attributes.get("axis", 0)) % max(1, len(seen.shape(2))) == 0:
        return "it works along axis 0"
    return "" if all(seen.kind(i) == ROWS for i in data) and seen.only(*data) else "an operand has rows of its own"


def _gather(seen: NodeView) -> str:
    axis = int(seen.node.attributes.get("axis", 0)) % max(1, len(seen.shape(0)))
    if seen.kind(0) == ROWS and seen.kind(1) == WHOLE:
        return "it gathers along axis 0" if axis == 0 else ""
    if seen.kind(0) == WHOLE and seen.kind(1) == ROWS:
        return "" if axis == 0 else "the samples are not its first dimension"
    return "samples choose among samples"


def _gather_elements(seen: NodeView) -> str:
    axis = int(seen.node.attributes.get("axis", 0)) % max(1, len(seen.shape(0)))
    same = seen.shape(0)[:1] == seen.shape(1)[:1]
    return "" if axis and same and seen.kind(0) == seen.kind(1) == ROWS else "it gathers along axis 0, or may"


def _slice(seen: NodeView) -> str:
    if seen.opset < 10:
        starts, ends = seen.node.attributes.get("starts", []), seen.node.attributes.get("ends", [])
        axes, steps = seen.node.attributes.get("axes", list(range(len(starts)))), [1] * len(starts)
    else:
        found = [seen.values(i) for i in (1, 2, 3, 4)]
        if any(one is None for one in found):
            return "it is not known what it leaves out"
        starts, ends, axes, steps = (one or [] for one in found)
        axes, steps = axes or list(range(len(starts))), steps or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if axis % max(1, len(seen.shape(0))) == 0 and ((start, step) != (0, 1) or end < END):
            return "it leaves out samples, or may"
    return _kept(seen)


def _pad(seen: NodeView) -> str:
    rank = len(seen.shape(0))
    pads = list(seen.node.attributes.get("pads", [])) if seen.opset < 11 else seen.values(1)
    axes = seen.values(3)
    if not pads or axes is None:
        return "it is not known where it adds"
    axes = [axis % rank for axis in axes] or list(range(rank))
    added = [(pads[i], pads[i + len(axes)]) for i, axis in enumerate(axes) if axis == 0]
    return _kept(seen) if added in ([], [(0, 0)]) else "it adds samples"


def _reduce(seen: NodeView) -> str:
    axes = seen.node.attributes.get("axes") or seen.values(1)
    if axes is None:
        return "its axes are not constant"
    if not axes:
        return _kept(seen) if seen.node.attributes.get("noop_with_empty_axes") else "it reduces all axes"
    return "it reduces axis 0" if 0 in [axis % max(1, len(seen.shape(0))) for axis in axes] else _kept(seen)


def _qlinear_reduce(seen: NodeView) -> str:
    axes = [int(axis) % max(1, len(seen.shape(0))) for axis in seen.node.attributes.get("axes", [0])]
    return "it reduces axis 0, or all" if 0 in axes or not axes else _kept(seen)


def _thresholds(seen: NodeView) -> str:
    return _kept(seen) if len(seen.shape(0)) > 1 else "it works along axis 0"


def _resize(seen: NodeView) -> str:
    if seen.node.attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        return "it may crop samples"
    if seen.node.attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return "the batch may change its scale"
    if seen.kind(0) != ROWS or not seen.only(0, 3) or seen.kind(3) == ROWS:
        return "its size depends on the samples"
    if not seen.name(3):
        scales, rank = seen.values(2 if seen.opset >= 11 else 1), len(seen.shape(0))
        axes = [axis % rank for axis in seen.node.attributes.get("axes", range(rank))]
        if scales is None or any(axis == 0 and scale != 1 for axis, scale in zip(axes, scales, strict=True)):
            return "it scales the first dimension, or may"
    return "" if seen.out[:1] == seen.shape(0)[:1] else "it changes the first dimension"


def _expand(seen: NodeView) -> str:
    """Rows stay, or what is whole becomes the same in every row."""
    x, out = seen.shape(0), seen.out
    if seen.kind(1) == ROWS or (seen.kind(0) == ROWS and (len(x) != len(out) or x[:1] != out[:1])):
        return "it changes the first dimension"
    if seen.kind(0) == WHOLE and len(x) == len(out) and x[:1] != (1,):
        return "its operand has rows of its own"
    return ""


def _trilu(seen: NodeView) -> str:
    return _kept(seen) if len(seen.shape(0)) > 2 else "it works along axis 0"


def _gemm(seen: NodeView) -> str:
    """Rows of A; C is the same for each, or has rows too."""
    c = 6 if seen.node.op_type == "QGemm" else 2
    b = 3 if seen.node.op_type == "QGemm" else 1
    if seen.kind(0) != ROWS or seen.node.attributes.get("transA") or not seen.only(0, c) or seen.kind(b) != WHOLE:
        return "the samples are not the rows of its first operand"
    if seen.kind(c) == ROWS:
        return "" if seen.shape(c)[:1] == seen.shape(0)[:1] else "its operands have samples in different dimensions"
    return "" if len(seen.shape(c)) < 2 or seen.shape(c)[0] == 1 else f"operand {seen.name(c)!r} has rows of its own"


def _matmul(b: int, scalars: Sequence[int]) -> Rule:
    """A product of operands 0 and `b`; `scalars` must be one element if A has the samples."""

    def rule(seen: NodeView) -> str:
        left, right = seen.shape(0), seen.shape(b)
        if not seen.only(0, b) or (not all(seen.one(i) for i in scalars)):
            return "its scales are by row, or depend on the samples"
        if seen.kind(0) == seen.kind(b) == ROWS:
            return "" if len(left) == len(right) > 2 and left[0] == right[0] else "samples are multiplied by samples"
        one, other = (left, right) if seen.kind(0) == ROWS else (right, left)
        least = 2 if seen.kind(0) == ROWS else 3
        apart = len(other) <= 2 or len(other) < len(one) or (len(other) == len(one) and other[0] == 1)
        return "" if len(one) >= least and apart else "the samples are not in a dimension of their own"

    return rule


RANDOM = frozenset(
    ["RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"]
)
ELEMENTWISE = [
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitShift", "BitwiseAnd", "BitwiseNot",
    "BitwiseOr", "BitwiseXor", "Cast", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Div", "Elu", "Equal", "Erf", "Exp",
    "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN",
    "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or",
    "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
    "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor",
]  # fmt: skip
KEPT = [
    "Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "AveragePool", "GlobalAveragePool", "GlobalMaxPool",
    "LpPool", "GlobalLpPool", "LRN", "InstanceNormalization", "GroupNormalization", "DepthToSpace", "SpaceToDepth",
    "Tile",
]  # fmt: skip
LAST = [
    "LpNormalization", "LayerNormalization", "RMSNormalization", "TopK",
]  # fmt: skip
REDUCTIONS = ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
              "ReduceProd", "ReduceSum", "ReduceSumSquare"]  # fmt: skip
MICROSOFT = "com.microsoft"
RULES: dict[tuple[str, str], Rule] = {
    **{("", name): _elementwise for name in ELEMENTWISE},
    **{("", name): _kept for name in KEPT},
    **{("", name): _along(-1) for name in LAST},
    **{("", name): _reduce for name in REDUCTIONS},
    **{("", name): _softmax for name in ("Softmax", "LogSoftmax", "Hardmax")},
    **{("", name): _along(0) for name in ("ArgMax", "ArgMin", "Split")},
    **{("", name): _layout for name in ("Reshape", "Flatten", "Squeeze", "Unsqueeze")},
    **{(domain, name): _quantize for domain in ("", MICROSOFT) for name in ("QuantizeLinear", "DequantizeLinear")},
    ("", "MaxPool"): _single,
    ("", "BatchNormalization"): _normalization,
    ("", "Dropout"): _dropout,
    ("", "Transpose"): _transpose,
    ("", "CumSum"): _cumulate,
    ("", "OneHot"): _one_hot,
    ("", "Concat"): _concat,
    ("", "Gather"): _gather,
    ("", "GatherElements"): _gather_elements,
    ("", "Slice"): _slice,
    ("", "Pad"): _pad,
    ("", "Resize"): _resize,
    ("", "Expand"): _expand,
    ("", "ConstantOfShape"): lambda seen: "",
    ("", "Trilu"): _trilu,
    ("", "Gemm"): _gemm,
    ("", "MatMul"): _matmul(1, ()),
    ("", "MatMulInteger"): _matmul(1, (2,)),
    ("", "QLinearMatMul"): _matmul(3, (1, 2, 6, 7)),
    (MICROSOFT, "MatMulIntegerToFloat"): _matmul(1, (2, 4)),
    (MICROSOFT, "QGemm"): _gemm,
    (MICROSOFT, "QLinearConv"): _kept,
    (MICROSOFT, "NhwcMaxPool"): _kept,
    (MICROSOFT, "QLinearReduceMean"): _qlinear_reduce,
    (MICROSOFT, "QLinearConcat"): _qlinear_concat,
    (MICROSOFT, "QLinearSoftmax"): _along(-1),
    **{(MICROSOFT, name): _kept for name in ("QLinearAveragePool", "QLinearGlobalAveragePool")},
    **{(MICROSOFT, name): _elementwise for name in ("Gelu", "QLinearAdd", "QLinearMul", "QLinearSigmoid",
                                                    "QLinearLeakyRelu")},
    **{(domain, name): _elementwise for domain in DOMAINS for name in ("Quant", "IntQuant", "BipolarQuant", "Trunc")},
    **{(domain, "MultiThreshold"): _thresholds for domain in DOMAINS},
}  # fmt: skip
SIZED = {
    (("", "Reshape"), 1), (("", "Expand"), 1), (("", "ConstantOfShape"), 0), (("", "Resize"), 3),
}  # fmt: skip
"""Operands that give nothing but the result's shape: what is affine is known for every N from its values at two."""
INTEGERS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)


def _moves(seen: NodeView) -> bool:
    return seen.only(0)


LINEAR: dict[tuple[str, str], Callable[[NodeView], bool]] = {
    **{("", name): _moves for name in ("Gather", "Slice", "Squeeze", "Unsqueeze", "Identity")},
    ("", "Cast"): lambda seen: seen.node.attributes.get("to") in INTEGERS,
    **{("", name): lambda seen: True for name in ("Concat", "Add", "Sub")},
    ("", "Mul"): lambda seen: seen.kind(0) != seen.kind(1),
}
"""Operators that make affine integers of affine integers."""
