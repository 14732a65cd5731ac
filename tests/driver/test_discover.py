"""The serial ports there are, and what hinders their use."""

from types import SimpleNamespace

import pytest

from onnxhw.driver import discover
from onnxhw.driver.transport import SerialTransport


def entry(device, vid=None, pid=None, product=None, serial=None, description="n/a"):
    """As pyserial describes a port."""
    return SimpleNamespace(
        device=device, vid=vid, pid=pid, product=product, serial_number=serial, description=description
    )


@pytest.fixture
def comports(monkeypatch):
    """Sets the ports that pyserial finds."""
    list_ports = pytest.importorskip("serial.tools.list_ports")
    return lambda *found: monkeypatch.setattr(list_ports, "comports", lambda: list(found))


def test_known_boards_come_first(comports):
    comports(
        entry("/dev/ttyS0"),
        entry("/dev/ttyACM0", 0x2341, 0x0043, "Uno"),
        entry("/dev/ttyUSB7", 0x0403, 0x6015, "ULX3S FPGA 85K v3.0.8", "D00001"),
    )
    first, *rest = discover.ports()
    assert (first.address, first.usb, first.serial) == ("serial:/dev/ttyUSB7", "0403:6015", "D00001")
    assert "ulx3s-85f" in first.boards
    assert [port.device for port in rest] == ["/dev/ttyACM0", "/dev/ttyS0"]
    assert [(port.boards, port.hint) for port in rest] == [((), "")] * 2
    assert [port.product for port in rest] == ["Uno", ""]


def test_a_board_is_known_by_its_usb_link_too(comports):
    comports(entry("/dev/ttyACM0", 0x1209, 0x0001, "onnxhw"), entry("/dev/ttyACM1", 0x1209, 0x0002, "other"))
    first, second = discover.ports()
    assert (first.address, first.usb) == ("serial:/dev/ttyACM0", "1209:0001")
    assert "ulx3s-85f" in first.boards
    assert second.boards == ()


def test_no_ports(comports):
    comports()
    assert discover.ports() == []


def test_latency_timer(tmp_path, monkeypatch):
    monkeypatch.setattr(discover, "SYSFS", tmp_path)
    assert discover.latency_timer("/dev/ttyUSB7") is None
    (tmp_path / "ttyUSB7").mkdir()
    timer = tmp_path / "ttyUSB7" / "latency_timer"
    timer.write_text("16\n")
    assert discover.hint("/dev/ttyUSB7") == f"each small request costs 16 ms: `echo 1 | sudo tee {timer}`"
    timer.write_text("1\n")
    assert discover.hint("/dev/ttyUSB7") == ""


def test_permission(tmp_path, monkeypatch):
    port = tmp_path / "ttyUSB0"
    port.touch()
    monkeypatch.setattr(discover.os, "access", lambda path, mode: False)
    monkeypatch.setattr(discover, "permission_hint", lambda path: f"join the group of {path}")
    assert discover.hint(str(port)) == f"join the group of {port}"


def test_serial_ports_are_asked_for_low_latency(monkeypatch):
    """Only where the adapter can; a pseudo-terminal cannot, and is not marked exclusive."""
    serial = pytest.importorskip("serial")
    asked = []

    class Port:
        def __init__(self, *_, **__):
            self.timeout = 0

        def fileno(self):
            return null.fileno()

        def set_low_latency_mode(self, on):
            asked.append(on)

        def reset_input_buffer(self):
            pass

    monkeypatch.setattr(serial, "Serial", Port)
    with open("/dev/null") as null:
        SerialTransport("/dev/ttyUSB7")
        assert asked == [True]
        SerialTransport("/dev/pts/77")
    assert asked == [True]
