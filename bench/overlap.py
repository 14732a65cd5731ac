"""Inferences per second with and without transfers during runs, through the serial pins of the simulated gateware.

    python bench/overlap.py [MODEL.onnx | ic | kws | vww] [--preset mini] [--clock 50e6] [--baud 3000000] [--count 8]

Times are of the simulated board: cycles of its clock. Every result is compared with the golden model's. "apart" runs
one inference after the other and waits for each; "together" is `Client.run_all`. The bound is the slower of the line's
busier direction and the core.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from faults import NETWORK, PinnedLine

from onnxhw import golden
from onnxhw.bench.topologies import TOPOLOGIES
from onnxhw.compiler import compile as compile_model
from onnxhw.config import preset
from onnxhw.engines.cxxrtl.device_model import DeviceModel as Gateware
from onnxhw.engines.cxxrtl.device_model import device_libraries
from onnxhw.frontend import load
from onnxhw.host.client import Client
from onnxhw.host.transport import SimulationTransport


def measure(model: str, preset_name: str, clock_hz: int, baud: int, count: int) -> dict[str, object]:
    """The record that is printed; stops with an error if a result differs from the golden model's."""
    source = TOPOLOGIES[model]().SerializeToString() if model in TOPOLOGIES else Path(model)
    graph, config = load(source), preset(preset_name)
    program = compile_model(graph, config)
    rng = np.random.default_rng(0)
    tensors = {port.tensor: program.tensors[port.tensor].shape for port in program.inputs}
    batch = [
        {name: rng.integers(-128, 128, shape).astype(np.int8) for name, shape in tensors.items()} for _ in range(count)
    ]
    wanted = [golden.run(graph, inputs) for inputs in batch]
    libraries = device_libraries(config, clock_hz=clock_hz, baud=baud)
    with Gateware(libraries, clock_hz=clock_hz, baud=baud) as gateware:
        client = Client(SimulationTransport(PinnedLine(gateware, clock_hz), baud))
        client.load(program)
        client.run(batch[0])
        found, spent, sent, received = {}, {}, client.counters.sent, client.counters.received
        for way in ("apart", "together"):
            start = gateware.cycles
            results = client.run_all(batch) if way == "together" else [client.run(inputs) for inputs in batch]
            spent[way] = (gateware.cycles - start) / clock_hz / count
            found[way] = [result.outputs for result in results]
        for outputs in found.values():
            for got, right in zip(outputs, wanted, strict=True):
                if any(not np.array_equal(got[name], right[name]) for name in got):
                    sys.exit("a result differs from the golden model")
        line = 10 * max(client.counters.sent - sent, client.counters.received - received) / (2 * count) / baud
        core = program.cycles / clock_hz
        return {
            "model": program.model,
            "preset": preset_name,
            "clock_mhz": clock_hz / 1e6,
            "baud": baud,
            "images": count,
            "cycles": program.cycles,
            "input_free": program.input_free,
            "line_ms": round(1e3 * line, 3),
            "core_ms": round(1e3 * core, 3),
            "bound": "link" if line > core else "core",
            "bound_per_second": round(1 / max(line, core), 1),
            "apart_per_second": round(1 / spent["apart"], 1),
            "together_per_second": round(1 / spent["together"], 1),
            "retries": client.counters.retries,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default=str(NETWORK))
    parser.add_argument("--preset", default="mini")
    parser.add_argument("--clock", type=float, default=50e6)
    parser.add_argument("--baud", type=int, default=3_000_000)
    parser.add_argument("--count", type=int, default=8)
    asked = parser.parse_args()
    print(json.dumps(measure(asked.model, asked.preset, round(asked.clock), asked.baud, asked.count), indent=2))


if __name__ == "__main__":
    main()
