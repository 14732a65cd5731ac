"""`get_inputs` and `get_outputs`: a size that is told is the size of every run; others are variables or None."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

from onnxhw import InferenceSession
from onnxhw.cli import main

HEADER = '<ir_version: 10, opset_import: ["" : 17]>\n'
GRID = "<float scale = {0.125}, int8 zero = {0}, int64[2] pairs = {-1, 2}, int64[1] flat = {-1}, \
int64[2] two = {2, -1}>"
QDQ = "q = QuantizeLinear(x, scale, zero) d = DequantizeLinear(q, scale, zero)"
REQ = "rq = QuantizeLinear(r, scale, zero) y = DequantizeLinear(rq, scale, zero)"
QUANTIZED = "g (float[{0}] x) => (float[{1}] y) {2} {{ {3} {4} {5} }}"


def quantized(x: str, y: str, node: str) -> str:
    return QUANTIZED.format(x, y, GRID, QDQ, node, REQ)


CASES: dict[str, tuple[str, list[Any], dict[str, int], list[tuple[int, ...]]]] = {
    # model, what is told of the output, sizes given, shapes of feeds
    "undeclared": ("g (float[?,3] x) => (float[] y) { y = Relu(x) }", [None, 3], {}, [(1, 3), (4, 3)]),
    "declared wrong": ("g (float[?,3] x) => (float[1,3] y) { y = Relu(x) }", [None, 3], {}, [(4, 3)]),
    "variable": ("g (float[N,3] x) => (float[] y) { y = Relu(x) }", ["N", 3], {}, [(1, 3), (4, 3)]),
    "inner": ("g (float[N,H] x) => (float[] y) { y = Transpose(x) }", ["H", "N"], {}, [(1, 3), (4, 2)]),
    "inner given": ("g (float[N,H] x) => (float[] y) { y = Transpose(x) }", [3, "N"], {"H": 3}, [(1, 3), (4, 3)]),
    "all given": ("g (float[N,H] x) => (float[] y) { y = Transpose(x) }", [3, 2], {"H": 3, "N": 2}, [(2, 3)]),
    "fixed": ("g (float[N,3] x) => (float[] y) { y = ReduceSum <keepdims=0> (x) }", [], {}, [(1, 3), (4, 3)]),
    "nonzero": ("g (float[2,3] x) => (int64[A,B] y) { y = NonZero(x) }", [2, "B"], {}, [(2, 3)]),
    "static": (quantized("2,3", "2,3", "r = Relu(d)"), [2, 3], {}, [(2, 3)]),
    "pairs": (quantized("N,4", "A,B", "r = Reshape(d, pairs)"), ["A", 2], {}, [(1, 4), (3, 4)]),
    "undeclared pairs": (quantized("N,4", "?,?", "r = Reshape(d, pairs)"), [None, 2], {}, [(1, 4), (3, 4)]),
    "flat": (quantized("N,4", "A", "r = Reshape(d, flat)"), ["A"], {}, [(1, 4), (3, 4)]),
    "rows": (quantized("N,4", "M,4", "r = Relu(d)"), ["M", 4], {}, [(1, 4), (3, 4)]),
    "mixing": (quantized("N,4", "A,B", "r = Reshape(d, two)"), [2, "B"], {}, [(1, 4), (4, 4)]),
}  # fmt: skip


def fits(told: list[Any], shape: tuple[int, ...]) -> bool:
    return len(told) == len(shape) and all(
        size == want for want, size in zip(told, shape, strict=True) if isinstance(want, int)
    )


@pytest.mark.parametrize("case", CASES)
def test_a_size_that_is_told_is_that_of_every_run(case: str) -> None:
    body, told, shapes, feeds = CASES[case]
    model = parser.parse_model(HEADER + body)
    for device in ("golden", "emulator"):
        session = InferenceSession(model, device=device, shapes=shapes)
        (value,), (given,) = session.get_outputs(), session.get_inputs()
        assert value.shape == told
        for shape in feeds:
            x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            (result,) = session.run(None, {"x": x})
            assert fits(value.shape, result.shape)
            assert fits(given.shape, x.shape)


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("declared wrong", "inner given", "all given")])
def test_sizes_and_variables_are_those_of_onnxruntime_or_fewer(case: str) -> None:
    ort = pytest.importorskip("onnxruntime")
    model = parser.parse_model(HEADER + CASES[case][0]).SerializeToString()
    theirs, ours = ort.InferenceSession(model), InferenceSession(model)
    for a, b in ((theirs.get_inputs(), ours.get_inputs()), (theirs.get_outputs(), ours.get_outputs())):
        assert [value.shape for value in a] == [value.shape for value in b]


def test_a_default_that_may_be_fed_decides_no_size() -> None:
    body = "g (float[2,6] x, int64[2] s) => (float[] y) <int64[2] s = {3, 4}> { y = Reshape(x, s) }"
    model = parser.parse_model(HEADER + body)
    session = InferenceSession(model)
    x = np.ones((2, 6), np.float32)
    shapes = {session.run(None, {"x": x, **more})[0].shape for more in ({}, {"s": np.array([4, 3])})}
    assert shapes == {(3, 4), (4, 3)}
    assert session.get_outputs()[0].shape == [None, None]
    assert session.get_overridable_initializers()[0].shape == [2]


@pytest.mark.parametrize(
    ("nodes", "inputs", "outputs"),
    [
        ("r = Relu(d)", ["N", 4], ["N", 4]),
        ("e = Relu(d) r = Reshape(e, pairs)", ["N", 4], [None, 2]),
        ("e = Relu(d) r = Reshape(e, two)", [1, 4], [2, 2]),
    ],
)
def test_a_program_tells_what_it_takes(tmp_path: Path, nodes: str, inputs: list[Any], outputs: list[Any]) -> None:
    onnx.save(parser.parse_model(HEADER + quantized("N,4", "A,B", nodes)), tmp_path / "m.onnx")
    assert main(["compile", f"{tmp_path}/m.onnx", "-p", "mini", "-o", f"{tmp_path}/out", "-q"]) == 0
    with InferenceSession(tmp_path / "out", device="emulator") as session:
        assert [value.shape for value in session.get_inputs()] == [inputs]
        assert [value.shape for value in session.get_outputs()] == [outputs]


def test_a_classifier_of_scikit_learn_is_described_as_by_onnxruntime() -> None:
    ort = pytest.importorskip("onnxruntime")
    skl2onnx, linear = pytest.importorskip("skl2onnx"), pytest.importorskip("sklearn.linear_model")
    x = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    fitted = linear.LogisticRegression().fit(x, np.arange(30) % 3)
    model = skl2onnx.to_onnx(fitted, x[:1], options={"zipmap": False}).SerializeToString()
    theirs, ours = ort.InferenceSession(model), InferenceSession(model)
    assert [value.shape for value in theirs.get_outputs()] == [value.shape for value in ours.get_outputs()]
    for value, result in zip(ours.get_outputs(), ours.run(None, {ours.get_inputs()[0].name: x}), strict=True):
        assert fits(value.shape, result.shape)
        assert len(result) == len(x)
