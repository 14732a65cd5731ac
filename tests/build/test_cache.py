"""The cache: whole entries or none, checked when read."""

import os

import pytest

from onnxhw.build import cache
from onnxhw.build.cache import Cache, key_of
from onnxhw.errors import UsageError


@pytest.fixture
def store(tmp_path):
    return Cache("bitstream", tmp_path)


def test_what_was_stored_is_loaded(store):
    assert store.load("ab") is None
    store.store("ab", {"top.bit": b"\x00\x01", "facts.json": b"{}"}, label="mini")
    assert store.load("ab") == {"top.bit": b"\x00\x01", "facts.json": b"{}"}
    store.store("ab", {"top.bit": b"other"})
    assert store.load("ab") == {"top.bit": b"other"}


@pytest.mark.parametrize("damage", ["flip", "remove", "index"])
def test_a_damaged_entry_counts_as_absent(store, tmp_path, damage):
    store.store("ab", {"top.bit": b"\x00\x01"})
    place = tmp_path / "bitstream" / "ab"
    if damage == "flip":
        next(place.glob("*-top.bit")).write_bytes(b"\x00\x03")
    elif damage == "remove":
        next(place.glob("*-top.bit")).unlink()
    else:
        (place / "checksums.json").write_text('{"files": 3}')
    assert store.load("ab") is None
    assert [entry.intact for entry in store.entries()] == [False]


def test_an_entry_that_cannot_be_written_leaves_nothing(store, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    store.store("ab", {"top.bit": b"x"})
    assert store.load("ab") is None
    assert list((tmp_path / "bitstream").iterdir()) == []


def test_a_cache_that_cannot_be_written_says_that_nothing_is_kept(tmp_path, caplog):
    (tmp_path / "file").touch()
    store = Cache("bitstream", tmp_path / "file")
    store.store("ab", {"top.bit": b"x"}, label="mini on a board")
    assert store.load("ab") is None
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    for words in (str(tmp_path / "file"), "Not a directory", "mini on a board is not kept", "ONNXHW_CACHE"):
        assert words in record.getMessage()


def test_a_cache_that_cannot_be_read_is_one_message(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "iterdir", refuse)
    for action in (cache.list_all, cache.clear):
        with pytest.raises(UsageError, match=r"E2321 .*Permission denied.*ONNXHW_CACHE") as caught:
            action(tmp_path)
        assert caught.value.where == str(tmp_path)


def test_list_and_clear(store, tmp_path):
    assert cache.list_all(tmp_path) == []
    assert cache.clear(tmp_path) == 0
    store.store("ab", {"top.bit": b"12345"}, label="mini on ulx3s-25f")
    Cache("model", tmp_path).store("cd", {"lib.so": b"1"})
    entries = cache.list_all(tmp_path)
    assert [(entry.kind, entry.key, entry.label) for entry in entries] == [
        ("bitstream", "ab", "mini on ulx3s-25f"),
        ("model", "cd", ""),
    ]
    assert cache.clear(tmp_path) == sum(entry.size for entry in entries)
    assert cache.list_all(tmp_path) == []


def test_root_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("ONNXHW_CACHE", str(tmp_path))
    assert cache.root() == tmp_path


def test_keys_tell_parts_apart():
    assert key_of({"a": "12", "b": "3"}) != key_of({"a": "1", "b": "23"})
    assert key_of({"a": "1"}) != key_of({"b": "1"})
    assert key_of({"a": "1", "b": "2"}) == key_of({"b": b"2", "a": b"1"})
