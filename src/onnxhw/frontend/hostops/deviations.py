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


DEVIATIONS = (
    Deviation("", "Attention", _attention,
              "the function that defines it adds -inf where the mask is False, the kernel the least number; takes a mask "
              "with nonpad_kv_seqlen, which the kernel refuses; and rounds every step in float16"),
    Deviation("", "Softmax", _half,
              "'Softmax(input, axis) = Exp(input) / ReduceSum(Exp(input), axis=axis, keepdims=1)': in float16 the function "
              "that defines it rounds every step"),
    Deviation("", "LinearAttention", _always, "what the kernel has for a body ends in 'Subgraph must have the shape set'"),
    *(
        Deviation("", name, _always, "zeros of the transform come out as up to 1e-4, beyond the tolerance of onnx's tests")
        for name in ("DFT", "STFT")
    ),
    Deviation("", "Dropout", _training,
              "a seed gives the same numbers in each run, and the kernel's generator goes on from run to run"),
    Deviation("", "MaxUnpool", _placed,
              "'The second input tensor, I, contains the indices to the (locally maximal) elements' of the pool's input; "
              "with output_size the kernel takes them for indices of the output"),
    Deviation("", "ReduceMax", _of_nothing,
              "'Reduction over an empty set of values yields minus infinity (if supported by the datatype) or the minimum "
              "value of the data type otherwise': the kernel refuses bool"),
    Deviation("", "Resize", _corners,
              "'x_original = x_resized * (length_original - 1) / (length_resized - 1)', where 'scale = length_resized / "
              "length_original': the kernel cuts length_resized off to an integer first"),
    Deviation("", "Div", _integers, "the kernel ends the process where the least integer is divided by -1"),
    Deviation("", "BatchNormalization", _statistics,
              "'Output case #2: Y (test mode)': the kernel gives more outputs without computing them"),
    *(
        Deviation("", name, _always,
                  "'seed to the random generator': the kernel's generator goes on from run to run, so that a node with a "
                  "seed would give other numbers in each")
        for name in ("Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
    ),
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
