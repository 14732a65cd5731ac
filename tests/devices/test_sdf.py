"""Delays from an SDF file as nextpnr writes it."""

from onnxhw.devices.sdf import Delays, Pin, read

SDF = r"""
    (INSTANCE )
        (INTERCONNECT unit.q\[0\]/Q made\\by.map/A (300:350:400) (310:355:390))
        (INTERCONNECT clock/O unit.q\[0\]/CLK (1:2:3) (1:2:4.5))
    (INSTANCE unit.q\[0\])
        (IOPATH CLK Q (500:510:520) (500:510:525))
      (SETUPHOLD (posedge M) (posedge CLK) (0:10:20) (0:0:7))
      (SETUPHOLD (negedge M) (posedge CLK) (0:10:20) (0:0:7))
"""


def test_delays_are_the_slowest_and_names_are_without_escapes() -> None:
    q = "unit.q[0]"
    assert read(SDF.splitlines()) == Delays(
        wires={Pin(r"made\by.map", "A"): (Pin(q, "Q"), 400.0), Pin(q, "CLK"): (Pin("clock", "O"), 4.5)},
        paths={Pin(q, "Q"): [(Pin(q, "CLK"), 525.0)]},
        setups={Pin(q, "M"): ("CLK", 20.0)},
    )
