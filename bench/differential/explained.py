"""`explanation`: differences that the text of an operator settles, each with the quotation."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from onnxhw.hostops.operators import deviations

from .draw import Draw


@dataclass(frozen=True)
class Case:
    """What a rule looks at."""

    draw: Draw
    model: onnx.ModelProto
    reason: str
    sides: dict[str, Any]
    formula: bool = False
    """Whether the product's answer is that of `formulas`."""

    def operand(self, index: int) -> Any:
        """The value of an operand, None if it is left out."""
        values = {**{one.name: numpy_helper.to_array(one) for one in self.draw.constants}, **self.draw.feeds}
        return values.get(self.draw.inputs[index]) if index < len(self.draw.inputs) else None

    def option(self, name: str) -> str:
        """The option that was drawn, or an empty string."""
        return self.draw.options.get(name, "")


@dataclass(frozen=True)
class Explained:
    """`right` and `delivered`: "onnxruntime", "ours", "neither" or "either" (the text is silent).

    `quotation`: words of the documentation of each of the operators, as onnx has them but for white space and
    Markdown; empty where it is silent. `body`: a line of the function that defines them. `remark`: ours.
    """

    operators: tuple[str, ...]
    condition: str
    remark: str
    right: str
    delivered: str
    when: Callable[[Case], bool]
    quotation: str = ""
    body: str = ""

    @property
    def key(self) -> str:
        """Operator and condition."""
        return f"{' '.join(self.operators)}: {self.condition}"

    @property
    def evidence(self) -> str:
        """The quotation, the line of the body, the remark."""
        quoted = [f'"{self.quotation}"'] if self.quotation else []
        return "; ".join([*quoted, *([f"body: {self.body}"] if self.body else []), self.remark])


def _any(case: Case) -> bool:
    return True


def _narrow(case: Case) -> bool:
    return any(case.option(one) in ("float16", "bfloat16") for one in ("T", "T1", "T2"))


def _whole(*variables: str) -> Callable[[Case], bool]:
    return lambda case: any(case.option(one).startswith(("int", "uint")) for one in variables)


def _to(*targets: str) -> Callable[[Case], bool]:
    return lambda case: case.option("T2").startswith(targets)


def _float_to(*targets: str) -> Callable[[Case], bool]:
    floats = ("float", "bfloat", "double")
    return lambda case: case.option("T2").startswith(targets) and case.option("T1").startswith(floats)


def _option(name: str, *values: str) -> Callable[[Case], bool]:
    return lambda case: case.option(name) in values


def _texts(case: Case) -> list[str]:
    return [str(one) for one in np.ravel(np.asarray(case.operand(0), object))]


def _extreme(case: Case) -> bool:
    """An end left out, or NaN or an infinity among the operands."""
    given = [case.operand(i) for i in range(3)]
    return any(one is None or not np.all(np.isfinite(np.asarray(one, np.float64))) for one in given)


def _disordered(case: Case) -> bool:
    axes = case.draw.attributes.get("axes", case.operand(1))
    axes = [] if axes is None else list(np.ravel(axes))
    return axes != sorted(axes) or any(axis < 0 for axis in axes)


def _fewer(case: Case) -> bool:
    """Updates that cover the data in no other axis."""
    axis = case.draw.attributes.get("axis", 0)
    data, updates = (list(np.shape(case.operand(i))) for i in (0, 2))
    return any(a != b for i, (a, b) in enumerate(zip(data, updates, strict=True)) if i != axis % max(len(data), 1))


