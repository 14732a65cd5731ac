"""Where the host does not ask onnxruntime although it has a kernel: by what the operator's text says.

A row says of which operator, under which condition on its attributes and operands, and why. What is computed instead is
the operator of this package, or of onnx's reference, of that name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np


class Call(Protocol):
    """What a condition may look at besides the operands."""

    output: list[str]

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes by name."""


Condition = Callable[[Call, Sequence[Any]], bool]


@dataclass(frozen=True)
class Deviation:
    """`text`: the sentence of the operator's definition, or what the kernel does that no definition has."""

    domain: str
    op_type: str
    applies: Condition
    text: str


def _always(call: Call, operands: Sequence[Any]) -> bool:
    return True


def _integers(call: Call, operands: Sequence[Any]) -> bool:
    return all(np.asarray(value).dtype.kind in "iu" for value in operands)


def _statistics(call: Call, operands: Sequence[Any]) -> bool:
    return any(call.output[1:]) and not call.attributes.get("training_mode", 0)


def _half(call: Call, operands: Sequence[Any]) -> bool:
    return bool(np.asarray(operands[0]).dtype == np.float16)


def _attention(call: Call, operands: Sequence[Any]) -> bool:
    return _half(call, operands) or any(call.output[3:]) or any(value is not None for value in operands[6:])


def _training(call: Call, operands: Sequence[Any]) -> bool:
    return len(operands) > 2 and operands[2] is not None and bool(np.any(operands[2]))


def _of_nothing(call: Call, operands: Sequence[Any]) -> bool:
    return bool(operands[0].dtype == np.bool_) and operands[0].size == 0


def _corners(call: Call, operands: Sequence[Any]) -> bool:
    scales = operands[2] if len(operands) > 2 else None
    given = scales is not None and np.size(scales) > 0
    return given and call.attributes.get("coordinate_transformation_mode") == b"align_corners"


def _placed(call: Call, operands: Sequence[Any]) -> bool:
    return len(operands) > 2 and operands[2] is not None


def _text(call: Call, operands: Sequence[Any]) -> bool:
    return bool(np.asarray(operands[0]).dtype.kind in "OU")


def _scalar(call: Call, operands: Sequence[Any]) -> bool:
    return np.ndim(operands[0]) == 0


def _double(call: Call, operands: Sequence[Any]) -> bool:
    return bool(np.asarray(operands[0]).dtype == np.float64)


def _backward_to_the_end(call: Call, operands: Sequence[Any]) -> bool:
    if len(operands) < 5 or operands[4] is None:
        return False
    ends, steps = np.ravel(operands[2]), np.ravel(operands[4])
    return bool(np.any((steps < 0) & (ends >= np.iinfo(np.int32).max)))


def _split(call: Call, operands: Sequence[Any]) -> bool:
    return len(operands) > 1 and operands[1] is not None and call.attributes.get("keepdims", 1) == 0


def _dilated(call: Call, operands: Sequence[Any]) -> bool:
    return any(step > 1 for step in call.attributes.get("dilations", ()))


def _dilated_same(call: Call, operands: Sequence[Any]) -> bool:
    return _dilated(call, operands) and call.attributes.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER")


def _padded_same(call: Call, operands: Sequence[Any]) -> bool:
    if call.attributes.get("auto_pad", b"NOTSET") == b"VALID" and call.attributes.get("ceil_mode", 0):
        return True
    same = call.attributes.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER")
    sizes = zip(call.attributes.get("strides", ()), call.attributes["kernel_shape"], strict=False)
    return same and (_dilated(call, operands) or any(step > size for step, size in sizes))


def _empty(call: Call, operands: Sequence[Any]) -> bool:
    return any(np.size(value) == 0 for value in operands)


def _of_types(call: Call, operands: Sequence[Any]) -> bool:
    return len({np.asarray(value).dtype for value in operands}) > 1


def _not_a_number(call: Call, operands: Sequence[Any]) -> bool:
    return bool(np.any(operands[0] != operands[0]))


def _thresholded(call: Call, operands: Sequence[Any]) -> bool:
    return any(name.lower() == b"thresholdedrelu" for name in call.attributes.get("activations", ()))


