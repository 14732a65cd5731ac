"""Detectors of YOLO's kind: SiLU, Concat, Resize, pools of 5 x 5, heads. `size`: pixels; `width`: of the channels."""

import onnx

from .classifiers import scaled
from .float_net import FloatNet


def tiny_yolov2(size: int = 416, width: float = 1.0, batch: int | str = 1) -> onnx.ModelProto:
    """Tiny YOLOv2: nine convolutions with LeakyReLU, the last pool with stride 1; 3 x 3 behind 1,024 channels."""
    net, y = _Net(batch, 3, size, size), "x"
    for number, channels in enumerate((16, 32, 64, 128, 256, 512)):
        y = net.leaky(y, scaled(channels, width))
        step = 2 if number < 5 else 1
        pads = [0, 0, 2 - step, 2 - step]
        y = net.node("MaxPool", y, kernel_shape=[2, 2], strides=[step, step], pads=pads)
    y = net.leaky(net.leaky(y, scaled(1024, width)), scaled(1024, width))
    return net.model("tiny-yolov2", net.conv(y, 125, 1, act=""))


def yolov5n(size: int = 320, width: float = 1.0, batch: int | str = 1) -> onnx.ModelProto:
    """YOLOv5n: C3 blocks, SPPF, three heads of 255 channels."""
    net = _Net(batch, 3, size, size)
    c16, c32, c64, c128, c256 = (scaled(each, width) for each in (16, 32, 64, 128, 256))
    y = net.silu("x", c16, 6, 2, pads=(2, 2, 2, 2))
    y = net.c3(net.silu(y, c32, 3, 2), c32, 1)
    p3 = net.c3(net.silu(y, c64, 3, 2), c64, 2)
    p4 = net.c3(net.silu(p3, c128, 3, 2), c128, 3)
    y = net.sppf(net.c3(net.silu(p4, c256, 3, 2), c256, 1), c256)
    h5 = net.silu(y, c128, 1)
    h4 = net.silu(net.c3(net.concat(net.resize(h5), p4), c128, 1, False), c64, 1)
    o3 = net.c3(net.concat(net.resize(h4), p3), c64, 1, False)
    o4 = net.c3(net.concat(net.silu(o3, c64, 3, 2), h4), c128, 1, False)
    o5 = net.c3(net.concat(net.silu(o4, c128, 3, 2), h5), c256, 1, False)
    return net.model("yolov5n", *(net.conv(each, 255, 1, act="") for each in (o3, o4, o5)))


def yolov8n(size: int = 320, width: float = 1.0, batch: int | str = 1) -> onnx.ModelProto:
    """YOLOv8n: C2f blocks with Split, SPPF, at each of three sizes a head of boxes and one of classes."""
    net = _Net(batch, 3, size, size)
    c16, c32, c64, c128, c256 = (scaled(each, width) for each in (16, 32, 64, 128, 256))
    y = net.c2f(net.silu(net.silu("x", c16, 3, 2), c32, 3, 2), c32, 1, True)
    p3 = net.c2f(net.silu(y, c64, 3, 2), c64, 2, True)
    p4 = net.c2f(net.silu(p3, c128, 3, 2), c128, 2, True)
    p5 = net.sppf(net.c2f(net.silu(p4, c256, 3, 2), c256, 1, True), c256)
    n4 = net.c2f(net.concat(net.resize(p5), p4), c128, 1, False)
    o3 = net.c2f(net.concat(net.resize(n4), p3), c64, 1, False)
    o4 = net.c2f(net.concat(net.silu(o3, c64, 3, 2), n4), c128, 1, False)
    o5 = net.c2f(net.concat(net.silu(o4, c128, 3, 2), p5), c256, 1, False)
    heads = [(each, channels) for each in (o3, o4, o5) for channels in (64, 80)]
    return net.model("yolov8n", *(net.head(each, channels) for each, channels in heads))


class _Net(FloatNet):
    """With YOLO's blocks."""

    def leaky(self, x: str, channels: int) -> str:
        return self.node("LeakyRelu", self.conv(x, channels, act=""), alpha=0.1)

    def silu(self, x: str, channels: int, kernel: int = 3, stride: int = 1, pads: tuple[int, ...] | None = None) -> str:
        return self.conv(x, channels, kernel, stride, "SiLU", pads=pads)

    def c3(self, x: str, channels: int, count: int, shortcut: bool = True) -> str:
        y, half = self.silu(x, channels // 2, 1), channels // 2
        for _ in range(count):
            inner = self.silu(self.silu(y, half, 1), half)
            y = self.add(y, inner) if shortcut else inner
        return self.silu(self.concat(y, self.silu(x, half, 1)), channels, 1)

    def c2f(self, x: str, channels: int, count: int, shortcut: bool) -> str:
        half = channels // 2
        sizes = self.const([half, half])
        first = self.node("Split", self.silu(x, channels, 1), sizes, outputs=2, channels=half, axis=1)
        parts = [first, f"{first}_1"]
        for _ in range(count):
            inner = self.silu(self.silu(parts[-1], half), half)
            parts.append(self.add(parts[-1], inner) if shortcut else inner)
        return self.silu(self.concat(*parts), channels, 1)

    def sppf(self, x: str, channels: int) -> str:
        parts = [self.silu(x, channels // 2, 1)]
        for _ in range(3):
            parts.append(self.max_pool(parts[-1], 5, 1, pad=2))
        return self.silu(self.concat(*parts), channels, 1)

    def head(self, x: str, channels: int) -> str:
        return self.conv(self.silu(self.silu(x, channels), channels), channels, 1, act="")
