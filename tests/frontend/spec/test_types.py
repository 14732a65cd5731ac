"""Types of values: element types, shapes, sequences, maps, optionals."""

import onnx
import pytest
from onnx import TensorProto, TypeProto, helper

from .conftest import found, text_model

FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])


def with_input(kind: TypeProto | None, ir: int = 10) -> onnx.ModelProto:
    model = text_model("g (float[1] x) => (float[1] y) { y = Relu(x) }", ir=ir, opset=15)
    model.graph.input.append(onnx.ValueInfoProto(name="other", type=kind))
    return model


def a_map(key: int, value: TypeProto | None = FLOATS) -> TypeProto:
    kind = TypeProto()
    kind.map_type.key_type = key
    if value is not None:
        kind.map_type.value_type.CopyFrom(value)
    return kind


def opaque() -> TypeProto:
    kind = TypeProto()
    kind.opaque_type.name = "Thing"
    return kind


def deep(levels: int) -> TypeProto:
    kind = FLOATS
    for _ in range(levels):
        kind = helper.make_sequence_type_proto(kind)
    return kind


RIGHT = {
    "dense": FLOATS,
    "scalar": helper.make_tensor_type_proto(TensorProto.FLOAT, []),
    "variable": helper.make_tensor_type_proto(TensorProto.FLOAT, ["N", None, 0]),
    "sparse": helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [2]),
    "sequence": helper.make_sequence_type_proto(FLOATS),
    "optional": helper.make_optional_type_proto(helper.make_sequence_type_proto(FLOATS)),
    "map": a_map(TensorProto.STRING),
    "deep": deep(10),
}


@pytest.mark.parametrize("name", RIGHT)
def test_types_of_every_kind(name: str) -> None:
    assert found(with_input(RIGHT[name])) == set()


@pytest.mark.parametrize("element", sorted(set(TensorProto.DataType.values()) - {0}))
def test_every_element_type(element: int) -> None:
    assert found(with_input(helper.make_tensor_type_proto(element, [2]))) == set()


WRONG = [
    ("E3350", None),
    ("E3350", TypeProto()),
    ("E3351", helper.make_tensor_type_proto(0, [2])),
    ("E3351", helper.make_tensor_type_proto(999, [2])),
    ("E3351", helper.make_sequence_type_proto(helper.make_tensor_type_proto(0, [2]))),
    ("E3352", a_map(TensorProto.FLOAT)),
    ("E3353", helper.make_tensor_type_proto(TensorProto.FLOAT, [2, -1])),
    ("E3354", a_map(TensorProto.INT64, None)),
    ("E3354", deep(40)),
    ("W3352", helper.make_tensor_type_proto(TensorProto.FLOAT, None)),
    ("W3353", opaque()),
]


@pytest.mark.parametrize(("code", "kind"), WRONG, ids=[f"{code}-{n}" for n, (code, _) in enumerate(WRONG)])
def test_type_rules(code: str, kind: TypeProto | None) -> None:
    assert found(with_input(kind)) == {code}


def test_kinds_of_types_that_came_later() -> None:
    sequence, optional = RIGHT["sequence"], RIGHT["optional"]
    assert found(with_input(sequence, ir=5)) == {"W3354"}
    assert found(with_input(sequence, ir=6)) == set()
    assert found(with_input(optional, ir=7)) == {"W3354"}
    assert found(with_input(optional, ir=8)) == set()


def test_inputs_and_outputs_of_nested_graphs_need_no_types() -> None:
    model = text_model(
        "g (float[1] x, bool c) => (float[1] y) { y = If (c) <"
        "then_branch = a () => (t) { t = Relu(x) }, else_branch = b () => (t2) { t2 = Neg(x) }> }"
    )
    model.graph.node[0].attribute[0].g.output[0].ClearField("type")
    assert found(model) == set()


def test_value_info_is_looked_at() -> None:
    model = text_model("g (float[1] x) => (float[1] y) { z = Relu(x) y = Neg(z) }")
    model.graph.value_info.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [-1]))
    assert found(model) == {"E3353"}
