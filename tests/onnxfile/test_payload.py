"""Tensors of every element type, stored either way, decode to what onnx says; what is allowed is not refused."""

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from onnxhw.onnxfile.elements import ELEMENTS, Element, element, reinterpret, unpack
from onnxhw.onnxfile.payload import check, decode, finite
from onnxhw.onnxmodel.tensors import array, dtype, sparse_array

NUMBERS = [pytest.param(number, id=kind.name) for number, kind in ELEMENTS.items() if not kind.string]
COUNT = 37
"""Elements: neither a multiple of 2 nor of 4."""


def pattern(kind: Element) -> bytes:
    """Random raw bytes of `COUNT` elements."""
    data = np.random.default_rng(len(kind.name)).integers(0, 256, kind.raw_bytes(COUNT), np.uint8)
    return bytes(data & 1 if kind.name == "BOOL" else data)


def bits(values: np.ndarray[Any, Any]) -> bytes:
    return np.ascontiguousarray(values).tobytes()


def test_every_type_of_the_installed_onnx_is_known() -> None:
    assert set(ELEMENTS) == set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("shape", [(COUNT,), (1, COUNT, 1)])
def test_raw_data_is_decoded_as_onnx_does(number: int, shape: tuple[int, ...]) -> None:
    tensor = TensorProto(name="t", data_type=number, dims=shape, raw_data=pattern(element(number, "")))
    found, wanted = decode(tensor), numpy_helper.to_array(tensor)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if number in (TensorProto.INT4, TensorProto.INT2):  # onnx leaves the upper bits as they are stored
        assert np.array_equal(found.astype(np.int8), wanted.astype(np.int8))
    else:
        assert bits(found) == bits(wanted)
    assert check(tensor) == found.nbytes
    assert not found.flags.writeable


@pytest.mark.parametrize("number", NUMBERS)
def test_typed_fields_are_decoded_like_raw_data(number: int) -> None:
    kind = element(number, "")
    raw = TensorProto(name="t", data_type=number, dims=[COUNT], raw_data=pattern(kind))
    values = decode(raw)
    tensor = TensorProto(name="t", data_type=number, dims=[COUNT])
    entries: Any
    if kind.per_entry > 1:
        entries = list(raw.raw_data)
    elif kind.per_entry == 0:
        entries = values.view(np.float32 if kind.field == "float_data" else np.float64)
    elif kind.dtype.kind in "iubf" and kind.dtype.isbuiltin == 1 and kind.name != "FLOAT16":
        entries = values.astype(np.int8) if kind.name == "BOOL" else values
    else:  # floating-point numbers by their pattern
        entries = values.view(np.uint16 if kind.bits == 16 else np.uint8)
    getattr(tensor, kind.field).extend(np.asarray(entries).tolist())
    found = decode(tensor)
    assert found.dtype == kind.dtype
    if kind.dtype.kind in "fc" and kind.field in ("float_data", "double_data"):
        assert np.array_equal(found, values, equal_nan=True)  # a NaN may change its pattern on its way through Python
    else:
        assert bits(found) == bits(values)


@pytest.mark.parametrize("kind", [kind for kind in ELEMENTS.values() if 0 < kind.bits < 8], ids=lambda kind: kind.name)
@given(data=st.data())
def test_packed_codes(kind: Element, data: st.DataObject) -> None:
    """Element i is in bits i * width of the stream, and its value that of the type."""
    codes = data.draw(st.lists(st.integers(0, (1 << kind.bits) - 1), max_size=20))
    stream = sum(code << (kind.bits * index) for index, code in enumerate(codes))
    packed = np.frombuffer(stream.to_bytes(kind.raw_bytes(len(codes)), "little"), np.uint8)
    assert unpack(packed, kind, len(codes)).tolist() == codes
    if kind.name.startswith("INT"):
        half = 1 << (kind.bits - 1)
        values = reinterpret(np.array(codes, np.uint8), kind).astype(np.int64)
        assert values.tolist() == [(code + half) % (2 * half) - half for code in codes]


def test_strings() -> None:
    tensor = helper.make_tensor("t", TensorProto.STRING, [2, 2], ["", "a", "\u20ac", "d\n"])
    found = array(tensor)
    assert found.tolist() == [["", "a"], ["\u20ac", "d\n"]]
    assert found.dtype == object


@pytest.mark.parametrize(
    "tensor",
    [
        TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[0]),
        TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[3, 0, 2], raw_data=b""),
        TensorProto(name="t", data_type=TensorProto.STRING, dims=[0]),
        TensorProto(name="t", data_type=TensorProto.INT4, dims=[0]),
        TensorProto(data_type=TensorProto.FLOAT, float_data=[1.0]),
    ],
)
def test_empty_and_scalar_tensors(tensor: TensorProto) -> None:
    assert decode(tensor).shape == tuple(tensor.dims)


@pytest.mark.parametrize("number", NUMBERS)
def test_finite_finds_what_is_not(number: int) -> None:
    kind = element(number, "")
    ones = TensorProto(name="t", data_type=number, dims=[4], raw_data=b"\1" * kind.raw_bytes(4))
    assert finite(ones)
    ends = TensorProto(name="t", data_type=number, dims=[4], raw_data=b"\1" * kind.raw_bytes(4))
    ends.raw_data = (b"\x80" if kind.name.endswith("UZ") else b"\xff") * kind.raw_bytes(4)
    if kind.name != "BOOL":
        assert finite(ends) != kind.fractions


def test_dtype_of_a_declaration() -> None:
    value = helper.make_tensor_value_info("x", TensorProto.BFLOAT16, [1])
    assert dtype(value) == "bfloat16"


def sparse(indices: list[Any], dims: list[int], kind: int = TensorProto.FLOAT) -> onnx.SparseTensorProto:
    table = np.array(indices, np.int64)
    numbers = list(range(1, len(indices) + 1))
    values = [str(n) for n in numbers] if kind == TensorProto.STRING else numbers
    return helper.make_sparse_tensor(
        helper.make_tensor("s", kind, [len(numbers)], values), numpy_helper.from_array(table, "i"), dims
    )


def test_sparse_tensors_in_both_forms_are_the_same() -> None:
    wanted = [[0, 1, 0], [2, 0, 3]]
    assert sparse_array(sparse([1, 3, 5], [2, 3])).tolist() == wanted
    assert sparse_array(sparse([[0, 1], [1, 0], [1, 2]], [2, 3])).tolist() == wanted
    assert sparse_array(sparse([1], [2], TensorProto.STRING)).tolist() == ["", "1"]
    assert sparse_array(sparse([], [2])).tolist() == [0, 0]


@given(st.data())
def test_sparse_tensors_scatter(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    size = int(np.prod(shape))
    chosen = sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1)))
    wanted = np.zeros(size, np.float32)
    wanted[chosen] = np.arange(1, len(chosen) + 1)
    table = np.stack(np.unravel_index(chosen, shape), 1).tolist()
    for indices in (chosen, table):
        assert np.array_equal(sparse_array(sparse(indices, shape)), wanted.reshape(shape))
