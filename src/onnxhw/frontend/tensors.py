"""From ONNX tensors and types to numpy's, with our errors."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from ..errors import InvalidModelError, UnsupportedError


def array(tensor: onnx.TensorProto) -> npt.NDArray[Any]:
    """The values of a tensor; `InvalidModelError` E3011 if its data does not fit its type and shape."""
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError, OverflowError, RuntimeError, MemoryError) as error:
        text = " ".join(str(error).split())[:200]
        raise InvalidModelError("E3011", f"the data of tensor {tensor.name!r} is not valid: {text}") from error


def dtype(value: onnx.ValueInfoProto) -> str:
    """numpy's name of a value's element type; `UnsupportedError` E4005 if it has none."""
    try:
        return str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)))
    except (ValueError, TypeError, KeyError) as error:
        raise UnsupportedError("E4005", f"{value.name!r} has no element type that is known") from error
