"""ConvTranspose and grouped and one-dimensional convolutions: golden = onnxruntime = emulator."""

from typing import Any

import numpy as np
import pytest

from onnxhw.convert.blockers import UnsupportedNodesError
from onnxhw.convert.operators.transposed import phase
from onnxhw.ir.graph import Conv, Copy

S = 2.0**-3
RANDOM = np.random.default_rng(5)

CASES: dict[str, tuple[list[int], int, int, dict[str, Any]]] = {
    "twice": ([1, 4, 3, 5], 6, 1, {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "3x3 of stride 2": ([1, 4, 3, 5], 6, 1, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "with output padding": (
        [1, 4, 3, 5], 6, 1,
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
    ),
    "stride 1": ([1, 4, 3, 5], 6, 1, {"kernel_shape": [3, 2]}),
    "stride 1, cropped": ([1, 4, 5, 5], 6, 1, {"kernel_shape": [3, 3], "pads": [2, 2, 2, 2]}),
    "kernel smaller than the stride": ([1, 4, 3, 5], 6, 1, {"kernel_shape": [2, 1], "strides": [3, 2]}),
    "dilated": ([1, 4, 3, 5], 6, 1, {"kernel_shape": [3, 2], "strides": [2, 2], "dilations": [2, 3]}),
    "dilated by an odd step": ([1, 4, 5, 4], 6, 1, {"kernel_shape": [3, 3], "strides": [2, 3], "dilations": [3, 2]}),
    "4x4 of stride 3x2": ([1, 4, 3, 5], 6, 1, {"kernel_shape": [4, 4], "strides": [3, 2], "pads": [1, 0, 2, 1]}),
    "grouped": ([1, 4, 3, 5], 6, 2, {"kernel_shape": [3, 3], "strides": [2, 2]}),
    "depthwise": ([1, 4, 3, 5], 4, 4, {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "of one dimension": ([1, 4, 7], 6, 1, {"kernel_shape": [4], "strides": [2], "pads": [1, 1]}),
    "same upper": ([1, 4, 3, 5], 6, 1, {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    "same lower": ([1, 4, 3, 5], 6, 1, {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    "same, steps longer than the kernel": (
        [1, 4, 3, 5], 6, 1,
        {"kernel_shape": [1, 2], "strides": [2, 3], "output_padding": [0, 2], "auto_pad": "SAME_LOWER"},
    ),
    "same with output padding": (
        [1, 4, 3, 5], 6, 1,
        {"kernel_shape": [3, 3], "strides": [2, 2], "output_padding": [1, 1], "auto_pad": "SAME_UPPER"},
    ),
    "valid": ([1, 4, 3, 5], 6, 1, {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "VALID"}),
    "output shape": ([1, 4, 3, 5], 6, 1, {"kernel_shape": [4, 4], "strides": [2, 2], "output_shape": [7, 10]}),
}  # fmt: skip


def build(model: Any, case: str, biased: bool, per_channel: bool = True) -> Any:
    shape, outputs, groups, attributes = CASES[case]
    kernel = attributes["kernel_shape"]
    q = RANDOM.integers(-30, 31, (shape[1], outputs // groups, *kernel)).astype(np.int8)
    count = outputs // groups
    scale = 2.0 ** -(4.0 + np.arange(count) % 3) if per_channel else np.float32(2.0**-5)
    zero = np.zeros(count, np.int8) if per_channel else np.int8(0)
    inputs = [model.input(shape, S, -17), model.constant(q, scale, zero, axis=1)]
    if biased:
        scales = np.float32(S) * np.tile(np.broadcast_to(np.asarray(scale, np.float32), (count,)), groups)
        b = RANDOM.integers(-500, 500, outputs).astype(np.int32)
        inputs.append(model.constant(b, scales, np.zeros(outputs, np.int32)))
    y = model.node("ConvTranspose", *inputs, group=groups, **attributes)
    return model.output(model.requantize(model.node("Relu", y), 1.0, -90), len(shape))


@pytest.mark.parametrize("case", CASES)
def test_conv_transpose(case: str, models: Any, check: Any) -> None:
    for biased in (False, True):
        graph = check(build(models(), case, biased, per_channel=biased))
        kinds = [type(op) for op in graph.ops]
        assert kinds == [Conv] if "stride 1" in case else kinds == [Conv] * (len(kinds) - 1) + [Copy]


def test_phases_multiply_no_zeros_that_were_put_in(model: Any) -> None:
    graph = build(model, "3x3 of stride 2", True).load()
    used = [op.weight.shape[2:] for op in graph.ops if isinstance(op, Conv)]
    assert sum(rows * cols for rows, cols in used) == 9


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2, 3])
def test_phase_is_the_definition(stride: int, dilation: int) -> None:
    for size in (1, 2, 5):
        for kernel in (1, 2, 4):
            for before in (0, 1, 3):
                full = stride * (size - 1) + dilation * (kernel - 1) + 1
                for wanted in {max(1, full - before), full + 2}:
                    x, w = RANDOM.integers(-9, 9, size), RANDOM.integers(-9, 9, kernel)
                    y = np.zeros(full + wanted + before, np.int64)
                    for i in range(size):
                        for k in range(kernel):
                            y[stride * i + dilation * k] += x[i] * w[k]
                    for first in range(min(stride, wanted)):
                        found = _evaluate(phase(size, wanted, first, stride, dilation, kernel, before), x, w)
                        np.testing.assert_array_equal(found, y[before : before + wanted][first::stride])


def _evaluate(part: Any, x: np.ndarray[Any, Any], w: np.ndarray[Any, Any]) -> list[int]:
    return [
        sum(
            int(x[place]) * int(w[k])
            for tap, k in enumerate(part.taps)
            if 0 <= (place := t - part.before + tap * part.step) < len(x)
        )
        for t in range(part.count)
    ]


def test_many_phases_stay_on_the_host(model: Any) -> None:
    CASES["many"] = ([1, 2, 3, 3], 2, 1, {"kernel_shape": [5, 5], "strides": [5, 5]})
    with pytest.raises(UnsupportedNodesError, match="more than 16 phases"):
        build(model, "many", False).load()
    del CASES["many"]


@pytest.mark.parametrize("zero", [3, 130, 255])
def test_uint8_weights_are_computed_in_parts(zero: int, model: Any, check: Any) -> None:
    """As the quantizer writes them where weights are uint8; sums of two or three int8."""
    q = RANDOM.integers(0, 256, (4, 6, 2, 2)).astype(np.uint8)
    q.flat[:2] = 0, 255
    w = model.constant(q, np.float32(2.0**-7), np.uint8(zero))
    y = model.node("ConvTranspose", model.input([1, 4, 3, 5], S, -17), w, kernel_shape=[2, 2], strides=[2, 2])
    check(model.output(model.requantize(y, 1.0, 5)))
