"""What goes into a session and comes out, by onnxruntime's names: descriptions, values and bindings."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from ..errors import UsageError, short
from .providers import refused, unsupported

ONNX_TYPES = {
    "float16": "float16", "float32": "float", "float64": "double", "bfloat16": "bfloat16", "bool": "bool",
    "object": "string", "str": "string", "complex64": "complex64", "complex128": "complex128",
    "float8_e4m3fn": "float8e4m3fn", "float8_e4m3fnuz": "float8e4m3fnuz", "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz", "float4_e2m1fn": "float4e2m1",
}  # fmt: skip
"""ONNX names of numpy's (and ml_dtypes') element types, where they differ or are no integers."""


@dataclass(frozen=True)
class NodeArg:
    """An input or output of a model.

    `shape`: a dimension is a number, a symbol, or None (not known); empty where the rank is not known. `type`: as ONNX
    writes it, ``tensor(float)``; `dtype`: numpy's name of the element type, "" for what is no tensor;
    onnxruntime has no such field, so it is not in the text.
    """

    name: str
    type: str
    shape: list[int | str | None]
    dtype: str = field(default="", repr=False)


def own(value: Any) -> Any:
    """A copy of a value, in memory that nobody else has: not a session, nor an input or another result."""
    if isinstance(value, list):
        return [own(one) for one in value]
    if isinstance(value, dict):
        return {key: own(one) for key, one in value.items()}
    return np.array(value) if isinstance(value, np.ndarray) else value


def type_text(kind: onnx.TypeProto) -> str:
    """A type as ONNX writes it: ``tensor(float)``, ``seq(map(int64,tensor(float)))``; "" for none."""
    name = kind.WhichOneof("value")
    if name in ("tensor_type", "sparse_tensor_type"):
        element = onnx.TensorProto.DataType.Name(getattr(kind, name).elem_type).lower()
        return f"{'sparse_' if name[0] == 's' else ''}tensor({element})"
    if name == "map_type":
        key = onnx.TensorProto.DataType.Name(kind.map_type.key_type).lower()
        return f"map({key},{type_text(kind.map_type.value_type)})"
    if name in ("sequence_type", "optional_type"):
        return f"{'seq' if name[0] == 's' else 'optional'}({type_text(getattr(kind, name).elem_type)})"
    return ""


def tensor_type(dtype: str) -> str:
    """The ONNX type of a tensor from numpy's name of its element type; "" for what is no tensor."""
    return f"tensor({ONNX_TYPES.get(dtype, dtype)})" if dtype else ""


NO_VERSION = (1 << 63) - 1
"""What onnxruntime says of a model without `model_version`."""


