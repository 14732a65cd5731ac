"""Biases that are no int32 of input scale * weight scale: rounded to one, and said so."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from onnxhw.ir.graph import Conv
from onnxhw.partition import load, read
from onnxhw.runtime.session import InferenceSession

S, W_SCALE, T = 0.03, np.array([0.01, 0.02, 0.005, 0.013], np.float32), 0.07
COMBINED = np.float32(S) * W_SCALE
WEIGHT = np.random.default_rng(4).integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
UNITS = np.array([100.3, -7.5, 0.5, 1.5])
"""The biases in units of the integer ones; ties go to the even one."""
ROUNDED = [100, -8, 0, 2]


def constant(model: Any, form: str) -> str:
    """The bias: float32, int32 of 2^-20 of the combined scale, or int8 with zero point 3."""
    if form == "float":
        return str(model.const((UNITS * COMBINED).astype(np.float32)))
    if form == "int32":
        q = np.rint(UNITS * 2**20).astype(np.int32)
        return str(model.constant(q, (COMBINED * 2.0**-20).astype(np.float32), np.zeros(4, np.int32)))
    q = np.array([100, -5, 1, 1])
    scale = (UNITS * COMBINED / q).astype(np.float32)
    return str(model.constant((q + 3).astype(np.int8), scale, np.full(4, 3, np.int8)))


def weight(model: Any, q: npt.NDArray[Any], axis: int = 0) -> str:
    return str(model.constant(q, W_SCALE, np.zeros(4, np.int8), axis))


def biases(model: Any) -> list[list[int]]:
    return [op.bias.tolist() for op in load(model.bytes()).ops if isinstance(op, Conv)]


def notes(model: Any) -> list[Any]:
    return [note for note in read(model.bytes()).diagnostics if note.code == "W3601"]


@pytest.mark.parametrize("form", ["float", "int32", "int8"])
@pytest.mark.parametrize("op_type", ["Conv", "Gemm", "MatMul", "ConvTranspose"])
def test_every_form_is_rounded_half_to_even(model: Any, op_type: str, form: str) -> None:
    if op_type == "Gemm":
        x = model.input([1, 27], S)
        y = model.node("Gemm", x, weight(model, WEIGHT.reshape(4, 27)), constant(model, form), transB=1)
    elif op_type == "MatMul":
        x = model.input([1, 27], S)
        y = model.node("Add", model.node("MatMul", x, weight(model, WEIGHT.reshape(4, 27).T, 1)), constant(model, form))
    elif op_type == "Conv":
        y = model.node("Conv", model.input([1, 3, 5, 5], S), weight(model, WEIGHT), constant(model, form))
    else:
        x, w = model.input([1, 3, 5, 5], S), weight(model, WEIGHT.swapaxes(0, 1), 1)
        y = model.node("ConvTranspose", x, w, constant(model, form), strides=[2, 2])
    model.output(model.requantize(y, T), rank=2 if op_type in ("Gemm", "MatMul") else 4)
    found = biases(model)
    assert found
    assert all(one == ROUNDED for one in found)
    (note,) = notes(model)
    assert note.severity == "warning"
    assert note.where == f"node '{op_type}_{note.where.split('_')[1]}"
    # The largest error is half a unit of the channel of the largest scale that has a tie.
    assert f"by {0.5 * COMBINED[1] / T:.2g} steps of the result" in note.what


def test_what_is_exact_is_not_noted(model: Any) -> None:
    bias = model.const((np.array([100, -8, 0, 2]) * COMBINED).astype(np.float32))
    model.output(model.requantize(model.node("Conv", model.input([1, 3, 5, 5], S), weight(model, WEIGHT), bias), T))
    assert biases(model) == [ROUNDED]
    assert not notes(model)


def test_several_are_one_note_with_the_worst(model: Any) -> None:
    x = model.input([1, 3, 5, 5], S)
    for scale in (T, T / 10, T * 3):
        y = model.node("Conv", x, weight(model, WEIGHT), constant(model, "float"))
        model.output(model.requantize(y, scale))
    (note,) = notes(model)
    worst = [row.node for row in read(model.bytes()).placement if row.op_type == "Conv"][1]
    assert note.where == f"node {worst!r} and 2 others"
    assert f"by {5 * COMBINED[1] / T:.2g} steps" in note.what


def test_onnxruntime_rounds_float_biases_alike(models: Any, against_ort: Any) -> None:
    """Its integer kernel, on biases that are ties: no element differs. Half away from zero, some would."""
    random = np.random.default_rng(2)
    model = models(unsigned=True)
    x = model.input([1, 3, 40, 40], S, 120)
    ties = (random.integers(-3000, 3000, 4) + 0.5) * COMBINED
    y = model.node("Conv", x, weight(model, WEIGHT), model.const(ties.astype(np.float32)))
    model.output(model.q(y, 0.0031, 128)).outputs[0].type.tensor_type.elem_type = 2
    proto = model.proto()
    if "QLinearConv" not in against_ort.fused_operators(proto):
        pytest.skip("this onnxruntime leaves a float bias as it is")
    feeds = {"x": random.normal(0, 0.5, (1, 3, 40, 40)).astype(np.float32)}
    (theirs,) = against_ort.session(proto, True).run(None, feeds)
    with InferenceSession(proto) as session:
        (ours,) = session.run(None, feeds)
    np.testing.assert_array_equal(ours, theirs)
    assert len(np.unique(ours)) > 100
