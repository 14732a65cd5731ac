"""The netlist of a whole preset runs the digits network: outputs and cycles equal golden model and program."""

from pathlib import Path

import numpy as np
import pytest
from netlist import synthesize_netlist
from netlist_program import compile_core, run_program

from onnxhw import golden
from onnxhw.compiler import compile_graph
from onnxhw.devices.gowin.estimate import TOLERANCE, estimate
from onnxhw.golden import host
from onnxhw.partition import load
from onnxhw.presets import preset
from onnxhw.rtl.core import Core

pytestmark = [pytest.mark.netlist, pytest.mark.synth, pytest.mark.slow]


def test_digits_on_the_preset_of_the_tang_boards(digits: Path, digits_test: Path, icarus: None) -> None:
    config, graph = preset("tang-20k"), load(digits)
    netlist = synthesize_netlist(Core(config), family="gowin")
    guess = estimate(config)
    assert netlist.dsps == guess.dsp
    assert netlist.luts <= guess.lut * (1 + TOLERANCE)
    core, program = compile_core(netlist), compile_graph(graph, config)
    inputs = host.prepare(graph, {graph.inputs[0].name: np.load(digits_test)["input"][:1]})
    wanted = golden.run(graph, inputs)
    found = run_program(core, program, inputs)
    for name, values in found.outputs.items():
        np.testing.assert_array_equal(values, wanted[name])
    assert found.cycles == program.cycles