ZEROS = re.compile(r"\(-?0\.0\) and (\S*\()?-?0\.0\)")
"""Of a difference: one zero and another."""
INFINITE = re.compile(r"\W(inf|nan)\W")
ORT, OURS, EITHER, SILENT = "onnxruntime", "ours", "either", "the text is silent"
TABLE: tuple[Explained, ...] = (
    Explained(("Relu",), "-0.0 and 0.0", "of the zeros neither is greater", SILENT, EITHER,
              lambda case: "0.0" in case.reason, "y = max(0, x)"),
    Explained(("Max", "Min", "ReduceMax", "ReduceMin"), "-0.0 and 0.0", "no sentence on which of equal numbers", SILENT,
              EITHER, lambda case: ZEROS.search(case.reason) is not None),
    Explained(("RNN", "GRU", "LSTM"), "sums beyond the range of their type",
              "no sentence on the order in which infinities meet", SILENT, EITHER,
              lambda case: INFINITE.search(case.reason) is not None and case.option("activations") == "True"),
    Explained(("Celu",), "an alpha of 0", "no sentence on a division by it", SILENT, EITHER, _option("alpha", "0.0"),
              "max(0,x) + min(0,alpha*(exp(x/alpha)-1))"),
    Explained(("StringSplit",), "white space behind the last split", "onnx's reference leaves it", ORT, ORT,
              lambda case: case.option("delimiter") == "" and "maxsplit" in case.draw.attributes,
              "leading or trailing whitespace is removed in the output."),
    Explained(("LinearClassifier",), "one row of coefficients for two classes",
              "no sentence on the score of the other class: its probability is the rest, as scikit-learn has it",
              SILENT, ORT, lambda case: case.option("rows") == "1" and case.option("classes") == "2"),
    Explained(("Max", "Min", "ReduceMax", "ReduceMin", "MaxPool", "GlobalMaxPool", "Clip", "ArgMax", "ArgMin", "TopK"),
              "NaN among the operands", "no sentence on NaN", SILENT, EITHER, _option("values", "special")),
    Explained(("Clip",), "infinities, an end left out", "so an infinity without an end becomes the greatest number",
              ORT, ORT, _extreme,
              "They default to numeric_limits::lowest() and numeric_limits::max(), respectively."),
    Explained(("PRelu",), "-0.0 or 0.0 and an infinite slope", "the reference multiplies zeros", ORT, ORT,
              lambda case: "nan" in case.reason, "f(x) = slope * x for x < 0, f(x) = x for x >= 0"),
    Explained(("ReduceMean",), "an empty set", "either is as good", SILENT, EITHER, _option("rank", "empty"),
              "Reduction over an empty set of values yields undefined."),
    Explained(("ReduceProd", "ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceL2", "CumSum", "CumProd", "Pow",
               "Shrink", "ReduceMean"),
              "integers beyond the range of their type", "no sentence on overflow", SILENT, EITHER, _whole("T", "T1")),
    Explained(("ReduceL2", "ReduceLogSum", "Shrink", "Mean", "LpPool"),
              "roots and logarithms of integers",
              "no sentence on how a real result becomes an integer: towards zero or to the nearest", SILENT, EITHER,
              _whole("T")),
    Explained(("Resize", "Upsample"), "integers between two pixels",
              "no sentence on how a weighted mean becomes an integer: onnxruntime cuts off, onnx's reference rounds",
              SILENT, EITHER, _whole("T", "T1")),
    Explained(("GridSample",), "border and reflection", "of the place, or of each of its 16 neighbours", SILENT, EITHER,
              _option("padding_mode", "border", "reflection"),
              "border: use border values for out-of-bound grid locations"),
    Explained(("DynamicQuantizeLinear",), "zeros alone",
              "a scale of 0, by which nothing can be divided; with 1 (onnxruntime) and with 1/255 (onnx's reference) "
              "the quantized values are zeros too", SILENT, EITHER, lambda case: not np.any(case.operand(0)),
              "y_scale = (maximum(0, max(x)) - minimum(0, min(x))) / (qmax - qmin)",
              "Scale = Div (X_Range, Q_Max)"),
    Explained(("Sign",), "NaN", "no sentence on what is none of these: NaN, or 0", SILENT, EITHER,
              _option("values", "special"),
              "If input > 0, output 1. if input < 0, output -1. if input == 0, output 0."),
    Explained(("TfIdfVectorizer",), "weights and indexes in another order",
              "onnx's reference takes weights by the place in the result", ORT, ORT,
              lambda case: "weights" in case.draw.attributes,
              "The i-th element in weights is the weight of the i-th n-gram in pool."),
    Explained(("NegativeLogLikelihoodLoss",), "a mean where some targets are ignored",
              "the function that defines it counts the targets that are not ignored; the prose, a mean of all losses, "
              "does not mention them; onnx's reference counts all for an index of -1",
              ORT, ORT, _option("ignore_index", "-1", "255", "0", "1"),
              "mean(loss), if \"weight\" is not provided,",
              "weight_gather_sum = ReduceSum <keepdims: int = 0> (weight_gather)"),
    Explained(("SoftmaxCrossEntropyLoss",), "a mean where some labels are ignored",
              "by its function it is NegativeLogLikelihoodLoss, with the mean of that one; the prose does not mention "
              "ignored labels", ORT, ORT, _option("ignore_index", "-1", "255", "0", "1"),
              "If reduction = 'mean', the output is scalar: ReduceMean(L), or if weight is provided: ReduceSum(L) / "
              "ReduceSum(W)",
              "output = NegativeLogLikelihoodLoss <reduction: string = @reduction, ignore_index: int = @ignore_index> "
              "(X_Log, labels)"),
    Explained(("SoftmaxCrossEntropyLoss",), "float16",
              "the function that defines it takes LogSoftmax; the reference's softmax underflows to 0 before its "
              "logarithm", ORT, ORT, _narrow, "p = Softmax(scores) y = Log(p)",
              "X_LogSM = LogSoftmax <axis: int = 2> (X_NDC)"),
    Explained(("Dropout",), "the mask outside of training, before operator set 12",
              "what it contains where nothing is dropped is not said before operator set 12", SILENT, EITHER,
              lambda case: case.draw.since < 12, "The output mask."),
    Explained(("StringSplit",), "an empty element", "none, or the empty one", SILENT, EITHER,
              lambda case: any(not one.strip() for one in _texts(case)),
              "The second output tensor represents the number of substrings generated."),
    Explained(("QuantizeLinear",), "a quotient in float16",
              "the quotient is rounded to float16 before it is rounded to an integer; silent before operator set 23, "
              "where the same is delivered", OURS, OURS, _narrow,
              "The type of y_scale determines the precision of the division operation between x and y_scale, unless "
              "the precision attribute is specified."),
    Explained(("Cast", "CastLike"), "negative numbers to float8e8m0", "either is as good", SILENT, EITHER,
              _to("float8e8m0"), "Casting negative values to FLOAT8E8M0 gives undefined behavior."),
    Explained(("Cast", "CastLike"), "fractions and large numbers to integers of 2 and 4 bits",
              "no sentence on rounding of fractions", SILENT, EITHER, _float_to("int4", "uint4", "int2", "uint2"),
              "fixed point: undefined if OOR."),
    Explained(("Cast", "CastLike"), "to float4", "the rules for types of 8 bits do not name it", SILENT, EITHER,
              _to("float4")),
    Explained(("Cast", "CastLike"), "numbers to text",
              "no form for whole numbers, nor for booleans; onnxruntime and onnx's reference both write an exponent "
              "where numbers are large or small: a known difference from the text",
              "neither", EITHER, _to("string"),
              "When casting from numeric tensors to string tensors, plain floating-point representation (such as "
              "\"314.15926\") would be used."),
    Explained(("Unsqueeze",), "axes that are not in order", "the reference inserts them one by one", ORT, ORT,
              _disordered, "The order of values in axes does not matter and can come in any order."),
    Explained(("SequenceInsert",), "the position behind the last", "onnx's reference refuses n", ORT, ORT,
              lambda case: case.operand(2) is not None, "Accepted range for 'position' is in [-n, n]"),
    Explained(("ScatterElements", "Scatter"), "fewer updates than data along other axes",
              "onnx's reference writes over elements that no index names", ORT, ORT, _fewer,
              "[indices[i][j]][j] = updates[i][j] if axis = 0"),
    Explained(("Constant",), "float4 and float8", "of its own type", OURS, OURS,
              lambda case: "float4" in case.reason or "float8" in case.reason,
              "The value for the elements of the output tensor."),
    Explained(("LayerNormalization",), "types of results", "the reference gives that of X", ORT, ORT,
              lambda case: "type " in case.reason, "Type of Mean and InvStdDev tensors."),
    Explained(("FeatureVectorizer", "Normalizer", "Scaler", "LinearClassifier", "OneHotEncoder", "LinearRegressor"),
              "type of the result", "the schema gives tensor(float); onnx's reference gives that of its operand", ORT,
              ORT, lambda case: "type " in case.reason),
    Explained(("FeatureVectorizer", "Normalizer", "Scaler", "ZipMap", "LinearClassifier", "OneHotEncoder",
               "LinearRegressor", "SVMClassifier"),
              "shape of the result for one row", "silent on a vector; a matrix of one row is delivered", SILENT, ORT,
              lambda case: "shape " in case.reason),
    Explained(("DictVectorizer",), "shape of the result", "onnx's reference gives a vector", ORT, ORT,
              lambda case: "shape " in case.reason or "type " in case.reason, "It's shape will be [1,C]"),
    Explained(("Normalizer",), "MAX of negative values", "onnx's reference takes magnitudes", ORT, ORT,
              _option("norm", "MAX", "(not given)"), "Max: Y = X / max(X)"),
    Explained(("SVMClassifier",), "probabilities of several classes",
              "by pairs of classes as libsvm couples them; onnx's reference iterates wrongly (libsvm, scikit-learn and "
              "onnxruntime agree)", ORT, ORT, lambda case: "prob_a" in case.draw.attributes,
              "First set of probability coefficients."),
    Explained(("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble", "LinearClassifier", "LinearRegressor",
               "SVMRegressor", "Normalizer", "Scaler"),
              "the formula agrees with onnxruntime",
              "onnx's reference differs from both; see differential.formulas for what the text leaves open", SILENT,
              ORT, lambda case: case.formula),
    Explained(("TreeEnsembleClassifier",), "one score for two classes",
              "no sentence on what the other score is, nor on the label: here as onnxruntime", SILENT, ORT,
              _option("one score for two classes", "True")),
    Explained(("CastMap",), "numbers as text", "no sentence on the form of a number", SILENT, EITHER,
              lambda case: "'" in case.reason),
)  # fmt: skip


def _deviation(case: Case) -> Explained | None:
    """The row of `operators.deviations` by which the product asks ours."""
    node = next(node for node in case.model.graph.node if node.name == "node")
    values = {**{one.name: numpy_helper.to_array(one) for one in case.draw.constants}, **case.draw.feeds}
    operands = [values.get(name) for name in node.input]
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    call = deviations.UnpreparedCall(list(node.output), attributes)
    for row in deviations.of(node.domain, node.op_type):
        if row.applies(call, operands):
            return Explained(
                (row.op_type,), "operators.deviations", row.remark, OURS, OURS, _any, row.quotation, row.body
            )
    return None


def explanation(
    draw: Draw, model: onnx.ModelProto, reason: str, sides: dict[str, Any], formula: bool = False
) -> Explained | None:
    """The row that covers a difference; `formula`: the product's answer is that of `formulas`."""
    case = Case(draw, model, reason, sides, formula)
    found = _deviation(case)
    if found is not None:
        return found
    return next((row for row in TABLE if draw.operator.name in row.operators and row.when(case)), None)
