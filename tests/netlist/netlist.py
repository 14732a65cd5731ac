"""Post-synthesis netlists: Yosys' result for a device as Verilog, and its simulation with our own cell models.

This is the rung of the exactness ladder between RTL and board: what is simulated is made of the device's cells.
``cells/FAMILY.v`` has the cells of a family, `MAPPINGS` how Yosys makes them.
"""

import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.lib import wiring

from onnxhw.build import tools
from onnxhw.devices import find_family
from onnxhw.devices.ecp5 import mapping as ecp5
from onnxhw.devices.gowin import mapping as gowin
from onnxhw.garbage import collection_paused
from onnxhw.rtl.cells import Primitives

MAPPINGS: dict[str, tuple[list[str], dict[str, str]]] = {
    "ecp5": (["synth_ecp5 -top {top}", ecp5.SCRIPT], {ecp5.FILE: ecp5.text()}),
    "gowin": ([f"{gowin.SYNTHESIS} -noiopads"], {}),
}
"""By family: Yosys' commands from a design to its netlist, as for a bitstream but for pads, and their files."""
COMPUTING = ("ecp5",)
"""Families whose `Family.netlist` changes cells that compute; Gowin's adds tables that pass a value, and names nets
like cells, which Yosys does not read."""
CELLS = Path(__file__).with_name("cells")
VECTORS = 1 << 17
"""Most steps of one simulation."""


@dataclass(frozen=True)
class Target:
    """What `elaborate` gets as its platform when there is a device but no board."""

    primitives: Primitives


@dataclass(frozen=True)
class Netlist:
    """A synthesized design: Verilog text, its top module, and how many cells of each type it has."""

    verilog: str
    top: str
    inputs: dict[str, int]
    outputs: dict[str, int]
    cells: dict[str, int]
    family: str

    @property
    def resources(self) -> dict[str, int]:
        """What it takes, by the names of `devices.family.check_fit`."""
        named = {f"{kind} {number}": kind for kind, count in self.cells.items() for number in range(count)}
        return find_family(self.family).counts(named)

    @property
    def luts(self) -> int:
        """LUT4 sites."""
        return self.resources["LUT4"]

    @property
    def ffs(self) -> int:
        """Flip-flops in the fabric."""
        return self.resources["flip-flops"]

    @property
    def dsps(self) -> int:
        """Multiplier blocks."""
        return self.resources["multipliers"]

    @property
    def ebrs(self) -> int:
        """Block RAMs."""
        return self.resources["block RAMs"]


def synthesize_netlist(
    design: Any, *, family: str = "ecp5", device: str = "", name: str = "top", tick: tools.Tick | None = None
) -> Netlist:
    """Synthesize a `wiring.Component` for a device, `Family.small` unless it is named; its members, ``clk`` and ``rst``
    become the ports."""
    made_for = find_family(family)
    target = Target(made_for.primitives(device or made_for.small, getattr(design, "config", None)))
    with collection_paused():
        text = rtlil.convert(design, name=name, platform=target, emit_src=False)
    commands, files = MAPPINGS[family]
    script = [
        "read_rtlil top.il",
        *(command.format(top=name) for command in commands),
        # Names that only serve debugging make the simulator's input several times larger.
        "opt_clean -purge",
        "tee -q -o stat.json stat -json",
        "write_json top.json",
    ]
    again = ["read_json top.json", f"hierarchy -top {name}", "write_verilog -noattr -simple-lhs top.v"]
    with tempfile.TemporaryDirectory(prefix="onnxhw-") as scratch:
        directory = Path(scratch)
        (directory / "top.il").write_text(text)
        for file, content in files.items():
            (directory / file).write_text(content)
        tools.run("yosys", ["-q", "-p", "; ".join(script)], directory, tick=tick)
        if family in COMPUTING:
            text = made_for.netlist((directory / "top.json").read_text())
            # An output that leads nowhere: nextpnr wants it to be there, Yosys to be connected to nothing.
            (directory / "top.json").write_text(text.replace('"COUT": ["x"]', '"COUT": []'))
        tools.run("yosys", ["-q", "-p", "; ".join(again)], directory, tick=tick)
        statistics = json.loads((directory / "stat.json").read_text())
        verilog = (directory / "top.v").read_text()
    members = dict(design.signature.members.items())
    widths = {key: _width(member) for key, member in members.items()}
    inputs = {key: widths[key] for key, member in members.items() if member.flow == wiring.In}
    outputs = {key: widths[key] for key, member in members.items() if member.flow == wiring.Out}
    cells = {key: int(count) for key, count in statistics["design"]["num_cells_by_type"].items()}
    return Netlist(verilog, name, inputs, outputs, cells, family)


def _width(member: Any) -> int:
    from amaranth.hdl import Shape

    return int(Shape.cast(member.shape).width)


@dataclass(frozen=True)
class Step:
    """`count` clock cycles with these input values (signals left out are 0)."""

    inputs: dict[str, int]
    count: int = 1


