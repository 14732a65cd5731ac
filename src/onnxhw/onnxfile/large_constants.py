"""`LargeConstants`: large external constants, whose data stays outside the protobuf message.

protobuf copies data when it is put into a message, when it is looked at and whenever a message is copied, and gives
nothing back before the message goes. A constant stored separately is in memory once, as the bytes of its file;
the message has its name, type and shape.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt
import onnx

from .elements import ELEMENTS
from .payload import all_finite, seen

LEAST = 1 << 20
"""Bytes from which on a constant is stored separately."""
Array = npt.NDArray[Any]


@dataclass
class LargeConstants:
    """Initializers by name: their bytes, and the read-only arrays that are seen in these.

    `places`: which tensors of a survey may be stored separately, those of the main graph.
    """

    places: range = range(0)
    data: dict[str, bytes] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    indices: dict[int, str] = field(default_factory=dict)
    """Names of the tensors that are stored separately, by their place in the survey."""

    def take(self, index: int, tensor: onnx.TensorProto, data: bytes, where: str) -> bool:
        """Does it take the tensor's data, which fits its type and shape? E3157, E3158 as of `decode`."""
        wide = ELEMENTS[tensor.data_type].bits >= 8  # narrower elements are not seen, but unpacked
        if index not in self.places or len(data) < LEAST or tensor.name in self.data or not wide:
            return False
        self.arrays[tensor.name] = seen(tensor, data, where)
        self.data[tensor.name], self.indices[index] = data, tensor.name
        return True

    def finite(self, tensor: onnx.TensorProto) -> bool:
        """Is no element NaN or infinite?"""
        return not ELEMENTS[tensor.data_type].fractions or all_finite(self.arrays[tensor.name])

    def whole(self, tensor: onnx.TensorProto) -> onnx.TensorProto:
        """The tensor with its data."""
        if tensor.name not in self.data:
            return tensor
        made = deepcopy(tensor)
        made.raw_data = self.data[tensor.name]
        return made


def outline(tensor: onnx.TensorProto) -> onnx.TensorProto:
    """The tensor, without its data if that is large."""
    if tensor.ByteSize() < LEAST:
        return tensor
    return onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
