"""Nodes in any order: sorted where an order exists, with a warning; else the errors of the specification."""

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw.errors import InvalidModelError
from onnxhw.onnxmodel.node_order import sort_nodes
from onnxhw.onnxmodel.prepared import prepare
from onnxhw.onnxmodel.read import read_model
from onnxhw.runtime.session import InferenceSession

from .text_models import IO, X, ours, same, text, theirs

BRANCHES = """{io} {{ c = Constant<value = bool {{1}}>() y = If (c) <
    then_branch = a () => (float[1,3] {gives}) {{ {then} }},
    else_branch = b () => (float[1,3] e) {{ e = Identity(x) }}> {later} }}"""


def branches(gives: str, then: str, later: str = "") -> onnx.ModelProto:
    return text(BRANCHES.format(io=IO, gives=gives, then=then, later=later))


FUNCTION = '<domain: "my", opset_import: ["": 21]> f (a) => (d) { d = Abs(b) b = Neg(a) }'
MODELS = {
    "graph": text(f"{IO} {{ y = Abs(z) z = Neg(x) }}"),
    "a branch": branches("t", "t = Abs(u) u = Neg(x)"),
    "what a branch reads": branches("t", "t = Neg(late)", "late = Neg(later) later = Abs(x)"),
    "what a branch gives": branches("late", "", "late = Abs(x)"),
    "function": text(f"{IO} {{ y = my.f(x) }}", ("", 21), ("my", 1), functions=FUNCTION),
}
"""Nodes that are not in topological order; y is |x|."""


@pytest.mark.parametrize("which", MODELS)
def test_nodes_in_another_order_are_sorted(which: str) -> None:
    model = MODELS[which]
    codes = [one.code for one in prepare(model).diagnostics]
    assert codes.count("W3380") == 1
    np.testing.assert_array_equal(ours(model)[0], np.abs(X))
    assert sort_nodes(read_model(model.SerializeToString())) == []


def chain(count: int, seed: int) -> onnx.ModelProto:
    """Sums of earlier values, shuffled, some constants among them."""
    draw = random.Random(seed)
    names, nodes = ["x"], []
    for index in range(count):
        if draw.random() < 0.2:
            value = numpy_helper.from_array(np.full((1, 3), index, np.float32))
            nodes.append(helper.make_node("Constant", [], [f"v{index}"], value=value))
        else:
            nodes.append(helper.make_node("Add", [draw.choice(names), draw.choice(names)], [f"v{index}"]))
        names.append(f"v{index}")
    nodes.append(helper.make_node("Sum", names, ["y"]))
    draw.shuffle(nodes)
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("seed", range(8))
def test_shuffled_nodes_give_what_sorted_ones_give(seed: int) -> None:
    model = chain(12, seed)
    before = sorted(node.SerializeToString() for node in model.graph.node)
    same(ours(model), theirs(model))
    (said,) = sort_nodes(model)
    assert (said.code, said.severity) == ("W3380", "warning")
    onnx.checker.check_model(model)
    assert sorted(node.SerializeToString() for node in model.graph.node) == before


def test_nodes_keep_their_order_where_they_can() -> None:
    model = text(f"{IO} {{ a = Relu(x) b = Neg(late) c = Abs(x) d = Abs(a) late = Neg(x) y = Sum(b, c, d) }}")
    sort_nodes(model)
    assert [node.output[0] for node in model.graph.node] == ["a", "c", "d", "late", "b", "y"]
    done = text(f"{IO} {{ z = Neg(x) w = Abs(x) y = Relu(z) }}")
    assert sort_nodes(done) == []
    assert [node.output[0] for node in done.graph.node] == ["z", "w", "y"]


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("y = Add(x, z) z = Neg(y)", {"E3315"}),
        ("y = Add(x, z) z = Neg(y) v = Relu(w) w = Neg(x)", {"E3314", "E3315"}),
        ("y = Relu(z) z = Neg(x) z = Abs(x)", {"E3314", "E3311"}),
    ],
)
def test_what_cannot_be_sorted_stays_an_error(body: str, codes: set[str]) -> None:
    model = text(f"{IO} {{ {body} }}")
    before = model.SerializeToString()
    assert sort_nodes(model) == []
    assert model.SerializeToString() == before
    with pytest.raises(InvalidModelError) as error:
        InferenceSession(model)
    assert {one.code for one in error.value.diagnostics if one.severity == "error"} == codes


def test_what_the_float16_converter_writes_runs() -> None:
    reason = "needs onnxruntime (pip install onnxhw[ort])"
    float16 = pytest.importorskip("onnxruntime.transformers.float16", reason=reason)
    model = text(
        "g (float[1,3] x, float[1,3] w) => (float[1,3] y, float[1,3] z) { a = Add(x, w) y = Relu(a) z = Mul(a, w) }"
    )
    made = float16.convert_float_to_float16(model, keep_io_types=True)
    assert "W3380" in {one.code for one in prepare(made).diagnostics}
    for result, wanted in zip(ours(made, x=X, w=X), (np.maximum(2 * X, 0), 2 * X * X), strict=True):
        np.testing.assert_array_equal(result, wanted)
