"""What an inference costs the host: quantize, frame, unframe, dequantize.

    python bench/hostcost.py [MODEL.onnx] [--preset ulx3s-85f] [--count 100] [--json]
    python bench/hostcost.py --rates       the host instead of the device, against the constants of `compiler.cost`

Runs a compiled model (by default the image classification network of `onnxhw bench`) through `onnxhw.Device` and the
whole driver, against a device in the process that computes nothing. Its time is subtracted, so what remains is the
host's own: CPU milliseconds per inference, by part. A link adds its bytes' time on the line, a core its cycles.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np

from onnxhw import compiler
from onnxhw.bench.topologies import TOPOLOGIES
from onnxhw.driver.artifact import samples, stacked
from onnxhw.driver.client import Client
from onnxhw.driver.device import Device
from onnxhw.driver.device_model import DeviceModel
from onnxhw.driver.transport import SimulationTransport
from onnxhw.golden import host
from onnxhw.isa.input_port import stream_words
from onnxhw.isa.link import Info
from onnxhw.isa.memory import ENDED, Control, Space
from onnxhw.presets import preset
from onnxhw.program import DeviceProgram
from onnxhw.program.input_regions import input_regions


class IdleCore:
    """The host port of a core whose every run ends at once, in the right number of cycles.

    `input_over`: the last word of the inputs has come.
    """

    def __init__(self, program: DeviceProgram) -> None:
        config = program.config
        self.control, self.act = np.zeros(64, np.uint32), np.zeros(config.act_words * 64, np.uint32)
        self.control[Control.RUN], self.control[Control.CYCLES] = ENDED, program.cycles
        self.words, self.input_over = stream_words(input_regions(program)), True

    def write(self, space: int, address: int, words: object, step: int = 1) -> None:
        """Activations are kept, inputs are counted, everything else is dropped."""
        values = np.asarray(words)
        if space == Space.INPUT:
            self.input_over = address + len(values) >= self.words
        if space == Space.ACT:
            self.act[address : address + len(values) * step : step] = values

    def read(self, space: int, address: int, count: int, step: int = 1) -> object:
        """Words of CONTROL or ACT."""
        return (self.control if space == Space.CONTROL else self.act)[address : address + count * step : step]


class Timed:
    """A `ByteLine` that counts the CPU time spent in it, and the bytes."""

    def __init__(self, line: DeviceModel) -> None:
        self.line, self.spent, self.sent, self.received = line, 0.0, 0, 0
        self.seconds = line.seconds

    def exchange(self, data: bytes) -> bytes:
        """See `ByteLine.exchange`."""
        start = time.thread_time()
        found = self.line.exchange(data)
        self.spent += time.thread_time() - start
        self.sent, self.received = self.sent + len(data), self.received + len(found)
        return found


def cost(call: Callable[[], object], count: int, subtract: Callable[[], float] = lambda: 0.0) -> tuple[float, float]:
    """CPU milliseconds of a call: the median of `count`, and the least; other work on the machine makes it more.

    `subtract` tells the seconds so far that are not the host's.
    """
    call()
    times = []
    for _ in range(count):
        start, other = time.thread_time(), subtract()
        call()
        times.append(time.thread_time() - start - (subtract() - other))
    return statistics.median(times) * 1e3, min(times) * 1e3


def measure(program: DeviceProgram, count: int) -> dict[str, float]:
    """CPU milliseconds per inference by part, and bytes on the line."""
    line = Timed(DeviceModel(Info.of(program.config, clock_hz=50_000_000, baud=3_000_000), IdleCore(program)))
    device = Device(Client(SimulationTransport(line, 3_000_000)), "hostcost")
    device.load(program, again=True)
    random = np.random.default_rng(0)
    feeds = {port.name: random.random(port.shape).astype(port.dtype) for port in program.inputs}
    graph = device._ready(None)
    tensors = host.prepare(graph, feeds)
    (one,) = samples(tensors)
    outputs = stacked([device.run_int8(one)])
    found = {
        "quantize": cost(lambda: host.prepare(graph, feeds), count)[0],
        "dequantize": cost(lambda: host.finish(graph, outputs), count)[0],
    }
    found["total"], found["least"] = cost(lambda: device.run(feeds), count, lambda: line.spent)
    found["link"] = found["total"] - found["quantize"] - found["dequantize"]
    line.sent = line.received = 0
    device.run(feeds)
    return {**found, "bytes_sent": line.sent, "bytes_received": line.received}


def rates() -> None:
    """Milliseconds of golden model and onnxruntime on one core for the MLPerf Tiny networks, and as estimated."""
    import os

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import onnxruntime

    from onnxhw import golden
    from onnxhw.bench.measure import model
    from onnxhw.compiler.cost import golden_ms, of_graph
    from onnxhw.program.traffic import Rates, Traffic

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    random = np.random.default_rng(0)
    for name in TOPOLOGIES:
        entry = model(name)
        graph = entry.graph
        inputs = {port.tensor: random.integers(-128, 128, graph.tensors[port.tensor].shape).astype(np.int8)
                  for port in graph.inputs}  # fmt: skip
        source = entry.source if isinstance(entry.source, bytes) else str(entry.source)
        session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        feeds = {port.name: random.random(port.shape).astype(port.dtype) for port in graph.inputs}
        ours = cost(lambda: golden.run(graph, inputs), 20)[1]  # noqa: B023
        theirs = cost(lambda: session.run(None, feeds), 20)[1]  # noqa: B023
        estimated = of_graph(graph, 0, Traffic(0, 0, 0, 0), 0, Rates(1, 1)).onnxruntime
        print(f"{entry.name}: golden model {ours:.2f} ms, estimated {golden_ms(graph):.2f}; "
              f"onnxruntime {theirs:.3f} ms, estimated {estimated:.3f}")  # fmt: skip


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?")
    parser.add_argument("--preset", default="ulx3s-85f")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rates", action="store_true", help="what the host takes for the networks instead")
    asked = parser.parse_args()
    if asked.rates:
        rates()
        return
    model = asked.model or TOPOLOGIES["ic"]().SerializeToString()
    program = compiler.compile(model, preset(asked.preset)).only()
    found = {"model": program.model, "preset": asked.preset, **measure(program, asked.count)}
    if asked.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{program.model} on {asked.preset}: {found['total']:.2f} ms of the host per inference "
          f"(at least {found['least']:.2f})")  # fmt: skip
    print(f"  quantize {found['quantize']:.3f}, link (pack, frame, unframe, unpack) {found['link']:.3f}, "
          f"dequantize {found['dequantize']:.3f}")  # fmt: skip
    print(f"  {found['bytes_sent']:,.0f} bytes sent, {found['bytes_received']:,.0f} received")


if __name__ == "__main__":
    main()
