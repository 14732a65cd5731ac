"""`quantized`: a float model as onnxruntime's quantizer or `onnxhw quantize` writes it, calibrated with random
inputs."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onnxhw.quantize import quantize

FORMS: Mapping[str, Mapping[str, Any]] = {
    "qdq": {"per_channel": True, "act": "QInt8"},
    "qdq-tensor-u8": {"per_channel": False, "act": "QUInt8"},
    "qop": {"per_channel": False, "act": "QUInt8", "format": "QOperator"},
    "qdq-u8u8": {"per_channel": False, "act": "QUInt8", "weight": "QUInt8"},
    "qop-u8u8": {"per_channel": False, "act": "QUInt8", "weight": "QUInt8", "format": "QOperator"},
    "qop-channel-s8": {"per_channel": True, "act": "QInt8", "format": "QOperator"},
    "qdq-pre": {"per_channel": True, "act": "QUInt8", "preprocess": True},
    "qdq-optimised": {"per_channel": True, "act": "QUInt8", "preprocess": True, "optimise": True},
    "onnxhw": {},
}
"""Ways of quantizing by name; the last one is `onnxhw quantize`."""


def quantized(model: onnx.ModelProto, form: str, samples: int = 2, seed: int = 0) -> onnx.ModelProto:
    """The model in one of `FORMS`."""
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    how = FORMS[form]
    (x,) = model.graph.input
    shape = [size.dim_value or 1 for size in x.type.tensor_type.shape.dim]
    random = np.random.default_rng(seed)
    feeds = [{x.name: random.normal(0, 1, shape).astype(np.float32)} for _ in range(samples)]
    if form == "onnxhw":
        return quantize(model.SerializeToString(), lambda: iter(feeds)).model
    with tempfile.TemporaryDirectory() as name:
        at = Path(name)
        onnx.save(model, at / "float.onnx")
        source = at / "float.onnx"
        if how.get("preprocess"):
            quant_pre_process(str(source), str(at / "pre.onnx"), skip_symbolic_shape=True)  # sympy is not required
            source = at / "pre.onnx"
        quantization.quantize_static(
            str(source), str(at / "int8.onnx"), _Reader(iter(feeds)),
            quant_format=quantization.QuantFormat[how.get("format", "QDQ")], per_channel=how["per_channel"],
            activation_type=quantization.QuantType[how["act"]],
            weight_type=quantization.QuantType[how.get("weight", "QInt8")],
        )  # fmt: skip
        target = at / "int8.onnx"
        if how.get("optimise"):
            target = _optimised(target)
        return onnx.load(target)


def _optimised(path: Path) -> Path:
    """As onnxruntime writes a model that it has optimised."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path.with_name("optimised.onnx"))
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return path.with_name("optimised.onnx")


class _Reader:
    def __init__(self, feeds: Iterator[dict[str, Any]]) -> None:
        self.feeds = feeds

    def get_next(self) -> dict[str, Any] | None:
        return next(self.feeds, None)
