"""Array files made to mislead: absurd headers, directories and sizes are refused, small and without waiting."""

import contextlib
import io
import itertools
import os
import struct
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

from onnxhw.cli.common.arrays import read_arrays
from onnxhw.errors import UsageError

MOST = 64 << 20
"""Bytes that reading a hostile file may take."""


def npy(header, version=(1, 0), data=bytes(64), length=None):
    """An .npy file with this text as its header."""
    text = header.encode() if isinstance(header, str) else header
    size = len(text) if length is None else length
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H" if version == (1, 0) else "<I", size) + text + data


def header(descr="'<f4'", order="False", shape="(4,)", more=""):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}{more}}}\n"


HUGE = 1 << 62
SHAPES = [
    "(4, None)", "('4',)", "(4.0,)", "4", "[4]", "(True, 4)", "((4,),)", f"({HUGE}, {HUGE})", f"(0, {HUGE}, {HUGE})",
    f"({10**4000},)", "(-4,)", "(-2, -2)", "(1,) * 9", "(" + "1," * 65 + ")", "(" + "0," * 1000 + ")", "{}",
    "(4,", "()()",
]  # fmt: skip
TYPES = [
    "'O'", "'|O'", "'V8'", "'<M8[s]'", "'<m8'", "'<f4,<f4'", "'(2,2)<f4'", "[('a', '<f4')]",
    "[('a', 'O')]", "'<f99'", "'" + "f4," * 3000 + "'", "('<f4', (1000000000, 1000000000))", "('O', (2,))", "None", "1",
    "{'names': ['a'], 'formats': ['O']}", "'V0'", "'(0,)<f4'",
]  # fmt: skip
TEXTS = [
    "(" * 5000, "[" * 200 + "]" * 200, "-" * 10000 + "1", "{" * 90, "{'descr': __import__('os').abort()}", "",
    "\0" * 50,
    "{}", "1" * 9000, header(more=", 'more': 1"), header(order="2"), header(order="'yes'"), header(shape="(4,)") * 2,
    b"\xff\xfe" * 40,
]  # fmt: skip


def refused(path):
    """The error of reading it, in little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(UsageError) as caught:
            read_arrays(path, ["x"])
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()
    error = caught.value
    assert error.code == "E2905"
    assert len(error.text()) < 2000
    return error.what


def zipped(content):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", content)
    return stream.getvalue()


@pytest.mark.parametrize("pack", [bytes, zipped])
@pytest.mark.parametrize("text", [*(header(shape=one) for one in SHAPES), *(header(one) for one in TYPES), *TEXTS])
def test_headers_that_describe_no_numbers(text, pack, tmp_path):
    for version in ((1, 0), (2, 0), (3, 0)):
        (tmp_path / "x").write_bytes(pack(npy(text, version)))
        refused(tmp_path / "x")


@pytest.mark.parametrize("version", [(0, 0), (1, 1), (4, 0), (255, 255), (2, 1)])
def test_versions_that_there_are_not(version, tmp_path):
    (tmp_path / "x").write_bytes(npy(header(), version))
    refused(tmp_path / "x")


@pytest.mark.parametrize(("version", "length"), [((1, 0), 65535), ((2, 0), 2**32 - 1), ((3, 0), 1 << 30), ((1, 0), 3)])
def test_lengths_of_headers_that_are_not_there(version, length, tmp_path):
    (tmp_path / "x").write_bytes(npy(header(), version, length=length))
    refused(tmp_path / "x")


def test_a_header_that_numpy_would_write_is_read(tmp_path):
    """So that what is refused above is refused for what is wrong with it."""
    for version in ((1, 0), (2, 0), (3, 0)):
        (tmp_path / "x").write_bytes(npy(header(), version, np.arange(4, dtype="<f4").tobytes()))
        assert read_arrays(tmp_path / "x", ["x"])[None].tolist() == [0, 1, 2, 3]


def entry(count):
    """An archive of so many empty members, which its directory lists."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for index in range(count):
            archive.writestr(f"{index}.npy", b"")
    return stream.getvalue()


@pytest.mark.parametrize("field", [4, 6, 8, 10, 12, 16])
@pytest.mark.parametrize("value", [0x7FFF, 0xFFFF])
def test_a_directory_that_claims_more_than_there_is(field, value, tmp_path):
    """Number of disks, of entries, bytes and place of the directory in the archive's last record."""
    content = bytearray(zipped(b"no array"))
    end = content.rindex(b"PK\5\6")
    struct.pack_into("<H", content, end + field, value)
    (tmp_path / "x").write_bytes(content)
    refused(tmp_path / "x")


@pytest.mark.parametrize("place", range(0, 46, 2))
def test_entries_of_the_directory_that_lie(place, tmp_path):
    """Flags (encryption), method, sizes, place, lengths of names, versions."""
    content = bytearray(zipped(npy(header(shape="(4, 4)"), data=b"")))
    start = content.index(b"PK\1\2")
    for value in (0xFFFF, 0x0001, 0x0063):
        damaged = bytearray(content)
        struct.pack_into("<H", damaged, start + place, value)
        (tmp_path / "x").write_bytes(damaged)
        refused(tmp_path / "x")


def test_many_members_take_little(tmp_path):
    (tmp_path / "x").write_bytes(entry(5_000))
    assert "none of its arrays" in refused(tmp_path / "x")


def test_a_bomb_is_not_unpacked(tmp_path):
    """64 MB of zeros within 64 kB behind a small array, and behind a header that claims more than is there."""
    with zipfile.ZipFile(tmp_path / "x", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy(header(shape=f"({1 << 40},)"), data=bytes(64_000_000)))
    assert "are there" in refused(tmp_path / "x")


@pytest.mark.parametrize("kind", ["fifo", "zero", "null", "folder", "none", "socket"])
def test_what_is_no_file_does_not_keep_a_command_waiting(kind, tmp_path, digits):
    path = tmp_path / "x.npz"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
        (path / "x.npy").mkdir()
    elif kind == "socket":
        import socket

        with socket.socket(socket.AF_UNIX) as line:
            line.bind(str(path))
    elif kind != "none":
        path.symlink_to(f"/dev/{kind}")
    for name in (path, *path.parent.glob("none")):
        refused(name)


def test_the_command_says_so_soon(tmp_path, digits):
    os.mkfifo(tmp_path / "x.npz")
    words = ["simulate", str(digits), "-p", "mini", "-e", "golden", "-i", str(tmp_path / "x.npz")]
    done = subprocess.run([sys.executable, "-m", "onnxhw", *words], capture_output=True, text=True, cwd=tmp_path,
                          timeout=600)  # fmt: skip
    assert done.returncode == 2
    assert "E2" in done.stderr
    assert "regular file" in done.stderr
    assert "Traceback" not in done.stderr


def test_bytes_changed_one_by_one_end_with_an_array_or_our_error(tmp_path):
    whole = zipped(npy(header(), data=np.arange(4, dtype="<f4").tobytes()))
    for place, value in itertools.product(range(len(whole)), (0, 255)):
        damaged = bytearray(whole)
        damaged[place] = value
        (tmp_path / "x").write_bytes(damaged)
        with contextlib.suppress(UsageError):
            assert read_arrays(tmp_path / "x", ["x"])["x"].size <= 4
