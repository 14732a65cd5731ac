"""A streaming network as an ONNX file: a state input and a state output, in QDQ form."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from qdq_model import Model

STATE, OLD = "kept", "old"
"""The state's output and input."""
SCALE = 1 / 8
FRAME, WINDOW = (1, 4, 1, 8), 3


def temporal(
    *, out_scale: float = SCALE, out_zero: int = 0, frames: int = WINDOW - 1, channels: int = 4, unsigned: bool = False,
    relu: bool = False, head: bool = True, batch: Any = 1, again: bool = False,
) -> onnx.ModelProto:  # fmt: skip
    """A convolution over the last three frames ``(1, 4, 1, 8)``, the older ones of which are the state.

    What is said else breaks it: the quantization of the state's output, how many `frames` and `channels` it has, a
    `relu` that the host computes, no other output, an `again`: a second convolution, behind the host.
    """
    model = Model(unsigned=unsigned)
    rng = np.random.default_rng(3)
    zero = 128 if unsigned else 0
    x = model.input((batch, *FRAME[1:]), SCALE, zero)
    old = model.input((batch, 4, WINDOW - 1, 8), SCALE, zero, OLD)
    window = model.requantize(model.node("Concat", old, x, axis=2), SCALE, zero)
    weight = model.constant(rng.integers(-128, 128, (6, 4, WINDOW, 3)).astype(np.int8), 1 / 64)
    y = model.requantize(model.node("Conv", window, weight, pads=[0, 1, 0, 1]), 1 / 4, zero)
    cut = [model.const(np.array(one, np.int64)) for one in ([WINDOW - frames, 0], [WINDOW, channels], [2, 1])]
    kept = model.requantize(model.node("Slice", window, *cut), out_scale, zero + out_zero)
    if relu:
        model.node("Relu", kept)
    model.nodes[-1].output[0] = STATE
    if again:
        second = model.constant(rng.integers(-128, 128, (6, 6, 1, 1)).astype(np.int8), 1 / 64)
        summed = model.node("CumSum", y, model.const(np.int64(1)))
        y = model.node("Conv", model.requantize(summed, 1 / 4, zero), second)
    model.requantize(model.node("Relu", y), 1 / 4, zero)
    model.nodes[-1].output[0] = "y"
    return (model.output("y") if head else model).output(STATE).proto()


def stream(count: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Frames ``(count, 4, 1, 8)`` that reach the ends of their grid."""
    values = np.random.default_rng(seed).integers(-140, 140, (count, *FRAME[1:]))
    return (values * SCALE).astype(np.float32)
