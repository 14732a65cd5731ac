"""A linked program with a state for the smallest core with external memory, and what its runs must give."""

from functools import cache

import numpy as np
from linked_program import LINKED
from streaming_networks import cell

from onnxhw.driver.framing import FrameReader
from onnxhw.golden import StatefulRuns
from onnxhw.ir.graph import Array8
from onnxhw.isa.link import Command
from onnxhw.program import DeviceProgram
from onnxhw.segments import PartCycles, link, make_plan

Tensors = dict[str, Array8]


@cache
def program() -> DeviceProgram:
    """A recurrent cell; its state is copied at the end of a run."""
    graph, states = cell(4, 6)
    return link(graph, make_plan(graph, LINKED, PartCycles(LINKED)), LINKED, states=states)


def frame(seed: int) -> Tensors:
    """Random values of its input."""
    return {"x": np.random.default_rng(seed).integers(-128, 128, (1, 4, 6, 6)).astype(np.int8)}


def expected(*seeds: int) -> list[Tensors]:
    """What runs with these frames give, the first of which finds the initial state."""
    runs, found = StatefulRuns(*cell(4, 6)), []
    for seed in seeds:
        tensors = runs.run(frame(seed))
        found.append({port.tensor: tensors[port.tensor] for port in program().outputs} | {"h": runs.values["h"]})
    return found


def are_right(outputs: list[Tensors], *seeds: int) -> bool:
    """Whether the last of these runs have given these outputs."""
    wanted = expected(*seeds)[len(seeds) - len(outputs) :]
    return all(np.array_equal(values, one[name])
               for made, one in zip(outputs, wanted, strict=True) for name, values in made.items())  # fmt: skip


class LostAnswers:
    """Loses `count` answers of a device, those of number `first` and behind it, and counts RUN frames sent."""

    def __init__(self, first: int, count: int) -> None:
        self.lost, self.answers, self.runs = range(first, first + count), 0, 0
        self._reader = FrameReader()

    def there(self, data: bytes) -> bytes:
        """What the host sends."""
        self.runs += sum(each.header.kind & 15 == Command.RUN for each in self._reader.feed(data))
        return data

    def back(self, data: bytes) -> bytes:
        """What the device sends: an answer ends with a zero byte."""
        kept = bytearray()
        for byte in data:
            if self.answers not in self.lost:
                kept.append(byte)
            self.answers += byte == 0
        return bytes(kept)
