"""The four MLPerf Tiny networks with deterministic random weights, as int8 QDQ models.

Same layers and shapes as the reference models. They take the same cycles, but where reference weights have constant
channels, which are not computed. Weights are drawn so that activations keep to a sane range. They classify nothing.
`legacy` random numbers of numpy are frozen, so everybody gets the same model.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import onnx

from ..qdq import Grid, QdqBuilder, QdqValue

Floats = npt.NDArray[np.float32]
Pads = tuple[int, int, int, int]
ACTIVE, LINEAR, SUM = Grid.covering(0, 6), Grid.covering(-5, 5), Grid.covering(0, 9)
"""Grids after a Relu, after a layer without one, after a residual Add with Relu."""
SAME: Pads = (1, 1, 1, 1)
SAME_STRIDE_2: Pads = (0, 0, 1, 1)
"""Padding "same" of a 3x3 window at stride 2 on an even size, as TensorFlow has it."""


class _Net:
    """A `QdqBuilder` with a stream of random weights."""

    def __init__(self, name: str, seed: int) -> None:
        self.builder, self.random = QdqBuilder(name), np.random.RandomState(seed)

    def parameters(self, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """He-scaled weights and small biases."""
        weights = self.random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
        return weights.astype(np.float32), (self.random.standard_normal(shape[0]) * 0.1).astype(np.float32)

    def conv(
        self,
        name: str,
        x: QdqValue,
        out: int,
        kernel: tuple[int, int],
        stride: int = 1,
        pads: Pads = (0, 0, 0, 0),
        relu: bool = True,
    ) -> QdqValue:
        weights, bias = self.parameters((out, x.shape[1], *kernel))
        grid = ACTIVE if relu else LINEAR
        return self.builder.conv(name, x, weights, bias, grid, strides=(stride, stride), pads=pads, relu=relu)

    def depthwise(self, name: str, x: QdqValue, stride: int = 1) -> QdqValue:
        channels = x.shape[1]
        weights, bias = self.parameters((channels, 1, 3, 3))
        pads = SAME if stride == 1 else SAME_STRIDE_2
        return self.builder.conv(name, x, weights, bias, ACTIVE, strides=(stride, stride), pads=pads, group=channels)

    def dense(self, name: str, x: QdqValue, out: int, relu: bool = False) -> QdqValue:
        weights, bias = self.parameters((out, x.shape[1]))
        return self.builder.gemm(name, x, weights, bias, ACTIVE if relu else LINEAR, relu=relu)

    def classifier(self, x: QdqValue, classes: int) -> onnx.ModelProto:
        """Average pool, Gemm, Softmax; the finished model."""
        pooled = self.builder.flatten("flatten", self.builder.global_average_pool("average", x, ACTIVE))
        scores = self.dense("dense", pooled, classes)
        self.builder.output(self.builder.softmax("softmax", scores), "output", (1, classes))
        return self.builder.model()


def ic_resnet8() -> onnx.ModelProto:
    """Image classification: ResNet-8 on 3 x 32 x 32, 12,501,632 MACs."""
    net = _Net("ic_resnet8", 1)
    x = net.builder.input("input", (1, 3, 32, 32), Grid.covering(0, 255 / 64))
    x = net.conv("stem", x, 16, (3, 3), pads=SAME)
    for stage, channels in enumerate((16, 32, 64)):
        stride = 1 if stage == 0 else 2
        pads = SAME if stride == 1 else SAME_STRIDE_2
        y = net.conv(f"stage{stage}_conv1", x, channels, (3, 3), stride, pads)
        y = net.conv(f"stage{stage}_conv2", y, channels, (3, 3), pads=SAME, relu=False)
        shortcut = x if stage == 0 else net.conv(f"stage{stage}_shortcut", x, channels, (1, 1), stride, relu=False)
        x = net.builder.add(f"stage{stage}_add", shortcut, y, SUM, relu=True)
    return net.classifier(x, 10)


def kws_dscnn() -> onnx.ModelProto:
    """Keyword spotting: DS-CNN on 1 x 49 x 10, 2,656,768 MACs."""
    net = _Net("kws_dscnn", 2)
    x = net.builder.input("input", (1, 1, 49, 10), LINEAR)
    x = net.conv("stem", x, 64, (10, 4), 2, (4, 1, 5, 1))
    for block in range(4):
        x = net.depthwise(f"block{block}_depthwise", x)
        x = net.conv(f"block{block}_pointwise", x, 64, (1, 1))
    return net.classifier(x, 12)


VWW_BLOCKS = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1))
"""Channels and stride of the depthwise-separable blocks of MobileNetV1 0.25."""


def vww_mobilenetv1() -> onnx.ModelProto:
    """Visual wake words: MobileNetV1 0.25 on 3 x 96 x 96, 7,489,664 MACs."""
    net = _Net("vww_mobilenetv1", 3)
    x = net.builder.input("input", (1, 3, 96, 96), Grid.covering(0, 4))
    x = net.conv("stem", x, 8, (3, 3), 2, SAME_STRIDE_2)
    for block, (channels, stride) in enumerate(VWW_BLOCKS):
        x = net.depthwise(f"block{block}_depthwise", x, stride)
        x = net.conv(f"block{block}_pointwise", x, channels, (1, 1))
    return net.classifier(x, 2)


def ad_autoencoder() -> onnx.ModelProto:
    """Anomaly detection: a fully connected autoencoder on 640 values, 264,192 MACs."""
    net = _Net("ad_autoencoder", 4)
    x = net.builder.input("input", (1, 640), LINEAR)
    widths = (128, 128, 128, 128, 8, 128, 128, 128, 128)
    for layer, width in enumerate(widths):
        x = net.dense(f"dense{layer}", x, width, relu=True)
    x = net.dense("reconstruction", x, 640)
    net.builder.output(x.name, "output", (1, 640))
    return net.builder.model()


TOPOLOGIES: dict[str, Callable[[], onnx.ModelProto]] = {
    "ic": ic_resnet8,
    "kws": kws_dscnn,
    "vww": vww_mobilenetv1,
    "ad": ad_autoencoder,
}
"""The networks by the short name of their MLPerf Tiny task."""
