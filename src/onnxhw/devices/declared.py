"""An Amaranth platform of the pins that a board file declares itself, in its table ``pins``."""

from collections.abc import Iterator, Mapping
from typing import Any

from amaranth.build import Attrs, Clock, Pins, PinsN, Resource, Subsignal

from ..board import CLOCK_PIN, FLASH_PINS, SDRAM_PINS, UART_PINS, USB_PINS, Board

Attributes = Mapping[str, Mapping[str, str]]
"""Electrical settings of pins by what they are: "input", "output", "usb", "sdram", "high" and "low" (a button that
gives that level when pressed), as the vendor's constraint files write them; ``IO_TYPE`` comes from the board file."""
SDRAM = {
    "clk": ("sdram_clk", "o"), "clk_en": ("sdram_cke", "o"), "cs": ("sdram_cs_n", "o"), "ras": ("sdram_ras_n", "o"),
    "cas": ("sdram_cas_n", "o"), "we": ("sdram_we_n", "o"), "dqm": ("sdram_dqm", "o"), "ba": ("sdram_ba", "o"),
    "a": ("sdram_a", "o"), "dq": ("sdram_dq", "io"),
}  # fmt: skip
"""Pins of the memory as amaranth-boards' ``SDRAMResource`` names them, with the board file's key and the direction."""
FLASH = {
    "cs": ("flash_cs_n", "o"), "copi": ("flash_copi", "o"), "cipo": ("flash_cipo", "i"), "wp": ("flash_wp_n", "o"),
    "hold": ("flash_hold_n", "o"),
}  # fmt: skip
"""Pins of the SPI flash as its ``SPIFlashResources`` names them."""


def declared(board: Board, vendor: type, members: Mapping[str, Any], attributes: Attributes) -> Any:
    """An instance of a `vendor`'s platform with the board's pins.

    Its resources are called as those of amaranth-boards, so nothing else knows where the pins are from: ``clock``,
    ``uart``, ``usb``, ``sdram``, ``spi_flash``, ``led`` 0 and on, ``button_fire``. `members` are what the vendor's
    platforms say of the device.
    """
    body = {
        **members, "default_clk": CLOCK_PIN, "resources": list(_resources(board, attributes)), "connectors": [],
    }  # fmt: skip
    return type("DeclaredPlatform", (vendor,), body)()


def _resources(board: Board, attributes: Attributes) -> Iterator[Any]:
    pins = dict(board.pins)
    kind = pins.pop("io_type", "LVCMOS33")

    def attrs(what: str) -> Any:
        return Attrs(IO_TYPE=kind, **attributes.get(what, {}))

    yield Resource(CLOCK_PIN, 0, Pins(pins["clock"], dir="i"), Clock(board.clock_hz), attrs("clock"))
    if "uart_rx" in pins:
        yield Resource(
            UART_PINS, 0, Subsignal("rx", Pins(pins["uart_rx"], dir="i"), attrs("input")),
            Subsignal("tx", Pins(pins["uart_tx"], dir="o"), attrs("output")),
        )  # fmt: skip
    for key in ("leds", "leds_n"):
        for number, pin in enumerate(pins.get(key, "").split()):
            yield Resource("led", number, _pins(key, pin, "o"), attrs("output"))
    for key in ("button", "button_n"):
        if key in pins:
            yield Resource("button_fire", 0, _pins(key, pins[key], "i"), attrs("low" if key.endswith("_n") else "high"))
    if "usb_d_p" in pins:
        found = [("d_p", "usb_d_p", "io"), ("d_n", "usb_d_n", "io"), ("pullup", "usb_pullup", "o")]
        inner = [Subsignal(name, Pins(pins[key], dir=way)) for name, key, way in found if key in pins]
        yield Resource(USB_PINS, 0, *inner, attrs("usb"))
    for first, name, known, what in (
        ("sdram_clk", SDRAM_PINS, SDRAM, "sdram"), ("flash_cs_n", FLASH_PINS, FLASH, "output")
    ):  # fmt: skip
        if first in pins:
            inner = [Subsignal(each, _pins(key, pins[key], way)) for each, (key, way) in known.items() if key in pins]
            yield Resource(name, 0, *inner, attrs(what))


def _pins(key: str, names: str, way: str) -> Any:
    """Pins, inverted where the key says that they are active low."""
    return PinsN(names, dir=way) if key.endswith("_n") else Pins(names, dir=way)
