"""Classifiers of images: MobileNets, EfficientNet-lite0, SqueezeNet, ResNet-18 and ResNet-50.

`size`: pixels; `width`: factor of the channels, in multiples of 8.
"""

import onnx

from .float_net import FloatNet

SMALL_V3 = (
    (3, 16, 16, True, "Relu", 2), (3, 72, 24, False, "Relu", 2), (3, 88, 24, False, "Relu", 1),
    (5, 96, 40, True, "hard", 2), (5, 240, 40, True, "hard", 1), (5, 240, 40, True, "hard", 1),
    (5, 120, 48, True, "hard", 1), (5, 144, 48, True, "hard", 1), (5, 288, 96, True, "hard", 2),
    (5, 576, 96, True, "hard", 1), (5, 576, 96, True, "hard", 1),
)  # fmt: skip
"""Kernel, expanded channels, channels, squeeze-and-excite, activation, stride; table 2 of its paper."""
LITE0 = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
         (6, 320, 1, 1, 3))  # fmt: skip
"""Expansion, channels, blocks, stride, kernel."""


V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
"""Channels, stride; table 1 of its paper."""
V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, blocks, stride; table 2 of its paper."""


def scaled(channels: int, width: float) -> int:
    """So many channels, in multiples of 8."""
    return max(8, int(channels * width + 4) // 8 * 8)


def mobilenetv1(size: int = 224, width: float = 1.0, classes: int = 1000, batch: int | str = 1) -> onnx.ModelProto:
    """MobileNetV1."""
    net = FloatNet(batch, 3, size, size)
    y = net.conv("x", scaled(32, width), 3, 2)
    for channels, stride in V1:
        y = net.conv(net.depthwise(y, 3, stride), scaled(channels, width), 1)
    return net.model("mobilenetv1", net.classifier(y, classes))


def mobilenetv2(size: int = 224, width: float = 1.0, classes: int = 1000, batch: int | str = 1) -> onnx.ModelProto:
    """MobileNetV2: inverted residuals, ReLU6."""
    net = FloatNet(batch, 3, size, size)
    y = net.conv("x", scaled(32, width), 3, 2, "Relu6")
    for expansion, channels, blocks, first in V2:
        for n in range(blocks):
            stride, block = first if n == 0 else 1, y
            if expansion > 1:
                block = net.conv(block, expansion * net.channels[y], 1, act="Relu6")
            block = net.conv(net.depthwise(block, 3, stride, "Relu6"), scaled(channels, width), 1, act="")
            y = net.add(y, block) if n else block
    return net.model("mobilenetv2", net.classifier(net.conv(y, scaled(1280, width), 1, act="Relu6"), classes))


def mobilenetv3_small(
    size: int = 224, width: float = 1.0, classes: int = 1000, hard: str = "HardSwish", batch: int | str = 1
) -> onnx.ModelProto:
    """MobileNetV3-small; `hard`: how HardSwish is written."""
    net = FloatNet(batch, 3, size, size)
    y = net.conv("x", scaled(16, width), 3, 2, hard)
    for kernel, expanded, channels, excite, act, stride in SMALL_V3:
        act, block, wide = hard if act == "hard" else act, y, scaled(expanded, width)
        if wide != net.channels[y]:
            block = net.conv(block, wide, 1, act=act)
        block = net.depthwise(block, kernel, stride, act)
        block = net.squeeze_excite(block, scaled(wide // 4, 1)) if excite else block
        block = net.conv(block, scaled(channels, width), 1, act="")
        y = net.add(y, block) if stride == 1 and net.channels[y] == net.channels[block] else block
    y = net.node("GlobalAveragePool", net.conv(y, scaled(576, width), 1, act=hard))
    y = net.activation(net.dense(net.node("Flatten", y, axis=1), scaled(1024, width)), hard)
    return net.model("mobilenetv3_small", net.dense(y, classes))


def efficientnet_lite0(
    size: int = 224, width: float = 1.0, classes: int = 1000, batch: int | str = 1
) -> onnx.ModelProto:
    """EfficientNet-lite0: no squeeze-and-excite, ReLU6."""
    net = FloatNet(batch, 3, size, size)
    y = net.conv("x", scaled(32, width), 3, 2, "Relu6")
    for expansion, channels, blocks, first, kernel in LITE0:
        for n in range(blocks):
            stride, block = first if n == 0 else 1, y
            if expansion > 1:
                block = net.conv(block, expansion * net.channels[y], 1, act="Relu6")
            block = net.depthwise(block, kernel, stride, "Relu6")
            block = net.conv(block, scaled(channels, width), 1, act="")
            y = net.add(y, block) if n else block
    return net.model("efficientnet_lite0", net.classifier(net.conv(y, scaled(1280, width), 1, act="Relu6"), classes))


def squeezenet(size: int = 224, width: float = 1.0, classes: int = 1000, batch: int | str = 1) -> onnx.ModelProto:
    """SqueezeNet 1.1: pools of 3 x 3 with ceil_mode."""
    net = FloatNet(batch, 3, size, size)
    y = net.conv("x", scaled(64, width), 3, 2, pads=(0, 0, 0, 0))
    for n, squeezed in enumerate((16, 16, 32, 32, 48, 48, 64, 64)):
        if n in (0, 2, 4):
            y = net.max_pool(y, 3, 2, ceil=1)
        narrow, wide = net.conv(y, scaled(squeezed, width), 1), scaled(4 * squeezed, width)
        y = net.concat(net.conv(narrow, wide, 1), net.conv(narrow, wide, 3))
    y = net.node("GlobalAveragePool", net.conv(y, classes, 1))
    return net.model("squeezenet", net.node("Flatten", y, axis=1))


def resnet18(size: int = 224, width: float = 1.0, classes: int = 1000, batch: int | str = 1) -> onnx.ModelProto:
    """ResNet-18."""
    net = FloatNet(batch, 3, size, size)
    y = net.max_pool(net.conv("x", scaled(64, width), 7, 2), 3, 2, pad=1)
    for channels, first in ((64, 1), (128, 2), (256, 2), (512, 2)):
        wide = scaled(channels, width)
        for stride in (first, 1):
            block = net.conv(net.conv(y, wide, 3, stride), wide, 3, act="")
            same = stride == 1 and net.channels[y] == wide
            y = net.node("Relu", net.add(block, y if same else net.conv(y, wide, 1, stride, act="")))
    return net.model("resnet18", net.classifier(y, classes))


def resnet50(size: int = 224, width: float = 1.0, classes: int = 1000, batch: int | str = 1) -> onnx.ModelProto:
    """ResNet-50 with the stride in the 3 x 3 convolution."""
    net = FloatNet(batch, 3, size, size)
    y = net.max_pool(net.conv("x", scaled(64, width), 7, 2), 3, 2, pad=1)
    for channels, blocks, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        narrow, wide = scaled(channels, width), scaled(4 * channels, width)
        for n in range(blocks):
            stride = first if n == 0 else 1
            block = net.conv(net.conv(net.conv(y, narrow, 1), narrow, 3, stride), wide, 1, act="")
            y = net.node("Relu", net.add(block, y if n else net.conv(y, wide, 1, stride, act="")))
    return net.model("resnet50", net.classifier(y, classes))
