"""`bench/compare` gives other tools the network that our compiler reads."""

import importlib.util

import pytest

from onnxhw import partition
from onnxhw.bench.topologies import TOPOLOGIES


@pytest.fixture(scope="module")
def layers(repository):
    spec = importlib.util.spec_from_file_location("compare_layers", repository / "bench" / "compare" / "layers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.layers


@pytest.mark.parametrize("task", TOPOLOGIES)
def test_layers_have_all_the_work_and_name_what_they_read(layers, task):
    graph = partition.load(TOPOLOGIES[task]().SerializeToString())
    found = layers(graph)
    known, macs = {found[0]["output"]}, 0
    for layer in found[1:]:
        assert set(layer["inputs"]) <= known, "reads what no earlier layer makes"
        known.add(layer["output"])
        if layer["kind"] == "conv":
            out, depth, rows, cols = layer["weight"]
            (_, height, width), (top, left, bottom, right) = layer["input_shape"], layer["pads"]
            size = ((height + top + bottom - rows) // layer["strides"][0] + 1,
                    (width + left + right - cols) // layer["strides"][1] + 1)  # fmt: skip
            assert layer["shape"] == (out, *size)
            macs += out * depth * rows * cols * size[0] * size[1]
    assert macs == graph.macs()
    assert {layer["kind"] for layer in found} <= {"input", "conv", "add", "average"}
