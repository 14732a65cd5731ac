"""A hand-written program of three layers on the `mini` configuration, for tests of the report."""

from pathlib import Path

import numpy as np
import pytest

from onnxhw.compiler import compile
from onnxhw.ir.graph import Port
from onnxhw.isa.instructions import Array, Load, Ordered, Vector, VectorOp
from onnxhw.isa.timeline import timeline
from onnxhw.presets import PRESETS
from onnxhw.program.layout import Place
from onnxhw.program.model import DeviceProgram, Entry, Layer

CONFIG = PRESETS["mini"]


@pytest.fixture(scope="session")
def program() -> DeviceProgram:
    """Conv 3x3 of 4 -> 8 channels on 8 x 8 in two column tiles, MaxPool 2x2, then a 1x1 conv on 2 x 2 pixels."""
    code: dict[str, list[Ordered]] = {
        "load": [Load(base=0, tiles=9), Load(base=36, tiles=9), Load(base=72, tiles=2, after_vector=3)],
        "array": [
            Array(kh_n=3, kw_n=3, oh_n=8, ow_n=8),
            Array(kh_n=3, kw_n=3, oh_n=8, ow_n=8, acc_bank=1),
            Array(kt_n=2, oh_n=2, ow_n=2, after_vector=3),
        ],
        "vector": [
            Vector(op=VectorOp.DRAIN, oh_n=8, ow_n=8, groups=2, per_channel=1, after_array=1),
            Vector(op=VectorOp.DRAIN, oh_n=8, ow_n=8, groups=2, per_channel=1, after_array=2),
            Vector(op=VectorOp.MAX, cb_n=2, oh_n=4, ow_n=4, kh_n=2, kw_n=2, groups=2),
            Vector(op=VectorOp.DRAIN, oh_n=2, ow_n=2, groups=2, per_channel=1, after_array=3),
        ],
    }
    tensors = [
        Entry("input", Place(0, 64, 8, (1, 4, 8, 8)), 0.1, -128, 0, 2),
        Entry("conv1", Place(1024, 64, 8, (1, 8, 8, 8)), 0.1, 0, 2, 3, "conv1"),
        Entry("pool1", Place(64, 16, 4, (1, 8, 4, 4)), 0.1, 0, 3, 4, "pool1"),
        Entry("conv<2>", Place(2048, 4, 2, (1, 4, 2, 2)), 0.1, 0, 4, 4, "conv<2>"),
    ]
    layers = [
        Layer("conv1", "Conv", 9 * 4 * 8 * 64, {"load": [(0, 2)], "array": [(0, 2)], "vector": [(0, 2)]}),
        Layer("pool1", "MaxPool", 0, {"vector": [(2, 3)]}),
        Layer("conv<2>", "Conv", 8 * 4 * 4, {"load": [(2, 3)], "array": [(2, 3)], "vector": [(3, 4)]}),
    ]
    return DeviceProgram(
        CONFIG,
        "sample",
        code,
        np.zeros((80, CONFIG.weight_word), np.uint8),
        np.zeros((12 // CONFIG.lanes, CONFIG.lanes), np.uint64),
        np.zeros((0, 256), np.int8),
        {entry.name: entry for entry in tensors},
        [Port("input", (1, 4, 8, 8), "float32", "input")],
        [Port("output", (1, 4, 2, 2), "float32", "conv<2>")],
        layers,
        timeline(CONFIG, code).cycles,
        sum(layer.macs for layer in layers),
    )


@pytest.fixture(scope="session")
def digits() -> DeviceProgram:
    """The digits network on the largest array, where instructions of the vector unit overlap."""
    return compile(Path(__file__).parents[2] / "examples" / "digits.onnx", PRESETS["ulx3s-85f"]).only()
