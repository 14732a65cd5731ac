"""Constants that are computed while reading: how much of them, and which."""

import tracemalloc
from typing import Any

import numpy as np
import onnx
import pytest

from onnxhw.errors import InvalidModelError
from onnxhw.onnxfile.limits import Limits
from onnxhw.partition import PartitionedModel, read
from onnxhw.runtime.session import InferenceSession

SIDE = 512
"""A result is a float32 matrix of SIDE x SIDE, 1 MiB."""
MIB = 1 << 20


def bomb(model: Any, count: int, reader: str) -> bytes:
    """Results of `count` Adds of a column and a row."""
    column, row = model.const(np.arange(SIDE, dtype=np.float32)[:, None]), model.const(np.ones((1, SIDE), np.float32))
    made = [model.node("Add", column, row) for _ in range(count)]
    x = model.input([1, SIDE], 1 / 8)
    for one in made:
        x = model.node(reader, x, one)
    return bytes(model.output(x, rank=2).bytes())


def folded(mixed: PartitionedModel) -> int:
    return sum(row.where == "folded" for row in mixed.placement)


def reasons(mixed: PartitionedModel) -> set[str]:
    return {row.reason for row in mixed.placement if row.op_type == "Add" and row.where == "host"}


def test_computed_constants_are_bounded_together(model: Any) -> None:
    proto = bomb(model, 40, "MatMul")
    tracemalloc.start()
    try:
        mixed = read(proto, limits=Limits(folded_bytes=5 * MIB), runnable=False)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert folded(mixed) == 5
    assert "computed constants would have 6291456 bytes, the limit folded_bytes is 5242880" in reasons(mixed)
    assert any("--limit folded_bytes=6291456" in row.hint for row in mixed.placement)
    assert peak < 24 * MIB
    assert folded(read(proto, limits=Limits(folded_bytes=40 * MIB), runnable=False)) == 40


def test_a_computed_constant_is_bounded(model: Any) -> None:
    mixed = read(bomb(model, 1, "MatMul"), limits=Limits(folded_elements=SIDE * SIDE - 1))
    assert reasons(mixed) == {"its result has 262144 elements, the limit folded_elements is 262143"}
    assert not folded(mixed)


def test_what_only_the_host_reads_is_not_computed(model: Any) -> None:
    """Nor does that change what the model gives."""
    proto = bomb(model, 2, "Mean")
    mixed = read(proto)
    assert not folded(mixed)
    assert reasons(mixed) == {"it is computed of constants, for the host alone"}


@pytest.mark.parametrize("limit", [1, 1 << 28])
def test_folded_or_not_the_results_are_the_same(model: Any, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    proto = bomb(model, 2, "MatMul")
    monkeypatch.setattr("onnxhw.onnxmodel.prepared.DEFAULT", Limits(folded_bytes=limit))
    x = np.random.default_rng(1).integers(-9, 9, (1, SIDE)).astype(np.float32)
    with InferenceSession(proto) as session:
        (found,) = session.run(None, {"x": x})
        assert folded(session.model) == (2 if limit > 1 else 0)
    one = np.arange(SIDE, dtype=np.float32)[:, None] + np.ones((1, SIDE), np.float32)
    np.testing.assert_allclose(found, x @ one @ one, rtol=1e-5)


def test_a_result_of_unknown_shape_is_bounded_by_its_operands(model: Any) -> None:
    """onnx infers no shape behind an operator that it does not know the sizes of."""
    start = model.node("Add", model.const(np.int64([0])), model.const(np.int64([0])))
    data = model.const(np.zeros((SIDE, SIDE), np.float32))
    part = model.node("Slice", data, start, model.const(np.int64([SIDE])))
    y = model.node("MatMul", model.input([1, SIDE], 1 / 8), part)
    mixed = read(model.output(y, rank=2).bytes(), limits=Limits(folded_bytes=MIB // 2))
    assert "folded_bytes" in next(row.reason for row in mixed.placement if row.op_type == "Slice")


@pytest.mark.parametrize("indices", ["{4}", "{-5}", "{4611686018427387904}"])
def test_constants_that_no_run_can_compute_are_refused(model: Any, indices: str) -> None:
    """`check` must not promise what every run would refuse: an index that is out of range is so before."""
    text = f"""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[1] x) => (float[1] y)
    <float[4] data = {{1, 2, 3, 4}}, int64[1] i = {indices}>
    {{ c = Gather (data, i)  y = Add (x, c) }}
    """
    with pytest.raises(InvalidModelError, match=r"E3359 .*Gather.*index .* is not between -4 and 3") as caught:
        read(onnx.parser.parse_model(text))
    assert "onnxruntime::" not in str(caught.value)


def test_padding_that_is_computed_of_the_size_is_folded(model: Any) -> None:
    """As TensorFlow's padding is written by PyTorch's exporter, with a quantizer's constants in between. onnx infers no
    shape behind such a Pad, so that what follows takes the one that is found."""
    x = model.input([1, 3, 7, 7], 1 / 8)
    one, two, zero = (model.const(np.int64(n)) for n in (1, 2, 0))
    size = model.node("Gather", model.node("Shape", x), two)
    steps = model.node("Ceil", model.node("Div", model.node("Cast", size, to=1), model.const(np.float32(2))))
    stretch = model.node("Mul", steps, model.constant(np.int8(2), 1.0))
    missing = model.node("Cast", model.node("Sub", stretch, model.const(np.float32(7))), to=7)
    missing = model.node("Clip", model.node("Add", missing, one), zero)
    missing = model.node("Mod", model.node("Max", missing, zero), model.const(np.int64(5)))
    after = model.node("Unsqueeze", missing, model.const(np.int64([0])))
    none = model.node("ConstantOfShape", model.const(np.int64([2])), value=onnx.numpy_helper.from_array(np.int64([0])))
    pads = model.node("Concat", none, none, none, after, after, axis=0)
    value = model.constant(np.int8(0), 1 / 8)
    x = model.requantize(model.node("Pad", x, pads, value), 1 / 8)
    x = model.requantize(model.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), 1 / 8)
    x = model.node("Slice", x, *(model.const(np.int64([n])) for n in (0, 3, 2, 1)))
    x = model.node("Resize", x, "", model.const(np.float32([1, 1, 2, 2])), mode="nearest")
    x = model.node("Unsqueeze", model.node("Flatten", model.requantize(x, 1 / 8)), model.const(np.int64([1])))
    x = model.node("Squeeze", x, model.const(np.int64([1])))
    x = model.node("MatMul", x, model.constant(np.arange(-144, 144).reshape(144, 2).astype(np.int8), 1 / 64))
    graph = model.output(model.requantize(x, 8.0), 2).check()
    assert graph.ops
    assert all(row.where in ("hardware", "folded", "free", "host") for row in read(model.bytes()).placement)
    assert len(read(model.bytes()).parts) == 1
