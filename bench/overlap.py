"""Inferences per second with and without transfers during runs.

    python bench/overlap.py [MODEL.onnx | ic | kws | vww | ad] [--preset mini] [--baud 3000000] [--count 8]
    python bench/overlap.py mobilenetv2 --preset ulx3s-85f+sdram     a network of bench/large.py
    python bench/overlap.py --pins         through the serial pins of the simulated gateware: to the cycle, and slow
    python bench/overlap.py --usb          a device with a USB link instead, behind a USB host at its D+ and D-

By default against the model of the device, in which a run takes its cycles and a byte its time on the line. Every
result is compared with the golden model's. "apart" runs one inference after the other and waits for each; "together" is
`Client.run_all`; "bytes_to_device" and "bytes_from_device" are those of one inference of these, all frames counted.
Through pins or USB "to_answer_ms" are the milliseconds from the last byte of an inference's input to the first and to
the last byte of its outputs, on an idle device (`answer_times`). The bound is the slower of the line's busier direction
and the core; over USB both directions share the line, 19 packets of 64 bytes in a millisecond. "predicted" is what
`compile` and `check` say beforehand (`onnxhw.program.throughput`). The clock is that for which `synth` builds the
preset on the ULX3S-85F, the network "ad" that of MLPerf Tiny where the preset has no external memory.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parent))
import large
from answer_times import TimedPins, TimedUsb, to_answer
from arguments import MOST_MHZ, number, whole
from faults import NETWORK
from serial_lines import PinnedLine
from usb_host.line import UsbLine

from onnxhw import golden
from onnxhw.bench.topologies import TOPOLOGIES
from onnxhw.board import find
from onnxhw.cli.common.interrupts import script_status
from onnxhw.compiler import compile_graph
from onnxhw.config import HwConfig
from onnxhw.driver.client import Client
from onnxhw.driver.device_model import DeviceModel
from onnxhw.driver.emulated_core import EmulatedCore, Words
from onnxhw.driver.transport import ByteLine, SimulationTransport
from onnxhw.ir.graph import Graph
from onnxhw.isa.link import USB_BAUD, Info
from onnxhw.isa.memory import RUNNING, Control, Space
from onnxhw.isa.timeline import timeline
from onnxhw.partition import load
from onnxhw.program import DeviceProgram
from onnxhw.program.input_regions import latency
from onnxhw.program.throughput import throughput_of
from onnxhw.program.traffic import Rates
from onnxhw.segments import PartCycles, link, make_plan


class TimedCore(EmulatedCore):
    """The emulated core, whose runs take their time on the line's clock, and let go of their inputs when they do."""

    def __init__(self, program: DeviceProgram, clock_hz: int) -> None:
        super().__init__(program.config)
        spans = timeline(program.config, program.code).spans
        free = [spans[unit][n - 1].done for unit, n in zip(("array", "vector"), program.input_free, strict=True) if n]
        cycles = latency(program) if program.in_segments else program.cycles
        before = cycles - program.cycles
        self.free_after = (max(free, default=program.cycles) + before) / clock_hz
        self.run = cycles / clock_hz
        self.now: Callable[[], float] = lambda: 0.0
        self.start = -self.run

    def write(self, space: int, address: int, words: npt.ArrayLike, step: int = 1) -> None:
        super().write(space, address, words, step)
        if (space, address) == (Space.CONTROL, Control.RUN) and np.asarray(words)[0] & 1:
            self.start = self.now()

    def read(self, space: int, address: int, count: int, step: int = 1) -> Words:
        found = super().read(space, address, count, step)
        since = self.now() - self.start
        if (space, address) == (Space.CONTROL, Control.RUN) and since < self.run:
            found[Control.RUN] = RUNNING
            if since < self.free_after:
                found[Control.ARRAY_DONE : Control.VECTOR_DONE + 1] = 0
        return found


@contextmanager
def modelled(program: DeviceProgram, clock_hz: int, baud: int) -> Iterator[ByteLine]:
    """The model of the device."""
    core = TimedCore(program, clock_hz)
    device = DeviceModel(Info.of(program.config, clock_hz=clock_hz, baud=baud), core)
    core.now = device.seconds
    yield device


@contextmanager
def pinned(config: HwConfig, clock_hz: int, baud: int) -> Iterator[ByteLine]:
    """The gateware, compiled."""
    from onnxhw.engines.cxxrtl.rtl_device import RtlDevice as Gateware
    from onnxhw.engines.cxxrtl.rtl_device import device_libraries

    with Gateware(device_libraries(config, clock_hz=clock_hz, baud=baud), clock_hz=clock_hz, baud=baud) as gateware:
        yield PinnedLine(gateware, clock_hz)


@contextmanager
def over_usb(config: HwConfig, clock_hz: int) -> Iterator[ByteLine]:
    """The gateware with a USB link, compiled, behind a USB host."""
    from usb_host.model import UsbModel, usb_libraries

    with UsbModel(usb_libraries(config, clock_hz=clock_hz), clock_hz=clock_hz) as gateware:
        yield UsbLine(gateware)


