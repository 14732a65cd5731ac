"""A linked program for the smallest core with external memory: segments, moves of everything, short rings."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from heuristics import Net

from onnxhw import golden
from onnxhw.config import HwConfig
from onnxhw.external import ULX3S
from onnxhw.ir.graph import Array8, Graph
from onnxhw.program import DeviceProgram
from onnxhw.segments import PartCycles, link, make_plan

BAUD, CLOCK = 1_000_000, 8_000_000
MEMORY = replace(ULX3S, rows=128, columns=32, refresh=2000, power_up=50)
"""Its slots are slower than the line, so that the host's words wait for them during a run."""
LINKED = HwConfig(
    "linked", rows=4, cols=4, word=4, lanes=2, act_banks=2, act_depth=64, weight_depth=64, acc_depth=16, param_depth=32,
    tables=1, load_ucode=24, array_ucode=48, vector_ucode=56, move_ucode=512, external=MEMORY,
)  # fmt: skip
"""512 bytes of activations, 256 of weights."""
DEEP = 4, 3, 64, "early"
"""Channels, size and depth of a network that runs for longer than its input travels and waits for slots, and what is
added to its result, which would hardly depend on the input: the first convolution's."""
LATE = 4, 3, 64, "late"
"""The same with the input itself, which is read once more."""


@cache
def graph(channels: int = 4, size: int = 9, depth: int = 3, added: str = "") -> Graph:
    """Three convolutions of 3 x 3, or more."""
    net, y = Net(channels, size), "x"
    sources = {"late": y}
    for _ in range(depth):
        y = net.conv(y, channels)
        sources.setdefault("early", y)
    y = net.add(y, sources[added]) if added else y
    return net.graph("chain", y)


@cache
def program(channels: int = 4, size: int = 9, depth: int = 3, added: str = "") -> DeviceProgram:
    """It, linked."""
    made = graph(channels, size, depth, added)
    return link(made, make_plan(made, LINKED, PartCycles(LINKED)), LINKED)


def sample(seed: int, channels: int = 4, size: int = 9, depth: int = 3, added: str = "") -> dict[str, Array8]:
    """Random values of its inputs."""
    rng = np.random.default_rng(seed)
    ports = graph(channels, size, depth, added).inputs
    return {port.tensor: rng.integers(-128, 128, port.shape).astype(np.int8) for port in ports}


def is_right(outputs: dict[str, Array8], seed: int, *which: Any) -> bool:
    """Whether these are the golden model's for that sample."""
    wanted = golden.run(graph(*which), sample(seed, *which))
    return all(np.array_equal(values, wanted[name]) for name, values in outputs.items())
