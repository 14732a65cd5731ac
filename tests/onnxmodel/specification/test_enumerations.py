"""Attributes that name one of a few values: the table against onnx's schemas, and what it refuses."""

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw.onnxmodel.specification import diagnose
from onnxhw.onnxmodel.specification.enumerations import ACTIVATIONS, CHOICES
from onnxhw.onnxmodel.specification.signatures import canonical

ML = "ai.onnx.ml"
LABELS = "the model's own labels, categories or words"
FREE = {
    ("", "Constant", "value_string"): "data",
    ("", "Constant", "value_strings"): "data",
    ("", "Einsum", "equation"): "an expression of its own grammar",
    ("", "RegexFullMatch", "pattern"): "a pattern of RE2",
    ("", "StringNormalizer", "locale"): "any name; what it means is the platform's",
    ("", "StringNormalizer", "stopwords"): LABELS,
    ("", "StringSplit", "delimiter"): "any text",
    ("", "TfIdfVectorizer", "pool_strings"): LABELS,
    (ML, "CategoryMapper", "cats_strings"): LABELS,
    (ML, "CategoryMapper", "default_string"): LABELS,
    (ML, "DictVectorizer", "string_vocabulary"): LABELS,
    (ML, "LabelEncoder", "classes_strings"): LABELS,
    (ML, "LabelEncoder", "default_string"): LABELS,
    (ML, "LabelEncoder", "keys_strings"): LABELS,
    (ML, "LabelEncoder", "values_strings"): LABELS,
    **{(ML, name, "classlabels_strings"): LABELS
       for name in ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier", "ZipMap")},
    (ML, "OneHotEncoder", "cats_strings"): LABELS,
    **{("ai.onnx.preview.training", "Gradient", name): "names of tensors" for name in ("xs", "y", "zs")},
}  # fmt: skip
"""String attributes that may be any text, with the reason."""
SCHEMAS = [one for one in onnx.defs.get_all_schemas_with_history() if not one.deprecated]


def strings(schema):
    kinds = (onnx.defs.OpSchema.AttrType.STRING, onnx.defs.OpSchema.AttrType.STRINGS)
    return [name for name, attribute in schema.attributes.items() if attribute.type in kinds]


def values(domain, op_type, name, version):
    versions = CHOICES[domain, op_type, name]
    return next((versions[since] for since in sorted(versions, reverse=True) if since <= version), ())


def test_every_string_attribute_of_every_schema_is_in_the_table_or_free():
    named = {(canonical(one.domain), one.name, name) for one in SCHEMAS for name in strings(one)}
    known = {(canonical(one.domain), one.name, name) for one in SCHEMAS for name in one.attributes}
    assert {*CHOICES} & {*FREE} == set()
    assert named - {*CHOICES, *FREE} == set()
    assert {*CHOICES, *FREE} <= known


def test_the_values_are_those_of_the_texts():
    """The text of each version has every value (of activations the operator's, of element types the enumeration), and
    the default is one of them; what a text lists in quotation marks is in the table."""
    for schema in SCHEMAS:
        for name, attribute in schema.attributes.items():
            key = canonical(schema.domain), schema.name, name
            if key not in CHOICES or name == "to":
                continue
            taken = values(*key, schema.since_version)
            if key[1:] == ("Attention", "softmax_precision") and schema.since_version < 25:
                continue  # its text lists none
            assert taken, (key, schema.since_version)
            text = schema.doc if name == "activations" else attribute.description
            if key[1:] == ("GRU", "direction"):
                text += attribute.default_value.s.decode()
            if not (key[1] == "TreeEnsemble" and name == "nodes_modes"):
                assert {str(one) for one in taken} <= set(re.findall(r"\w+", text)), (key, schema.since_version)
            default = helper.get_attribute_value(attribute.default_value) if attribute.default_value.name else None
            if default is not None and name != "activations":
                assert (default.decode() if isinstance(default, bytes) else default) in taken
            if name not in ("activations", "direction", "auto_pad") and isinstance(taken[0], str):
                quoted = {one.strip(",.") for one in re.findall(r"""["'`]([A-Za-z0-9_,]+)["'`]""", text)}
                names = {one for one in quoted if one.islower() == taken[0].islower()}
                other = {"sizes", "scales", "axes", "mode", "nearest", "keep_aspect_ratio_policy", "d", "scale", "T3",
                         "round_int", "length_original", "x_original", "x_resized", "output_width", "roi", "i",
                         "output_width_int", "length_resized", "max_sequence_length"}  # fmt: skip
                assert names - other <= {*taken}, (key, schema.since_version)


def codes(op_type, inputs=1, opset=21, domain="", **attributes):
    names = [f"x{index}" for index in range(inputs)]
    node = helper.make_node(op_type, names, ["y"], domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    sets = [helper.make_opsetid("", opset), helper.make_opsetid(ML, 5)]
    return {one.code for one in diagnose(helper.make_model(graph, opset_imports=sets)) if one.severity == "error"}


@pytest.mark.parametrize("key", sorted(key for key in CHOICES if key[0] in ("", ML)), ids="-".join)
def test_another_value_is_refused_and_each_of_the_list_is_not(key):
    domain, op_type, name = key
    for schema in SCHEMAS:
        if (canonical(schema.domain), schema.name) != (domain, op_type) or name not in schema.attributes:
            continue
        if not (taken := values(*key, schema.since_version)):
            continue
        kind = onnx.defs.OpSchema.AttrType
        several = schema.attributes[name].type in (kind.STRINGS, kind.INTS)
        tensor = schema.attributes[name].type == kind.TENSOR
        version = {"domain": ML} if domain else {"opset": schema.since_version}

        def one(value, several=several, tensor=tensor, version=version):
            if tensor:
                value = numpy_helper.from_array(np.array([0, value], np.uint8))
            return codes(op_type, schema.min_input, **{name: [value] if several else value}, **version)  # noqa: B023

        for wrong in ("EVIL", "", taken[0] + "x") if isinstance(taken[0], str) else (99, 100):
            assert "E3461" in one(wrong), (key, schema.since_version, wrong)
        if name != "activations":
            assert not any("E3461" in one(value) for value in taken), (key, schema.since_version)


@pytest.mark.parametrize(
    ("op_type", "opset", "name", "value", "wrong"),
    [
        ("Pad", 18, "mode", "wrap", True),
        ("Pad", 19, "mode", "wrap", False),
        ("ScatterND", 16, "reduction", "max", True),
        ("ScatterND", 18, "reduction", "max", False),
        ("GridSample", 16, "mode", "cubic", True),
        ("GridSample", 20, "mode", "bilinear", True),
        ("Resize", 10, "mode", "cubic", True),
        ("Resize", 13, "coordinate_transformation_mode", "tf_half_pixel_for_nn", True),
        ("Resize", 12, "coordinate_transformation_mode", "tf_half_pixel_for_nn", False),
        ("Cast", 5, "to", "float", False),
    ],
)
def test_the_values_are_those_of_the_version(op_type, opset, name, value, wrong):
    assert ("E3461" in codes(op_type, 2, opset, **{name: value})) is wrong


@pytest.mark.parametrize("each", [1, 2, 3])
def test_activations_are_as_many_as_the_directions_take(each):
    op_type = {1: "RNN", 2: "GRU", 3: "LSTM"}[each]
    for direction, count in (("forward", each), ("reverse", each), ("bidirectional", 2 * each)):
        for given in range(1, 9):
            names = ACTIVATIONS[:given]
            right = given == count or (op_type == "RNN" and given == 2)  # RNN's default is two
            found = codes(op_type, 3, 14, direction=direction, activations=names, hidden_size=2)
            assert ("E3461" not in found) is right, (direction, given)
    assert "E3461" not in codes(op_type, 3, 14, activations=["tanh", "RELU", "sigmoid"][:each], hidden_size=2)


def test_a_value_that_a_function_passes_on_is_seen_when_it_is_called():
    from onnxhw.errors import OnnxhwError
    from onnxhw.runtime.session import InferenceSession

    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
    g (uint8[2] x) => (uint8[2] y) { y = f.shift<way="UP">(x, x) }
    <domain: "f", opset_import: ["" : 21]> shift<way>(a, b) => (c) { c = BitShift<direction: string = @way>(a, b) }"""
    with pytest.raises(OnnxhwError, match=r"attribute 'direction' is 'UP'"):
        InferenceSession(onnx.parser.parse_model(text).SerializeToString())
