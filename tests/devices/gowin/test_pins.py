"""Pins of the boards are pins of their packages, and reach the tools as the board's file has them."""

import re
from dataclasses import replace

import pytest
from amaranth import Elaboratable, Module
from amaranth.lib import io

from onnxhw.board import boards, find
from onnxhw.board_pins import names
from onnxhw.build.device import platform_of
from onnxhw.devices import family_of
from onnxhw.devices.gowin.parts import part_number
from onnxhw.devices.gowin.pins import package_pins
from onnxhw.errors import UsageError

pytest.importorskip("apycula", reason="apycula is not installed")
NANO = find("tang-nano-20k")


@pytest.mark.parametrize("name", [board.name for board in boards().values() if board.family == "gowin"])
def test_pins_of_every_board_are_pins_of_its_package(name):
    """By Apicula's database, which is made of the vendor's own tables."""
    board = find(name)
    known = package_pins(part_number(board))
    assert len(known) > 40
    assert [pin for _, pin in names(dict(board.pins)) if pin not in known] == []


@pytest.mark.parametrize("pin", ["89", "H11", "6"])  # 6 is TCK
def test_another_pin_is_refused_by_its_key(pin):
    with pytest.raises(UsageError, match="E2376") as caught:
        platform_of(replace(NANO, pins=(*NANO.pins[:1], ("uart_rx", pin), *NANO.pins[2:])))
    assert f"pins.uart_rx: package QN88 of GW2AR-18C has no pin '{pin}' for a design" in caught.value.what


class Lights(Elaboratable):
    """An LED that is as the button."""

    def elaborate(self, platform):
        m = Module()
        m.submodules.led = led = io.Buffer("o", platform.request("led", 0, dir="-"))
        m.submodules.button = button = io.Buffer("i", platform.request("button_fire", 0, dir="-"))
        m.d.comb += led.o.eq(button.i)
        return m


def test_pins_get_to_the_tools_as_the_file_has_them():
    files = family_of(NANO).files(platform_of(NANO), Lights(), NANO, ())
    sites = dict(re.findall(r'IO_LOC "(\w+)" (\w+);', files["top.cst"]))
    assert sites == {"led_0__io": "15", "button_fire_0__io": "88"}
    assert 'IO_PORT "button_fire_0__io" PULL_MODE=DOWN;' in files["top.cst"]
    assert files["top.cst"].count("IO_TYPE=LVCMOS33") == 2


def test_a_database_that_was_missing_is_found_once_it_is_there(monkeypatch):
    part = part_number(NANO)
    with monkeypatch.context() as without:
        without.setattr("importlib.util.find_spec", lambda name: None)
        assert package_pins(part) == frozenset()
    assert package_pins(part)
