"""What the tests of operators share: one check for golden = onnxruntime = emulator."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onnxhw import emu, golden
from onnxhw.compiler import compile_graph
from onnxhw.ir.graph import Graph
from onnxhw.presets import preset

MINI = dataclasses.replace(preset("mini"), tables=8, vector_ucode=4096, array_ucode=4096)
"""The smallest preset, with room for more tables and instructions than it has."""
Check = Callable[[Any], Graph]


def emulated(graph: Graph, feeds: dict[str, Any]) -> None:
    """Compiled for a small accelerator, the emulator gives the golden model's integers, on every tensor."""
    values = golden.host.prepare(graph, feeds)
    wanted = golden.run(graph, values)
    for name, found in emu.run(compile_graph(graph, MINI), values, trace=True).tensors.items():
        np.testing.assert_array_equal(found, wanted[name], err_msg=name)


@pytest.fixture
def check() -> Check:
    """Golden equals onnxruntime on every element, and the emulator equals golden; gives the graph."""

    def run(model: Any) -> Graph:
        seen: dict[str, list[Any]] = {}
        for seed in range(3):
            feeds = model.feeds(seed)
            ours, theirs = model.golden(feeds), model.onnxruntime(feeds)
            for name, wanted in theirs.items():
                assert ours[name].dtype == wanted.dtype
                assert ours[name].shape == wanted.shape
                np.testing.assert_array_equal(ours[name], wanted)
                seen.setdefault(name, []).append(wanted)
        for name, values in seen.items():
            assert len(np.unique(values)) > 1, f"{name} is constant: these inputs show nothing"
        graph: Graph = model.load()
        emulated(graph, model.feeds(2))
        return graph

    return run


@pytest.fixture
def emulate() -> Callable[[Graph, dict[str, Any]], None]:
    """`emulated`."""
    return emulated
