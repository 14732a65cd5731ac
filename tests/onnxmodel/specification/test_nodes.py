"""Nodes: operators, arity, omitted inputs and outputs, attributes of every type."""

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, helper, numpy_helper

from onnxhw.onnxmodel.specification import diagnose

from .conftest import found, text_model

IO = "g (float[1,3] x) => (float[1,3] y)"
WIDE = "g (float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,6,6] y)"

CASES = [
    ("E3330", f"{IO} {{ y = Swish(x) }}", f"{IO} {{ y = Relu(x) }}"),
    ("E3304", f"{IO} {{ y = org.other.Thing(x) }}", f"{IO} {{ y = Relu(x) }}"),
    ("E3332", f"{IO} {{ y = Relu() }}", f"{IO} {{ y = Relu(x) }}"),
    ("E3332", f"{IO} {{ y = Relu(x, x) }}", f"{IO} {{ y = Relu(x) }}"),
    ("E3332", f"{IO} {{ y = Concat<axis=0>() }}", f"{IO} {{ y = Concat<axis=0>(x) }}"),
    ("E3333", f"{IO} {{ y, z = Relu(x) }}", f"{IO} {{ y = Relu(x) }}"),
    ("E3334", f'{IO} {{ y = Add(x, "") }}', f"{IO} {{ y = Add(x, x) }}"),
    ("E3334", f'{IO} {{ y = Max("", x) }}', f"{IO} {{ y = Max(x, x, x, x) }}"),
    ("E3335", f'{IO} {{ "" = Relu(x) y = Neg(x) }}', f'{IO} {{ y, "" = Dropout(x) }}'),
    ("E3340", f"{IO} {{ y = Elu<alpha=1.0, alpha=2.0>(x) }}", f"{IO} {{ y = Elu<alpha=1.0>(x) }}"),
    ("E3344", f"{IO} {{ y = Relu<alpha=1.0>(x) }}", f"{IO} {{ y = Relu<__note=1.0>(x) }}"),
    ("E3345", f"{IO} {{ y = Concat(x, x) }}", f"{IO} {{ y = Concat<axis=1>(x, x) }}"),
    ("E3346", f"{IO} {{ y = Elu<alpha=1>(x) }}", f"{IO} {{ y = Elu<alpha=1.0>(x) }}"),
    ("E3347", f"{IO} {{ y = Elu<alpha: float = @a>(x) }}", f"{IO} {{ y = Elu<alpha=1.0>(x) }}"),
]


def test_windows_that_are_alike_are_each_reported() -> None:
    body = "{ y = Conv<strides=[0,1]>(x, w) z = Conv<strides=[0,1]>(x, w) a = Conv(x, w) b = Conv(x, w) }"
    model = text_model(f"{WIDE} {body}".replace("float[1,4,6,6] y", "y, z, a, b"))
    assert [one.code for one in diagnose(model)].count("E3380") == 2


def test_a_list_that_belongs_to_another_operator() -> None:
    assert found(text_model(f"{WIDE} {{ y = Conv<shape=[2,2]>(x, w) }}")) == {"E3344"}


def test_an_attribute_of_a_later_operator_set_is_said_to_be_one() -> None:
    """As a quantizer leaves scales per channel in a model of operator set 11."""
    graph = "g (int8[2,3] x, float s) => (float[2,3] y) { y = DequantizeLinear<axis=0>(x, s) }"
    (one,) = (each for each in diagnose(text_model(graph, opset=11)) if each.code == "E3344")
    assert "operator set 13 has it" in one.hint
    graph = f"{IO} {{ y = Relu<alpha=1.0>(x) }}"
    (other,) = (each for each in diagnose(text_model(graph)) if each.code == "E3344")
    assert "operator set" not in other.hint


@pytest.mark.parametrize(
    ("code", "broken", "right"), CASES, ids=[f"{code}-{n}" for n, (code, _, _) in enumerate(CASES)]
)
def test_node_rules(code: str, broken: str, right: str) -> None:
    assert found(text_model(right)) == set()
    assert found(text_model(broken)) == {code}


def test_an_operator_that_came_later_says_when() -> None:
    model = text_model(f"{IO} {{ y = Gelu(x) }}", opset=19)
    assert found(model) == {"E3330"}
    assert found(text_model(f"{IO} {{ y = Gelu(x) }}", opset=20)) == set()
    old = text_model(f"{IO} {{ y = ThresholdedRelu(x) }}", opset=9)  # changed again in version 22
    assert [one.hint for one in diagnose(old) if one.code == "E3330"] == ["it came with version 10"]


