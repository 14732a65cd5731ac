"""What stands for an exception nobody expected, also where nothing more can be written down."""

import pytest

from onnxhw.cli.common import crash as module
from onnxhw.cli.common.crash import crash


@pytest.mark.parametrize("error", [MemoryError(), OSError("full"), ImportError("no segment")])
def test_without_memory_or_room_it_is_told_all_the_same(monkeypatch, error):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(module.tempfile, "mkstemp", fails)
    told = crash(ValueError("what it was"), ["boards"], 0)
    assert (told.code, told.what) == ("E1901", "ValueError: what it was")
    assert "run again with -v" in told.hint


def test_else_the_file_has_the_traceback(tmp_path, monkeypatch):
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    told = crash(ValueError("what it was"), ["boards", "--json"], 0)
    (path,) = tmp_path.iterdir()
    assert str(path) in told.hint
    text = path.read_text()
    assert "arguments: boards --json\n" in text
    assert "ValueError: what it was" in text
