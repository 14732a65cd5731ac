"""The link's speed: payload per second of line time for large tensors, and the host's own time for small ones.

python bench/link.py            against the model of the device, at several speeds
python bench/link.py --pins     through the serial pins of the simulated gateware
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from serial_lines import PinnedLine

from onnxhw.config import HwConfig
from onnxhw.driver.client import Client
from onnxhw.driver.device_model import DeviceModel
from onnxhw.driver.emulated_core import EmulatedCore
from onnxhw.driver.transport import ByteLine, SimulationTransport
from onnxhw.isa.link import Info
from onnxhw.isa.memory import Space
from onnxhw.presets import preset

RATES = (1_000_000, 3_000_000)
CLOCK_HZ = 100_000_000
WORDS = 4096


def measure(line: ByteLine, baud: int) -> Iterator[tuple[str, float, float]]:
    """Direction, payload bytes per byte time of the line, processor seconds per 3,072 bytes (simulation included)."""
    client = Client(SimulationTransport(line, baud))
    client.head()
    words = np.random.default_rng(0).integers(0, 1 << 32, WORDS, dtype=np.uint32)
    for name in ("write", "read"):
        start, clock = line.seconds(), time.process_time()
        if name == "write":
            client.write(Space.ACT, 0, words)
        else:
            assert np.array_equal(client.read(Space.ACT, 0, WORDS), words)
        spent = (time.process_time() - clock) * 3072 / (4 * WORDS)
        yield name, 4 * WORDS / ((line.seconds() - start) * baud / 10), spent


def through_pins(config: HwConfig, baud: int) -> Iterator[tuple[str, float, float]]:
    """The same through the gateware's serial pins."""
    from onnxhw.engines.cxxrtl.rtl_device import RtlDevice as Gateware
    from onnxhw.engines.cxxrtl.rtl_device import device_libraries

    libraries = device_libraries(config, clock_hz=CLOCK_HZ, baud=baud)
    with Gateware(libraries, clock_hz=CLOCK_HZ, baud=baud) as gateware:
        yield from measure(PinnedLine(gateware, CLOCK_HZ), baud)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pins", action="store_true")
    arguments = parser.parse_args()
    config = preset("mini")
    for baud in RATES:
        if arguments.pins:
            found = through_pins(config, baud)
        else:
            info = Info.of(config, clock_hz=CLOCK_HZ, baud=baud)
            found = measure(DeviceModel(info, EmulatedCore(config)), baud)
        for name, rate, spent in found:
            host = f"{1e3 * spent:.2f} ms of processor time per 3,072 bytes"
            print(f"{baud:>9,} baud  {name:5}  {100 * rate:.1f} % of the line rate  {host}")


if __name__ == "__main__":
    main()
