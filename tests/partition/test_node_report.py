"""Every node has a row: where it runs, the reason, the hint, and the part it belongs to."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxhw.ir.parts import HardwarePart, HostPart
from onnxhw.partition import NodePlacement, PartitionedModel, read

from ..hostops.node_models import one_node

S = 0.125
SHAPE = [1, 4, 4, 4]
W = np.eye(4, dtype=np.int8).reshape(4, 4, 1, 1)


def rows(mixed: PartitionedModel) -> dict[str, NodePlacement]:
    """The last row of each operator."""
    return {row.op_type: row for row in mixed.placement}


def test_all_kinds_in_one_model(model: Any) -> None:
    x = model.input(SHAPE, S)
    y = model.requantize(model.node("Relu", model.node("Conv", x, model.constant(W, 0.5, np.int8(0)))), S)
    y = model.node("Flatten", model.requantize(model.node("Trilu", y), S))
    z = model.node("Softmax", model.requantize(model.node("Wobble", y, domain="made.up"), S))
    model.node("Relu", x)
    mixed = read(model.output(z, rank=2).proto())
    assert len(mixed.placement) == len(model.nodes)
    found = rows(mixed)
    assert found["Conv"].where == "hardware"
    assert isinstance(mixed.parts[found["Conv"].part], HardwarePart)
    assert found["Trilu"].where == "host"
    assert isinstance(mixed.parts[found["Trilu"].part], HostPart)
    assert found["Trilu"].hint
    assert found["Wobble"].where == "refused"
    assert "'Wobble' of domain 'made.up'" in found["Wobble"].reason
    assert found["Relu"].reason == "no output needs it"
    where = [row.where for row in mixed.placement]
    assert where[:2] == ["host", "free"]  # the quantization of the input, and what reads it
    assert "folded" in where  # the weights
    assert sum(mixed.counts().values()) == len(model.nodes)


@pytest.mark.parametrize(
    ("operator", "reason"),
    [
        ({"op_type": "Trilu"}, "the hardware has no operation for it"),
        ({"op_type": "Conv"}, "the weights are not quantized"),
    ],
)
def test_the_reason_is_the_handlers(model: Any, operator: dict[str, str], reason: str) -> None:
    x = model.input(SHAPE, S)
    more = [model.const(W.astype(np.float32))] if operator["op_type"] == "Conv" else []
    y = model.node(operator["op_type"], x, *more)
    row = rows(read(model.output(model.requantize(y, S)).proto()))[operator["op_type"]]
    assert (row.where, row.code, row.reason) == ("host", "E4001", reason)


def test_producers_of_a_real_value_say_for_whom(model: Any) -> None:
    """Sums that no int8 holds: smaller ones leave the hardware."""
    x = model.input(SHAPE, S)
    y = model.node("Trilu", model.node("Conv", x, model.constant(np.full_like(W, 100), 0.5, np.int8(0))))
    found = rows(read(model.output(y).proto()))
    assert found["Conv"].where == "host"
    assert found["Trilu"].node in found["Conv"].reason


def test_an_unknown_shape_is_the_reason(model: Any) -> None:
    x = model.input(SHAPE, S)
    y = model.node("Relu", model.node("Cast", model.node("NonZero", x), to=TensorProto.FLOAT))
    row = rows(read(model.output(y, rank=2).proto()))["Relu"]
    assert row.where == "host"
    assert "not known before the run" in row.reason


def test_nodes_that_the_caller_excludes(model: Any) -> None:
    x = model.input(SHAPE, S)
    proto = model.output(model.requantize(model.node("Relu", x), S)).proto()
    name = next(node.name for node in proto.graph.node if node.op_type == "Relu")
    assert rows(read(proto))["Relu"].where == "hardware"
    row = rows(read(proto, excluded={name: ("because", "wait")}))["Relu"]
    assert (row.where, row.reason, row.hint) == ("host", "because", "wait")


def test_control_flow_that_depends_on_data_is_the_hosts(model: Any) -> None:
    x = model.input(SHAPE, S)
    y = model.requantize(model.node("Relu", x), S)
    total = model.node("ReduceSum", y, keepdims=0)
    then = helper.make_graph(
        [helper.make_node("Identity", [y], ["then_out"])],
        "then", [], [helper.make_tensor_value_info("then_out", TensorProto.FLOAT, SHAPE)],
    )  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Neg", [y], ["else_out"])],
        "else", [], [helper.make_tensor_value_info("else_out", TensorProto.FLOAT, SHAPE)],
    )  # fmt: skip
    flag = model.node("Cast", total, to=TensorProto.BOOL)
    z = model.node("If", flag, then_branch=then, else_branch=other)
    mixed = read(model.output(model.requantize(z, S)).proto())
    assert rows(mixed)["If"].where == "host"
    assert any(y in part.inputs for part in mixed.host), "what the branches read from outside comes in as well"


def test_a_node_of_another_domain_is_not_said_to_be_unsupported() -> None:
    """The host runs it; there is no QDQ form of it to convert to."""
    x = {"x": np.ones((2, 3), np.float32)}
    model = one_node("Normalizer", x, {"y": (1, [2, 3])}, domain="ai.onnx.ml", norm="L2")
    (row,) = read(model).placement
    assert (row.where, row.hint) == ("host", "")
    assert row.reason == "the hardware has no Normalizer, nor other operators of domain 'ai.onnx.ml'"
