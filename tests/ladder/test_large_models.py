"""The two large networks of MLPerf Tiny on `virtual`, the preset without limits: golden = emulator, every tensor."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from onnxhw import fixed, golden
from onnxhw.compiler import compile_graph
from onnxhw.emu import Emulator
from onnxhw.golden import host
from onnxhw.ir.graph import Graph
from onnxhw.partition import load
from onnxhw.presets import PRESETS
from onnxhw.program.model import DeviceProgram
from onnxhw.program.result import Result

CONFIG = PRESETS["virtual"]
Feed = dict[str, np.ndarray]


def visual_wake_words(models: Path, data: Path) -> tuple[Graph, list[Feed]]:
    """The model and its two samples: grey images as three equal channels of 0..1."""
    images = np.load(data / "vww_2samples_grey_u8.npz")["x"].astype(np.float32) / np.float32(255)
    graph = load(models / "vww_mobilenetv1_025_96_int8_qdq.onnx")
    return graph, [{graph.inputs[0].name: np.stack([image] * 3)[None]} for image in images]


def anomaly_detection(models: Path) -> Graph:
    return load(models / "ad_autoencoder_int8_qdq.onnx")


def random_feeds(graph: Graph, count: int) -> Iterator[Feed]:
    """Every int8 value of the input, one in eight at an end of the range."""
    (port,) = graph.inputs
    grid, random = graph.tensors[port.tensor], np.random.default_rng(5)
    for _ in range(count):
        q = random.integers(-128, 128, port.shape)
        q = np.where(random.random(port.shape) < 0.125, random.choice([-128, 127], port.shape), q)
        yield {port.name: fixed.dequantize(q, np.float32(grid.scale), grid.zero_point)}


def assert_equal(program: DeviceProgram, expected: Feed, result: Result) -> None:
    """Every tensor and output of a traced run, and its cycles."""
    assert set(result.tensors) == set(program.tensors)
    for name, values in (result.tensors | result.outputs).items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)
    assert result.cycles == program.cycles


def emulate(graph: Graph, feeds: list[Feed]) -> set[bytes]:
    """Compare every inference; the different outputs there were."""
    program = compile_graph(graph, CONFIG)
    emulator, seen = Emulator(program), set()
    for feed in feeds:
        inputs = host.prepare(graph, feed)
        expected = golden.run(graph, inputs)
        result = emulator.run(inputs, trace=True)
        assert_equal(program, expected, result)
        seen.add(b"".join(values.tobytes() for values in result.outputs.values()))
    return seen


@pytest.mark.slow
def test_visual_wake_words(reference_models: Path, reference_data: Path) -> None:
    graph, samples = visual_wake_words(reference_models, reference_data)
    assert len(emulate(graph, [*samples, *random_feeds(graph, 2)])) >= 2


@pytest.mark.slow
def test_anomaly_detection(reference_models: Path) -> None:
    graph = anomaly_detection(reference_models)
    assert len(emulate(graph, list(random_feeds(graph, 10)))) == 10
