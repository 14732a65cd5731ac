"""Files of strangers: regular ones within a size, and JSON without surprises."""

import errno
import os
import socket

import pytest

from onnxhw import files


def test_a_file_of_the_limit_is_read_and_one_byte_more_is_not(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 1000)
    assert files.read_regular(path, 1000) == b"x" * 1000
    with pytest.raises(OSError, match="1,000 bytes, more than the 999") as caught:
        files.read_regular(path, 999)
    assert caught.value.errno == errno.EFBIG


def test_a_file_that_claims_no_size_is_read_to_its_end(tmp_path):
    path = "/proc/self/status"
    if not os.path.exists(path):
        pytest.skip("no /proc here")
    assert files.read_regular(path, 1 << 20).startswith(b"Name:")
    with pytest.raises(OSError, match="more than"):
        files.read_regular(path, 100)


def test_a_sparse_file_is_refused_by_its_size(tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="more than"):
        files.read_regular(path, 1 << 20)


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.relpath(tmp_path / "socket"))
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("fifo", "socket", "zero", "", "loop", "none", "null\0byte"):
        with pytest.raises(OSError):
            files.read_regular(tmp_path / name if name else tmp_path, 1 << 20)
    server.close()


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "[" * 65 + "]" * 65, '{"a":' * 65 + "1" + "}" * 65, "NaN", "-Infinity", "[1e999]", '"\\ud800"',
     "1" * 5000, "", "{", "nul"],
)  # fmt: skip
def test_json_that_is_refused(text):
    with pytest.raises(ValueError):
        files.parse_json(text)


def test_json_that_is_read():
    assert files.parse_json('{"a": [1, 2.5, "\\u00e4\\ud83d\\ude00", null]}') == {"a": [1, 2.5, "ä😀", None]}
    assert files.parse_json("[" * 64 + "]" * 64)
