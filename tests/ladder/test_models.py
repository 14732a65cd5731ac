"""The exactness ladder on whole models: golden = emulator = CXXRTL, every tensor, every cycle."""

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from onnxhw import golden
from onnxhw.compiler import compile_graph, place_and_schedule
from onnxhw.config import HwConfig
from onnxhw.emu import Emulator
from onnxhw.engines.cxxrtl.engine import CxxrtlEngine
from onnxhw.golden import host
from onnxhw.ir.graph import Graph
from onnxhw.partition import load
from onnxhw.presets import PRESETS

pytestmark = [pytest.mark.rtl, pytest.mark.usefixtures("compiler")]

Feeds = Iterator[dict[str, np.ndarray]]
PLAIN = dataclasses.replace(
    PRESETS["ulx3s-85f"], name="plain", cols=8, lanes=8, load_rows=2, weight_depth=6144, inner_product="plain",
    param_depth=512, requant_dsps=3, depthwise=128,
)  # fmt: skip


def climb(graph: Graph, config: HwConfig, feeds: Feeds, rtl: int) -> tuple[int, int]:
    """Compare every inference on the emulator and the first `rtl` also in RTL; the numbers of each."""
    program = compile_graph(graph, config)
    emulator = Emulator(program)
    emulated = simulated = 0
    with CxxrtlEngine(config) as engine:
        for feed in feeds:
            inputs = host.prepare(graph, feed)
            expected = golden.run(graph, inputs)
            results = [emulator.run(inputs, trace=True)]
            if simulated < rtl:
                results.append(engine.run(program, inputs, trace=True))
                simulated += 1
            for result in results:
                assert set(result.tensors) == set(program.tensors)
                for name, values in result.tensors.items():
                    assert np.array_equal(values, expected[name]), name
                for name, values in result.outputs.items():
                    assert np.array_equal(values, expected[name]), name
                assert result.cycles == program.cycles
            emulated += 1
    return emulated, simulated


def test_digits_all_held_out_images(digits: Path, digits_test: Path) -> None:
    graph = load(digits)
    images = np.load(digits_test)["input"]
    feeds = ({graph.inputs[0].name: image[None]} for image in images)
    assert climb(graph, PRESETS["mini"], feeds, 60) == (360, 60)


def resnet8(models: Path, data: Path, count: int) -> tuple[Graph, Feeds]:
    """The model and its first images of CIFAR-10."""
    graph = load(models / "ic_resnet8_int8_qdq.onnx")
    images = np.load(data / "cifar10_test1000_jpeg_nhwc_u8.npz")
    key = next(name for name in images.files if images[name].ndim == 4)
    return graph, (
        {graph.inputs[0].name: image.transpose(2, 0, 1)[None].astype(np.float32)} for image in images[key][:count]
    )


def keywords(models: Path, data: Path, count: int) -> tuple[Graph, Feeds]:
    """The model and its first clips."""
    graph = load(models / "kws_dscnn_int8_qdq.onnx")
    clips = np.load(data / "kws01_mfcc_int8_nchw.npz")
    key = next(name for name in clips.files if clips[name].ndim == 4)
    scaled = (clips[key][:count].astype(np.float32) - 83) * np.float32(0.5847)
    return graph, ({graph.inputs[0].name: clip[None]} for clip in scaled)


def wake_words(models: Path, data: Path) -> tuple[Graph, Feeds]:
    """The model and its two samples: grey images as three equal channels of 0..1."""
    graph = load(models / "vww_mobilenetv1_025_96_int8_qdq.onnx")
    images = np.load(data / "vww_2samples_grey_u8.npz")["x"].astype(np.float32) / np.float32(255)
    return graph, ({graph.inputs[0].name: np.stack([image] * 3)[None]} for image in images)


@pytest.mark.slow
def test_resnet8_on_cifar(reference_models: Path, reference_data: Path) -> None:
    graph, feeds = resnet8(reference_models, reference_data, 20)
    assert climb(graph, PRESETS["ulx3s-85f"], feeds, 20) == (20, 20)


