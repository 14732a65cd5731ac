"""What follows Yosys' own mapping to the ECP5: ``map.v``, the same for bitstreams and for simulated netlists."""

from importlib import resources

FILE = "ecp5_map.v"
"""Its name in the directory of the tools."""
SCRIPT = f"techmap -max_iter 3 -map {FILE} t:CCU2C"
"""Yosys command after ``synth_ecp5``, with `FILE` in its directory."""


def text() -> str:
    """The Verilog text of `FILE`."""
    return resources.files("onnxhw.devices.ecp5").joinpath("map.v").read_text()
