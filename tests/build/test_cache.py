"""The cache: whole entries or none, checked when read."""

import json
import multiprocessing
import os
import subprocess
import sys

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


# -- of others, and by many ------------------------------------------------------------------------


def test_a_folder_of_others_is_not_used(tmp_path, monkeypatch, caplog):
    """Writable by others, itself or above; the private one is the process's, said once and without rights of others."""
    for name, mode in (("itself", 0o777), ("group", 0o770)):
        place = tmp_path / name
        place.mkdir()
        place.chmod(mode)
    monkeypatch.setattr(cache, "_own_group", lambda number: False)
    (tmp_path / "itself" / "below").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "itself")
    for place in ("itself", "group", "itself/below", "itself/none", "link"):
        caplog.clear()
        used = cache.usable(tmp_path / place, os.getpid())
        assert tmp_path not in used.parents
        assert used.stat().st_mode & 0o77 == 0
        assert cache.usable(tmp_path / place, os.getpid()) == used
        assert len(caplog.records) == 1, place
        assert "others may write" in caplog.records[0].getMessage()


def test_a_folder_of_another_user_is_not_used(tmp_path, monkeypatch):
    assert cache.distrust(tmp_path) == ""
    real = os.stat

    def of_another(path, **more):
        state = real(path, **more)
        return os.stat_result((*state[:4], 12345, *state[5:])) if str(path) == str(tmp_path) else state

    monkeypatch.setattr(os, "stat", of_another)
    assert "another user" in cache.distrust(tmp_path)
    assert "another user" in cache.distrust(tmp_path / "below" / "it")


def test_a_folder_in_a_temporary_directory_with_the_sticky_bit_is_used(tmp_path):
    (tmp_path / "sticky").mkdir()
    (tmp_path / "sticky").chmod(0o1777)
    (tmp_path / "sticky" / "mine").mkdir(mode=0o700)
    assert cache.distrust(tmp_path / "sticky" / "mine") == ""
    assert cache.distrust(tmp_path / "sticky") != ""


def test_an_entry_that_others_may_write_is_not_executed(store, tmp_path):
    store.store("ab", {"model.so": b"x"})
    assert store.path("ab", "model.so").read_bytes() == b"x"
    (tmp_path / "bitstream" / "ab").chmod(0o777)
    assert store.load("ab") is None
    assert store.path("ab", "model.so") is None


def test_names_and_digests_of_an_index_stay_in_the_entry(store, tmp_path):
    store.store("ab", {"model.so": b"x"})
    index = tmp_path / "bitstream" / "ab" / "checksums.json"
    for files in ({"../x": cache.digest(b"")}, {"model.so": "../../x"}, {"model.so": 3}, [], {"a": [1]}):
        index.write_text(json.dumps({"label": "", "files": files}))
        assert store.load("ab") is None
    index.unlink()
    os.mkfifo(index)
    assert store.load("ab") is None


def stress(folder, who, rounds, found):
    store, lost = Cache("k", folder), 0
    for number in range(rounds):
        for key in ("aa", "bb", "cc"):
            store.store(key, {"f": bytes([who, number % 2]) * 1000, "g": b"x"})
            lost += store.load(key) is None
    found.put(lost)


def test_processes_that_store_and_load_never_lose_an_entry(tmp_path):
    """Each stores other contents under the same keys; whoever has stored a key finds an entry."""
    fork = multiprocessing.get_context("fork")
    found = fork.Queue()
    processes = [fork.Process(target=stress, args=(tmp_path, who, 100, found)) for who in range(3)]
    for process in processes:
        process.start()
    assert [found.get() for _ in processes] == [0, 0, 0]
    for process in processes:
        process.join()
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(cache.NEW)]


def test_contents_of_before_are_removed_when_nobody_can_be_reading_them(store, tmp_path):
    store.store("ab", {"top.bit": b"1"})
    old = next((tmp_path / "bitstream" / "ab").glob("*-top.bit"))
    store.store("ab", {"top.bit": b"2"})
    assert old.exists()
    os.utime(old, (0, 0))
    store.store("ab", {"top.bit": b"3"})
    assert not old.exists()
    assert store.load("ab") == {"top.bit": b"3"}


def test_a_process_leaves_no_private_cache(tmp_path):
    """At its end, nor one of its forks'."""
    script = "import os; from onnxhw.build import cache; print(cache.private(os.getpid()));"
    script += "os.fork() or exit(0); os.wait()"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
