"""`prepare_model`: a model file as a float model that can be quantized."""

from collections.abc import Mapping
from pathlib import Path

import onnx

from ..errors import UnsupportedError
from ..onnxfile.limits import DEFAULT, Limits
from ..onnxmodel.in_worker import CrashError, convert_version
from ..onnxmodel.inline import inline
from ..onnxmodel.quantizers import quantizes
from ..onnxmodel.read import read_model
from ..onnxmodel.shapes import require_static, specialise
from ..onnxmodel.tensors import dtype
from ..onnxmodel.unroll import unroll
from ..preprocess import Input

Source = str | Path | bytes
"""A path or the bytes of an ONNX file."""
OLDEST_OPSET, OLDEST_IR = 13, 7
"""Quantization along an axis came with operator set 13, which is of IR version 7."""


def prepare_model(source: Source, limits: Limits = DEFAULT) -> tuple[onnx.ModelProto, str]:
    """The model at operator set 13 or later, functions inlined and static loops unrolled, and its name for messages.

    `UnsupportedError` E4701: the operator set cannot be raised; E4702: the model is quantized already. Otherwise as
    `onnxhw.partition.read`.
    """
    where = "model" if isinstance(source, bytes) else str(source)
    model = _read(source, where, limits)
    done = sorted({node.op_type for node in model.graph.node if quantizes(node.op_type)})
    if done:
        raise UnsupportedError(
            "E4702",
            f"the model is quantized already: it has {', '.join(done)}",
            where=where,
            hint="compile it as it is, or quantize the float model",
        )
    opset = max((entry.version for entry in model.opset_import if entry.domain == ""), default=1)
    if opset < OLDEST_OPSET:
        model = _raise_opset(model, opset, where)
    return model, where


def inputs_of(source: Source, limits: Limits = DEFAULT, shapes: Mapping[str, int] | None = None) -> list[Input]:
    """What samples of a model must be: its inputs with batch 1 where that is open, and the sizes that `shapes` gives.

    Of a model whose first dimension is fixed a sample has as many rows.
    """
    where = "model" if isinstance(source, bytes) else str(source)
    inferred, known = specialise(_read(source, where, limits), where, shapes, limits)
    require_static(inferred, known, where)
    constants = {tensor.name for tensor in inferred.graph.initializer}
    values = [value for value in inferred.graph.input if value.name not in constants]
    return [Input(value.name, known[value.name], dtype(value), max(1, *known[value.name][:1])) for value in values]


def _read(source: Source, where: str, limits: Limits) -> onnx.ModelProto:
    return unroll(inline(read_model(source, limits), limits, where), limits)


def _raise_opset(model: onnx.ModelProto, opset: int, where: str) -> onnx.ModelProto:
    try:
        raised = convert_version(model, OLDEST_OPSET)
    except CrashError:
        raise
    except Exception as error:  # the converter raises RuntimeError and whatever its adapters do
        text = " ".join(str(error).split())[:200]
        raise UnsupportedError(
            "E4701",
            f"operator set {opset} cannot be raised to {OLDEST_OPSET}: {text}",
            where=where,
            hint=f"export the model with operator set {OLDEST_OPSET} or later",
        ) from error
    raised.ir_version = max(raised.ir_version, OLDEST_IR)
    return raised
