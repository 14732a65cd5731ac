"""`specialise`: fix the batch at 1 and infer every shape."""

import logging

import onnx
from onnx import shape_inference

from ..errors import InvalidModelError, UnsupportedError

log = logging.getLogger(__name__)

Shape = tuple[int, ...]


def specialise(model: onnx.ModelProto, where: str = "model") -> tuple[onnx.ModelProto, dict[str, Shape]]:
    """A copy with a symbolic batch set to 1, and the static shapes of its values by name.

    A first dimension without a value counts as the batch (said at level INFO). `UnsupportedError` E4003 names any
    other dynamic input dimension, E4005 an input without a shape; `InvalidModelError` E3010 says that the
    shapes contradict each other. Values whose shape is not static are left out of the dict.
    """
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    graph = fixed.graph
    constants = {tensor.name for tensor in graph.initializer}
    symbols: set[str] = set()
    for value in graph.input:
        if value.name not in constants:
            symbols |= _fix_batch(value, where)
    for value in graph.output:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in symbols:
                dim.dim_value = 1
    del graph.value_info[:]
    try:
        inferred = shape_inference.infer_shapes(fixed, check_type=True, strict_mode=True, data_prop=True)
    except (shape_inference.InferenceError, ValueError, RuntimeError) as error:
        text = " ".join(str(error).split())[:300]
        raise InvalidModelError("E3010", f"shapes or types contradict each other: {text}", where=where) from error
    shapes: dict[str, Shape] = {}
    for value in [*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output]:
        shape = _static(value)
        if shape is not None:
            shapes[value.name] = shape
    return inferred, shapes


def _fix_batch(value: onnx.ValueInfoProto, where: str) -> set[str]:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        raise UnsupportedError("E4005", f"input {value.name!r} is not a tensor of known rank", where=where)
    symbols = set()
    for axis, dim in enumerate(kind.shape.dim):
        if dim.HasField("dim_value") and dim.dim_value > 0:
            continue
        if axis:
            name = dim.dim_param or "?"
            raise UnsupportedError(
                "E4003",
                f"input {value.name!r} has a dynamic dimension {name!r} on axis {axis}",
                where=where,
                hint="export with a fixed size, or set it with onnx.tools.update_model_dims",
            )
        log.info("input %s: batch dimension %r set to 1", value.name, dim.dim_param or "?")
        symbols.add(dim.dim_param)
        dim.dim_value = 1
    return symbols - {""}


def _static(value: onnx.ValueInfoProto) -> Shape | None:
    if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
        return None
    dims = value.type.tensor_type.shape.dim
    if not all(dim.HasField("dim_value") for dim in dims):
        return None
    return tuple(dim.dim_value for dim in dims)