def test_an_operator_of_no_version_is_a_warning() -> None:
    """It may be one of a later release, or somebody's own: the node is refused, the model is not called invalid."""
    model = text_model(f"{IO} {{ y = NoSuchOperator(x) }}")
    assert [(one.code, one.severity) for one in diagnose(model) if one.code in found(model)] == [("W3330", "warning")]


def test_deprecated_operators() -> None:
    body = "g (float[1,1,2,2] x, float[4] s) => (float[1,1,4,4] y) { y = Upsample(x, s) }"
    assert found(text_model(body, opset=9)) == set()
    assert found(text_model(body, opset=10)) == {"E3331"}


def test_a_node_without_an_operator() -> None:
    model = text_model(f"{IO} {{ y = Relu(x) }}")
    model.graph.node[0].op_type = ""
    assert found(model) == {"E3336"}


def test_a_node_of_an_extension_needs_outputs() -> None:
    model = text_model(f"{IO} {{ y = Relu(x) }}", more=', "com.microsoft" : 1')
    model.graph.node.add(op_type="Thing", domain="com.microsoft", input=["x"])
    assert found(model) == {"E3333"}
    model.graph.node[1].output.append("z")
    assert found(model) == set()


@pytest.mark.parametrize(
    "nodes",
    [
        'y = Clip(x, "", m)',
        "y = Clip(x, m)",
        "y = Clip(x)",
        "y, mask = Dropout(x)",
        'y, "" = Dropout(x)',
        "y = Dropout(x)",
        "y = Sum(x, x, x, x, x)",
        "y, z = Split<num_outputs=2, axis=1>(x)",
    ],
)
def test_both_ways_to_leave_something_out_and_variadics(nodes: str) -> None:
    assert found(text_model(f"g (float[1,4] x, float m) => (float[1,4] y) {{ {nodes} }}")) == set()


def node_with(attribute: AttributeProto, op_type: str = "Thing") -> onnx.ModelProto:
    model = text_model(f"{IO} {{ y = Relu(x) }}", more=', "com.microsoft" : 1')
    node = model.graph.node.add(op_type=op_type, domain="com.microsoft", input=["x"], output=["z"])
    node.attribute.append(attribute)
    return model


TENSOR = numpy_helper.from_array(np.zeros(2, np.float32), "t")
SPARSE = helper.make_sparse_tensor(TENSOR, numpy_helper.from_array(np.array([0, 2]), "i"), [4])
GRAPH = helper.make_graph(
    [helper.make_node("Relu", ["x"], ["q"])], "inner", [], [helper.make_tensor_value_info("q", 1, [1])]
)
TYPE = helper.make_tensor_type_proto(1, [2])
VALUES = [1.5, 3, "text", TENSOR, GRAPH, SPARSE, TYPE, [1.5], [3], ["a"], [TENSOR], [GRAPH], [SPARSE], [TYPE]]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_attributes_of_every_type(value: object) -> None:
    attribute = helper.make_attribute("a", value)
    assert found(node_with(attribute)) == set()
    attribute.type = AttributeProto.INT if attribute.type != AttributeProto.INT else AttributeProto.FLOAT
    assert found(node_with(attribute)) == {"E3343"}


def changed(**values: object) -> AttributeProto:
    attribute = helper.make_attribute("a", 3)
    for name, value in values.items():
        setattr(attribute, name, value)
    return attribute


@pytest.mark.parametrize(
    ("code", "attribute"),
    [
        ("E3341", changed(name="")),
        ("E3342", changed(type=AttributeProto.UNDEFINED)),
        ("E3343", changed(f=1.0)),
        ("E3343", AttributeProto(name="a", type=AttributeProto.TENSOR)),
        ("W3340", helper.make_attribute("a", float("nan"))),
        ("W3340", helper.make_attribute("a", [1.0, float("nan")])),
        ("W3341", AttributeProto(name="a", type=AttributeProto.STRING, s=b"\xff\xfe")),
        ("W3341", AttributeProto(name="a", type=AttributeProto.STRINGS, strings=[b"ok", b"\xff"])),
    ],
)
def test_attribute_values(code: str, attribute: AttributeProto) -> None:
    assert found(node_with(attribute)) == {code}


def test_a_number_that_a_writer_left_out_is_zero() -> None:
    assert found(node_with(AttributeProto(name="a", type=AttributeProto.INT))) == set()


def test_infinite_attributes_are_fine() -> None:
    assert found(node_with(helper.make_attribute("a", float("inf")))) == set()


def test_attributes_in_nested_graphs_are_looked_at() -> None:
    graph = onnx.GraphProto()
    graph.CopyFrom(GRAPH)
    graph.node[0].attribute.append(changed(name=""))
    assert found(node_with(helper.make_attribute("g", graph))) == {"E3341"}


