"""A design in Amaranth as Verilog, hierarchy kept, for Icarus."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

from ..build import tools
from ..garbage import collection_paused


def to_verilog(component: Any, *, name: str = "top", ports: Sequence[Any] | None = None) -> str:
    """Verilog of a `wiring.Component` (or an Elaboratable and its `ports`); ``clk`` and ``rst`` become ports too."""
    with collection_paused():
        text = rtlil.convert(component, name=name, ports=ports, emit_src=False)
    with tempfile.TemporaryDirectory(prefix="onnxhw-verilog-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        (folder / "top.il").write_text(text)
        # Multiplexers instead of `always @*`: Icarus never runs such a block whose inputs keep their initial values.
        script = "read_rtlil top.il; proc -norom; memory_collect; write_verilog -noattr top.v"
        tools.run("yosys", ["-q", "-p", script], folder)
        return (folder / "top.v").read_text()
