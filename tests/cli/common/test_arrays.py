"""Input files of `simulate`: numbers, or our own words about what they are instead."""

import io
import pickle
import zipfile
from contextlib import nullcontext

import numpy as np
import pytest

from onnxhw.cli.common.arrays import read_arrays
from onnxhw.errors import UsageError
from onnxhw.preprocess import Input, open_samples


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def npz(**members):
    """A zip of members: arrays as .npy, bytes as they are."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            archive.writestr(f"{name}.npy", value if isinstance(value, bytes) else npy(value))
    return stream.getvalue()


IMAGE = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
OBJECTS = np.array([{"a": 1}, None], dtype=object)
HUGE = npy(IMAGE).replace(b"(1, 2, 3)", b"(9**9,2,)".ljust(9))


def test_what_numpy_writes_is_read(tmp_path):
    path = tmp_path / "x.bin"  # the name says nothing
    for array in (IMAGE, np.asfortranarray(IMAGE), IMAGE.astype(">f8"), np.float32(3), np.zeros((0, 3), np.int8)):
        path.write_bytes(npy(array))
        (found,) = read_arrays(path, ["x"]).values()
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found, array)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", x=IMAGE, label=np.arange(3), other=1)
        found = read_arrays(tmp_path / "x.npz", ["x", "y"], ["label"])
        assert sorted(found) == ["label", "x"]
        np.testing.assert_array_equal(found["x"], IMAGE)


def test_a_file_without_an_inference_says_so(tmp_path):
    none = np.zeros((0, 3), np.float32)
    np.save(tmp_path / "x.npy", none)
    np.savez(tmp_path / "x.npz", x=none)
    for path in (tmp_path / "x.npy", tmp_path / "x.npz"):
        with pytest.raises(UsageError, match=r"E2905 .*holds no inference: the array for input 'x' .*\[0, 3\]"):
            read_arrays(path, ["x"], rows=("x",))
        (found,) = read_arrays(path, ["x"]).values()
        assert found.shape == (0, 3)


def test_arrays_that_are_not_looked_at_may_be_anything(tmp_path):
    (tmp_path / "x.npz").write_bytes(npz(x=IMAGE, names=OBJECTS, notes=b"hello"))
    assert list(read_arrays(tmp_path / "x.npz", ["x"])) == ["x"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"1.5, 2.5", "is neither an .npy nor an .npz file", id="text"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(50), "is neither an .npy nor an .npz file", id="png"),
        pytest.param(pickle.dumps({"x": 1}), "is a pickle, which is not loaded", id="pickle"),
        pytest.param(npy(OBJECTS), "it holds Python objects, not numbers", id="object npy"),
        pytest.param(npz(x=OBJECTS), "its array 'x' holds Python objects, not numbers", id="object npz"),
        pytest.param(npz(x=IMAGE, label=OBJECTS), "its array 'label' holds Python objects", id="object label"),
        pytest.param(npy(IMAGE)[:-1], "it is damaged or truncated", id="short npy"),
        pytest.param(npy(IMAGE)[:20], "it is damaged or truncated", id="header of npy"),
        pytest.param(npy(IMAGE)[:6], "it is damaged or truncated", id="magic only"),
        pytest.param(HUGE, "it is damaged or truncated", id="shape beyond memory"),
        pytest.param(npz(x=IMAGE)[:-30], "is a damaged or truncated .npz file", id="short npz"),
        pytest.param(npz(x=IMAGE)[:40], "is a damaged or truncated .npz file", id="start of npz"),
        pytest.param(b"PK\3\4", "is a damaged or truncated .npz file", id="zip magic only"),
        pytest.param(npz(x=b"hello"), "its array 'x' is damaged or truncated", id="no npy inside"),
        pytest.param(npz(x=npy(IMAGE)[:-4]), "its array 'x' is damaged or truncated", id="short member"),
        pytest.param(npz(), "none of its arrays is named like an input; it has nothing", id="empty npz"),
        pytest.param(npz(z=IMAGE, b=IMAGE), "it has z, b", id="other names"),
    ],
)
def test_everything_else_is_refused_in_our_own_words(content, words, tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_arrays(path, ["x"], ["label"])
    error = caught.value
    assert (error.code, error.exit_status, error.where) == ("E2905", 2, str(path))
    assert words in error.what
    assert error.hint
    for theirs in ("allow_pickle", "magic", "zip file", "reshape", "EOF", "Error"):
        assert theirs not in error.text()


def test_a_flipped_byte_of_a_compressed_array_is_found(tmp_path):
    whole = bytearray(npz(x=np.arange(1000, dtype=np.float32)))
    whole[len(whole) // 2] ^= 0x55
    (tmp_path / "x.npz").write_bytes(whole)
    with pytest.raises(UsageError, match=r"E2905 .*damaged"):
        read_arrays(tmp_path / "x.npz", ["x"])


def test_a_folder_and_a_missing_file_cannot_be_read(tmp_path):
    for path, words in ((tmp_path, "Is a directory"), (tmp_path / "none", "No such file")):
        with pytest.raises(UsageError, match=f"E2905 .*cannot be read: {words}"):
            read_arrays(path, ["x"])


@pytest.mark.parametrize("second", ["x.npy", "x"])
def test_two_arrays_of_one_name_are_refused(tmp_path, second):
    path = tmp_path / "x.npz"
    twice = pytest.warns(UserWarning, match="Duplicate name") if second == "x.npy" else nullcontext()
    with zipfile.ZipFile(path, "w") as archive, twice:
        for name in ("x.npy", second):
            archive.writestr(name, npy(IMAGE))
    with pytest.raises(UsageError, match=r"E2905 .*two arrays 'x'"):
        read_arrays(path, ["x"])
    with pytest.raises(UsageError, match=r"E2600 .*two arrays 'x'"):
        open_samples(path, [Input.of("x", IMAGE.shape, "float32")])


def test_a_name_before_the_file_is_explained(tmp_path):
    path = tmp_path / "x=a.npy"
    for code, refused in (
        ("E2905", lambda: read_arrays(path, ["x"])),
        ("E2600", lambda: open_samples(path, [Input.of("x", IMAGE.shape, "float32")])),
    ):
        with pytest.raises(UsageError, match=code) as caught:
            refused()
        assert "give the file alone, a.npy;" in caught.value.hint
    path.write_bytes(npy(IMAGE))  # a name as any other
    np.testing.assert_array_equal(read_arrays(path, ["x"])[None], IMAGE)