def testbench(netlist: Netlist, when: str) -> str:
    """Verilog that applies the vectors of ``stimulus.hex``, one per clock, and prints the outputs in each cycle.

    Outputs are sampled just before the rising edge; if `when` names an output, only in cycles in which it is not 0.
    """
    width = sum(netlist.inputs.values())
    declare = [f"    reg [{width - 1}:0] inputs;", f"    reg [{32 + width - 1}:0] vectors[0:{VECTORS - 1}];"]
    connect, offset = [".clk(clk)", ".rst(rst)"], 0
    for name, bits in netlist.inputs.items():
        connect.append(f".{name}(inputs[{offset + bits - 1}:{offset}])")
        offset += bits
    for name, bits in netlist.outputs.items():
        declare.append(f"    wire [{bits - 1}:0] {name};")
        connect.append(f".{name}({name})")
    names = list(netlist.outputs)
    show = f'$display("{" ".join(f"{name}=%b" for name in names)}", {", ".join(names)});'
    condition = f"if ({when} !== 0) " if when else ""
    return "\n".join([
        "`timescale 1ns / 1ps",
        "module testbench;",
        "    reg clk = 0, rst = 1;",
        "    integer index, count, total;",
        *declare,
        f"    {netlist.top} dut ({', '.join(connect)});",
        "    initial begin",
        '        if (!$value$plusargs("vectors=%d", total)) total = 0;',
        '        $readmemh("stimulus.hex", vectors, 0, total - 1);',
        "        inputs = 0;",
        "        repeat (4) begin #5 clk = 1; #5 clk = 0; end",
        "        rst = 0;",
        "        for (index = 0; index < total; index = index + 1) begin",
        f"            inputs = vectors[index][{width - 1}:0];",
        f"            for (count = vectors[index][{32 + width - 1}:{width}]; count > 0; count = count - 1) begin",
        f"                #4 {condition}{show}",
        "                #1 clk = 1; #5 clk = 0;",
        "            end",
        "        end",
        "        $finish;",
        "    end",
        "endmodule",
        "",
    ])  # fmt: skip


class Simulation:
    """A netlist compiled for Icarus once, to be run with many stimuli.

    Parameters
    ----------
    when : an output; only cycles in which it is not 0 are shown. Empty: all are.
    collision : what a block RAM read of the address being written gives, "x" (as the device guarantees nothing) or
        "old" (as the portable form).
    """

    def __init__(
        self, netlist: Netlist, *, when: str = "", collision: str = "x", tick: tools.Tick | None = None
    ) -> None:
        self.netlist = netlist
        define = ["-DCOLLISION_OLD"] if collision == "old" else []
        with tempfile.TemporaryDirectory(prefix="onnxhw-") as scratch:
            directory = Path(scratch)
            (directory / "cells.v").write_text((CELLS / f"{netlist.family}.v").read_text())
            (directory / "top.v").write_text(netlist.verilog)
            (directory / "testbench.v").write_text(testbench(netlist, when))
            sources = ["cells.v", "top.v", "testbench.v"]
            arguments = ["-g2012", *define, "-s", "testbench", "-o", "run.vvp", *sources]
            tools.run("iverilog", arguments, directory, tick=tick)
            self.program = (directory / "run.vvp").read_bytes()

    def run(self, steps: Iterable[Step], *, tick: tools.Tick | None = None) -> list[dict[str, int | None]]:
        """Outputs of every shown cycle, from reset; None where a bit is X."""
        lines = []
        for step in steps:
            value, offset = 0, 0
            for name, bits in self.netlist.inputs.items():
                value |= (step.inputs.get(name, 0) & ((1 << bits) - 1)) << offset
                offset += bits
            lines.append(f"{step.count << offset | value:x}")
        if len(lines) > VECTORS:
            raise ValueError(f"at most {VECTORS} steps can be simulated at once, not {len(lines)}")
        with tempfile.TemporaryDirectory(prefix="onnxhw-") as scratch:
            directory = Path(scratch)
            (directory / "stimulus.hex").write_text("\n".join(lines) + "\n")
            (directory / "run.vvp").write_bytes(self.program)
            arguments = ["-n", "run.vvp", f"+vectors={len(lines)}"]
            output = tools.run("vvp", arguments, directory, tick=tick).output
        return _parse(output.splitlines(), self.netlist)


def simulate(
    netlist: Netlist, steps: Iterable[Step], *, when: str = "", collision: str = "x"
) -> list[dict[str, int | None]]:
    """Compile and run once; see `Simulation`."""
    return Simulation(netlist, when=when, collision=collision).run(steps)


def _parse(lines: Sequence[str], netlist: Netlist) -> list[dict[str, int | None]]:
    found: list[dict[str, int | None]] = []
    for line in lines:
        if line.startswith("ERROR"):
            raise AssertionError(f"netlist simulation: {line}")
        if "=" not in line or line.split("=")[0] not in netlist.outputs:
            continue
        pairs = (part.split("=") for part in line.split())
        found.append({name: int(bits, 2) if set(bits) <= {"0", "1"} else None for name, bits in pairs})
    return found