WINDOWS: list[tuple[str, str, str]] = [
    ("E3380", "Conv<strides=[0,1]>(x, w)", "Conv<strides=[1,1]>(x, w)"),
    ("E3380", "Conv<dilations=[1,-1]>(x, w)", "Conv<dilations=[1,1]>(x, w)"),
    ("E3380", "MaxPool<kernel_shape=[0,3]>(x)", "MaxPool<kernel_shape=[3,3]>(x)"),
    ("E3381", "Conv<group=0>(x, w)", "Conv<group=1>(x, w)"),
    ("E3381", "Conv<group=-1>(x, w)", "Conv(x, w)"),
    ("E3381", "Conv<group=3>(x, w)", "Conv(x, w)"),
    ("E3382", "Conv<pads=[-1,0,0,0]>(x, w)", "Conv<pads=[1,0,0,0]>(x, w)"),
    ("E3383", "Conv<pads=[1,1]>(x, w)", "Conv<pads=[1,1,1,1]>(x, w)"),
    ("E3383", "Conv<strides=[1,1,1]>(x, w)", "Conv<strides=[1,1]>(x, w)"),
    ("E3383", "AveragePool<kernel_shape=[3]>(x)", "AveragePool<kernel_shape=[3,3]>(x)"),
    ("E3384", "Conv<kernel_shape=[5,5]>(x, w)", "Conv<kernel_shape=[3,3]>(x, w)"),
    ("E3461", 'Conv<auto_pad="EVIL">(x, w)', 'Conv<auto_pad="SAME_UPPER">(x, w)'),
    ("E3385", 'Conv<auto_pad="VALID", pads=[1,1,1,1]>(x, w)', 'Conv<auto_pad="VALID", pads=[0,0,0,0]>(x, w)'),
    ("E3388", "Conv<dilations=[4,4]>(x, w)", "Conv<dilations=[3,3]>(x, w)"),
    ("E3388", "MaxPool<kernel_shape=[9,9]>(x)", "MaxPool<kernel_shape=[8,8]>(x)"),
    (
        "E3388",
        "MaxPool<kernel_shape=[10,9], strides=[2,2], ceil_mode=1>(x)",
        "MaxPool<kernel_shape=[9,9], strides=[2,2], ceil_mode=1>(x)",
    ),
    ("E3388", "MaxPool<kernel_shape=[9,9], ceil_mode=1>(x)", "MaxPool<kernel_shape=[8,8], ceil_mode=1>(x)"),
    (
        "E3388",
        'MaxPool<kernel_shape=[2,4611686018427387907], auto_pad="SAME_UPPER">(x)',
        'MaxPool<kernel_shape=[2,32], auto_pad="SAME_UPPER">(x)',
    ),
    ("E3357", "Concat<axis=1>(x, halves)", "Concat<axis=0>(rest, halves)"),
    ("E3393", "Concat<axis=1>(x, w)", "Concat<axis=1>(x, x)"),
    ("E3389", "MaxPool<kernel_shape=[3,3], pads=[4,0,0,0]>(x)", "MaxPool<kernel_shape=[3,3], pads=[3,0,0,0]>(x)"),
    ("E3386", "Softmax<axis=4>(x)", "Softmax<axis=-4>(x)"),
    ("E3386", "Flatten<axis=5>(x)", "Flatten<axis=4>(x)"),
    ("E3386", "Squeeze(x, five)", "Squeeze(x, zero)"),
    ("E3387", "Squeeze(x, zeros)", "Squeeze(x, zero)"),
    ("E3387", "Transpose<perm=[0,1,1,2]>(x)", "Transpose<perm=[0,2,1,3]>(x)"),
    ("E3387", "Transpose<perm=[0,1]>(x)", "Transpose(x)"),
    ("E3390", "Reshape(x, twice)", "Reshape(x, rest)"),
    ("E3390", "Reshape(x, other)", "Reshape(x, rest)"),
    ("E3391", "Range(lone, lone, none)", "Range(lone, lone, lone)"),
    ("E3391", "Range(half, half, nothing)", "Range(half, half, half)"),
    ("E3392", "Split<axis=1>(x, halves)", "Split<axis=1>(x, three)"),
]
CONSTANTS = {
    "zero": [0],
    "zeros": [0, 0],
    "five": [5],
    "twice": [-1, -1],
    "rest": [0, -1],
    "other": [1, 100],
    "halves": [2, 2],
    "three": [3],
}


