"""`Expected`: what a model says of its values, and whether the values that come are so."""

from collections.abc import Iterable, MutableMapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ..onnxmodel.declared_shapes import INVENTED, marked

Sizes = MutableMapping[str, int]
"""Dimension variables that have a size in this run."""
SIZES = "\0sizes"
"""The name, which no value can have, under which the sizes of variables pass to nested graphs."""


class Expected:
    """The types that a graph declares for its values, or that were inferred: only what can be wrong is kept."""

    def __init__(self, values: Iterable[onnx.ValueInfoProto]) -> None:
        self.types = {value.name: _Tensor(value.type.tensor_type, *marked(value)) for value in values
                      if value.type.HasField("tensor_type")}  # fmt: skip
        self.loose = frozenset(name for name, kind in self.types.items() if kind.rank_loose or kind.loose)
        """Values of which something is only declared: a run may contradict it, and gives a `remark`."""

    def fault(self, name: str, value: Any, sizes: Sizes) -> str:
        """What contradicts the model in a value, empty if nothing does. Variables that are met first get their size."""
        kind = self.types.get(name)
        if kind is None:
            return ""
        if not isinstance(value, np.ndarray | np.generic):
            return f"{_what(value)}, the model says a tensor"
        return kind.fault(value, sizes)

    def remark(self, name: str, value: Any) -> str:
        """What a value of `loose` has that the model declares otherwise; empty if nothing."""
        return self.types[name].remark(value)


class _Tensor:
    """The type of a tensor: element type, and per dimension a size, a variable, or None."""

    __slots__ = ("dims", "element", "loose", "rank_loose")

    def __init__(self, kind: onnx.TypeProto.Tensor, rank_loose: bool, loose: frozenset[int]) -> None:
        self.rank_loose, self.loose = rank_loose, loose
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
            return "" if self.rank_loose else f"{_what(value)}, the model says {_shown(self.dims)}"
        for axis, (wanted, size) in enumerate(zip(self.dims, value.shape, strict=True)):
            if isinstance(wanted, int) and wanted != size and axis not in self.loose:
                return f"{_what(value)}, the model says {_shown(self.dims)}"
            if isinstance(wanted, str) and sizes.setdefault(wanted, size) != size:
                return f"{_what(value)}, the model says {_shown(self.dims)} where {wanted} is {sizes[wanted]}"
        return ""

    def remark(self, value: Any) -> str:
        if self.dims is None or not isinstance(value, np.ndarray | np.generic):
            return ""
        if len(self.dims) != value.ndim:
            return f"has {value.ndim} axes, the model declares {_shown(self.dims)}"
        loose = [axis for axis in sorted(self.loose) if axis < value.ndim]
        wrong = [axis for axis in loose if self.dims[axis] != value.shape[axis]]
        sizes = ", ".join(f"{value.shape[axis]} on axis {axis}" for axis in wrong)
        return f"has {sizes}, the model declares {_shown(self.dims)}" if wrong else ""


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
