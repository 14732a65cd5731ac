"""Sparse tensors: `check_sparse`, `dense`, and `fill_in` for the initializers of a graph.

A sparse tensor is a list of values and, for each, its index: linear (``[NNZ]``) or by axis (``[NNZ, rank]``), in
ascending order. Everything else is zero, or the empty string.
"""

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from ..errors import InvalidModelError
from .limits import DEFAULT, Limits
from .payload import check, decode, shape_of

Ints = npt.NDArray[np.int64]


def sparse_title(tensor: onnx.SparseTensorProto) -> str:
    """What a message calls the tensor."""
    return f"sparse tensor {tensor.values.name!r}"


def check_sparse(tensor: onnx.SparseTensorProto, limits: Limits = DEFAULT, where: str = "") -> int:
    """The bytes of the dense tensor, once the indices were found right; see `dense` for the errors."""
    where = where or sparse_title(tensor)
    shape = shape_of(tensor.dims, where, limits)
    check(tensor.values, limits, f"values of {where}")
    check(tensor.indices, limits, f"indices of {where}")
    values = tuple(tensor.values.dims)
    if len(values) != 1:
        raise InvalidModelError("E3160", f"has values of shape {list(values)}, not a list", where=where)
    if tensor.indices.data_type != onnx.TensorProto.INT64:
        raise InvalidModelError("E3161", "has indices that are not INT64", where=where)
    count = values[0]
    if tuple(tensor.indices.dims) not in ((count,), (count, len(shape))):
        raise InvalidModelError(
            "E3162",
            f"has indices of shape {list(tensor.indices.dims)}, not [{count}] or [{count}, {len(shape)}]",
            where=where,
        )
    _order(_linear(tensor, shape, where), where)
    return prod(shape) * decode(tensor.values, limits, f"values of {where}").dtype.itemsize


def dense(tensor: onnx.SparseTensorProto, limits: Limits = DEFAULT, where: str = "") -> npt.NDArray[Any]:
    """The dense array.

    `InvalidModelError`: E3160 values that are no list, E3161 indices of another type, E3162 of another shape, E3163
    out of range, E3164 not ascending, E3165 twice the same; those of `decode` for values, indices and shape.
    """
    where = where or sparse_title(tensor)
    check_sparse(tensor, limits, where)
    values = decode(tensor.values, limits, f"values of {where}")
    shape = tuple(tensor.dims)
    filled = np.full(prod(shape), "", object) if values.dtype == object else np.zeros(prod(shape), values.dtype)
    filled[_linear(tensor, shape, where)] = values
    return filled.reshape(shape)


def fill_in(graph: onnx.GraphProto) -> None:
    """Make the graph's checked sparse initializers dense ones of the same names: to its nodes they are the same."""
    for tensor in graph.sparse_initializer:
        graph.initializer.append(numpy_helper.from_array(dense(tensor), tensor.values.name))
    del graph.sparse_initializer[:]


def _linear(tensor: onnx.SparseTensorProto, shape: tuple[int, ...], where: str) -> Ints:
    """The linear index of each value, in range: E3163 if not."""
    found: Ints = decode(tensor.indices, where=f"indices of {where}").astype(np.int64, copy=False)
    bounds = np.array(shape if found.ndim == 2 else [prod(shape)], np.int64)
    table = found.reshape(len(found), len(bounds))
    if table.size and ((table < 0).any() or (table >= bounds).any()):
        raise InvalidModelError("E3163", f"has an index outside of {list(shape)}", where=where)
    steps = np.array([prod(shape[axis + 1 :]) for axis in range(len(shape))] if found.ndim == 2 else [1], np.int64)
    return np.asarray(table @ steps, np.int64)


def _order(indices: Ints, where: str) -> None:
    steps = np.diff(indices)
    if (steps < 0).any():
        raise InvalidModelError("E3164", "has indices that are not in ascending order", where=where)
    if (steps == 0).any():
        raise InvalidModelError("E3165", "has the same index twice", where=where)
