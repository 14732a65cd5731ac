"""Attributes of other types than their operators' schemas say: refused, whatever reads them on the way there."""

from contextlib import suppress

import onnx
import pytest
from onnx import TensorProto, defs, helper

from onnxhw.errors import OnnxhwError
from onnxhw.onnxmodel.shapes import specialise
from onnxhw.onnxmodel.specification.attributes import plain_values
from onnxhw.partition import read

OTHERS = (3, [3, 1], 1.5, b"text", [b"text"], helper.make_tensor("value", TensorProto.FLOAT, [1], [1.0]))
"""A value of each of six types."""
OPERANDS = 8
"""Most inputs that a node is given."""


def _model(schema, name, value):
    inputs = [f"x{i}" for i in range(min(schema.max_input, OPERANDS))]
    outputs = [f"y{i}" for i in range(max(schema.min_output, 1))]
    graph = helper.make_graph(
        [helper.make_node(schema.name, inputs, outputs, domain=schema.domain, **{name: value})], "graph",
        [helper.make_tensor_value_info(one, TensorProto.FLOAT, [2, 2, 3, 3]) for one in inputs],
        [helper.make_empty_tensor_value_info(one) for one in outputs],
    )  # fmt: skip
    imports = [helper.make_opsetid(schema.domain, schema.since_version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _operators(domain):
    return sorted({one.name for one in defs.get_all_schemas() if one.domain == domain})


def _wrong(schema):
    for name, attribute in schema.attributes.items():
        for value in OTHERS:
            made = helper.make_attribute(name, value)
            if made.type != onnx.AttributeProto.AttributeType.Value(str(attribute.type).rpartition(".")[2]):
                yield name, value


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml"])
def test_no_rule_trips_over_an_attribute_of_another_type(domain):
    for operator in _operators(domain):
        schema = defs.get_schema(operator, domain)
        for name, value in _wrong(schema):
            with suppress(OnnxhwError):  # any other error is a rule's that read a value of another type
                specialise(_model(schema, name, value))


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose", "Gemm", "LSTM", "MaxPool", "Reshape", "Softmax"])
def test_a_model_with_such_an_attribute_is_refused(operator):
    schema = defs.get_schema(operator)
    for name, value in _wrong(schema):
        with pytest.raises(OnnxhwError, match=name) as raised:
            read(_model(schema, name, value).SerializeToString())
        assert raised.value.code == "E3346", (operator, name, raised.value)


def test_values_are_those_of_the_type_that_the_rules_expect():
    node = helper.make_node("Gemm", ["a", "b"], ["y"], transA=1, transB=[1], direction="forward", group=2.0)
    assert plain_values(node) == {"transA": 1, "direction": "forward"}
