"""A program run on a synthesized netlist of `onnxhw.rtl.core.Core`, through the host port, in Icarus Verilog.

Slow (about a thousand cycles per second for a small core): for the netlist rung of the exactness ladder.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
from netlist import Netlist, Simulation, Step

from onnxhw.build.tools import Tick
from onnxhw.isa.memory import Control, Space, host_stride, word_bytes
from onnxhw.isa.microcode import pack
from onnxhw.isa.units import Unit
from onnxhw.program.layout import Place, to_host
from onnxhw.program.model import DeviceProgram
from onnxhw.program.result import Result

Words = Iterator[tuple[Space, int, int, int]]
"""Host writes: space, host address, 32-bit word, byte enables."""
ALL = 0xF
MARGIN = 16
"""Cycles waited beyond the predicted ones before the counter is read."""


def memory_writes(program: DeviceProgram) -> Words:
    """The host writes that load a program: microcode, weights, parameters, tables, counts."""
    config = program.config
    for unit in Unit:
        words = pack(program.code.get(unit, ()))
        yield from ((unit.microcode, address, word, ALL) for address, word in enumerate(words))
    weights = to_host(program.weights, config.weight_word)
    yield from ((Space.WEIGHT, address, int(word), ALL) for address, word in enumerate(weights))
    params = to_host(program.params.astype("<u8").view(np.uint8), word_bytes(config, Space.PARAM))
    yield from ((Space.PARAM, address, int(word), ALL) for address, word in enumerate(params))
    tables = program.tables.reshape(-1).view(np.uint8)
    yield from ((Space.TABLE, address, int(word), ALL) for address, word in enumerate(tables))
    for unit in Unit:
        yield Space.CONTROL, int(unit.registers.count), len(program.code.get(unit, ())), ALL
    yield Space.CONTROL, int(Control.BUDGET), 0, ALL


def tensor_words(place: Place, values: npt.NDArray[np.int8], word: int) -> Words:
    """The host writes that put a tensor into activation memory, leaving the other lanes alone."""
    stride = host_stride(word)
    data = to_host(place.pack(values, word).reshape(-1, word), word).reshape(-1, stride)
    lanes = to_host(place.pack(np.full(place.shape, -1, np.int8), word).reshape(-1, word), word).reshape(-1, stride)
    for address, row, mask in zip(place.addresses(word).reshape(-1), data, lanes, strict=True):
        for i in range(stride):
            enables = sum(1 << byte for byte in range(4) if int(mask[i]) >> 8 * byte & 0xFF)
            if enables:
                yield Space.ACT, int(address) * stride + i, int(row[i]), enables


def tensor_reads(place: Place, word: int) -> list[int]:
    """Host addresses of a tensor's words in activation memory."""
    stride = host_stride(word)
    return [int(address) * stride + i for address in place.addresses(word).reshape(-1) for i in range(stride)]


def compile_core(netlist: Netlist, *, tick: Tick | None = None) -> Simulation:
    """A core's netlist made ready to run programs; compiling takes longer than running a small one."""
    return Simulation(netlist, when="host_rvalid", tick=tick)


def run_program(
    simulation: Simulation,
    program: DeviceProgram,
    inputs: Mapping[str, npt.NDArray[np.int8]],
    *,
    trace: bool = False,
    tick: Tick | None = None,
) -> Result:
    """One inference on the netlist of `compile_core`.

    With `trace`, tensors that live until the end of the run are returned, too.

    `AssertionError` if the run has not ended after the predicted cycles, or if a bit that the host reads is X: the
    result then depends on something that the device does not define.
    """
    assert {port.tensor for port in program.inputs} == {*inputs}
    word = program.config.word
    steps = [
        Step({"host_space": int(space), "host_addr": address, "host_wdata": value, "host_wstrb": enables, "host_we": 1})
        for space, address, value, enables in _all_writes(program, inputs)
    ]
    steps.append(Step({}, 8))
    run = {
        "host_space": int(Space.CONTROL),
        "host_addr": int(Control.RUN),
        "host_wdata": 1,
        "host_wstrb": ALL,
        "host_we": 1,
    }
    steps += [Step(run), Step({}, program.cycles + MARGIN)]
    last = len(program.code.get(Unit.VECTOR, ()))
    shown = {port.tensor for port in program.outputs}
    if trace:
        shown |= {name for name, entry in program.tensors.items() if entry.last >= last}
    reads = [(int(Space.CONTROL), int(Control.RUN)), (int(Space.CONTROL), int(Control.CYCLES))]
    for name in sorted(shown):
        reads += [(int(Space.ACT), address) for address in tensor_reads(program.tensors[name].place, word)]
    steps += [Step({"host_space": space, "host_addr": address, "host_re": 1}) for space, address in reads]
    steps.append(Step({}, 32))
    answers = [row["host_rdata"] for row in simulation.run(steps, tick=tick)]
    assert len(answers) == len(reads)
    unknown = next((read for read, value in zip(reads, answers, strict=True) if value is None), None)
    assert unknown is None, f"X at host address {unknown[1]} of {Space(unknown[0]).name}"
    values = [value for value in answers if value is not None]
    assert values[0] & 3 == 2, f"the run has not ended after {program.cycles} + {MARGIN} cycles (RUN reads {values[0]})"
    tensors, offset = {}, 2
    for name in sorted(shown):
        entry = program.tensors[name]
        count = len(tensor_reads(entry.place, word))
        image = np.array(values[offset : offset + count], np.uint32).astype("<u4").view(np.uint8)
        rows = image.reshape(-1, 4 * host_stride(word))[:, :word].copy()
        tensors[name] = entry.restore(entry.place.unpack(rows, word))
        offset += count
    outputs = {port.tensor: tensors[port.tensor] for port in program.outputs}
    return Result(outputs, tensors if trace else {}, values[1])


def _all_writes(program: DeviceProgram, inputs: Mapping[str, npt.NDArray[np.int8]]) -> Words:
    yield from memory_writes(program)
    for name, values in inputs.items():
        entry = program.tensors[name]
        yield from tensor_words(entry.place, entry.store(values), program.config.word)