def window_model(node: str) -> onnx.ModelProto:
    model = text_model(f"{WIDE} {{ y = {node} }}")
    for name, values in CONSTANTS.items():
        model.graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), name))
    for name, value in (("lone", 1), ("none", 0)):
        model.graph.initializer.append(numpy_helper.from_array(np.array(value, np.int64), name))
    for name, number in (("half", 0.5), ("nothing", 0.0)):
        model.graph.initializer.append(numpy_helper.from_array(np.array(number, np.float32), name))
    return model


@pytest.mark.parametrize(
    ("code", "broken", "right"), WINDOWS, ids=[f"{code}-{n}" for n, (code, _, _) in enumerate(WINDOWS)]
)
def test_operator_rules(code: str, broken: str, right: str) -> None:
    assert found(window_model(right)) == set()
    assert found(window_model(broken)) == {code}


def test_operands_and_attributes_of_other_types_are_left_to_other_rules() -> None:
    model = window_model("Transpose<perm=1.0>(x)")
    assert found(model) == {"E3346"}
    model = window_model("Reshape(x, text)")
    model.graph.initializer.append(helper.make_tensor("text", onnx.TensorProto.STRING, [2], [b"a", b"b"]))
    assert found(model) == set()


@pytest.mark.parametrize(
    ("node", "codes"),
    [
        ("x2, h2 = ai.onnx.preview.training.Adagrad(r, t, x, x, x)", set()),
        ("x2, h2 = ai.onnx.preview.training.Adagrad(r, t, x, x)", {"E3332"}),
        ("x2 = ai.onnx.preview.training.Adagrad(r, t, x, x, x)", {"E3333"}),
        ("x2, v2, h2 = ai.onnx.preview.training.Adam(r, t, x, x, x, x)", set()),
        ("x2, v2, h2 = ai.onnx.preview.training.Adam(r, t, x, x, x)", {"E3332"}),
        ("x2, v2, x3, v3 = ai.onnx.preview.training.Momentum(r, t, x, x, x)", {"E3333"}),
    ],
)
def test_a_step_of_training_has_the_same_values_of_each_tensor(node: str, codes: set[str]) -> None:
    attributes = "<alpha=0.9, beta=0.9, mode=\"standard\", norm_coefficient=0.0>" if "Momentum" in node else ""
    head = '<ir_version: 10, opset_import: ["ai.onnx.preview.training": 1]> g (float r, int64 t, float[2] x)'
    step = node.replace("Momentum(", f"Momentum {attributes} (")
    model = onnx.parser.parse_model(f"{head} => (float[2] x2) {{ {step} }}")
    assert {code for code in found(model) if code[0] == "E"} == codes


def test_pads_of_a_convolution_may_be_large() -> None:
    assert found(window_model("Conv<pads=[9,9,9,9]>(x, w)")) == set()


def test_groups_of_convolutions() -> None:
    body = "g (float[1,4,8,8] x, float[8,2,3,3] w) => (float[1,8,6,6] y) { y = Conv<group=2>(x, w) }"
    assert found(text_model(body)) == set()
    assert found(text_model(body.replace("group=2", "group=4"))) == {"E3381"}
    body = "g (float[1,4,8,8] x, float[4,2,3,3] w) => (float[1,4,10,10] y) { y = ConvTranspose<group=2>(x, w) }"
    assert found(text_model(body)) == set()
    assert found(text_model(body.replace("float[4,2", "float[6,2"))) == {"E3381"}


def test_nodes_that_are_alike_are_judged_once_and_those_that_are_not_each() -> None:
    good, bad = "Elu<alpha=1.0>(x)", "Elu<alpha=1>(x)"
    body = f"{{ y = {good} z = {good} a = {bad} b = {bad} c = Elu<beta=1.0>(x) d = Elu(x, x) e, f = {good} }}"
    codes = [one.code for one in diagnose(text_model(f"g (float[1,3] x) => (y, z, a, b, c, d, e, f) {body}"))]
    assert [codes.count(code) for code in ("E3346", "E3344", "E3332", "E3333")] == [2, 1, 1, 1]


def test_names_of_attributes_count_in_every_node() -> None:
    model = text_model(f"{IO} {{ t = Relu<__a=1>(x) y = Relu<__a=1>(t) }}")
    for node in model.graph.node:
        node.attribute[0].name = "__a-b"
    (said,) = [one for one in diagnose(model) if one.code == "W3310"]
    assert "2 names" in said.what


def test_a_transposed_convolution_of_weights_of_unknown_shape_may_have_strides():
    """Neither its kernel nor how many dimensions it has is known."""
    text = "g (float[N,C,H,W] x, float w) => (float z) { [a] z = ConvTranspose<strides=[2,2]>(x, w) }"
    model = text_model(text.replace("float w", "float[A,B,D,E] w").replace("float z", "float[N,M,F,G] z"))
    assert not {code for code in found(model) if code.startswith("E")}
