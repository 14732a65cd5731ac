"""What the link's tests share on the host's side: a core made of memory, and a line that can be tampered with."""

import numpy as np

from onnxhw.config import HwConfig
from onnxhw.driver.device_model import DeviceModel
from onnxhw.ir.graph import Port
from onnxhw.isa import Load
from onnxhw.isa.link import Info
from onnxhw.isa.memory import ENDED, RUNNING, Control, Space
from onnxhw.program import DeviceProgram, Entry, Place

BAUD = 1_000_000
CONFIG = HwConfig("unit", rows=4, cols=3, word=6, lanes=3, act_depth=64)
OTHER = HwConfig("other", rows=4, cols=4, word=6, lanes=3, act_depth=64)


class MemoryPort:
    """A `CoreAccess` that remembers words; a run ends at once, with `cycles`, unless `lasting`.

    Inputs are complete when word `input_words` - 1 of their stream is written.
    """

    def __init__(self, cycles: int = 100, input_words: int = 0) -> None:
        self.input_words, self.input_over = input_words, True
        self.memory: dict[tuple[int, int], int] = {}
        self.log: list[tuple[int, int, int]] = []
        self.cycles, self.runs, self.lasting = cycles, 0, False

    def write(self, space, address, words, step=1):
        words = [int(word) for word in words]
        self.log.append((space, address, len(words)))
        if (space, address) == (Space.CONTROL, Control.RUN):
            if words[0] & 1:
                self.runs += 1
            self.memory[0, 0] = RUNNING if self.lasting and words[0] & 1 else ENDED
            self.memory[0, Control.CYCLES] = self.cycles
            return
        if space == Space.INPUT:
            self.input_over = address + len(words) >= self.input_words or (self.input_over and address > 0)
        self.memory.update({(space, address + at * step): word for at, word in enumerate(words)})

    def read(self, space, address, count, step=1):
        return [self.memory.get((space, address + at * step), 0) for at in range(count)]

    def words(self, space, address, count):
        return self.read(space, address, count)


class Line:
    """A `ByteLine` to a device model; `there` and `back` may change what travels."""

    def __init__(self, device) -> None:
        self.device = device
        self.there = self.back = lambda data: data

    def exchange(self, data):
        return self.back(self.device.exchange(self.there(bytes(data))))

    def seconds(self):
        return self.device.seconds()


def model(port, config=CONFIG, baud=BAUD):
    return DeviceModel(Info.of(config, clock_hz=1_000_000, baud=baud), port)


def program():
    """No meaning: every memory has contents; the input has pitch 7 and starts at lane 2."""
    rng = np.random.default_rng(1)
    x, y = Place(10, 40, 7, (1, 5, 4, 6), lane=2), Place(200, 30, 5, (1, 9, 3, 5))
    return DeviceProgram(
        config=CONFIG, model="none", code={"load": [Load(base=5, tiles=2)] * 3, "array": [], "vector": []},
        weights=rng.integers(0, 256, (30, 3)).astype(np.uint8), params=np.array([[1 << 63 | 5, 7, 9]], np.uint64),
        tables=np.arange(-128, 128, dtype=np.int8).reshape(1, 256),
        tensors={"x": Entry("x", x, 1.0, 0), "y": Entry("y", y, 1.0, 0)},
        inputs=[Port("input", (1, 5, 4, 6), "int8", "x")], outputs=[Port("output", (1, 9, 3, 5), "int8", "y")],
        layers=[], cycles=100, macs=0, input_free=(7, 9),
    )  # fmt: skip
