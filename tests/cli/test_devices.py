"""``onnxhw devices``: ports, known boards, and what answers."""

import json

import pytest

from onnxhw.cli import main
from onnxhw.driver import discover, simulated_time
from onnxhw.driver.discover import SerialPort


@pytest.fixture(autouse=True)
def nothing(monkeypatch):
    """A machine without ports and simulated boards."""
    monkeypatch.setattr(discover, "ports", list)
    monkeypatch.setattr(simulated_time, "running", lambda: iter(()))


def test_no_devices(capsys):
    assert main(["devices"]) == 0
    assert "no serial ports" in capsys.readouterr().out
    assert main(["devices", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"devices": []}


def test_what_a_device_says(capsys):
    assert main(["devices", "-d", "emu:ulx3s-25f", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["devices"]
    assert (row["state"], row["preset"], row["clock_mhz"], row["baud"]) == ("answers", "ulx3s-25f", 100.0, 1_000_000)
    assert main(["devices", "-d", "emu:ulx3s-25f"]) == 0
    assert "ulx3s-25f at 100 MHz, 1,000,000 baud" in capsys.readouterr().out


def test_unknown_adapters_are_not_asked(monkeypatch, capsys):
    """A port that cannot be opened would show in the state."""
    ports = [
        SerialPort("/dev/no-board", "0403:6015", "D1", "ULX3S", ("ulx3s-85f",), hint="join a group"),
        SerialPort("/dev/no-modem", "2341:0043"),
    ]
    monkeypatch.setattr(discover, "ports", lambda: ports)
    assert main(["devices", "--json"]) == 0
    board, modem = json.loads(capsys.readouterr().out)["devices"]
    assert board["state"].startswith("cannot open")
    assert modem["state"] == "not asked"
    assert main(["devices", "--no-ask"]) == 0
    found = capsys.readouterr()
    assert found.out.count("not asked") == 2
    assert "serial:/dev/no-board: join a group" in found.err


def test_simulated_boards_are_listed(monkeypatch, capsys):
    boards = [
        simulated_time.RunningBoard("/dev/pts/7", "ulx3s-85f", "mini", 8_000_000, 1_000_000, 1),
        simulated_time.RunningBoard("tcp:127.0.0.1:5555", "ulx3s-85f", "ulx3s-85f", 8_000_000, 1_000_000, 2),
    ]
    monkeypatch.setattr(simulated_time, "running", lambda: iter(boards))
    assert main(["devices", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["devices"]
    assert [(row["device"], row["preset"]) for row in rows] == [
        ("serial:/dev/pts/7", "mini"),
        ("tcp:127.0.0.1:5555", "ulx3s-85f"),
    ]
    assert {row["state"] for row in rows} == {"simulated"}


@pytest.mark.parametrize("name", ["ulx3s-85f+sdram", "mini+sdram", "ulx3s-85f"])
def test_a_preset_is_named_with_the_memory_that_it_has(name, capsys):
    assert main(["devices", "-d", f"emu:{name}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["devices"][-1]["preset"] == name


def test_an_address_that_does_not_answer(capsys):
    pytest.importorskip("serial")
    assert main(["devices", "-d", "/dev/no-such-port", "-d", "emu:mini", "--json"]) == 9
    record = json.loads(capsys.readouterr().out)
    assert record["error"]["code"] == "E9101"
    assert [row["state"] for row in record["devices"]][1] == "answers"
    assert main(["devices", "-d", "bogus"]) == 2
    assert "E2550" in capsys.readouterr().err
