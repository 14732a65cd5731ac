"""What follows Yosys' own mapping to the ECP5: ``ecp5_map.v``, the same for bitstreams and for simulated netlists."""

from importlib import resources

FILE = "ecp5_map.v"
SCRIPT = f"techmap -max_iter 3 -map {FILE} t:CCU2C"
"""Yosys command after ``synth_ecp5``, with `FILE` in its directory."""


def text() -> str:
    """The Verilog text of `FILE`."""
    return resources.files("onnxhw.build").joinpath(FILE).read_text()
