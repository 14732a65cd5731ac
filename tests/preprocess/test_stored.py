"""Arrays in files, row by row: no more is read than is asked for, and claims are held against what is there."""

import io
import os
import tracemalloc
import zipfile

import numpy as np
import pytest

from onnxhw.cli.common.arrays import read_arrays
from onnxhw.cli.common.inputs import file_inputs, whole_arrays
from onnxhw.errors import UsageError
from onnxhw.ir.parts import ValueInfo
from onnxhw.preprocess import Input, open_samples
from onnxhw.preprocess.stored import Stored, StoredArrays, stored_arrays

RNG = np.random.default_rng(3)
ROWS, ROW = 1 << 16, 256
"""Of a file that is much smaller than what it holds."""


def refuse(what):
    return UsageError("E2600", what)


def claiming(shape):
    """A header without any data."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return stream.getvalue()


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    path = tmp_path_factory.mktemp("bomb") / "x.npz"
    np.savez_compressed(path, x=np.zeros((ROWS, ROW), np.float32), label=np.arange(ROWS))
    assert path.stat().st_size < 1 << 20
    return path


@pytest.mark.parametrize("kind", [np.uint8, ">f8", np.int64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed, None])
def test_rows_in_any_order(tmp_path, save, order, kind):
    x = np.array(RNG.integers(0, 100, (7, 3, 2)), kind, order=order)
    path = tmp_path / "x"
    with path.open("wb") as file:
        np.save(file, x) if save is None else save(file, other=np.zeros(2), x=x)
    found = stored_arrays(path, refuse)
    if isinstance(found, StoredArrays):
        assert found.names == ["other", "x"]
        found = found["x"]
    assert isinstance(found, Stored)
    assert (found.shape, found.dtype, found.ndim, len(found)) == (x.shape, x.dtype, 3, 7)
    for rows in (slice(2, 4), slice(5, 6), slice(0, 1), slice(6, 99), slice(3, 3), slice(None)):
        np.testing.assert_array_equal(found[rows], x[rows])


def test_no_more_is_read_than_is_asked_for(bomb):
    tracemalloc.start()
    try:
        samples = open_samples(bomb, [Input("x", (1, ROW))])
        assert (samples.count, samples.labels[-1]) == (ROWS, ROWS - 1)
        opened = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        assert sum(feed["x"].size for feed in samples.feeds(0, 10)) == 10 * ROW
        first = read_arrays(bomb, ["x"], ["label"], 2, ["x"])
        assert tracemalloc.get_traced_memory()[1] - opened < 1 << 20
    finally:
        tracemalloc.stop()
    assert {name: len(array) for name, array in first.items()} == {"x": 2, "label": 2}
    assert len(read_arrays(bomb, ["x", "label"], (), 2, ["label"])["x"]) == ROWS


def test_an_array_file_of_another_shape_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 4), np.float32))
    for shape in ((1, 5), (1, 2, 4)):
        with pytest.raises(UsageError, match=r"E2905 .*must have shape \[N, .*not \[2, 4\]"):
            file_inputs([ValueInfo("x", shape, "float32")], tmp_path / "x.npy", None)


@pytest.mark.parametrize("read", [file_inputs, whole_arrays])
def test_an_array_of_another_shape_is_not_read(bomb, read):
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=r"E2905 .*must have shape \[N, 5\]"):
            read([ValueInfo("x", (1, 5), "float32")], bomb, None)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("shape", [(10**12, 3), (2, 3), (-2, 3)])
def test_claims_are_held_against_what_is_there(tmp_path, shape, zipped):
    path = tmp_path / "x.npz"
    if zipped:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", claiming(shape) + bytes(20))
    else:
        path.write_bytes(claiming(shape) + bytes(20))
    bytes_ = f"{4 * shape[0] * shape[1]:,} bytes, 20 are there"
    with pytest.raises(UsageError, match=f"E2600 .*damaged or truncated: float32 .* takes {bytes_}"):
        open_samples(path, [Input("x", (1, 3))])
    with pytest.raises(UsageError, match=f"E2905 .*damaged or truncated: float32 .* takes {bytes_}"):
        read_arrays(path, ["x"])


def test_what_exceeds_memory_is_not_called_damaged():
    class Full(io.BytesIO):
        def read(self, size=-1):
            if self.tell() >= 128:
                raise MemoryError
            return super().read(size)

    found = Stored(lambda: Full(claiming((4, 2)) + bytes(32)), 1000, "its array 'x'", refuse)
    with pytest.raises(UsageError, match="32 bytes of its array 'x' are more than memory holds"):
        found[:]


def test_a_member_that_ends_early_is_found_when_it_is_read(tmp_path):
    """The directory of the archive claims more than there is."""
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", claiming((8, 3)) + bytes(96))
    content = bytearray(path.read_bytes())
    del content[-140:-100]
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"E2600 .*damaged"):
        list(open_samples(path, [Input("x", (1, 3))]).feeds())


@pytest.mark.parametrize("shape", ["(" + "1, " * 70 + ")", "(0, 4611686018427387904, 4)", "(True,)", "(-1,)"])
def test_shapes_that_no_array_has(tmp_path, shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".encode()
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + bytes(64))
    with pytest.raises(UsageError, match="E2600"):
        stored_arrays(path, refuse)


def test_a_pipe_and_a_device_are_no_arrays(tmp_path):
    os.mkfifo(tmp_path / "x.npy")
    (tmp_path / "z.npy").symlink_to("/dev/zero")
    for name in ("x.npy", "z.npy"):
        with pytest.raises(UsageError, match="not a regular file"):
            stored_arrays(tmp_path / name, refuse)
