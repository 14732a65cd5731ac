"""NNgen's accelerator for a network: generated in an environment of its own, simulated here as our RTL is."""

import json
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from environments import NNGEN, python_with
from layers import Layer

from onnxhw.build import tools
from onnxhw.engines.cxxrtl.build import build
from onnxhw.engines.cxxrtl.design import Design

SCRIPT = Path(__file__).with_name("nngen_rtl.py")
STEP, LIMIT = 8192, 20_000_000
"""Cycles between two looks at the end, and after which it is given up."""


def nngen(layers: list[Layer], par_in: int, par_out: int, bus: int, progress: Callable[[str], None]) -> dict[str, int]:
    """``cycles`` from the start to the end that the host sees, ``multipliers`` in the Verilog, ``outputs`` and how many
    of them are ``wrong``, against NNgen's own software.

    Yosys reads the Verilog and CXXRTL simulates it, like our own RTL. The compiled simulation is kept.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "layers.json").write_text(json.dumps(layers))
        progress(f"nngen {par_in} x {par_out}: generate")
        arguments = ["layers.json", ".", str(par_in), str(par_out), str(bus)]
        subprocess.run([python_with("nngen", NNGEN), SCRIPT, *arguments], cwd=folder, check=True)
        facts = json.loads((folder / "facts.json").read_text())
        verilog = (folder / "top.v").read_text()

        def rtlil() -> str:
            script = "read_verilog top.v; hierarchy -top top; proc; flatten; opt_clean; write_rtlil top.il"
            tools.run("yosys", ["-q", "-p", script], folder)
            return (folder / "top.il").read_text()

        parts = {"verilog": verilog, "memory": (folder / "memory.hex").read_text()}
        label = f"NNgen {par_in} x {par_out}, {bus} bits"
        library = build(rtlil, parts=parts, label=label, progress=lambda text: progress(f"{label}: {text}"))
        with Design(library.path) as design:
            while not design.get("done"):
                if design.cycles > LIMIT:
                    raise SystemExit(f"{label}: no end after {LIMIT:,} cycles")
                design.step(STEP)
            return {
                "cycles": design.get("cycles"),
                "multipliers": len(re.findall(r"= _a \* _b;", verilog)),
                "outputs": facts["outputs"],
                "wrong": design.get("wrong"),
            }
