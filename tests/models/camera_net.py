"""Small classifiers of images."""

import numpy as np
import onnx

from onnxhw.qdq import Grid, QdqBuilder

PIXELS = Grid(np.float32(1), -128)


def camera_net(
    height: int = 4, width: int = 6, classes: int = 5, grid: Grid = PIXELS, channels: int = 3
) -> onnx.ModelProto:
    """A convolution, a maximum and a dense layer on an image of 0 to 255; int8 scores behind `grid`."""
    rng, builder = np.random.default_rng(5), QdqBuilder("camera")
    x = builder.input("image", (1, channels, height, width), grid)
    weights = rng.standard_normal((6, channels, 3, 3)).astype(np.float32) / 40
    y = builder.conv("conv", x, weights, np.zeros(6, np.float32), Grid(np.float32(0.1), -100), pads=(1, 1, 1, 1))
    y = builder.flatten("flat", builder.max_pool("pool", y, 2))
    weights = rng.standard_normal((classes, y.shape[1])).astype(np.float32) / 8
    bias = np.zeros(classes, np.float32)
    scores = builder.gemm("dense", y, weights, bias, Grid(np.float32(0.1), 3))
    builder.output(builder.softmax("softmax", scores), "scores", (1, classes))
    return builder.model()
