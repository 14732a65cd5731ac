"""Types of values: element types, shapes, sequences, maps, optionals."""

import onnx
import pytest
from onnx import TensorProto, TypeProto, helper

from onnxhw.onnxmodel import specification

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
    "deep": deep(45),
}


@pytest.mark.parametrize("name", RIGHT)
def test_types_of_every_kind(name: str) -> None:
    assert found(with_input(RIGHT[name])) == set()


@pytest.mark.parametrize("element", sorted(set(TensorProto.DataType.values()) - {0}))
def test_every_element_type(element: int) -> None:
    assert found(with_input(helper.make_tensor_type_proto(element, [2]), ir=14)) == set()


CAME = {"BFLOAT16": 4, "FLOAT8E4M3FN": 9, "FLOAT8E5M2FNUZ": 9, "INT4": 10, "UINT4": 10, "FLOAT4E2M1": 11,
        "FLOAT8E8M0": 12, "UINT2": 13, "FLOAT6E3M2": 14}  # fmt: skip
"""The IR version of some element types, as the history of onnx.proto has it."""


@pytest.mark.parametrize("name", CAME)
def test_element_types_that_came_later(name: str) -> None:
    """As the type of a value, an initializer, a constant in a nested graph: used, and said once."""
    element, tensor = TensorProto.DataType.Value(name), TensorProto(name="w", dims=[0])
    tensor.data_type = element
    typed = with_input(helper.make_tensor_type_proto(element, [2]))
    held = with_input(None)
    held.graph.input.pop()
    inner = onnx.GraphProto.FromString(held.graph.SerializeToString())
    held.graph.initializer.append(tensor)
    inner.node[0].attribute.append(helper.make_attribute("value", tensor))
    nested = with_input(None)
    nested.graph.input.pop()
    nested.graph.node[0].attribute.append(helper.make_attribute("body", inner))
    for model in (typed, held, nested):
        model.ir_version = CAME[name]
        assert "W3309" not in found(model)
        model.ir_version = CAME[name] - 1
        said = [one.what for one in specification.diagnose(model) if one.code == "W3309"]
        assert said == [
            f"element type {name} came with IR version {CAME[name]}, the model is {CAME[name] - 1}; it is used"
        ]


def _fields() -> dict[str, tuple[int, onnx.ModelProto]]:
    """A model for each field that came later, and the IR version."""
    made: dict[str, tuple[int, onnx.ModelProto]] = {}

    def model(since: int, name: str) -> onnx.ModelProto:
        made[name] = since, text_model("g (float[1] x) => (float[1] y) { y = Relu(x) }", opset=15)
        return made[name][1]

    model(5, "quantization_annotation").graph.quantization_annotation.add(tensor_name="x")
    model(6, "sparse_initializer").graph.sparse_initializer.add(dims=[1]).values.CopyFrom(
        TensorProto(name="s", dims=[0], data_type=TensorProto.FLOAT)
    )
    function = helper.make_function("local", "F", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])],
                                    [helper.make_opsetid("", 15)])  # fmt: skip
    defaults = model(9, "attribute_proto")
    defaults.functions.append(function)
    defaults.functions[0].attribute_proto.append(helper.make_attribute("alpha", 1.0))
    model(10, "overload").functions.append(function)
    made["overload"][1].functions[0].overload = "second"
    for name, place in (("node", "node"), ("value", "input")):
        getattr(model(10, f"metadata_props of a {name}").graph, place)[0].metadata_props.add(key="k", value="v")
    model(10, "metadata_props of the graph").graph.metadata_props.add(key="k", value="v")
    model(11, "configuration").configuration.add(name="c", num_devices=2)
    model(11, "device_configurations").graph.node[0].device_configurations.add(configuration_id="c")
    return made


FIELDS = _fields()


@pytest.mark.parametrize("name", FIELDS)
def test_fields_that_came_later(name: str) -> None:
    since, model = FIELDS[name]
    model.ir_version = since
    assert "W3309" not in found(model)
    model.ir_version = since - 1
    said = [one.what for one in specification.diagnose(model) if one.code == "W3309"]
    assert len(said) == 1
    assert said[0].startswith(f"the field {name.split()[0]} came with IR version {since}, ")


WRONG = [
    ("E3350", None),
    ("E3350", TypeProto()),
    ("E3351", helper.make_tensor_type_proto(0, [2])),
    ("E3351", helper.make_tensor_type_proto(999, [2])),
    ("E3351", helper.make_sequence_type_proto(helper.make_tensor_type_proto(0, [2]))),
    ("E3352", a_map(TensorProto.FLOAT)),
    ("E3353", helper.make_tensor_type_proto(TensorProto.FLOAT, [2, -2])),
    ("W3333", helper.make_tensor_type_proto(TensorProto.FLOAT, [2, -1])),
    ("W3333", helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [-1]))),
    ("E3354", a_map(TensorProto.INT64, None)),
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
    model.graph.value_info.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [-2]))
    assert found(model) == {"E3353"}
