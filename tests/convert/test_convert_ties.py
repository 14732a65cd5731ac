"""Golden and onnx's reference on scales of few decimals: they differ on exact ties, and in what follows from them."""

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from onnxhw import InferenceSession

SHAPE = (1, 4, 6, 6)
SCALES = ["0.05", "0.02", "0.1", "0.04", "0.2", "0.25"]
Ints = npt.NDArray[np.int64]


def sums(q: Ints, zero: int, weight: Ints, bias: Ints) -> Ints:
    """The accumulators of a 3 x 3 convolution with padding 1."""
    x = np.pad(q[0] - zero, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    return np.asarray(np.einsum("chwij,ocij->ohw", windows, weight)[None] + bias[:, None, None])


def assert_rounded_but_for_ties(found: Ints, acc: Ints, ratio: Fraction, zero: int) -> int:
    """`found` is ``acc * ratio`` rounded, of exact ties either neighbour; gives the number of ties."""
    twice = 2 * ratio.numerator * acc
    ties = twice % (2 * ratio.denominator) == ratio.denominator
    low = (twice + ratio.denominator) // (2 * ratio.denominator) + zero
    fits = (found == np.clip(low, -128, 127)) | (ties & (found == np.clip(low - 1, -128, 127)))
    assert fits.all()
    return int(ties.sum())


class Case:
    """``Conv -> Swish -> Conv``, every result quantized: the model, and what its integers follow from."""

    def __init__(self, model: Any, seed: int, form: str) -> None:
        rng = np.random.default_rng(seed)
        self.scales = [str(scale) for scale in rng.choice(SCALES, 6)]
        self.zeros = [int(zero) for zero in rng.integers(-20, 20, 4)]
        in_, w_in, conv, swish, w_out, out = map(float, self.scales)
        self.weights = [rng.integers(-20, 20, (4, 4, 3, 3)) for _ in range(2)]
        self.bias = rng.integers(-90, 90, 4)
        x = model.input(SHAPE, in_, self.zeros[0])
        first = model.constant(self.weights[0].astype(np.int8), w_in, np.int8(0))
        bias = model.constant(self.bias.astype(np.int32), np.float32(in_) * np.float32(w_in), np.int32(0))
        y = model.requantize(model.node("Conv", x, first, bias, pads=[1, 1, 1, 1]), conv, self.zeros[1])
        if form == "If(false)":
            branches = [
                helper.make_graph([helper.make_node(op, [y], [op])], op, [], [helper.make_empty_tensor_value_info(op)])
                for op in ("Neg", "Identity")
            ]
            y = model.node("If", model.const(np.bool_(False)), then_branch=branches[0], else_branch=branches[1])
        y = model.requantize(model.node("Swish", y), swish, self.zeros[2])
        second = model.constant(self.weights[1].astype(np.int8), w_out, np.int8(0))
        z = model.requantize(model.node("Conv", y, second, pads=[1, 1, 1, 1]), out, self.zeros[3])
        self.feeds = {"x": (rng.integers(-128, 128, SHAPE) * in_).astype(np.float32)}
        if form == "overridable weights":
            name = next(node.input[0] for node in model.nodes if second in node.output)
            model.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT8, self.weights[1].shape))
            self.weights[1] = rng.integers(-20, 20, (4, 4, 3, 3))
            self.feeds[name] = self.weights[1].astype(np.int8)
        self.names = [node.output[0] for node in model.nodes if node.op_type == "QuantizeLinear"]
        for name in self.names:
            model.output(name, kind=TensorProto.INT8)
        self.proto: onnx.ModelProto = model.output(z).proto()
        self.proto.ir_version = 11

    def ties(self, values: list[Ints]) -> int:
        """Every tensor of the convolutions follows from the one before; the number of ties."""
        q, conv, swish, out = values
        a, b, c, d, e, f = map(Fraction, self.scales)
        count = assert_rounded_but_for_ties(
            conv, sums(q, self.zeros[0], self.weights[0], self.bias), a * b / c, self.zeros[1]
        )
        acc = sums(swish, self.zeros[2], self.weights[1], np.zeros(4, np.int64))
        return count + assert_rounded_but_for_ties(out, acc, d * e / f, self.zeros[3])


@pytest.mark.parametrize("form", ["plain", "If(false)", "overridable weights"])
def test_golden_and_reference_differ_on_exact_ties_alone(models: Any, form: str) -> None:
    differ = worst = ties = 0
    for seed in range(40):
        case = Case(models(opset=24), seed, form)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the reference's exp overflows
            theirs = [np.asarray(q, np.int64) for q in ReferenceEvaluator(case.proto).run(case.names, case.feeds)]
        with InferenceSession(case.proto) as session:
            ours = [np.asarray(q, np.int64) for q in session.run(case.names, case.feeds)]
        np.testing.assert_array_equal(ours[0], theirs[0])
        ties += case.ties(ours)
        case.ties(theirs)
        same = ours[1] == theirs[1]
        np.testing.assert_array_equal(ours[2][same], theirs[2][same], "Swish: the same where its input is")
        differ += int((ours[3] != theirs[3]).sum())
        worst = max(worst, int(np.abs(ours[3] - theirs[3]).max()))
    assert differ < ties
    assert worst > 1, "one step at a tie, times a weight"