@dataclass(frozen=True)
class ModelMetadata:
    """What a model says of itself, by onnxruntime's names."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = NO_VERSION
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


class OrtValue:
    """A value in this process's memory: an array, a sequence (list) or a map (dict)."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @staticmethod
    def ortvalue_from_numpy(
        numpy_obj: npt.NDArray[Any], device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> "OrtValue":
        """From an array; `UsageError` E2591 for a device other than "cpu"."""
        _only_cpu(device_type)
        return OrtValue(np.asarray(numpy_obj))

    def numpy(self) -> Any:
        """The array."""
        return self._value

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: npt.NDArray[Any], onnx_element_type: int) -> "OrtValue":
        """From an array whose bytes are elements of a type by its ONNX number; `UsageError` E2590: of another size."""
        kind = _numpy_type(onnx_element_type)
        if kind.itemsize != data.dtype.itemsize or kind.hasobject:
            raise UsageError("E2590", f"elements of {data.dtype} cannot be those of {kind}")
        return OrtValue(data.view(kind))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1,
        memory_info: Any = None,
    ) -> "OrtValue":  # fmt: skip
        """A tensor whose values are not set (here: 0); the type is numpy's, or ONNX's number of it.

        `UsageError` E2590: there is no such type, or it is one of texts; E2591: another device.
        """
        _only_cpu(device_type)
        if memory_info is not None:
            raise unsupported("memory_info", "use the device 'cpu'")
        kind = _numpy_type(element_type)
        if kind.kind in "OUS":
            raise UsageError("E2590", "a tensor of texts has values from its beginning: use ortvalue_from_numpy")
        return OrtValue(np.zeros(tuple(shape), kind))

    @staticmethod
    def from_dlpack(data: Any) -> "OrtValue":
        """From a tensor of another package; `UsageError` E2591 if numpy cannot take it."""
        try:
            return OrtValue(np.from_dlpack(data))
        except (AttributeError, BufferError, TypeError, RuntimeError) as error:
            hint = "give a tensor in this process's memory"
            raise unsupported(f"what is given to from_dlpack ({error})", hint) from error

    ort_value_from_sparse_tensor = staticmethod(refused("a sparse tensor", "ortvalue_from_numpy(array)"))
    as_sparse_tensor = refused("a sparse tensor", "numpy() gives the array")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        array = np.asarray(self._value, dtype)
        return array.copy() if copy and array is self._value else array

    def __dlpack__(self, **how: Any) -> Any:
        return np.asarray(self._value).__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = np.asarray(self._value).__dlpack_device__()
        return device

    def data_type(self) -> str:
        """The type as ONNX writes it, ``tensor(float)``; "" for an empty optional."""
        return _type_of(self._value)

    def element_type(self) -> int:
        """ONNX's number of the element type; `UsageError` E2590 for what is no tensor."""
        dtype = self._tensor().dtype
        return 8 if dtype.kind in "OUS" else int(onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def tensor_size_in_bytes(self) -> int:
        """How many bytes the elements take; `UsageError` E2590 for what is no tensor."""
        return int(self._tensor().nbytes)

    def data_ptr(self) -> int:
        """The address of the elements; `UsageError` E2590 for what is no tensor."""
        return int(self._tensor().ctypes.data)

    def update_inplace(self, data: Any) -> None:
        """Other values into the same memory; `UsageError` E2590 for those of another shape or type."""
        array, other = self._tensor(), np.asarray(data)
        if array.shape != other.shape or array.dtype != other.dtype:
            what = f"{other.dtype} {list(other.shape)} cannot replace {array.dtype} {list(array.shape)}"
            raise UsageError("E2590", what)
        np.copyto(array, other)

    def _tensor(self) -> npt.NDArray[Any]:
        if not isinstance(self._value, np.ndarray):
            raise UsageError("E2590", f"the value is no tensor but {self.data_type() or 'empty'}")
        return self._value

    def is_sparse_tensor(self) -> bool:
        """Always False."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether it is a list of tensors."""
        return isinstance(self._value, list) and all(isinstance(one, np.ndarray) for one in self._value)

    def shape(self) -> list[int]:
        """The array's shape."""
        return list(np.shape(self._value))

    def device_name(self) -> str:
        """Always "cpu"."""
        return "cpu"

    def is_tensor(self) -> bool:
        """Whether it is an array."""
        return isinstance(self._value, np.ndarray)

    def has_value(self) -> bool:
        """Whether it is not an empty optional."""
        return self._value is not None


class IOBinding:
    """Inputs and outputs by name, for `InferenceSession.run_with_iobinding`; all in this process's memory.

    Pointers and devices are refused with `UsageError` E2591.
    """

    def __init__(self, session: Any = None) -> None:
        self.inputs: dict[str, Any] = {}
        self.wanted: list[str] = []
        self.results: list[Any] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: npt.NDArray[Any]) -> None:
        """The array of an input."""
        self.inputs[name] = arr_on_cpu

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """The value of an input."""
        self.inputs[name] = ortvalue.numpy()

    bind_input = refused("an input by its address in memory", "bind_cpu_input(name, array)")
    bind_ortvalue_output = refused("an output into a value that exists", "bind_output(name) and copy_outputs_to_cpu()")
    get_outputs_as_ortvaluevector = refused("a vector of values", "get_outputs()")

    def bind_output(
        self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None, shape: Any = None,
        buffer_ptr: int | None = None,
    ) -> None:  # fmt: skip
        """An output that is wanted; `UsageError` E2591 for another device, or for memory to write it into."""
        _only_cpu(device_type)
        if buffer_ptr is not None:
            raise unsupported("an output by its address in memory", "copy_outputs_to_cpu()")
        self.wanted.append(name)

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Copies of the outputs of the last run, in the order in which they were bound."""
        return [own(result) for result in self.results]

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run as values, without copying them."""
        return [OrtValue(result) for result in self.results]

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self.inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        self.wanted.clear()
        self.results.clear()

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: all is in this process's memory."""

    synchronize_outputs = synchronize_inputs


def _only_cpu(device: str) -> None:
    if device != "cpu":
        raise unsupported(f"memory of device {device!r}", "use 'cpu'")


def _numpy_type(element: Any) -> np.dtype[Any]:
    """The type that numpy, or ONNX by a number, calls so; `UsageError` E2590."""
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(element) if isinstance(element, int) else element)
    except (TypeError, KeyError, ValueError) as error:
        raise UsageError("E2590", f"there is no element type {short(element)}") from error


def _type_of(value: Any) -> str:
    if isinstance(value, dict):
        key, one = next(iter(value.items()), (0, np.float32(0)))
        return f"map({'string' if isinstance(key, str) else 'int64'},{_type_of(np.asarray(one))})"
    if isinstance(value, list | tuple):
        return f"seq({_type_of(value[0]) if value else 'tensor(float)'})"
    if value is None:
        return ""
    dtype = np.asarray(value).dtype
    return "tensor(string)" if dtype.kind in "OUS" else tensor_type(dtype.name)
