"""`Expected`: what a model says of its values, and whether the values that come are so."""

from collections.abc import Iterable, MutableMapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

Sizes = MutableMapping[str, int]
"""Dimension variables that have a size in this run."""
SIZES = "\0sizes"
"""The name, which no value can have, under which the sizes of variables pass to nested graphs."""
INVENTED = "unk__"
"""How onnx's inference begins names of its own for sizes that it does not know; two inferences give the same names."""


class Expected:
    """The types that a graph declares for its values, or that were inferred: only what can be wrong is kept."""

    def __init__(self, values: Iterable[onnx.ValueInfoProto]) -> None:
        self.types = {value.name: _Tensor(value.type.tensor_type) for value in values
                      if value.type.HasField("tensor_type")}  # fmt: skip

    def fault(self, name: str, value: Any, sizes: Sizes) -> str:
        """What contradicts the model in a value, empty if nothing does. Variables that are met first get their size."""
        kind = self.types.get(name)
        if kind is None:
            return ""
        if not isinstance(value, np.ndarray | np.generic):
            return f"{_what(value)}, the model says a tensor"
        return kind.fault(value, sizes)


class _Tensor:
    """The type of a tensor: element type, and per dimension a size, a variable, or None."""

    __slots__ = ("dims", "element")

    def __init__(self, kind: onnx.TypeProto.Tensor) -> None:
        self.element = int(kind.elem_type)
        self.dims: list[int | str | None] | None = None
        if kind.HasField("shape"):
            self.dims = [
                dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0
                else dim.dim_param if dim.dim_param and not dim.dim_param.startswith(INVENTED) else None
                for dim in kind.shape.dim
            ]  # fmt: skip

    def fault(self, value: Any, sizes: Sizes) -> str:
        if self.element and not _fits(value.dtype, self.element):
            wanted = onnx.TensorProto.DataType.Name(self.element).lower()
            return f"{_what(value)}, the model says elements of {wanted}"
        if self.dims is None:
            return ""
        if len(self.dims) != value.ndim:
            return f"{_what(value)}, the model says {_shown(self.dims)}"
        for wanted, size in zip(self.dims, value.shape, strict=True):
            if isinstance(wanted, int) and wanted != size:
                return f"{_what(value)}, the model says {_shown(self.dims)}"
            if isinstance(wanted, str) and sizes.setdefault(wanted, size) != size:
                return f"{_what(value)}, the model says {_shown(self.dims)} where {wanted} is {sizes[wanted]}"
        return ""


def _fits(dtype: np.dtype[Any], element: int) -> bool:
    if element == onnx.TensorProto.STRING:
        return dtype.kind in "OUS"
    if dtype.kind in "OUS":
        return False
    return bool(_dtype(element) == dtype)


_dtypes: dict[int, Any] = {}


def _dtype(element: int) -> Any:
    if element not in _dtypes:
        _dtypes[element] = helper.tensor_dtype_to_np_dtype(element)
    return _dtypes[element]


def _what(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        return f"{'string' if value.dtype.kind in 'OUS' else value.dtype}{list(value.shape)}"
    return "nothing" if value is None else f"a {type(value).__name__}"


def _shown(dims: list[int | str | None]) -> str:
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"
