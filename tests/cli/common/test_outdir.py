"""An output directory holds complete files or none."""

import os
import signal
import tempfile
import time

import pytest

from onnxhw.cli.common.interrupts import interruptible
from onnxhw.cli.common.outdir import HINT, refuse_unwritable, refuse_unwritable_file, staged, write_atomically
from onnxhw.errors import UsageError


def wait_for_the_signal():
    for _ in range(6000):
        time.sleep(0.01)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_files_appear_together_at_the_end(tmp_path):
    target = tmp_path / "a" / "out"
    with staged(target) as stage:
        (stage / "one").write_text("1")
        assert not target.exists()
    assert names(target) == ["one"]
    assert names(tmp_path / "a") == ["out"]


def test_files_that_are_not_replaced_stay(tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    (target / "old").write_text("old")
    (target / "one").write_text("before")
    with staged(target) as stage:
        (stage / "one").write_text("after")
    assert {name: (target / name).read_text() for name in names(target)} == {"old": "old", "one": "after"}


def test_a_folder_that_exists_is_all_that_must_be_writable(tmp_path, monkeypatch):
    target = tmp_path / "out"
    target.mkdir()
    make = tempfile.mkdtemp
    places = []
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **options: places.append(options["dir"]) or make(**options))
    with staged(target) as stage:
        (stage / "one").write_text("1")
    assert places == [target]
    assert names(target) == ["one"]


def test_a_link_in_a_circle_is_no_place_for_a_file(tmp_path):
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    for refused in (
        lambda: write_atomically(circle, b"x"),
        lambda: refuse_unwritable_file(circle),
        lambda: refuse_unwritable_file(tmp_path / "out", circle) or refuse_unwritable_file(circle, circle),
    ):
        with pytest.raises(UsageError, match=r"circle|overwritten") as caught:
            refused()
        assert caught.value.code in ("E2903", "E2561")
    assert circle.is_symlink()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_stays_of_work_that_fails(tmp_path, error):
    with pytest.raises(error), staged(tmp_path / "deep" / "out") as stage:
        (stage / "one").write_text("1")
        raise error
    assert names(tmp_path) == []


def test_an_existing_directory_is_left_as_it_was(tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    (target / "one").write_text("before")
    with pytest.raises(ValueError, match="half"), staged(target) as stage:
        (stage / "one").write_text("after")
        raise ValueError("half")
    assert (target / "one").read_text() == "before"
    assert names(tmp_path) == ["out"]


def test_a_file_in_the_way_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError) as caught:
        refuse_unwritable(tmp_path / "file" / "out")
    assert caught.value.text() == f"E2903 usage: {tmp_path / 'file'}: is not a directory Hint: {HINT}"


def test_a_directory_without_permission_is_refused(tmp_path, monkeypatch):
    def denied(**arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", denied)
    with pytest.raises(UsageError) as caught:
        refuse_unwritable(tmp_path / "out")
    assert caught.value.text() == (
        f"E2903 usage: {tmp_path}: cannot be written to: Permission denied Hint: {HINT}"
    )


def test_a_name_that_cannot_be_a_file_is_refused_beforehand(tmp_path):
    refuse_unwritable_file(tmp_path / "deep" / "new")
    (tmp_path / "link").symlink_to(tmp_path)
    for target in (tmp_path, tmp_path / "link"):
        with pytest.raises(UsageError, match=r"E2903 .*: is a directory, not a file"):
            refuse_unwritable_file(target)
    assert names(tmp_path) == ["link"]


def test_write_atomically_replaces_and_leaves_no_rest(tmp_path):
    target = tmp_path / "new" / "file"
    write_atomically(target, b"1")
    write_atomically(target, b"2")
    assert target.read_bytes() == b"2"
    assert names(target.parent) == ["file"]
    mask = os.umask(0)
    os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~mask


def test_what_is_not_a_file_is_left_alone(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(UsageError, match=r"E2903 .*not a regular file"):
        write_atomically(fifo, b"x")
    assert fifo.is_fifo()


def test_a_link_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_atomically(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"x"


def test_an_interrupt_waits_until_all_files_are_replaced(tmp_path, monkeypatch):
    target = tmp_path / "out"
    target.mkdir()
    for name in ("one", "two"):
        (target / name).write_text("before")
    replace = os.replace

    def interrupted(*paths):
        signal.raise_signal(signal.SIGINT)
        replace(*paths)

    monkeypatch.setattr(os, "replace", interrupted)
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.default_int_handler)  # also where it is ignored
    with pytest.raises(KeyboardInterrupt), interruptible():
        with staged(target) as stage:
            for name in ("one", "two"):
                (stage / name).write_text("after")
        wait_for_the_signal()
    assert {name: (target / name).read_text() for name in names(target)} == {"one": "after", "two": "after"}
