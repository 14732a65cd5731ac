"""`explanation`: differences that the text of an operator settles, each with the quotation."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import onnx
from onnx import helper, numpy_helper

from onnxhw.frontend.hostops import deviations

from .draw import Draw


@dataclass(frozen=True)
class Case:
    """What a rule looks at."""

    draw: Draw
    model: onnx.ModelProto
    reason: str
    sides: dict[str, Any]

    def option(self, name: str) -> str:
        """The option that was drawn, or an empty string."""
        return self.draw.options.get(name, "")


@dataclass(frozen=True)
class Explained:
    """`right` and `delivered`: "onnxruntime", "ours", "neither" or "either" (the text is silent)."""

    operators: tuple[str, ...]
    condition: str
    quotation: str
    right: str
    delivered: str
    when: Callable[[Case], bool]

    @property
    def key(self) -> str:
        """Operator and condition."""
        return f"{' '.join(self.operators)}: {self.condition}"


def _any(case: Case) -> bool:
    return True


def _narrow(case: Case) -> bool:
    return any(case.option(one) in ("float16", "bfloat16") for one in ("T", "T1", "T2"))


def _whole(*variables: str) -> Callable[[Case], bool]:
    return lambda case: any(case.option(one).startswith(("int", "uint")) for one in variables)


def _to(*targets: str) -> Callable[[Case], bool]:
    return lambda case: case.option("T2").startswith(targets)


ORT, OURS, EITHER, SILENT = "onnxruntime", "ours", "either", "the text is silent"
TABLE: tuple[Explained, ...] = (
    Explained(
        ("Relu",),
        "-0.0 and 0.0",
        "'y = max(0, x)': of the zeros neither is greater",
        SILENT,
        EITHER,
        lambda case: "0.0" in case.reason,
    ),
    Explained(
        ("Max", "Min", "ReduceMax", "ReduceMin", "MaxPool", "GlobalMaxPool", "Clip", "ArgMax", "ArgMin", "TopK"),
        "NaN among the operands",
        "no sentence on NaN",
        SILENT,
        EITHER,
        lambda case: case.option("values") == "special",
    ),
    Explained(
        ("Clip",),
        "infinities, an end left out",
        "'They default to numeric_limits::lowest() and numeric_limits::max(), respectively'",
        ORT,
        ORT,
        _any,
    ),
    Explained(
        ("PRelu",),
        "-0.0 or 0.0 and an infinite slope",
        "'f(x) = slope * x for x < 0, f(x) = x for x >= 0'",
        ORT,
        ORT,
        lambda case: "nan" in case.reason,
    ),
    Explained(
        ("ReduceMean",),
        "an empty set",
        "'Reduction over an empty set of values yields undefined'",
        SILENT,
        EITHER,
        lambda case: case.option("rank") == "empty",
    ),
    Explained(
        (
            "ReduceProd",
            "ReduceSum",
            "ReduceSumSquare",
            "ReduceL1",
            "ReduceL2",
            "CumSum",
            "CumProd",
            "Pow",
            "Shrink",
            "ReduceMean",
        ),
        "integers beyond the range of their type",
        "no sentence on overflow",
        SILENT,
        EITHER,
        _whole("T", "T1"),
    ),
    Explained(
        ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "Shrink", "Mean", "LpPool"),
        "roots and logarithms of integers",
        "no sentence on how a real result becomes an integer: towards zero or to the nearest",
        SILENT,
        EITHER,
        _whole("T"),
    ),
    Explained(
        ("Resize", "Upsample"),
        "integers between two pixels",
        "no sentence on how a weighted mean becomes an integer: onnxruntime cuts off, onnx's reference rounds",
        SILENT,
        EITHER,
        _whole("T", "T1"),
    ),
    Explained(
        ("GridSample",),
        "cubic at the border",
        "'border: use border values for out-of-bound grid locations': of the place, or of each of its 16 neighbours",
        SILENT,
        EITHER,
        lambda case: case.option("padding_mode") in ("border", "reflection"),
    ),
    Explained(
        ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"),
        "a mean where some targets are ignored",
        "'If the input value equals ignore_index ... it does not contribute to the loss': onnx's reference counts it",
        ORT,
        ORT,
        lambda case: case.option("ignore_index") in ("-1", "255", "0", "1"),
    ),
    Explained(
        ("SoftmaxCrossEntropyLoss",),
        "float16",
        "'loss = -log(softmax)': the reference's softmax underflows to 0 before its logarithm",
        ORT,
        ORT,
        _narrow,
    ),
    Explained(
        ("Dropout",),
        "the mask of operator set 10 outside of training",
        "'mask: the output mask': what it holds where nothing is dropped is not said before operator set 12",
        SILENT,
        EITHER,
        lambda case: case.draw.since < 12,
    ),
    Explained(
        ("StringSplit",),
        "an empty element",
        "'The second output tensor represents the number of substrings generated': none, or the empty one",
        SILENT,
        EITHER,
        _any,
    ),
    Explained(
        ("QuantizeLinear", "DynamicQuantizeLinear"),
        "a quotient in float16",
        "'If not provided, it will be the same as the type of y_scale': the quotient is rounded to float16 before it "
        "is "
        "rounded to an integer",
        OURS,
        OURS,
        _narrow,
    ),
    Explained(
        ("Cast", "CastLike"),
        "negative numbers to float8e8m0",
        "'Casting negative values to FLOAT8E8M0 gives undefined behavior'",
        SILENT,
        EITHER,
        _to("float8e8m0"),
    ),
    Explained(
        ("Cast", "CastLike"),
        "to types of 2 and 4 bits",
        "no sentence on rounding of fractions: 'fixed point: undefined if OOR'",
        SILENT,
        EITHER,
        _to("int4", "uint4", "int2", "uint2", "float4"),
    ),
    Explained(
        ("Cast", "CastLike"),
        "numbers to text",
        "'Casting ... to string tensors' names no form for numbers that are whole, nor for booleans",
        SILENT,
        EITHER,
        _to("string"),
    ),
    Explained(
        ("Unique",),
        "the order and the axis",
        "'sorted: whether to sort the unique elements in ascending order before "
        "returning as output': the reference sorts always",
        ORT,
        ORT,
        _any,
    ),
    Explained(
        ("Unsqueeze",),
        "axes that are not in order",
        "'The order of values in axes does not matter and can come in any order'",
        ORT,
        ORT,
        _any,
    ),
    Explained(
        ("SequenceInsert",),
        "the position behind the last",
        "'Accepted range for 'position' is in `[-n, n]`'",
        ORT,
        ORT,
        _any,
    ),
    Explained(
        ("ScatterElements", "Scatter"),
        "fewer updates than data along other axes",
        "'output[indices[i][j]][j] = updates[i][j]': onnx's reference writes over elements that no index names",
        ORT,
        ORT,
        _any,
    ),
    Explained(
        ("Constant",),
        "float4",
        "'value: The value for the elements of the output tensor', of its own type",
        OURS,
        OURS,
        lambda case: "float4" in case.reason,
    ),
    Explained(
        ("AffineGrid", "LayerNormalization"),
        "types of results",
        "the type constraints of the outputs: those of theta, float",
        ORT,
        ORT,
        lambda case: "type " in case.reason,
    ),
    Explained(
        (
            "DictVectorizer",
            "FeatureVectorizer",
            "Normalizer",
            "Scaler",
            "ZipMap",
            "LinearClassifier",
            "OneHotEncoder",
            "LinearRegressor",
        ),
        "type and shape of the result",
        "the type constraint of the output, a matrix of rows: onnx's reference keeps those of its operand",
        ORT,
        ORT,
        lambda case: "type " in case.reason or "shape " in case.reason,
    ),
    Explained(
        ("Normalizer",),
        "MAX of negative values",
        "'Max: Y = X / max(X)': onnx's reference takes magnitudes",
        ORT,
        ORT,
        _any,
    ),
    Explained(
        ("StringNormalizer",),
        "letters with accents",
        "'NONE': 'no case changes': onnx's reference strips accents",
        ORT,
        ORT,
        _any,
    ),
    Explained(
        ("SVMClassifier",),
        "probabilities of several classes",
        "'prob_a: First set of probability coefficients', by pairs of "
        "classes as libsvm couples them; onnx's reference iterates wrongly (libsvm, scikit-learn and onnxruntime "
        "agree)",
        ORT,
        ORT,
        _any,
    ),
    Explained(
        ("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble", "LinearClassifier", "SVMRegressor"),
        "post transforms, labels of two classes with one score, missing values",
        "no sentence on what PROBIT and SOFTMAX_ZERO do to two classes, nor on the label of one score; scikit-learn's "
        "exports "
        "expect what onnxruntime does",
        SILENT,
        ORT,
        _any,
    ),
    Explained(
        ("LabelEncoder",),
        "NaN as a key before version 4",
        "no sentence on NaN",
        SILENT,
        EITHER,
        lambda case: case.draw.since < 4,
    ),
    Explained(
        ("CastMap",),
        "numbers as text",
        "no sentence on the form of a number",
        SILENT,
        EITHER,
        lambda case: "'" in case.reason,
    ),
)


def _deviation(case: Case) -> Explained | None:
    """The row of `hostops.deviations` by which the product asks ours."""
    node = next(node for node in case.model.graph.node if node.name == "node")
    values = {**{one.name: numpy_helper.to_array(one) for one in case.draw.constants}, **case.draw.feeds}
    operands = [values.get(name) for name in node.input]
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    call = SimpleNamespace(output=list(node.output), attributes=attributes)
    for row in deviations.of(node.domain, node.op_type):
        if row.applies(call, operands):  # type: ignore[arg-type]
            return Explained((row.op_type,), "hostops.deviations", row.text, OURS, OURS, _any)
    return None


def explanation(draw: Draw, model: onnx.ModelProto, reason: str, sides: dict[str, Any]) -> Explained | None:
    """The row that covers a difference."""
    case = Case(draw, model, reason, sides)
    found = _deviation(case)
    if found is not None:
        return found
    return next((row for row in TABLE if draw.operator.name in row.operators and row.when(case)), None)
