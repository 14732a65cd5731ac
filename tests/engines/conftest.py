"""The small core on which the engines are compared, and a program for it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from onnxhw.compiler import compile_graph
from onnxhw.config import HwConfig
from onnxhw.ir.graph import Graph
from onnxhw.partition import load
from onnxhw.program import DeviceProgram

Inputs = dict[str, np.ndarray]


@pytest.fixture(scope="session")
def small() -> HwConfig:
    return HwConfig("engines", rows=4, cols=4, word=4, lanes=2, act_depth=1024, weight_depth=4096, acc_bits=24)


@pytest.fixture(scope="session")
def graph(digits: Path) -> Graph:
    return load(digits)


@pytest.fixture(scope="session")
def program(graph: Graph, small: HwConfig) -> DeviceProgram:
    return compile_graph(graph, small)


@pytest.fixture
def inputs(program: DeviceProgram) -> Callable[[int], Inputs]:
    def make(seed: int) -> Inputs:
        random = np.random.default_rng(seed)
        return {
            port.tensor: random.integers(-128, 128, program.tensors[port.tensor].shape).astype(np.int8)
            for port in program.inputs
        }

    return make