def line_to_device(program: DeviceProgram, clock_hz: int, baud: int, through: str) -> AbstractContextManager[ByteLine]:
    """A device behind one of `WAYS`."""
    if through == "usb":
        return over_usb(program.config, clock_hz)
    return pinned(program.config, clock_hz, baud) if through == "pins" else modelled(program, clock_hz, baud)


def compiled(model: str, config: HwConfig) -> tuple[Graph, DeviceProgram]:
    """A model, or a network of `large`, which is linked."""
    if config.external and (model in large.NETWORKS or model in large.networks.FULL):
        graph, cycles = large.graph_of(model), PartCycles(config)
        return graph, link(graph, make_plan(graph, config, cycles), config, cycles.schedules)
    graph = load(TOPOLOGIES[model]().SerializeToString() if model in TOPOLOGIES else Path(model))
    return graph, compile_graph(graph, config)


WAYS = ("model", "pins", "usb")
USB_BYTES = 19 * 64 * 1000
"""Bytes per second of USB at full speed, in both directions together."""


def measure(
    model: str, preset_name: str, clock_hz: int, baud: int, count: int, *, through: str
) -> dict[str, object]:
    """The record that is printed; stops with an error if a result differs from the golden model's."""
    graph, program = compiled(model, find(large.BOARD).configuration(preset_name, clock_hz))
    rng = np.random.default_rng(0)
    tensors = {port.tensor: program.tensors[port.tensor].shape for port in program.inputs}
    batch = [
        {name: rng.integers(-128, 128, shape).astype(np.int8) for name, shape in tensors.items()} for _ in range(count)
    ]
    wanted = [golden.run(graph, inputs) for inputs in batch]
    baud = USB_BAUD if through == "usb" else baud
    with line_to_device(program, clock_hz, baud, through) as line_to:
        client = Client(SimulationTransport(line_to, baud))
        client.load(program)
        client.run(batch[0])
        found, spent, sent, received = {}, {}, 0, 0
        for way in ("apart", "together"):  # the bytes are those of the second
            start, sent, received = line_to.seconds(), client.counters.sent, client.counters.received
            results = client.run_all(batch) if way == "together" else [client.run(inputs) for inputs in batch]
            spent[way] = (line_to.seconds() - start) / count
            found[way] = [result.outputs for result in results]
        sent, received = client.counters.sent - sent, client.counters.received - received
        waited = waits(client, line_to, batch[0], baud)
    for outputs in found.values():
        for got, right in zip(outputs, wanted, strict=True):
            if any(not np.array_equal(got[name], right[name]) for name in got):
                sys.exit("a result differs from the golden model")
    line = (sent + received) / count / USB_BYTES if through == "usb" else 10 * max(sent, received) / count / baud
    core = program.cycles / clock_hz
    return {
        "model": program.model,
        "preset": preset_name,
        "clock_mhz": clock_hz / 1e6,
        "baud": baud,
        "images": count,
        "cycles": program.cycles,
        "input_free": program.input_free,
        "through": through,
        "input_bytes": sum(int(np.prod(shape)) for shape in tensors.values()),
        "bytes_to_device": round(sent / count, 1),
        "bytes_from_device": round(received / count, 1),
        "line_ms": round(1e3 * line, 3),
        "core_ms": round(1e3 * core, 3),
        "latency_ms": round(1e3 * latency(program) / clock_hz, 3),
        "to_answer_ms": waited,
        "predicted": throughput_of([program], Rates(baud, clock_hz)).record(),
        "bound": "link" if line > core else "core",
        "bound_per_second": round(1 / max(line, core), 1),
        "apart_per_second": round(1 / spent["apart"], 1),
        "together_per_second": round(1 / spent["together"], 1),
        "retries": client.counters.retries,
    }


def waits(client: Client, line: ByteLine, inputs: dict[str, np.ndarray], baud: int) -> list[float] | None:
    """Milliseconds from the last byte of one inference's input to the first and the last byte of its outputs; None for
    a line that has no pins."""
    timed: TimedPins | TimedUsb
    if isinstance(line, PinnedLine):
        timed = TimedPins(line, baud)
    elif isinstance(line, UsbLine):
        timed = TimedUsb(line)
    else:
        return None
    client.link.transport = SimulationTransport(timed, baud)
    client.run(inputs)
    return [round(1e3 * seconds, 3) for seconds in to_answer(timed)]


def main() -> int:
    """Parse the arguments, print a record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default=str(NETWORK))
    parser.add_argument("--preset", default="mini")
    parser.add_argument("--clock", type=number(1, MOST_MHZ * 1e6), metavar="HZ",
                        help="default: as `synth` builds the preset for the ULX3S-85F")  # fmt: skip
    parser.add_argument("--baud", type=whole(300, 12_000_000), default=3_000_000)
    parser.add_argument("--count", type=whole(1), default=8, help="inferences")
    parser.add_argument("--pins", dest="through", action="store_const", const="pins", default="model")
    parser.add_argument("--usb", dest="through", action="store_const", const="usb")
    asked = parser.parse_args()
    board = find(large.BOARD)
    usual = board.core_hz_of(asked.preset, "usb" if asked.through == "usb" else "")
    clock_hz = round(asked.clock) if asked.clock else usual
    found = measure(asked.model, asked.preset, clock_hz, asked.baud, asked.count, through=asked.through)
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(script_status(main))
