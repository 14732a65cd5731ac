"""The program that measures the speed of simulation does what it says, on a small core."""

from simspeed import busy_program

from onnxhw.emu import Emulator
from onnxhw.engines.run_setup import program_writes
from onnxhw.isa.memory import Space
from onnxhw.presets import PRESETS


def test_the_busy_program_has_an_image_and_keeps_the_array_busy():
    program = busy_program(PRESETS["mini"], 50_000)
    assert {space for space, _, _ in program_writes(program)} >= {Space.WEIGHT, Space.PARAM, Space.ARRAY_UCODE}
    machine = Emulator(program)
    result = machine.run({})
    assert machine.cycles == program.cycles
    assert result.counters["busy_array"] > 0.9 * program.cycles
