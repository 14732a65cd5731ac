"""What the host does behind the hardware, as steps of the output; what such a step may not follow is a host node."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from onnxhw import golden
from onnxhw.partition import load, read
from onnxhw.runtime.session import InferenceSession

from ..quantized import S, T, conv

INT8 = {
    "Neg": ([], {}),
    "Abs": ([], {}),
    "Relu": ([], {}),
    "Clip": ([np.int8(-100), np.int8(100)], {}),
    "Add": ([np.int8(100)], {}),
}
"""Operators of int8, with their other operands; Neg and Abs of -128 are -128."""


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize(
    "attributes", [{}, {"axis": 1}, {"axis": -1, "keepdims": 0}, {"axis": 2, "select_last_index": 1}]
)
def test_indices_of_the_extremes(op_type: str, unsigned: bool, attributes: dict[str, Any], models: Any) -> None:
    """Of integers and of reals, with many equal elements; all of it is one program for the hardware."""
    model = models(unsigned, opset=21)
    zero = 128 * unsigned
    y = conv(model, model.input([1, 3, 4, 5], S, -5 + zero), 6, 3, (1, 1))
    q = model.q(y, 8 * T, zero)
    for value in (q, model.dq(q, 8 * T, zero)):
        model.output(model.node(op_type, value, **attributes), 3 + attributes.get("keepdims", 1), TensorProto.INT64)
    graph, feeds = load(model.bytes()), model.feeds(3)
    assert len(graph.ops) == 1
    ours = golden.host.finish(graph, golden.run(graph, golden.host.prepare(graph, feeds)))
    wanted = ReferenceEvaluator(model.proto()).run(None, feeds)
    for value, expected in zip(ours.values(), wanted, strict=True):
        assert value.dtype == expected.dtype == np.int64
        np.testing.assert_array_equal(value, expected)
    assert attributes == {} or len(np.unique(wanted[0])) > 1


def test_softmax_and_the_index_of_its_maximum(models: Any) -> None:
    model = models(opset=21)
    y = model.requantize(model.node("Flatten", conv(model, model.input([1, 3, 2, 2], S), 8, 3, (2, 2))), S, 10)
    model.output(model.node("ArgMax", model.node("Softmax", y), axis=1, keepdims=0), 1, TensorProto.INT64)
    graph, feeds = load(model.bytes()), model.feeds()
    assert [step["op"] for step in graph.outputs[0].steps][-2:] == ["Softmax", "ArgMax"]
    ours = golden.host.finish(graph, golden.run(graph, golden.host.prepare(graph, feeds)))
    np.testing.assert_array_equal(*ours.values(), *ReferenceEvaluator(model.proto()).run(None, feeds))


@pytest.mark.parametrize("op_type", INT8)
def test_integers_behind_softmax_stay_integers(op_type: str, models: Any) -> None:
    """The steps are functions of reals: an operator on integers behind them is a node of the host."""
    model = models(opset=21)
    operands, attributes = INT8[op_type]
    y = model.requantize(model.node("Flatten", conv(model, model.input([1, 3, 2, 2], S), 8, 3, (2, 2))), S, 10)
    q = model.q(model.node("Softmax", y), 2.0**-8, -128)
    model.output(model.node(op_type, q, *map(model.const, operands), **attributes), 2, TensorProto.INT8)
    assert [row.where for row in read(model.bytes()).placement if row.op_type in (op_type, "Conv")] == [
        "hardware",
        "host",
    ]
    with InferenceSession(model.bytes(), device="golden") as session:
        (ours,) = session.run(None, model.feeds())
    (wanted,) = ReferenceEvaluator(model.proto()).run(None, model.feeds())
    assert ours.dtype == wanted.dtype == np.int8
    np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("op_type", ["Neg", "Softmax", "QuantizeLinear", "ArgMax"])
def test_what_follows_an_index(op_type: str, models: Any) -> None:
    """int64 is no real number: Neg keeps its type; the others are not defined for it, but for ArgMax."""
    model = models(opset=21)
    y = model.requantize(conv(model, model.input([1, 3, 4, 4], S), 8, 3, (2, 2)), S, 10)
    index = model.node("ArgMax", y, axis=1)
    real = index if op_type in ("Neg", "ArgMax") else model.node("Cast", index, to=TensorProto.FLOAT)
    more = [model.const(np.float32(S)), model.const(np.int8(0))] if op_type == "QuantizeLinear" else []
    kind = {"Softmax": TensorProto.FLOAT, "QuantizeLinear": TensorProto.INT8}.get(op_type, TensorProto.INT64)
    model.output(model.node(op_type, real, *more), 4, kind)
    with InferenceSession(model.bytes(), device="golden") as session:
        (ours,) = session.run(None, model.feeds())
    (wanted,) = ReferenceEvaluator(model.proto()).run(None, model.feeds())
    assert ours.dtype == wanted.dtype
    if op_type == "Softmax":  # exponentials of two libraries, each by what the processor has: 1 unit apart with AVX-512
        np.testing.assert_array_max_ulp(ours, wanted, 2)
    else:
        np.testing.assert_array_equal(ours, wanted)
