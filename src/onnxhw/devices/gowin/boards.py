"""Platforms of boards that amaranth-boards does not have."""

from typing import Any

from amaranth.build import Attrs, Clock, Pins, PinsN, Resource, Subsignal
from amaranth.vendor import GowinPlatform

LVCMOS33 = {"IO_TYPE": "LVCMOS33"}


class TangNano20kPlatform(GowinPlatform):
    """Sipeed Tang Nano 20K; pins as of litex-boards' ``sipeed_tang_nano_20k``.

    The memory in the package is no resource: nextpnr connects it by the names of ports.
    """

    part = "GW2AR-LV18QN88C8/I7"
    family = "GW2AR-18C"
    default_clk = "clk27"
    resources = [
        Resource("clk27", 0, Pins("4", dir="i"), Clock(27e6), Attrs(**LVCMOS33)),
        Resource(
            "uart", 0,
            Subsignal("rx", Pins("70", dir="i"), Attrs(PULL_MODE="UP")), Subsignal("tx", Pins("69", dir="o")),
            Attrs(**LVCMOS33),
        ),
        *(Resource("led", index, PinsN(str(15 + index), dir="o"), Attrs(**LVCMOS33)) for index in range(6)),
        Resource("button_fire", 0, Pins("88", dir="i"), Attrs(PULL_MODE="DOWN", **LVCMOS33)),
        Resource("button", 0, Pins("87", dir="i"), Attrs(PULL_MODE="DOWN", **LVCMOS33)),
    ]  # fmt: skip
    connectors: list[Any] = []
