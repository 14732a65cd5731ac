"""The whole core: a program runs right after an aborted run, after a reset in mid-run, and twice in a row.

Right means equal to the emulator: every output, the cycle count, and no unknown bit anywhere the host can look.
"""

import os
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock

from onnxhw import program as programs
from onnxhw.emu import Emulator
from onnxhw.engines.cosim.bench import PERIOD, PIPELINE, HostPortDriver, known
from onnxhw.engines.run_setup import program_writes
from onnxhw.isa.memory import ENDED, Control, Space
from onnxhw.program.host_words import tensor_of, tensor_spans
from onnxhw.program.input_regions import input_stream


@cocotb.test()
async def survives_interruptions(dut: Any) -> None:
    program = programs.load(Path(os.environ["ONNXHW_PROGRAM"])).only()
    emulator = Emulator(program)
    random = np.random.default_rng(5)
    Clock(dut.clk, PERIOD, unit="ns").start(start_high=False)
    port = HostPortDriver(dut)
    await port.reset()
    for space, address, words in program_writes(program):
        await port.write(space, address, words)
    for interruption in ("none", "abort", "reset", "none"):
        inputs = {
            p.tensor: random.integers(-128, 128, program.tensors[p.tensor].shape).astype(np.int8)
            for p in program.inputs
        }
        await port.write(Space.INPUT, 0, input_stream(program, inputs))
        if interruption != "none":
            await port.write(Space.CONTROL, Control.RUN, np.array([1]))
            await port.cycles(int(random.integers(20, program.cycles)))
            assert known(dut.running, "running") == 1
            if interruption == "abort":
                await port.write(Space.CONTROL, Control.RUN, np.array([0]))
                await port.cycles(PIPELINE)
            else:
                await port.reset()
                for space, address, words in program_writes(program):
                    if space == Space.CONTROL:  # memories keep their contents, registers do not
                        await port.write(space, address, words)
            assert known(dut.running, "running") == 0
            await port.write(Space.INPUT, 0, input_stream(program, inputs))
        await port.cycles(PIPELINE)
        await port.write(Space.CONTROL, Control.RUN, np.array([1]))
        await port.cycles(program.cycles + PIPELINE)
        status, cycles = [(await port.read(Space.CONTROL, r, 1))[0] for r in (Control.RUN, Control.CYCLES)]
        assert (status, cycles) == (ENDED, program.cycles), (interruption, status, cycles)
        want = emulator.run(inputs)
        for name, values in want.outputs.items():
            pieces = [await port.read(Space.ACT, *span) for span in tensor_spans(program, name)]
            got = tensor_of(program, name, pieces)
            assert np.array_equal(got, values), f"{name} after {interruption}"
