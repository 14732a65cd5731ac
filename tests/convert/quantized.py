"""Constants of the tests of conversion."""

from typing import Any

import numpy as np
import numpy.typing as npt

S, T = 0.125, 0.25
RNG = np.random.default_rng(11)


def int8(*shape: int) -> npt.NDArray[np.int8]:
    return RNG.integers(-20, 21, shape).astype(np.int8)


def kinds(graph: Any) -> list[type]:
    return [type(op) for op in graph.ops]


def conv(
    model: Any, x: str, outputs: int, depth: int, kernel: tuple[int, ...], bias: bool = True, **attributes: Any
) -> str:
    scale = np.array([2.0 ** -(4 + i % 3) for i in range(outputs)], np.float32)
    w = model.constant(int8(outputs, depth, *kernel), scale, np.zeros(outputs, np.int8))
    if not bias:
        return model.node("Conv", x, w, **attributes)
    b = model.constant(
        RNG.integers(-900, 900, outputs).astype(np.int32), scale * np.float32(S), np.zeros(outputs, np.int32)
    )
    return model.node("Conv", x, w, b, **attributes)
