"""The folder of the tools' logs: it is there before the tools start, and what it cannot take loses no result."""

import errno
import os
import shutil

import pytest

from onnxhw.board import find
from onnxhw.build import flow
from onnxhw.build.cache import Cache
from onnxhw.devices.family import ROUTED

BOARD, HZ = find("ulx3s-12f"), 100_000_000


def built(store, logs):
    return flow.build(None, BOARD, clock_hz=HZ, cache=store, logs=logs)


def test_a_folder_that_cannot_be_made_is_told_before_the_first_tool(tools, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        built(Cache("bitstream", tmp_path), tmp_path / "file" / "logs")
    assert tools.names == []


def test_the_logs_and_the_routed_design_are_kept(tools, tmp_path):
    assert built(Cache("bitstream", tmp_path), tmp_path / "a" / "logs").bitstream == b"bits"
    found = {path.name: path.read_text() for path in (tmp_path / "a" / "logs").iterdir()}
    assert found == {"top.rpt": "synthesis", "nextpnr-1.log": "the log", ROUTED: "{}"}


@pytest.fixture
def full(monkeypatch):
    """A disk that has room for half a log of nextpnr's."""
    copy = shutil.copyfile

    def half(source, target):
        if source.name.startswith("nextpnr"):
            target.write_text("half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        return copy(source, target)

    monkeypatch.setattr(flow.shutil, "copyfile", half)


def test_a_full_disk_loses_a_log_and_not_the_result(tools, full, tmp_path, caplog):
    logs, store = tmp_path / "logs", Cache("bitstream", tmp_path / "cache")
    logs.mkdir()
    (logs / "nextpnr-1.log").write_text("of another run")
    assert built(store, logs).bitstream == b"bits"
    assert built(store, logs).cached
    assert {path.name for path in logs.iterdir()} == {"top.rpt", ROUTED}
    assert [record.getMessage() for record in caplog.records] == [
        f"{logs / 'nextpnr-1.log'} of this run is not kept: {os.strerror(errno.ENOSPC)}"
    ]


def test_what_ends_a_run_is_told_though_its_folder_has_gone(tools, tmp_path, monkeypatch, caplog):
    tools.fails = True

    def gone(source, target):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target))

    monkeypatch.setattr(flow.shutil, "copyfile", gone)
    with pytest.raises(ValueError, match="no luck"):
        built(Cache("bitstream", tmp_path), tmp_path / "logs")
    assert len(caplog.records) == 1
