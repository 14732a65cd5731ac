"""Models written by `QdqBuilder`: onnx accepts them, and they mean what was asked for."""

import numpy as np
import onnx
import pytest

from onnxhw import golden, partition
from onnxhw.bench.topologies import TOPOLOGIES
from onnxhw.qdq import Grid, QdqBuilder, quantize_weights

MACS = {"ic": 12_501_632, "kws": 2_656_768, "vww": 7_489_664, "ad": 264_192}


@pytest.mark.parametrize("span", [(0.0, 6.0), (-1.0, 1.0), (-3.0, -1.0), (2.0, 5.0), (0.0, 0.0)])
def test_a_grid_covers_its_range_and_holds_zero(span):
    grid = Grid.covering(*span)
    low, high = ((q - grid.zero_point) * float(grid.scale) for q in (-128, 127))
    step = float(grid.scale)
    assert low <= min(span[0], 0) + step
    assert high >= max(span[1], 0) - step
    assert -128 <= grid.zero_point <= 127


def test_weights_are_symmetric_per_channel():
    weights = np.array([[[[1.0]], [[-2.0]]], [[[0.0]], [[0.0]]], [[[0.1]], [[0.05]]]], np.float32)
    q, scales = quantize_weights(weights)
    assert q[:, :, 0, 0].tolist() == [[64, -127], [0, 0], [127, 64]]
    assert scales.tolist() == [np.float32(2 / 127), 1.0, np.float32(np.float32(0.1) / 127)]


def test_a_model_on_exact_grids_is_its_float_meaning():
    """Powers of two everywhere: weights and inputs are on their grids, and the output is one exact rounding."""
    random = np.random.default_rng(0)
    q = random.integers(-127, 128, (3, 2, 3, 3))
    q[:, 0, 0, 0] = 127
    weights = (q / 64).astype(np.float32)
    bias = (random.integers(-4096, 4096, 3) / 4096).astype(np.float32)
    x = (random.integers(-128, 128, (1, 2, 5, 5)) / 64).astype(np.float32)
    builder = QdqBuilder("small")
    value = builder.input("x", (1, 2, 5, 5), Grid.covering(-128 / 64, 127 / 64))
    value = builder.conv("c", value, weights, bias, Grid.covering(0, 255 / 16), pads=(0, 0, 1, 1), strides=(2, 2))
    assert value.shape == (1, 3, 2, 2)
    builder.output(value.name, "y", value.shape)
    graph = partition.load(builder.model().SerializeToString())
    y = golden.host.finish(graph, golden.run(graph, golden.host.prepare(graph, {"x": x})))["y"]
    padded = np.pad(x, ((0, 0), (0, 0), (0, 1), (0, 1))).astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    sums = np.einsum("nchwij,ocij->nohw", windows, weights.astype(np.float64)) + bias[:, None, None]
    assert np.array_equal(y, np.clip(np.rint(sums * 16), 0, 255) / 16)
    assert 0 < (y == 0).sum() < y.size


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_topologies_have_the_reference_shapes(name):
    graph = partition.load(TOPOLOGIES[name]().SerializeToString())
    assert graph.macs() == MACS[name]


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_topologies_are_the_same_for_everybody(name):
    assert TOPOLOGIES[name]().SerializeToString() == TOPOLOGIES[name]().SerializeToString()


def test_topologies_have_the_layers_of_the_reference_models(reference_models):
    files = {
        "ic": "ic_resnet8_int8_qdq", "kws": "kws_dscnn_int8_qdq", "vww": "vww_mobilenetv1_025_96_int8_qdq",
        "ad": "ad_autoencoder_int8_qdq",
    }  # fmt: skip
    for name, file in files.items():
        reference = onnx.load(reference_models / f"{file}.onnx")
        assert sorted(layers(TOPOLOGIES[name]())) == sorted(layers(reference))


def layers(model):
    """Operator, weight shape and attributes of every node that computes."""
    constants = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    made = {out: node for node in model.graph.node for out in node.output}
    for node in model.graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear", "Softmax"):
            continue
        weight = made.get(node.input[1]) if len(node.input) > 1 else None
        shape = constants.get(weight.input[0]) if weight else None
        windows = {a.name: list(a.ints) or a.i for a in node.attribute if a.name in ("group", "pads", "strides")}
        yield node.op_type, str(shape), str(sorted(windows.items()))
