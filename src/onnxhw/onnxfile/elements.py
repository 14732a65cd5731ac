"""`Element`: how each ONNX element type is stored, in raw bytes and in the typed fields of a tensor."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from ..errors import InvalidModelError

Range = tuple[int, int] | None


@dataclass(frozen=True)
class Element:
    """An element type.

    bits : of one element in ``raw_data``; narrower ones than a byte are packed from the low end. 0 for strings.
    field : the typed field that may hold it instead.
    entries : what one entry of that field may be; None if any.
    per_entry : elements in one entry: 2 or 4 where a byte is packed; for a complex number, of two entries, 0.
    """

    name: str
    dtype: np.dtype[Any]
    bits: int
    field: str
    entries: Range = None
    per_entry: int = 1

    @property
    def string(self) -> bool:
        """Is it text, not a number?"""
        return self.bits == 0

    @property
    def fractions(self) -> bool:
        """Does the type have NaN or infinity? Floating-point types below 8 bits have neither."""
        return self.bits >= 8 and (self.name.startswith(("FLOAT", "BFLOAT", "COMPLEX")) or self.name == "DOUBLE")

    def raw_bytes(self, elements: int) -> int:
        """Bytes of `elements` in ``raw_data``."""
        return -(-elements * self.bits // 8)

    def typed_entries(self, elements: int) -> int:
        """Entries of the typed field for `elements`."""
        return -(-elements // self.per_entry) if self.per_entry else 2 * elements


BYTE, HALF = (0, 255), (0, 65535)
_ROWS: tuple[tuple[str, int, str, Range, int], ...] = (
    ("FLOAT", 32, "float_data", None, 1),
    ("DOUBLE", 64, "double_data", None, 1),
    ("FLOAT16", 16, "int32_data", HALF, 1),
    ("BFLOAT16", 16, "int32_data", HALF, 1),
    ("FLOAT8E4M3FN", 8, "int32_data", BYTE, 1),
    ("FLOAT8E4M3FNUZ", 8, "int32_data", BYTE, 1),
    ("FLOAT8E5M2", 8, "int32_data", BYTE, 1),
    ("FLOAT8E5M2FNUZ", 8, "int32_data", BYTE, 1),
    ("FLOAT8E8M0", 8, "int32_data", BYTE, 1),
    ("FLOAT6E2M3", 6, "int32_data", (0, 63), 1),
    ("FLOAT6E3M2", 6, "int32_data", (0, 63), 1),
    ("FLOAT4E2M1", 4, "int32_data", BYTE, 2),
    ("COMPLEX64", 64, "float_data", None, 0),
    ("COMPLEX128", 128, "double_data", None, 0),
    ("BOOL", 8, "int32_data", (0, 1), 1),
    ("INT2", 2, "int32_data", BYTE, 4),
    ("UINT2", 2, "int32_data", BYTE, 4),
    ("INT4", 4, "int32_data", BYTE, 2),
    ("UINT4", 4, "int32_data", BYTE, 2),
    ("INT8", 8, "int32_data", (-128, 127), 1),
    ("UINT8", 8, "int32_data", (0, 255), 1),
    ("INT16", 16, "int32_data", (-32768, 32767), 1),
    ("UINT16", 16, "int32_data", (0, 65535), 1),
    ("INT32", 32, "int32_data", None, 1),
    ("UINT32", 32, "uint64_data", (0, (1 << 32) - 1), 1),
    ("INT64", 64, "int64_data", None, 1),
    ("UINT64", 64, "uint64_data", None, 1),
    ("STRING", 0, "string_data", None, 1),
)


def _table() -> dict[int, Element]:
    """By number, the types that the installed onnx has."""
    numbers = dict(onnx.TensorProto.DataType.items())
    return {
        numbers[name]: Element(
            name, np.dtype(onnx.helper.tensor_dtype_to_np_dtype(numbers[name])), bits, field, entries, per_entry
        )
        for name, bits, field, entries, per_entry in _ROWS
        if name in numbers
    }


ELEMENTS: dict[int, Element] = _table()
"""Element types by their number in ``TensorProto.DataType``."""


def element(number: int, where: str) -> Element:
    """The type of that number; `InvalidModelError` E3150 if no release of ONNX has it."""
    found = ELEMENTS.get(number)
    if found is None:
        what = "has no element type" if number == 0 else f"has the element type {number}, which does not exist"
        raise InvalidModelError("E3150", what, where=where, hint="the file may need a newer onnx package")
    return found


def unpack(data: npt.NDArray[np.uint8], kind: Element, elements: int) -> npt.NDArray[np.uint8]:
    """Codes of `elements` narrower than a byte, one per byte, from packed bytes of sufficient length."""
    if kind.bits == 6:  # a stream of bits: 4 codes in 3 bytes
        groups = np.zeros((-(-elements // 4), 3), np.uint8)
        groups.reshape(-1)[: len(data)] = data
        b0, b1, b2 = groups.T
        codes = np.asarray(np.stack([b0, b0 >> 6 | b1 << 2, b1 >> 4 | b2 << 4, b2 >> 2], 1) & 63, np.uint8)
    else:
        shifts = np.arange(0, 8, kind.bits, dtype=np.uint8)
        codes = np.asarray(data[:, None] >> shifts & np.uint8((1 << kind.bits) - 1), np.uint8)
    return codes.reshape(-1)[:elements]


def reinterpret(codes: npt.NDArray[np.uint8], kind: Element) -> npt.NDArray[Any]:
    """Codes of 2 to 6 bits as values of their type; signed integers are extended from their own sign."""
    if kind.name in ("INT4", "INT2"):
        sign = np.uint8(1 << (kind.bits - 1))
        return ((codes ^ sign).view(np.int8) - np.int8(sign)).astype(kind.dtype)
    return codes.view(kind.dtype)
