"""Nodes of models that are quantized in part, one after the other."""

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper


class Nodes:
    """Collects nodes with names of their own; a scale of 1/8 is `s`, a zero point `z`, and int8 weights are `w`."""

    def __init__(self) -> None:
        self.made: list[onnx.NodeProto] = []

    def node(self, kind: str, *inputs: str, **more: Any) -> str:
        """Add a node; the name of its result."""
        name = f"v{len(self.made) + 1}"
        self.made.append(helper.make_node(kind, inputs, [name], name=f"{kind}_{len(self.made) + 1}", **more))
        return name

    def grid(self, x: str) -> str:
        """QuantizeLinear and DequantizeLinear."""
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, "s", "z"), "s", "z")

    def conv(self, x: str) -> str:
        """A Conv of `w` on the grid of `s`, from and to it."""
        return self.grid(self.node("Conv", self.grid(x), self.node("DequantizeLinear", "w", "s", "z")))


def constants(outputs: int, channels: int) -> list[onnx.TensorProto]:
    """`s`, `z` and the weights of 1x1 convolutions."""
    w = np.random.default_rng(3).integers(-8, 8, (outputs, channels, 1, 1)).astype(np.int8)
    values = [("s", np.float32(0.125)), ("z", np.int8(0)), ("w", w)]
    return [numpy_helper.from_array(value, name) for name, value in values]
