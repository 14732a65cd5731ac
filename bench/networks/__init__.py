"""Networks of today's kinds as float ONNX models with random weights, by name, at their papers' sizes; `quantized`
makes them what onnxruntime's quantizer writes (docs/segments.md)."""

from collections.abc import Callable
from functools import partial

import onnx

from .classifiers import (
    efficientnet_lite0,
    mobilenetv1,
    mobilenetv2,
    mobilenetv3_small,
    resnet18,
    resnet50,
    squeezenet,
)
from .detectors import tiny_yolov2, yolov5n, yolov8n
from .quantized import FORMS, quantized
from .sequences import keywords, tcn
from .unet import unet

__all__ = ["FORMS", "FULL", "SMALL", "quantized"]

FULL: dict[str, Callable[[], onnx.ModelProto]] = {
    "mobilenetv1": mobilenetv1, "mobilenetv2": mobilenetv2, "mobilenetv3": mobilenetv3_small,
    "efficientnet-lite0": efficientnet_lite0, "squeezenet": squeezenet, "resnet18": resnet18, "resnet50": resnet50,
    "yolov5n": yolov5n, "yolov8n": yolov8n, "tiny-yolov2": tiny_yolov2, "unet": partial(unet, 224, 2.0),
    "unet-bilinear": partial(unet, 224, 2.0, "linear"), "tcn": partial(tcn, 4096, 2.0),
    "keywords": partial(keywords, 16000, 2.0),
}  # fmt: skip
"""At 224 pixels, YOLO's at 320, Tiny YOLOv2 at 416, full width; the U-Nets have 32 to 256 channels."""
SMALL: dict[str, Callable[[], onnx.ModelProto]] = {
    "mobilenetv1": partial(mobilenetv1, 96, 0.5, 10), "mobilenetv2": partial(mobilenetv2, 96, 0.5, 10),
    "mobilenetv3": partial(mobilenetv3_small, 96, 0.5, 10), "resnet18": partial(resnet18, 96, 0.25, 10),
    "mobilenetv3-mul": partial(mobilenetv3_small, 96, 0.5, 10, "HardSigmoid*x"),
    "mobilenetv3-clip": partial(mobilenetv3_small, 96, 0.5, 10, "clip(x+3)/6*x"),
    "efficientnet-lite0": partial(efficientnet_lite0, 96, 0.5, 10), "squeezenet": partial(squeezenet, 96, 0.5, 100),
    "resnet50": partial(resnet50, 96, 0.25, 10), "yolov5n": partial(yolov5n, 96, 0.5),
    "yolov8n": partial(yolov8n, 96, 0.5), "tiny-yolov2": partial(tiny_yolov2, 96, 0.25), "unet": partial(unet, 96, 0.5),
    "unet-bilinear": partial(unet, 96, 0.5, "linear"), "unet-nearest": partial(unet, 96, 0.5, "nearest"),
    "tcn": tcn, "keywords": keywords,
}  # fmt: skip
"""The same, reduced, but for most too large for the ULX3S-85F's chip alone."""