@pytest.mark.slow
def test_keyword_spotting(reference_models: Path, reference_data: Path) -> None:
    graph, feeds = keywords(reference_models, reference_data, 10)
    assert climb(graph, PRESETS["ulx3s-85f"], feeds, 10) == (10, 10)


@pytest.mark.slow
def test_keyword_spotting_on_a_small_board(reference_models: Path, reference_data: Path) -> None:
    """Array and requantizer share the multiplier cells, and banks are three."""
    graph, feeds = keywords(reference_models, reference_data, 10)
    assert climb(graph, PRESETS["ulx3s-25f"], feeds, 10) == (10, 10)


@pytest.mark.slow
def test_visual_wake_words(reference_models: Path, reference_data: Path) -> None:
    graph, samples = wake_words(reference_models, reference_data)
    port, rng = graph.inputs[0], np.random.default_rng(5)
    noise = [{port.name: rng.random(port.shape, np.float32)} for _ in range(8)]
    assert climb(graph, PRESETS["ulx3s-85f"], itertools.chain(samples, noise), 10) == (10, 10)


@pytest.mark.slow
def test_plain_array_with_depthwise_unit(reference_models: Path, reference_data: Path) -> None:
    """It runs three of the networks, its array one product per multiplier."""
    for (graph, feeds), count in (
        (resnet8(reference_models, reference_data, 2), 2),
        (keywords(reference_models, reference_data, 10), 10),
        (wake_words(reference_models, reference_data), 2),
    ):
        assert climb(graph, PLAIN, feeds, count) == (count, count)


@pytest.mark.slow
def test_anomaly_detection_with_weights_in_lookup_tables(reference_models: Path) -> None:
    graph = load(reference_models / "ad_autoencoder_int8_qdq.onnx")
    port, rng = graph.inputs[0], np.random.default_rng(3)
    scale = np.float32(graph.tensors[port.tensor].scale)
    samples = (rng.integers(-128, 128, port.shape) * scale for _ in range(10))
    feeds = ({port.name: sample.astype(np.float32)} for sample in samples)
    assert climb(graph, PRESETS["ulx3s-85f-dense"], feeds, 10) == (10, 10)


@pytest.mark.slow
def test_anomaly_detection_in_three_programs(reference_models: Path) -> None:
    """On the bitstream of the other three: each program is fed what the one before gave, and every tensor compared."""
    config = PRESETS["ulx3s-85f"]
    placed = place_and_schedule(reference_models / "ad_autoencoder_int8_qdq.onnx", config)
    mixed, made = placed.model, placed.made
    graphs = [part.graph for part in mixed.hardware]
    assert len(graphs) == len(made.programs) == len(made.parts) == 3
    values = np.random.default_rng(3).integers(-128, 128, (10, *graphs[0].tensors[graphs[0].inputs[0].tensor].shape))
    flowing = list(values.astype(np.int8))
    for graph, program in zip(graphs, made.programs, strict=True):
        (source,), (sink,) = graph.inputs, graph.outputs
        emulator, compared = Emulator(program), 0
        with CxxrtlEngine(config) as engine:
            for at, value in enumerate(flowing):
                inputs = {source.tensor: value.reshape(graph.tensors[source.tensor].shape)}
                expected = golden.run(graph, inputs)
                for result in (emulator.run(inputs, trace=True), engine.run(program, inputs, trace=True)):
                    for name, found in result.tensors.items():
                        assert np.array_equal(found, expected[name]), name
                        compared += 1
                    assert result.cycles == program.cycles
                flowing[at] = expected[sink.tensor]
        assert compared == 20 * len(program.tensors) > 0
    whole = load(reference_models / "ad_autoencoder_int8_qdq.onnx")
    (port,) = whole.outputs
    for first, last in zip(values.astype(np.int8), flowing, strict=True):
        wanted = golden.run(whole, {whole.inputs[0].tensor: first})[port.tensor]
        assert np.array_equal(last.ravel(), wanted.ravel())
