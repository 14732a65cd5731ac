"""The MLPerf Tiny reference models through the compiler: equal on every tensor, in cycles that are pinned."""

from pathlib import Path

import numpy as np
import pytest

from onnxhw import emu, golden
from onnxhw.compiler import compile_graph
from onnxhw.config import HwConfig
from onnxhw.errors import DoesNotFitError
from onnxhw.ir.graph import Graph
from onnxhw.partition import load
from onnxhw.presets import preset


def equal(graph: Graph, config: HwConfig) -> int:
    """Compile, run one random inference, compare every tensor; the predicted cycles."""
    program = compile_graph(graph, config)
    random = np.random.default_rng(1)
    values = {
        port.tensor: random.integers(-128, 128, graph.tensors[port.tensor].shape).astype(np.int8)
        for port in graph.inputs
    }
    wanted = golden.run(graph, values)
    for name, found in emu.run(program, values, trace=True).tensors.items():
        np.testing.assert_array_equal(found, wanted[name], err_msg=name)
    return program.cycles


@pytest.mark.parametrize(
    ("model", "config", "cycles"),
    [
        ("ic_resnet8_int8_qdq", preset("ulx3s-85f"), 49_613),
        ("kws_dscnn_int8_qdq", preset("ulx3s-85f"), 9_937),
        ("ad_autoencoder_int8_qdq", preset("virtual"), 1_628),
        ("ad_autoencoder_int8_qdq", preset("ulx3s-85f-dense"), 1_445),
        ("vww_mobilenetv1_025_96_int8_qdq", preset("ulx3s-85f"), 20_170),
        ("ic_resnet8_int8_qdq", preset("ulx3s-45f"), 101_529),
        ("kws_dscnn_int8_qdq", preset("ulx3s-45f"), 26_774),
        ("kws_dscnn_int8_qdq", preset("ulx3s-25f"), 53_167),
        ("kws_dscnn_int8_qdq", preset("tang-20k"), 224_884),
    ],
)
def test_reference_models(model: str, config: HwConfig, cycles: int, reference_models: Path) -> None:
    graph = load(reference_models / f"{model}.onnx")
    assert equal(graph, config) == cycles


@pytest.mark.parametrize(
    ("model", "name", "what"),
    [
        ("ad_autoencoder_int8_qdq", "ulx3s-85f", r"E5102 .*needs \d+ weight words of 256 bytes, ulx3s-85f has 512;"),
        ("vww_mobilenetv1_025_96_int8_qdq", "ulx3s-45f", r"E5101 .*need \d+ words of 16 bytes at once, .* has 4096;"),
    ],
)
def test_what_is_too_large_says_by_how_much(model: str, name: str, what: str, reference_models: Path) -> None:
    config = preset(name)
    with pytest.raises(DoesNotFitError, match=what):
        compile_graph(load(reference_models / f"{model}.onnx"), config)


def test_the_same_model_gives_the_same_program(reference_models: Path) -> None:
    path = reference_models / "kws_dscnn_int8_qdq.onnx"
    one, two = (compile_graph(load(source), preset("ulx3s-85f")) for source in (path, path.read_bytes()))
    assert one.code == two.code
    assert one.tensors == two.tensors
    np.testing.assert_array_equal(one.weights, two.weights)
