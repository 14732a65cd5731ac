"""Networks of one dimension: a TCN and a keyword net. `length`: positions; `width`: factor of the channels."""

import onnx

from .classifiers import scaled
from .float_net import FloatNet


def tcn(length: int = 1024, width: float = 1.0, classes: int = 10, batch: int | str = 1) -> onnx.ModelProto:
    """A temporal convolutional network: causal convolutions over a row, dilated by powers of two, with shortcuts."""
    net = FloatNet(batch, 16, length)
    y = "x"
    for n in range(6):
        channels, dilation = scaled(64, width), 2**n
        inner = net.conv(y, channels, 3, rank=1, dilation=dilation, pads=(2 * dilation, 0))
        inner = net.conv(inner, channels, 3, rank=1, dilation=dilation, pads=(2 * dilation, 0))
        same = net.channels[y] == channels
        y = net.node("Relu", net.add(inner, y if same else net.conv(y, channels, 1, act="", rank=1)))
    return net.model("tcn", net.classifier(y, classes))


def keywords(length: int = 16000, width: float = 1.0, classes: int = 35, batch: int | str = 1) -> onnx.ModelProto:
    """A keyword net on a second of sound (M5): a long first window, convolutions and pools over a row."""
    net = FloatNet(batch, 1, length)
    y = net.conv("x", scaled(32, width), 80, 16, rank=1, pads=(0, 0))
    for channels in (32, 64, 64):
        y = net.node("MaxPool", y, kernel_shape=[4], strides=[4])
        y = net.conv(y, scaled(channels, width), 3, rank=1)
    return net.model("keywords", net.classifier(net.node("MaxPool", y, kernel_shape=[4], strides=[4]), classes))
