"""The cache: whole entries or none, checked when read."""

import os

import pytest

from onnxhw.build import cache
from onnxhw.build.cache import Cache, key_of


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
        (place / "top.bit").write_bytes(b"\x00\x03")
    elif damage == "remove":
        (place / "top.bit").unlink()
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
