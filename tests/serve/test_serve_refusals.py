"""What ``onnxhw serve`` refuses, each before anything is compiled."""

import socket
from pathlib import Path

import pytest

from onnxhw.cli import main
from onnxhw.engines.cxxrtl import rtl_device
from onnxhw.serve import board


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **names: object) -> None:
        raise AssertionError("compiled")

    monkeypatch.setattr(rtl_device, "core_library", refuse)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--tcp", "0", "--pty"], "E2908"),
        (["--tcp", "0", "--link", "somewhere"], "E2908"),
        (["--tcp", "http"], "E2587"),
        (["--tcp", "localhost:70000"], "E2587"),
        (["--tcp", "-1"], "E2587"),
        (["--baud", "100"], "E2582"),
        (["--baud", "0"], "E2901"),
        (["--baud", "1000000", "--freq", "4"], "E2140"),
        (["--link", "/no/such/folder/board"], "E2583"),
        (["--board", "ulx3s-12f", "--preset", "ulx3s-85f"], "E2904"),
    ],
)
def test_wrong_options_are_named(options: list[str], code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--preset", "mini", *options]) == 2
    assert capsys.readouterr().err.lstrip().splitlines()[-1:] != []
    assert main(["serve", "--preset", "mini", *options, "--json"]) == 2
    assert f'"code": "{code}"' in capsys.readouterr().out


def test_a_port_in_use_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--preset", "mini", "--tcp", f"127.0.0.1:{port}"]) == 2
    assert f"E2585 usage: cannot listen on port {port} of 127.0.0.1" in capsys.readouterr().err


def test_a_link_is_removed_when_the_start_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "board"
    seen = []

    def fail(*arguments: object, **names: object) -> None:
        seen.append(link.is_symlink())
        raise KeyboardInterrupt

    monkeypatch.setattr(board, "device_libraries", fail)
    assert main(["serve", "--preset", "mini", "--link", str(link)]) == 130
    assert seen == [True]
    assert not link.is_symlink()
