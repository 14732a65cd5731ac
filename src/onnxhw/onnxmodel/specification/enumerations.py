"""Attributes that name one of a few values, by what the operators' texts list."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import onnx

from .attributes import PAYLOADS
from .findings import Findings, label
from .signatures import canonical

Values = tuple[str, ...] | tuple[int, ...]
ML = "ai.onnx.ml"
PAD = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
LOSS = ("none", "sum", "mean")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
ROUND = ("up", "down", "nearest")
ACTIVATIONS = ("Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
               "Softsign", "Softplus")  # fmt: skip
DIRECTIONS = ("forward", "reverse", "bidirectional")
PLACES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")
BRANCHES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF")
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
ELEMENTS = tuple(name for name, _ in onnx.TensorProto.DataType.items() if name != "UNDEFINED")

CHOICES: dict[tuple[str, str, str], dict[int, Values]] = {
    **{("", name, "auto_pad"): {1: PAD} for name in ("AveragePool", "Conv", "ConvInteger", "ConvTranspose", "LpPool",
                                                     "MaxPool", "QLinearConv")},
    ("", "Attention", "qk_matmul_output_mode"): {23: (0, 1, 2, 3)},
    ("", "Attention", "softmax_precision"): {25: (1, 10, 11, 16)},
    ("", "BitShift", "direction"): {11: ("LEFT", "RIGHT")},
    ("", "Cast", "round_mode"): {24: ROUND},
    ("", "Cast", "to"): {1: ELEMENTS, 6: ()},
    ("", "CastLike", "round_mode"): {24: ROUND},
    ("", "CausalConvWithState", "activation"): {27: ("silu", "swish", "none")},
    ("", "DepthToSpace", "mode"): {11: ("DCR", "CRD")},
    ("", "GRU", "direction"): {1: (*DIRECTIONS, "foward"), 3: DIRECTIONS},
    **{("", name, "direction"): {1: DIRECTIONS} for name in ("LSTM", "RNN")},
    **{("", name, "activations"): {1: ACTIVATIONS} for name in ("GRU", "LSTM", "RNN")},
    ("", "Gelu", "approximate"): {20: ("none", "tanh")},
    ("", "GridSample", "mode"): {16: ("bilinear", "nearest", "bicubic"), 20: ("linear", "nearest", "cubic")},
    ("", "GridSample", "padding_mode"): {16: ("zeros", "border", "reflection")},
    ("", "ImageDecoder", "pixel_format"): {20: ("RGB", "BGR", "Grayscale")},
    ("", "LinearAttention", "update_rule"): {27: ("linear", "gated", "delta", "gated_delta")},
    ("", "NegativeLogLikelihoodLoss", "reduction"): {12: LOSS},
    ("", "Pad", "mode"): {1: ("constant", "reflect", "edge"), 19: ("constant", "reflect", "edge", "wrap")},
    ("", "Resize", "coordinate_transformation_mode"): {11: (*PLACES, "tf_half_pixel_for_nn"), 13: PLACES,
                                                       19: (*PLACES, "half_pixel_symmetric")},
    ("", "Resize", "keep_aspect_ratio_policy"): {18: ("stretch", "not_larger", "not_smaller")},
    ("", "Resize", "mode"): {10: ("nearest", "linear"), 11: ("nearest", "linear", "cubic")},
    ("", "Resize", "nearest_mode"): {11: ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")},
    **{("", "ReverseSequence", name): {10: (0, 1)} for name in ("batch_axis", "time_axis")},
    ("", "RoiAlign", "coordinate_transformation_mode"): {16: ("half_pixel", "output_half_pixel")},
    ("", "RoiAlign", "mode"): {10: ("avg", "max")},
    **{("", name, "reduction"): {16: ("none", "add", "mul"), 18: ("none", "add", "mul", "max", "min")}
       for name in ("ScatterElements", "ScatterND")},
    ("", "SoftmaxCrossEntropyLoss", "reduction"): {12: LOSS},
    ("", "SpaceToDepth", "mode"): {28: ("DCR", "CRD")},
    ("", "StringNormalizer", "case_change_action"): {10: ("LOWER", "UPPER", "NONE")},
    ("", "TensorScatter", "mode"): {24: ("linear", "circular")},
    ("", "TfIdfVectorizer", "mode"): {9: ("TF", "IDF", "TFIDF")},
    ("", "Upsample", "mode"): {1: ("nearest", "bilinear"), 7: ("nearest", "linear")},
    (ML, "CastMap", "cast_to"): {1: ("TO_FLOAT", "TO_STRING", "TO_INT64")},
    (ML, "CastMap", "map_form"): {1: ("DENSE", "SPARSE")},
    (ML, "Normalizer", "norm"): {1: ("MAX", "L1", "L2")},
    **{(ML, name, "kernel_type"): {1: KERNELS} for name in ("SVMClassifier", "SVMRegressor")},
    **{(ML, name, "nodes_modes"): {1: BRANCHES} for name in ("TreeEnsembleClassifier", "TreeEnsembleRegressor")},
    **{(ML, name, "post_transform"): {1: TRANSFORMS}
       for name in ("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor", "TreeEnsembleClassifier",
                    "TreeEnsembleRegressor")},
    (ML, "TreeEnsembleRegressor", "aggregate_function"): {1: ("AVERAGE", "SUM", "MIN", "MAX")},
    (ML, "TreeEnsemble", "aggregate_function"): {5: (0, 1, 2, 3)},
    (ML, "TreeEnsemble", "nodes_modes"): {5: (0, 1, 2, 3, 4, 5, 6)},
    (ML, "TreeEnsemble", "post_transform"): {5: (0, 1, 2, 3, 4)},
    ("ai.onnx.preview.training", "Momentum", "mode"): {1: ("nesterov", "standard")},
}  # fmt: skip
"""By domain, operator and attribute: from which version on which values are taken; no values: any. `foward` is what
GRU-1 states as its default."""
ANY_CASE = frozenset(["activations", "to"])
"""Attributes of which implementations take the names in any case."""
FUNCTIONS = {"GRU": 2, "LSTM": 3, "RNN": 1}
"""Activations of each direction."""


@cache
def _by_operator() -> Mapping[tuple[str, str], Mapping[str, dict[int, Values]]]:
    found: dict[tuple[str, str], dict[str, dict[int, Values]]] = {}
    for (domain, op_type, name), versions in CHOICES.items():
        found.setdefault((domain, op_type), {})[name] = versions
    return found


def choice_rules(node: onnx.NodeProto, versions: Mapping[str, int], findings: Findings) -> None:
    """E3461 for an attribute that is none of the values which the operator's text lists, or for another number of
    activations than the directions of a recurrent network take. `versions`: of the operator sets, by domain."""
    domain = canonical(node.domain)
    table = _by_operator().get((domain, node.op_type))
    if table is None or domain not in versions:
        return
    for attribute in node.attribute:
        known = table.get(attribute.name)
        if known is None or attribute.ref_attr_name:
            continue
        wanted = next((known[since] for since in sorted(known, reverse=True) if since <= versions[domain]), ())
        for value in dict.fromkeys(_values(attribute)):
            if wanted and not _is_one(value, wanted, attribute.name):
                hint = f"one of {', '.join(map(str, wanted))}"
                findings.error("E3461", label(node), f"attribute {attribute.name!r} is {_shown(value)}", hint)
    if not domain and node.op_type in FUNCTIONS:
        _activations(node, findings)


def _values(attribute: onnx.AttributeProto) -> Iterable[Any]:
    """What an attribute says, one or several; empty for one of a type that the rules do not read."""
    kind = PAYLOADS.get(attribute.type, "")
    if kind == "t":
        tensor = attribute.t
        return tensor.raw_data or tensor.int32_data if tensor.data_type == onnx.TensorProto.UINT8 else ()
    if kind not in ("i", "s", "ints", "strings"):
        return ()
    found = getattr(attribute, kind)
    return found if kind.endswith("s") and kind != "s" else (found,)


def _is_one(value: Any, wanted: Values, name: str) -> bool:
    if not isinstance(value, bytes):
        return isinstance(wanted[0], str) or value in wanted
    text = value.decode(errors="replace")
    if name in ANY_CASE:
        return text.lower() in {str(one).lower() for one in wanted}
    return isinstance(wanted[0], int) or text in wanted


def _shown(value: Any) -> str:
    return repr(value.decode(errors="replace")[:80]) if isinstance(value, bytes) else str(value)


def _activations(node: onnx.NodeProto, findings: Findings) -> None:
    """RNN's default is two of them, so that one direction may have two."""
    given = {one.name: one for one in node.attribute if not one.ref_attr_name}
    names = given.get("activations")
    unsure = any(one.ref_attr_name and one.name == "direction" for one in node.attribute)
    if names is None or not names.strings or unsure:
        return
    both = "direction" in given and given["direction"].s == b"bidirectional"
    count = FUNCTIONS[node.op_type] * (2 if both else 1)
    if len(names.strings) != count and not (node.op_type == "RNN" and len(names.strings) == 2):
        what = f"attribute 'activations' has {len(names.strings)} names, the operator takes {count}"
        findings.error("E3461", label(node), f"{what} in {'both directions' if both else 'one direction'}")
