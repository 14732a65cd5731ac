"""Resize in mode linear: golden = onnxruntime = emulator."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from onnxhw.convert.blockers import UnsupportedNodesError
from onnxhw.convert.operators.linear_resize import phases

S = 2.0**-3
CASES: dict[str, tuple[list[int], list[float], dict[str, Any]]] = {
    "twice": ([1, 5, 4, 6], [1, 1, 2, 2], {}),
    "as PyTorch writes it": (
        [1, 5, 4, 6], [1, 1, 2, 2], {"coordinate_transformation_mode": "pytorch_half_pixel", "nearest_mode": "floor"},
    ),
    "rows alone": ([1, 5, 4, 6], [1, 1, 3, 1], {}),
    "by 4 and 2": ([1, 3, 3, 5], [1, 1, 4, 2], {}),
    "asymmetric": ([1, 5, 4, 6], [1, 1, 2, 4], {"coordinate_transformation_mode": "asymmetric"}),
    "a single pixel": ([1, 5, 1, 1], [1, 1, 2, 2], {}),
    "of one dimension": ([1, 5, 7], [1, 1, 2], {}),
    "by 8 and 5": ([1, 3, 3, 2], [1, 1, 8, 5], {}),
    "by 6 and 7": ([1, 3, 2, 3], [1, 1, 6, 7], {}),
    "a single pixel, much larger": ([1, 5, 1, 1], [1, 1, 17, 11], {}),
    "a single row, to its corners": (
        [1, 5, 1, 3], [1, 1, 17, 1], {"coordinate_transformation_mode": "align_corners"},
    ),
    "a single row that is twice as wide": ([1, 5, 1, 3], [1, 1, 9, 2], {}),
}  # fmt: skip


def resized(model: Any, x: str, case: str) -> str:
    _, scales, attributes = CASES[case]
    found: str = model.node("Resize", x, "", model.const(np.array(scales, np.float32)), mode="linear", **attributes)
    return found


@pytest.mark.parametrize("case", CASES)
def test_linear_resize(case: str, model: Any, check: Any) -> None:
    x = model.input(CASES[case][0], S, -17)
    scale = S / 2 if max(CASES[case][1]) < 6 else 0.6180339 * S  # without the ties that other weights would have
    check(model.output(model.requantize(resized(model, x, case), scale, 5), len(CASES[case][0])))


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.INT8])
@pytest.mark.parametrize("case", ["twice", "by 4 and 2", "asymmetric"])
def test_integers_are_cut_as_onnxruntime_cuts_them(case: str, kind: int, models: Any) -> None:
    """As the quantizer writes Resize in QOperator form: uint8 is rounded down, int8 to zero."""
    model = models(unsigned=kind == TensorProto.UINT8)
    x = model.q(_float_input(model, CASES[case][0]), S, 117 if kind == TensorProto.UINT8 else -17)
    y = model.dq(resized(model, x, case), S, 117 if kind == TensorProto.UINT8 else -17)
    graph = model.output(y).check()
    assert {type(op).__name__ for op in graph.ops} >= {"Conv", "Copy"}


def test_integers_eight_times_as_large_stay_on_the_host(models: Any) -> None:
    model = models(unsigned=True)
    x = model.q(_float_input(model, [1, 3, 3, 3]), S, 117)
    y = model.node("Resize", x, "", model.const(np.float32([1, 1, 8, 8])), mode="linear")
    with pytest.raises(UnsupportedNodesError, match="integers by factors"):
        model.output(model.dq(y, S, 117)).load()


def _float_input(model: Any, shape: list[int]) -> str:
    model.input(shape, S)
    del model.nodes[:]
    return "x"


def test_a_relu_behind_it_is_its_clamp(model: Any, check: Any) -> None:
    x = model.input([1, 4, 3, 3], S, 3)
    check(model.output(model.requantize(model.node("Relu", resized(model, x, "twice")), S, -128)))


REFUSED: dict[str, tuple[list[float], dict[str, Any], str]] = {
    "corners": ([1, 1, 2, 2], {"coordinate_transformation_mode": "align_corners"}, "weights of its own"),
    "one and a half": ([1, 1, 1.5, 2], {}, "linear by 1.5 on axis 2"),
    "smaller": ([1, 1, 0.5, 0.5], {}, "linear by 0.5 on axis 2"),
    "much larger": ([1, 1, 9, 9], {}, r"factors \[9, 9\]"),
    "channels": ([1, 2, 2, 2], {}, "of batch or channels"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_stays_on_the_host_says_why(case: str, model: Any) -> None:
    scales, attributes, reason = REFUSED[case]
    x = model.requantize(model.node("MaxPool", model.input([1, 4, 6, 6], S), kernel_shape=[1, 1]), S)
    y = model.node("Resize", x, "", model.const(np.array(scales, np.float32)), mode="linear", **attributes)
    with pytest.raises(UnsupportedNodesError, match=reason):
        model.output(model.requantize(y, S)).load()


def test_phases_of_twice_the_size() -> None:
    before, after = phases(2, "half_pixel")
    assert (before.first, before.weights, after.first, after.weights) == (-1, (1, 3), 0, (3, 1))
    here, between = phases(2, "asymmetric")
    assert (here.weights, between.weights) == ((2,), (1, 1))