DEVIATIONS = (
    Deviation("", "Attention", _attention,
              "the function that defines it adds -inf where the mask is False, the kernel the least number; takes a "
              "mask with nonpad_kv_seqlen, which the kernel refuses; and rounds every step in float16"),
    Deviation("", "Softmax", _half,
              "'Softmax(input, axis) = Exp(input) / ReduceSum(Exp(input), axis=axis, keepdims=1)': in float16 the "
              "function that defines it rounds every step"),
    Deviation("", "LinearAttention", _always, "its body ends in 'Subgraph must have the shape set'"),
    *(
        Deviation("", name, _always, "zeros of the transform come out as up to 1e-4, which onnx's tests refuse")
        for name in ("DFT", "STFT")
    ),
    Deviation("", "Dropout", _training,
              "a seed gives the same numbers in each run, and the kernel's generator goes on from run to run"),
    Deviation("", "MaxUnpool", _placed,
              "'The second input tensor, I, contains the indices to the (locally maximal) elements' of the pool's "
              "input; with output_size the kernel takes them for indices of the output"),
    Deviation("", "ReduceMax", _of_nothing,
              "'Reduction over an empty set of values yields minus infinity (if supported by the datatype) or the "
              "minimum value of the data type otherwise': the kernel refuses bool"),
    Deviation("", "Resize", _corners,
              "'x_original = x_resized * (length_original - 1) / (length_resized - 1)', where 'scale = length_resized "
              "/ length_original': the kernel cuts length_resized off to an integer first"),
    Deviation("", "Div", _integers, "the kernel ends the process where the least integer is divided by -1"),
    Deviation("", "BatchNormalization", _statistics,
              "'Output case #2: Y (test mode)': the kernel gives more outputs without computing them"),
    *(
        Deviation("", name, _always,
                  "a seed gives the same numbers in each run, and the kernel's generator goes on from run to run")
        for name in ("Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
    ),
    Deviation("", "Gather", _text,
              "'gather entries of the axis dimension of data': of a slice of more than one string the kernel copies "
              "the first "
              "only"),
    Deviation("", "Slice", _backward_to_the_end,
              "'for negative stepping it is clamped to [-1, dims[axes[i]]-1]': the kernel takes an end of INT_MAX, "
              "with which "
              "nothing is left, for INT_MIN"),
    Deviation("", "NonZero", _scalar,
              "'for scalar input, NonZero produces output shape (0, N) instead of (1, N), which is different from "
              "Numpy's "
              "behavior': the kernel produces (1, N)"),
    Deviation("", "MeanVarianceNormalization", _always,
              "the function that defines it adds 1e-9 to the deviation, so that equal values give 0; the kernel gives "
              "NaN"),
    Deviation("", "SplitToSequence", _split,
              "'If input 'split' is specified, this attribute is ignored': the kernel drops the axis nevertheless"),
    *(
        Deviation("", name, _padded_same,
                  "'SAME_UPPER or SAME_LOWER mean pad the input so that output_shape[i] = ceil(input_shape[i] / "
                  "strides[i])': "
                  "the kernel pads for a window without dilation, and does not round up for VALID")
        for name in ("AveragePool", "LpPool", "MaxPool")
    ),
    *(
        Deviation("", name, _thresholded, "'ThresholdedRelu(x) - x if x >= alpha, otherwise 0': the kernel gives 0 at "
                                          "alpha")
        for name in ("RNN", "GRU", "LSTM")
    ),
    Deviation("", "Sigmoid", _double,
              "'y = 1 / (1 + exp(-x))': the kernel of double gives 0 below -40, and 11 digits at -11"),
    Deviation("", "Col2Im", _dilated,
              "'Col2Im behaves similarly to PyTorch's fold': with dilations and pads the kernel adds to other "
              "elements"),
    Deviation("ai.onnx.ml", "Binarizer", _not_a_number,
              "'based on the outcome of a comparison against a threshold value': the kernel refuses NaN"),
    Deviation("", "MatMul", _empty, "'Matrix product that behaves like numpy.matmul': of no elements the kernel "
                                    "refuses integers"),
    Deviation("", "BatchNormalization", _of_types,
              "'T2: Constrain mean and variance types': with two types of operands the kernel gives statistics of a "
              "third"),
    Deviation("", "Unique", _empty, "with an axis the kernel ends the process where the tensor has no elements"),
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
