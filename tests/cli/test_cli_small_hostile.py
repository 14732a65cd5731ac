"""Small models that once hung, killed or exhausted the process: each ends soon, small, and with an answer.

The commands run in processes of their own: what is held against the bounds is all that they and their children take.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

FOUND = sorted((Path(__file__).resolve().parents[3] / "shared" / "repro").glob("*.onnx"))
MEMORY = 1 << 30
SECONDS = 4.0
"""Of the processor, beyond the start: twice what is promised, for a processor shared with others is slower."""
COMMANDS = [("check",), ("compile", "-o", "out"), ("simulate", "-e", "emulator", "--random", "1")]


MEASURE = """
import json, os, resource, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60)))
_, status, used = os.wait4(process.pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]))
"""
"""Runs a command. The memory of a process counts from its fork on, so a small one starts it: that of the tests has
gigabytes."""


def run(place, *words):
    """Exit status, stderr, processor seconds and bytes of the largest process."""
    command = [sys.executable, "-m", "onnxhw", *map(str, words)]
    with (place / "stderr").open("wb") as stderr:
        measured = subprocess.run(
            [sys.executable, "-c", MEASURE, *command], stdout=subprocess.PIPE, stderr=stderr, cwd=place, check=True,
            env={**os.environ, "ONNXHW_CACHE": str(place / "cache")},
        )  # fmt: skip
    status, seconds, memory = json.loads(measured.stdout)
    return status, (place / "stderr").read_text(), seconds, memory


def model(nodes, inputs, constants=(), output="y", opset=18):
    info = helper.make_tensor_value_info
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants]
    graph = helper.make_graph(
        nodes, "hostile", [info(name, kind, shape) for name, kind, shape in inputs],
        [info(output, TensorProto.FLOAT, None)],
        tensors,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def quantized(nodes, shape, *constants, output="b"):
    """A node between quantizers, which would run on the hardware."""
    grid = ["s", "z"]
    before = [helper.make_node("QuantizeLinear", ["x", *grid], ["q"]),
              helper.make_node("DequantizeLinear", ["q", *grid], ["a"])]  # fmt: skip
    after = [helper.make_node("QuantizeLinear", [output, *grid], ["p"]),
             helper.make_node("DequantizeLinear", ["p", *grid], ["y"])]  # fmt: skip
    values = [("s", np.float32(0.25)), ("z", np.int8(3)), *constants]
    return model([*before, *nodes, *after], [("x", TensorProto.FLOAT, shape)], values)


node = helper.make_node
HUGE, LARGE = np.int64([1 << 62]), np.int64([(1 << 31) + 5])
X = [("x", TensorProto.FLOAT, (1, 4, 6, 6))]
PAIR = [("x", TensorProto.FLOAT, (2, 3, 4)), ("i", TensorProto.INT64, (2, 1))]
MODELS = {
    "gather_elements_index": quantized(
        [node("GatherElements", ["a", "i"], ["b"], axis=1)], (1, 4), ("i", np.int64([[0, 1 << 40, -(1 << 62), 3]]))),
    "gather_index": quantized([node("Gather", ["a", "i"], ["b"], axis=1)], (1, 4, 2, 2), ("i", HUGE)),
    "gather_nd_index": quantized([node("GatherND", ["a", "i"], ["b"])], (1, 4), ("i", np.int64([[0, 1 << 50]]))),
    "gather_of_constants": model(
        [node("GatherElements", ["c", "i"], ["b"]), node("Add", ["x", "b"], ["y"])], [("x", TensorProto.FLOAT, (2,))],
        [("c", np.float32([1, 2])), ("i", np.int64([1 << 60, 0]))]),
    "slice_ends": quantized([node("Slice", ["a", "b0", "e", "x1"], ["b"])], (1, 4, 2, 2),
                            ("b0", np.int64([-(1 << 63)])), ("e", np.int64([(1 << 63) - 1])), ("x1", np.int64([1]))),
    "gather_nd_batch_dims": model([node("GatherND", ["x", "i"], ["y"], batch_dims=-2)], PAIR),
    "gather_nd_batch_dims_large": model([node("GatherND", ["x", "i"], ["y"], batch_dims=7)], PAIR),
    "split_outputs": model([node("Split", ["x"], ["y", "b", "c", "d"], num_outputs=3)], X),
    "split_many": model([node("Split", ["x"], ["y", "b"], num_outputs=1 << 40)], X),
    "max_broadcast": quantized([node("Max", ["a", "w"], ["b"])], (1, 1 << 14, 1, 1),
                               ("w", np.zeros((1, 1, 1 << 13, 1), np.float32))),
    "add_broadcast": quantized([node("Unsqueeze", ["a", "one"], ["u"]), node("Add", ["a", "u"], ["b"])],
                               (1 << 13, 1 << 14),
                               ("one", np.int64([1]))),
    "tile": quantized([node("Tile", ["a", "t"], ["b"])], (1, 4), ("t", np.int64([1, 1 << 26]))),
    "pad": quantized([node("Pad", ["a", "t"], ["b"])], (1, 4), ("t", np.int64([0, 0, 0, 1 << 28]))),
    "pad_beyond": quantized([node("Pad", ["a", "t"], ["b"])], (1, 4), ("t", np.int64([0, 1 << 62, 0, 1 << 62]))),
    "resize": quantized([node("Resize", ["a", "", "", "t"], ["b"])], (1, 1, 2, 2),
                        ("t", np.int64([1, 1, 1 << 13, 1 << 13]))),
    "clip_vector": quantized([node("Clip", ["a", "t"], ["b"])], (1, 4), ("t", np.float32([0, 1, 2]))),
    "expand_scalar": quantized([node("Expand", ["a", "t"], ["b"])], (1, 4), ("t", np.int64(4))),
    "stft_step": model([node("STFT", ["x", "t"], ["y"])], [("x", TensorProto.FLOAT, (1, 8, 1))], [("t", np.int64([]))]),
    "keepdims": quantized([node("ReduceMax", ["a"], ["b"], axes=[1], keepdims=5)], (1, 4)),
    "reverse_sequence": quantized([node("ReverseSequence", ["a", "t"], ["b"], batch_axis=0, time_axis=1)], (2, 4),
                                  ("t", np.int64([1 << 40, -5]))),
    "range_values": model([node("Range", ["o", "t", "o"], ["r"]), node("Cast", ["r"], ["f"], to=1),
                           node("Add", ["x", "f"], ["y"])], [("x", TensorProto.FLOAT, (1,))],
                          [("o", np.int64(1)), ("t", np.int64(1 << 60))]),
    "center_crop": quantized([node("CenterCropPad", ["a", "t"], ["b"])], (1, 4), ("t", np.int64([1 << 20, 1 << 20]))),
    "depth_to_space": quantized([node("DepthToSpace", ["a"], ["b"], blocksize=-2)], (1, 4, 2, 2)),
    "top_k": model([node("TopK", ["x", "t"], ["y", "n"])], X, [("t", HUGE)]),
    "one_hot": model([node("Cast", ["x"], ["i"], to=7), node("OneHot", ["i", "t", "v"], ["y"])], X,
                     [("t", LARGE), ("v", np.float32([0, 1]))]),
}  # fmt: skip


@pytest.fixture(scope="module")
def starting(tmp_path_factory):
    """Processor seconds that each command takes for a model of one node that the specification refuses."""
    place = tmp_path_factory.mktemp("start")
    onnx.save(model([node("Relu", ["x"], ["y"], axis=3)], X), place / "model.onnx")
    twice = [{words[0]: run(place, *words[:1], "model.onnx", *words[1:])[2] for words in COMMANDS} for _ in range(2)]
    return {name: max(times[name] for times in twice) for name in twice[0]}


def ends(place, path, starting, words):
    status, text, seconds, memory = run(place, words[0], path, *words[1:])
    assert status in (0, 2, 3, 4, 5), text
    assert "Traceback" not in text
    assert memory < MEMORY
    assert seconds < starting[words[0]] + SECONDS


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.skipif(not FOUND, reason="../shared/repro is not there")
def test_the_models_of_the_examination_end(words, starting, tmp_path):
    for path in FOUND:
        ends(tmp_path, path, starting, words)


@pytest.mark.parametrize("name", MODELS)
def test_models_of_the_same_kinds_end(name, starting, tmp_path):
    onnx.save(MODELS[name], tmp_path / "model.onnx")
    ends(tmp_path, tmp_path / "model.onnx", starting, COMMANDS[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_models_of_the_same_kinds_end_simulated(name, starting, tmp_path):
    """Which compiles them first."""
    onnx.save(MODELS[name], tmp_path / "model.onnx")
    ends(tmp_path, tmp_path / "model.onnx", starting, COMMANDS[-1])
