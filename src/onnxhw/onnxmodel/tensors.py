"""From ONNX tensors and types to numpy's, with our errors."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from ..errors import UnsupportedError
from ..onnxfile.elements import ELEMENTS
from ..onnxfile.limits import DEFAULT, Limits
from ..onnxfile.payload import decode
from ..onnxfile.sparse import dense


def array(tensor: onnx.TensorProto, limits: Limits = DEFAULT) -> npt.NDArray[Any]:
    """The values of a tensor, read-only; `InvalidModelError` E315x if its data does not fit its type and shape.

    Types that numpy lacks are those of ml_dtypes; a string tensor is an array of objects.
    """
    return decode(tensor, limits)


def sparse_array(tensor: onnx.SparseTensorProto, limits: Limits = DEFAULT) -> npt.NDArray[Any]:
    """The dense values of a sparse tensor; `InvalidModelError` E315x and E316x."""
    return dense(tensor, limits)


def dtype(value: onnx.ValueInfoProto) -> str:
    """numpy's name of a value's element type; `UnsupportedError` E4005 if it has none."""
    number = value.type.tensor_type.elem_type
    if number not in ELEMENTS:
        raise UnsupportedError("E4005", f"{value.name!r} has no element type that is known")
    return str(np.dtype(ELEMENTS[number].dtype))


def constant_node(node: onnx.NodeProto) -> npt.NDArray[Any] | None:
    """The value of a Constant node, or None for a form that is not a number."""
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if attribute.name == "value":
            return array(value)
        if attribute.name == "sparse_value":
            return sparse_array(value)
        if attribute.name in ("value_float", "value_floats"):
            return np.array(value, np.float32)
        if attribute.name in ("value_int", "value_ints"):
            return np.array(value, np.int64)
    return None
