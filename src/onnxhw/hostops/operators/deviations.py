"""Where the host does not ask onnxruntime although it has a kernel: by what the operator's text says.

A row says of which operator, under which condition on its attributes and operands, and why. What is computed instead is
the operator of this package, or of onnx's reference, of that name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np


class OperatorCall(Protocol):
    """What a condition may look at besides the operands."""

    @property
    def output(self) -> list[str]:
        """The names of the outputs, empty where one is left out."""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes by name."""


Condition = Callable[[OperatorCall, Sequence[Any]], bool]


@dataclass(frozen=True)
class Deviation:
    """`quotation`: words of the operator's documentation, as onnx has them but for white space and Markdown; empty
    where it is silent. `body`: a line of the function that defines it. `remark`: ours, what the kernel does instead.
    `alone`: the kernel refuses such a node whatever the operands, of which the condition takes none.
    """

    domain: str
    op_type: str
    applies: Condition
    remark: str
    quotation: str = ""
    body: str = ""
    alone: bool = False


def _always(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return True


def _integers(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return all(np.asarray(value).dtype.kind in "iu" for value in operands)


def _statistics(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return any(call.output[1:]) and not call.attributes.get("training_mode", 0)


def _first_of(*names: str) -> Condition:
    """Is the first operand of one of these types, by numpy's names?"""

    def applies(call: OperatorCall, operands: Sequence[Any]) -> bool:
        return np.asarray(operands[0]).dtype.name in names

    return applies


_half = _first_of("float16")


def _attention(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return _half(call, operands) or any(call.output[3:]) or any(value is not None for value in operands[6:])


def _training(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return len(operands) > 2 and operands[2] is not None and bool(np.any(operands[2]))


def _of_nothing(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return bool(operands[0].dtype == np.bool_) and operands[0].size == 0


def _corners(call: OperatorCall, operands: Sequence[Any]) -> bool:
    scales = operands[2] if len(operands) > 2 else None
    given = scales is not None and np.size(scales) > 0
    return given and call.attributes.get("coordinate_transformation_mode") == b"align_corners"


def _placed(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return len(operands) > 2 and operands[2] is not None


def _text(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return bool(np.asarray(operands[0]).dtype.kind in "OU")


def _scalar(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return np.ndim(operands[0]) == 0


def _cropped_of_one_size(call: OperatorCall, operands: Sequence[Any]) -> bool:
    """Is an axis cut out of, by tf_crop_and_resize, whose length stays?"""
    if call.attributes.get("coordinate_transformation_mode") != b"tf_crop_and_resize":
        return False
    shape, roi, *given = np.shape(operands[0]), *operands[1:]
    axes = list(call.attributes.get("axes", range(len(shape))))
    scales = next((np.ravel(one) for one in given[:1] if one is not None and np.size(one)), None)
    if scales is None:
        scales = np.ravel(given[1]) / np.array(shape)[axes]
        policy = call.attributes.get("keep_aspect_ratio_policy", b"stretch")
        limit = {b"not_larger": scales.min(), b"not_smaller": scales.max()}.get(policy)
        scales = scales if limit is None else np.full(len(axes), limit)
    starts, ends = np.reshape(roi, (2, -1))
    return bool(np.any((scales == 1) & ((starts != 0) | (ends != 1))))


def _aligned_of_one_element(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return bool(call.attributes.get("align_corners", 0)) and bool(np.any(np.ravel(operands[1])[2:] == 1))


def _backward_to_the_end(call: OperatorCall, operands: Sequence[Any]) -> bool:
    if len(operands) < 5 or operands[4] is None:
        return False
    ends, steps = np.ravel(operands[2]), np.ravel(operands[4])
    return bool(np.any((steps < 0) & (ends >= np.iinfo(np.int32).max)))


def _split(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return len(operands) > 1 and operands[1] is not None and call.attributes.get("keepdims", 1) == 0


def _dilated(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return any(step > 1 for step in call.attributes.get("dilations", ()))


def _padded_same(call: OperatorCall, operands: Sequence[Any]) -> bool:
    if call.attributes.get("auto_pad", b"NOTSET") == b"VALID" and call.attributes.get("ceil_mode", 0):
        return True
    same = call.attributes.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER")
    sizes = zip(call.attributes.get("strides", ()), call.attributes["kernel_shape"], strict=False)
    return same and (_dilated(call, operands) or any(step > size for step, size in sizes))


def _added_within_a_dilation(call: OperatorCall, operands: Sequence[Any]) -> bool:
    extra = call.attributes.get("output_padding", ())
    strides = call.attributes.get("strides") or [1] * len(extra)
    return any(more >= step for more, step in zip(extra, strides, strict=False))


def _empty(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return any(np.size(value) == 0 for value in operands)


def _of_types(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return len({np.asarray(value).dtype for value in operands}) > 1


def _not_a_number(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return bool(np.any(operands[0] != operands[0]))


def _not_a_number_of_floats(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return np.asarray(operands[0]).dtype.kind == "f" and _not_a_number(call, operands)


def _nan_among_keys(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return bool(np.any(np.isnan(call.attributes.get("keys_floats", ()))))


def _both_scored(call: OperatorCall, operands: Sequence[Any]) -> bool:
    labels = call.attributes.get("classlabels_int64s") or call.attributes.get("classlabels_strings") or ()
    return len(labels) == 2 and len(set(call.attributes.get("class_ids", ()))) == 2


def _integer(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return np.asarray(operands[0]).dtype.kind in "iu"


def _signed_bytes_antialiased(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return bool(call.attributes.get("antialias", 0)) and np.asarray(operands[0]).dtype == np.int8


def _without_intercepts(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return not call.attributes.get("intercepts")


def _one_target(call: OperatorCall, operands: Sequence[Any]) -> bool:
    """A post transform of one target. PROBIT the kernel computes."""
    count = call.attributes.get("n_targets", call.attributes.get("targets", 1))
    return count == 1 and call.attributes.get("post_transform") in (b"SOFTMAX", b"SOFTMAX_ZERO", b"LOGISTIC", 1, 2, 3)


def _swapped(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return call.attributes.get("post_transform") in (1, 2)


def _thresholded(call: OperatorCall, operands: Sequence[Any]) -> bool:
    return any(name.lower() == b"thresholdedrelu" for name in call.attributes.get("activations", ()))


DEVIATIONS = (
    Deviation("", "Attention", _attention,
              "the kernel adds the least number; it refuses a mask with nonpad_kv_seqlen; in float16 it does not round "
              "every step as the function that defines it",
              "a boolean attn_mask intersects the allowed set (its disallowed positions contribute -inf to the bias)",
              "AttnBiasShort = Where (attn_mask, ScalarZero, FloatNegInf)"),
    Deviation("", "Softmax", _half, "in float16 the function that defines it rounds every step, the kernel does not",
              "Softmax(input, axis) = Exp(input) / ReduceSum(Exp(input), axis=axis, keepdims=1)"),
    Deviation("", "LinearAttention", _always, "onnxruntime refuses the body for a shape that it does not infer"),
    *(
        Deviation("", name, _always, "zeros of the transform come out as up to 1e-4, which onnx's tests refuse")
        for name in ("DFT", "STFT")
    ),
    *(
        Deviation("", name, applies,
                  "silent on a second run: here a seed gives the same numbers in each, the kernel's generator goes on",
                  "Seed to the random generator, if not specified we will auto generate one.")
        for name, applies in (("Dropout", _training), ("Bernoulli", _always), ("RandomNormal", _always),
                              ("RandomNormalLike", _always), ("RandomUniform", _always), ("RandomUniformLike", _always))
    ),
    Deviation("", "MaxUnpool", _placed,
              "with output_size the kernel takes them for indices of the output, not of the input of the pool",
              "contains the indices to the (locally maximal) elements corresponding to the elements in the first input "
              "tensor X"),
    Deviation("", "ReduceMax", _of_nothing, "the kernel refuses bool",
              "Reduction over an empty set of values yields minus infinity (if supported by the datatype) or the "
              "minimum value of the data type otherwise."),
    Deviation("", "Resize", _corners,
              "length_resized is the length that scale gives, a fraction; the kernel cuts it off to an integer first",
              "x_original = x_resized * (length_original - 1) / (length_resized - 1)"),
    Deviation("", "Resize", _cropped_of_one_size,
              "the kernel takes an axis whose length stays as it is, without its roi",
              "start_x * (length_original - 1) + x_resized * (end_x - start_x) * (length_original - 1) / "
              "(length_resized - 1)"),
    Deviation("", "InstanceNormalization", _always,
              "the kernel subtracts the mean after both were multiplied, so that of equal values 0.0001 is left",
              "y = scale * (x - mean) / sqrt(variance + epsilon) + B"),
    Deviation("", "Shrink", _first_of("float64", "int32", "uint32", "int64", "uint64"),
              "the kernel computes in float32, so that it makes 2^31 of 2^31 - 1",
              "If x < -lambd, y = x + bias; If x > lambd, y = x - bias; Otherwise, y = 0."),
    Deviation("", "AffineGrid", _aligned_of_one_element, "of an axis of one element the kernel takes the end",
              "with dimensions ranging from -1 to 1.", "start_w_else = Identity (minus_one_f)"),
    Deviation("", "Div", _integers, "the kernel ends the process where the least integer is divided by -1"),
    Deviation("", "BatchNormalization", _statistics,
              "from operator set 14 on the kernel gives more outputs without computing them; before, it gives "
              "1 / sqrt(variance) for the saved variance",
              "Saved variance used during training to speed up gradient computation."),
    Deviation("", "Gather", _text, "of a slice of more than one string the kernel copies the first only",
              "gather entries of the axis dimension of data"),
    Deviation("", "Slice", _backward_to_the_end,
              "the kernel takes an end of INT_MAX, with which nothing is left, for INT_MIN",
              "for negative stepping it is clamped to [-1, dims[axes[i]]-1]"),
    Deviation("", "NonZero", _scalar, "the kernel produces (1, N)",
              "for scalar input, NonZero produces output shape (0, N) instead of (1, N), which is different from "
              "Numpy's behavior"),
    Deviation("", "MeanVarianceNormalization", _always,
              "the function that defines it adds 1e-9 to the deviation, so that equal values give 0; the kernel gives "
              "NaN", body="Processed_STD = Add (STD, Epsilon)"),
    Deviation("", "SplitToSequence", _split, "the kernel drops the axis nevertheless",
              "If input 'split' is specified, this attribute is ignored."),
    *(
        Deviation("", name, _padded_same,
                  "the kernel pads for a window without dilation, and does not round up for VALID",
                  "SAME_UPPER or SAME_LOWER mean pad the input so that output_shape[i] = ceil(input_shape[i] / "
                  "strides[i])")
        for name in ("AveragePool", "LpPool", "MaxPool")
    ),
    Deviation("", "ConvTranspose", _added_within_a_dilation, "the kernel refuses what is not less than the stride",
              "must be less than the corresponding stride/dilation dimension."),
    *(
        Deviation("", name, _thresholded, "the kernel gives 0 at alpha",
                  "ThresholdedRelu(x) - x if x >= alpha else 0")
        for name in ("RNN", "GRU", "LSTM")
    ),
    Deviation("", "Sigmoid", _first_of("float64"), "the kernel of double gives 0 below -40, and 11 digits at -11",
              "y = 1 / (1 + exp(-x))"),
    Deviation("", "Col2Im", _dilated, "with dilations and pads the kernel adds to other elements",
              "Col2Im behaves similarly to PyTorch's fold"),
    Deviation("ai.onnx.ml", "Binarizer", _not_a_number, "the kernel refuses NaN, of which no comparison is true",
              "based on the outcome of a comparison against a threshold value"),
    Deviation("ai.onnx.ml", "LabelEncoder", _nan_among_keys, "before version 4 the kernel gives NaN the default",
              "so even a float NaN can be mapped to a value in 'values_*' attribute."),
    Deviation("ai.onnx.ml", "TreeEnsembleClassifier", _both_scored,
              "where both of two classes have votes, the kernel answers with the second if its votes are positive, and "
              "with 0 and 1 for labels that are integers, and does not add both base values",
              "Top class for each point"),
    Deviation("", "MatMul", _empty, "of no elements the kernel refuses integers",
              "Matrix product that behaves like numpy.matmul"),
    Deviation("", "BatchNormalization", _of_types,
              "with two types of operands the kernel gives statistics of a third, or loses digits near the mean",
              "Constrain mean and variance types to float tensors."),
    Deviation("", "Unique", _empty, "with an axis the kernel ends the process where the tensor has no elements"),
    Deviation("", "Unique", _not_a_number_of_floats,
              "the kernel takes a NaN for equal to every number, so that others are lost; here NaN is one value, the "
              "last", "The first output tensor 'Y' contains all unique values or subtensors of the input."),
    Deviation("", "ReduceLogSumExp", _integer, "the kernels of integers cut off every exponential", body=
              "data_exp = Exp (data_double)"),
    Deviation("", "Resize", _signed_bytes_antialiased, "the kernel of int8 gives 0 for what is negative",
              "more input pixels contribute to an output pixel."),
    Deviation("ai.onnx.ml", "LinearClassifier", _without_intercepts,
              "an optional attribute, which the kernel refuses to miss: none are zeros",
              "A collection of intercepts.", alone=True),
    *(
        Deviation("ai.onnx.ml", name, _one_target, "the kernel leaves the score of one target as it is",
                  "Indicates the transform to apply to the")
        for name in ("LinearRegressor", "TreeEnsembleRegressor", "TreeEnsemble")
    ),
    Deviation("ai.onnx.ml", "TreeEnsemble", _swapped, "the kernel takes 1 for LOGISTIC and 2 for SOFTMAX",
              "'NONE' (0), 'SOFTMAX' (1), 'LOGISTIC' (2), 'SOFTMAX_ZERO' (3) or 'PROBIT' (4)"),
)  # fmt: skip


@cache
def _by_operator() -> Mapping[tuple[str, str], tuple[Deviation, ...]]:
    found: dict[tuple[str, str], tuple[Deviation, ...]] = {}
    for row in DEVIATIONS:
        found[row.domain, row.op_type] = (*found.get((row.domain, row.op_type), ()), row)
    return found


def of(domain: str, op_type: str) -> tuple[Deviation, ...]:
    """The rows of an operator."""
    return _by_operator().get((domain, op_type), ())


@dataclass(frozen=True)
class UnpreparedCall:
    """A `OperatorCall` of a node that is not prepared to run."""

    output: list[str]
    attributes: Mapping[str, Any]


def alone(domain: str, op_type: str, output: list[str], attributes: Mapping[str, Any]) -> bool:
    """Does a row apply for the attributes alone?"""
    return any(row.alone and row.applies(UnpreparedCall(output, attributes), ()) for row in of(domain, op_type))
