"""A U-Net."""

import onnx

from .classifiers import scaled
from .float_net import FloatNet


def unet(size: int = 224, width: float = 1.0, up: str = "ConvTranspose", batch: int | str = 1) -> onnx.ModelProto:
    """A U-Net of four levels from 16 channels on; `up`: "ConvTranspose", or a mode of Resize."""
    net = FloatNet(batch, 3, size, size)
    y, kept = "x", []
    widths = [scaled(each, width) for each in (16, 32, 64, 128)]
    for channels in widths[:-1]:
        kept.append(net.conv(net.conv(y, channels), channels))
        y = net.max_pool(kept[-1], 2, 2)
    y = net.conv(net.conv(y, widths[-1]), widths[-1])
    for channels, skip in zip(reversed(widths[:-1]), reversed(kept), strict=True):
        y = net.upconv(y, channels) if up == "ConvTranspose" else net.resize(y, 2, up)
        y = net.conv(net.conv(net.concat(y, skip), channels), channels)
    return net.model("unet", net.conv(y, 2, 1, act=""))
