"""Random graphs of operators that the hardware has and others: the parts are acyclic and convex, and compute the model.

Every part runs once, as a whole, from values of earlier parts only. That is convexity: a path that left a part and
came back would need that part before itself.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from onnxhw.errors import UnsupportedError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.ir.parts import HostPart
from onnxhw.ir.verify import verify
from onnxhw.partition import PartitionedModel, load, read
from onnxhw.runtime.session import InferenceSession

S = 0.125
SHAPE = [1, 4, 4, 4]
HARDWARE = ("Add", "Conv", "Relu", "MaxPool")
HOST = ("Trilu", "CumSum", "Hardmax")
"""Exact in float32 for the values used here, and nothing that the hardware does."""


def grow(model: Any, steps: list[tuple[int, int, int, bool]]) -> None:
    """One operator per step (which, its operands, quantized or not) over what there is already."""
    values = [model.input(SHAPE, S)]
    weights = np.random.default_rng(5).integers(-3, 4, (4, 4, 1, 1)).astype(np.int8)
    for kind, first, second, quantized in steps:
        x, other = values[first % len(values)], values[second % len(values)]
        op_type = (*HARDWARE, *HOST)[kind % 7]
        if op_type == "Add":
            y = model.node("Add", x, other)
        elif op_type == "Conv":
            y = model.node("Conv", x, model.constant(weights, 0.25, np.int8(0)))
        elif op_type == "MaxPool":
            y = model.node("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        elif op_type == "CumSum":
            y = model.node("CumSum", x, model.const(np.int64(second % 4)))
        elif op_type == "Hardmax":
            y = model.node("Hardmax", x, axis=first % 4)
        else:
            y = model.node(op_type, x)
        values.append(model.requantize(y, S * 2.0 ** (second % 2)) if quantized else y)
    for name in values[-3:]:
        model.output(name)


def check_order(mixed: PartitionedModel) -> None:
    """Parts read what is there; no value is given twice; every output is given."""
    known = {value.name for value in mixed.inputs}
    for part in mixed.parts:
        assert set(part.inputs) <= known
        assert not set(part.outputs) & known
        known.update(part.outputs)
        if isinstance(part, HostPart):
            onnx.checker.check_model(part.model)
        else:
            verify(part.graph)
    assert {value.name for value in mixed.outputs} <= known


PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Without shrinking: what fails is small enough to read, and a model takes long to run."""
STEPS = st.lists(st.tuples(*[st.integers(0, 1000)] * 3, st.booleans()), min_size=1, max_size=14)


@settings(deadline=None, max_examples=60, phases=PHASES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_random_graphs(models: Any, steps: list[tuple[int, int, int, bool]]) -> None:
    model = models(opset=17)
    grow(model, steps)
    proto = model.proto()
    mixed = read(proto)
    check_order(mixed)
    kinds = [type(part) for part in mixed.parts]
    assert all(a is not b for a, b in pairwise(kinds)), "neighbours of one kind are one part"
    assert [row.op_type for row in mixed.placement] == [node.op_type for node in proto.graph.node]
    feeds = model.feeds()
    wanted = evaluate(proto, feeds)
    for value, got in zip(mixed.outputs, InferenceSession(proto).run(None, feeds), strict=True):
        np.testing.assert_array_equal(got, wanted[value.name])
    for row in mixed.placement:
        assert row.where != "refused"
        assert row.where != "hardware" or row.op_type not in HOST
        if row.part is not None:
            assert isinstance(mixed.parts[row.part], HostPart) == (row.where == "host" and row.code == "E4001")


def test_a_host_node_that_nothing_needs_is_no_part(model: Any) -> None:
    x = model.input(SHAPE, S)
    model.requantize(model.node("Relu", model.requantize(model.node("Trilu", x), S)), S)
    mixed = read(model.output(model.requantize(model.node("Relu", x), S)).proto())
    check_order(mixed)
    assert len(mixed.parts) == 1
    row = next(row for row in mixed.placement if row.op_type == "Trilu")
    assert (row.where, row.reason) == ("free", "no output needs it")


def test_alternation_is_no_deeper_than_the_data_demands(model: Any) -> None:
    x = model.input(SHAPE, S)
    heads = [model.requantize(model.node("Trilu", model.requantize(model.node("Relu", x), S)), S) for _ in range(4)]
    y = heads[0]
    for head in heads[1:]:
        y = model.requantize(model.node("Add", y, head), S)
    mixed = read(model.output(y).proto())
    assert [type(part).__name__ for part in mixed.parts] == ["HardwarePart", "HostPart", "HardwarePart"]


def test_a_tensor_that_a_later_hardware_part_reads_crosses_as_int8(model: Any) -> None:
    x = model.input(SHAPE, S)
    a = model.requantize(model.node("Relu", x), S)
    b = model.requantize(model.node("Trilu", a), S)
    first, _, last = read(model.output(model.requantize(model.node("Add", a, b), S)).proto()).parts
    (name,) = set(first.outputs) & set(last.inputs)
    (port,) = (port for port in last.graph.inputs if port.name == name)
    assert (port.dtype, port.steps) == ("int8", ())


def test_a_value_without_quantization_is_computed_where_it_is_needed(model: Any) -> None:
    """The convolution's real result goes to the host's Trilu, its quantized one stays in the hardware."""
    x = model.input(SHAPE, S)
    weights = model.constant(np.eye(4, dtype=np.int8).reshape(4, 4, 1, 1) * 3, 0.25, np.int8(0))
    y = model.node("Conv", x, weights)
    model.output(model.node("Trilu", y)).output(model.requantize(y, S))
    mixed = read(model.proto())
    row = next(row for row in mixed.placement if row.op_type == "Conv")
    assert row.where == "host"
    assert "the hardware computes it as well" in row.reason
    feeds = model.feeds()
    wanted = evaluate(model.proto(), feeds)
    for name, got in zip(wanted, InferenceSession(model.proto()).run(None, feeds), strict=True):
        np.testing.assert_array_equal(got, wanted[name])


def test_outputs_that_are_inputs_or_constants(model: Any) -> None:
    model.input(SHAPE, S)
    model.output("x").output(model.const(np.arange(3, dtype=np.float32)), rank=1)
    model.output(model.node("Constant", value_ints=[4, 5]), rank=1, kind=TensorProto.INT64)
    feeds = model.feeds()
    a, b, c = InferenceSession(model.proto()).run(None, feeds)
    np.testing.assert_array_equal(a, feeds["x"])
    assert b.tolist() == [0, 1, 2]
    assert c.tolist() == [4, 5]


def test_load_lists_host_nodes_that_read_runs(model: Any) -> None:
    x = model.input(SHAPE, S)
    model.output(model.requantize(model.node("Trilu", model.requantize(model.node("Relu", x), S)), S))
    with pytest.raises(UnsupportedError, match=r"E4001.*1 node cannot run.*\n.*Trilu"):
        load(model.bytes())
    assert read(model.bytes()).counts()["host"] > 0
