"""Constants that are inputs, hidden names, graphs by reference and sizes of -1 are said in one way."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, inliner, numpy_helper

from onnxhw.errors import InvalidModelError
from onnxhw.onnxmodel import specification
from onnxhw.onnxmodel.read import read_model
from onnxhw.partition import read
from onnxhw.runtime.session import InferenceSession

from .text_models import IO, Model, X, codes, ours, same, text, theirs


def constants_as_inputs(graph: onnx.GraphProto, **values: Any) -> None:
    """Initializers of a nested graph that are inputs too, as IR 3 has them."""
    for name, value in values.items():
        graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        graph.input.append(helper.make_tensor_value_info(name, graph.initializer[-1].data_type, np.shape(value)))


def loop(condition: str, opset: int = 8) -> Model:
    """``x * 2 + 1``, n times or until the sum is large."""
    body = f"""k2 = {condition} a = Mul(s, two) s2 = Add(a, one) part = Identity(s2)"""
    proto = text(
        f"""g (float[1,3] x, int64 n, bool c) => (float[1,3] y, float[N,1,3] all) {{ y, all = Loop (n, c, x) <
        body = b (int64 i, bool k, float[1,3] s) => (bool k2, float[1,3] s2, float[1,3] part) {{ {body} }}> }}""",
        ("", opset),
        ir=3,
    )
    constants_as_inputs(proto.graph.node[0].attribute[0].g, one=np.float32([1]), two=np.float32([2]))
    return proto


def newer(proto: Model) -> Model:
    """The same model of IR 4: constants of nested graphs are no inputs."""
    made = Model.FromString(proto.SerializeToString())
    made.ir_version = 8
    for graph in specification.types.graphs(made):
        names = {tensor.name for tensor in graph.initializer}
        kept = [value for value in graph.input if value.name not in names]
        del graph.input[:]
        graph.input.extend(kept)
    return made


@pytest.mark.parametrize("trips", ["fed", "constant"])
def test_before_ir_4_a_constant_of_a_nested_graph_is_an_input(trips: str) -> None:
    proto = loop("Identity(k)", opset=9 if trips == "constant" else 8)
    feeds = {"x": X, "n": np.array(3, np.int64), "c": np.array(True)}
    if trips == "constant":  # known: no input of the model is
        for name in ("n", "c"):
            node = proto.graph.node.add(op_type="Constant", output=[name])
            node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(feeds.pop(name))))
        proto.graph.node.extend([proto.graph.node[0]])
        del proto.graph.node[0], proto.graph.input[1:]
    assert codes(proto) == set()
    same(ours(proto, **feeds), theirs(newer(proto), **feeds))
    same(ours(proto, **feeds)[:1], [X * 8 + 7])


def test_before_ir_4_in_scan_8_and_in_nested_graphs_of_nested_graphs() -> None:
    proto = text(
        """g (float[2,3] first, float[2,4,3] x) => (float[2,3] last, float[2,4,3] y) {
        last, y = Scan (, first, x) <num_scan_inputs = 1,
            body = b (float[3] s, float[3] e) => (float[3] s2, float[3] out) {
                s2 = Add(s, e)  below = Less(s2, limit)  all = ReduceMin(s2)  c = Less(all, zero)
                out = If (c) <then_branch = t () => (float[3] o1) { o1 = Mul(s2, two) },
                              else_branch = f () => (float[3] o2) { o2 = Mul(s2, three) }> }> }""",
        ("", 8),
        ir=3,
    )
    body = next(one.g for one in proto.graph.node[0].attribute if one.name == "body")
    constants_as_inputs(body, limit=np.float32([1]), zero=np.float32([0]))
    branches = [one.g for node in body.node for one in node.attribute if one.type == onnx.AttributeProto.GRAPH]
    for graph, (name, value) in zip(branches, {"two": 2.0, "three": 3.0}.items(), strict=True):
        constants_as_inputs(graph, **{name: np.float32([value])})
    assert codes(proto) == set()
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3) - 9
    first = np.float32([[1, 2, 3], [0, 0, 0]])
    sums = first[:, None] + np.cumsum(x, 1)
    wanted = np.where(sums.min(2, keepdims=True) < 0, sums * 2, sums * 3)
    same(ours(proto, first=first, x=x), [sums[:, -1], wanted])


SHADOW = """g (float[1,3] x, bool c, int64 n, bool go) => (float[1,3] y) {{ w = Neg(x)
    z = {node}  y = Add(z, w) }}"""
IF = """If (c) <then_branch = a () => (float[1,3] t) { t = Add(x, w) },
    else_branch = b () => (float[1,3] e) { e = Mul(x, w) }>"""
LOOP = """Loop (n, go, x) <body = b (int64 i, bool k, float[1,3] s) => (bool k2, float[1,3] s2)
    { k2 = Identity(k) s2 = Mul(s, w) }>"""
DEEP = """Loop (n, go, x) <body = b (int64 i, bool k, float[1,3] s) => (bool k2, float[1,3] s2)
    { k2 = Identity(k) v = Abs(w) s2 = If (c) <then_branch = a () => (float[1,3] t) { t = Add(v, w) },
      else_branch = f () => (float[1,3] e) { e = Mul(v, w) }> }>"""


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("node", [IF, LOOP, DEEP], ids=["if", "loop", "deep"])
@pytest.mark.parametrize("hidden", ["w", "x", "z"])
def test_an_initializer_hides_a_value_of_the_graph_around(node: str, hidden: str, known: bool) -> None:
    """Every initializer of a nested graph is named as a value around; the model with another name is the definition."""
    feeds = {"x": X, "c": np.array(True), "n": np.array(2, np.int64), "go": np.array(True)}
    proto = text(SHADOW.format(node=node), ("", 21))
    plain = text(SHADOW.format(node=node), ("", 21))
    for model, name in ((proto, hidden), (plain, "inside")):
        inner = [graph for graph in specification.types.graphs(model) if graph is not model.graph]
        for graph, value in zip(inner[-2:] if node is not LOOP else inner, (2.0, 4.0), strict=False):
            graph.initializer.append(numpy_helper.from_array(np.full((1, 3), value, np.float32), name))
            for one in graph.node:
                one.input[:] = [name if given in ("w", hidden) else given for given in one.input]
        if known:
            for entry in ("c", "n", "go"):
                model.graph.initializer.append(numpy_helper.from_array(feeds[entry], entry))
            kept = [value for value in model.graph.input if value.name == "x"]
            del model.graph.input[:]
            model.graph.input.extend(kept)
    if known:
        feeds = {"x": X}
    assert codes(proto) == ({"W3312"} if hidden != "z" else set())
    same(ours(proto, **feeds), theirs(plain, **feeds))
    same(ours(proto, **feeds), ours(plain, **feeds))
    names = [name for graph in specification.types.graphs(read_model(proto.SerializeToString())) for name in own(graph)]
    assert len(set(names)) == len(names)


def own(graph: onnx.GraphProto) -> set[str]:
    return {*(value.name for value in graph.input), *(tensor.name for tensor in graph.initializer)} - {"i", "k", "s"}


def by_reference(where: str) -> Model:
    """A function whose body's branches are attributes of the call."""
    uses = {
        "then": "y = If (c) <then_branch: graph = @first, else_branch: graph = @second>",
        "in a branch": """y = If (c) <then_branch = t () => (q) { q = If (c) <then_branch: graph = @first,
            else_branch: graph = @second> }, else_branch: graph = @second>""",
        "twice": """p = If (c) <then_branch: graph = @first, else_branch: graph = @second>
            n = Not(c) q = If (n) <then_branch: graph = @first, else_branch: graph = @second> y = Add(p, q)""",
        "handed on": "y = f.inner<first: graph = @first, second: graph = @second>(c)",
    }
    inner = """<domain: "f", opset_import: ["" : 21]> inner <first, second> (c) => (y) {
        y = If (c) <then_branch: graph = @first, else_branch: graph = @second> }"""
    outer = f'<domain: "f", opset_import: ["" : 21, "f" : 1]> outer <first, second> (c) => (y) {{ {uses[where]} }}'
    call = """f.outer<first = a () => (float[1,3] t) { t = Neg(w) },
        second = b () => (float[1,3] e) { v = Abs(w) e = Add(v, w) }> (c)"""
    body = f"g (float[1,3] x, bool c) => (float[1,3] y) {{ w = Add(x, x) y = {call} }}"
    return text(body, ("", 21), ("f", 1), functions=f"{outer}\n{inner}")


@pytest.mark.parametrize("where", ["then", "in a branch", "twice", "handed on"])
@pytest.mark.parametrize("condition", [True, False])
def test_a_graph_by_reference(where: str, condition: bool) -> None:
    proto = by_reference(where)
    assert codes(proto) == set()
    w = X + X
    first, second = -w, np.abs(w) + w
    wanted = first + second if where == "twice" else first if condition else second
    same(ours(proto, x=X, c=np.array(condition)), [wanted])
    flat = inliner.inline_local_functions(proto)
    same(ours(flat, x=X, c=np.array(condition)), [wanted])


def test_a_graph_by_reference_that_the_call_does_not_give() -> None:
    proto = by_reference("then")
    del proto.graph.node[1].attribute[1]
    with pytest.raises(InvalidModelError, match="E3367"):
        read(proto.SerializeToString())


def test_a_body_of_a_loop_by_reference() -> None:
    function = """<domain: "f", opset_import: ["" : 21]> again <body> (n, c, x) => (y) {
        y = Loop (n, c, x) <body: graph = @body> }"""
    proto = text(
        """g (float[1,3] x, int64 n, bool c) => (float[1,3] y) { y = f.again <body = b (int64 i, bool k, float[1,3] s)
        => (bool k2, float[1,3] s2) { k2 = Identity(k) s2 = Add(s, x) }> (n, c, x) }""",
        ("", 21),
        ("f", 1),
        functions=function,
    )
    same(ours(proto, x=X, n=np.array(3, np.int64), c=np.array(True)), [X * 4])


@pytest.mark.parametrize("size", [None, -1])
def test_a_size_of_minus_one_is_open(size: int | None) -> None:
    """Whatever is read of the model with -1 is read of the one with no size."""

    def sized(given: int | None) -> Model:
        proto = text("g (float[1,3] x, bool c) => (float[1,3] y) { z = Relu(x) y = Identity(z) }", ("", 21))
        proto.graph.value_info.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [given, given]))
        for value in (proto.graph.input[0], proto.graph.output[0]):
            value.CopyFrom(helper.make_tensor_value_info(value.name, TensorProto.FLOAT, [given, 3]))
        return proto

    proto = sized(size)
    assert codes(proto) == ({"W3333"} if size == -1 else set())
    mixed = read(proto.SerializeToString())
    assert [value.shape for value in mixed.inputs] == [
        value.shape for value in read(sized(None).SerializeToString()).inputs
    ]
    session = InferenceSession(proto.SerializeToString())
    for rows in (1, 2):
        x = np.tile(X, (rows, 1))
        same(list(session.run(None, {"x": x, "c": np.array(True)})), [np.maximum(x, 0)])


def test_other_sizes_below_zero_are_errors() -> None:
    proto = text(f"{IO} {{ y = Relu(x) }}", ("", 21))
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -2
    with pytest.raises(InvalidModelError, match="E3353"):
        read(proto.SerializeToString())


def test_sizes_of_minus_one_of_nested_graphs_and_sequences() -> None:
    proto = text(
        """g (float[1,3] x, bool c) => (float[1,3] y) { y = If (c) <then_branch = a () => (float[1,3] t)
        { s = SequenceConstruct(x, x) i = Constant<value = int64 {1}>() t = SequenceAt(s, i) },
        else_branch = b () => (float[1,3] e) { e = Neg(x) }> }""",
        ("", 21),
    )
    first = proto.graph.node[0].attribute[0].g
    first.output[0].CopyFrom(helper.make_tensor_value_info("t", TensorProto.FLOAT, [-1, -1]))
    first.value_info.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [-1, 3]))
    assert codes(proto) == {"W3333"}
    same(ours(proto, x=X, c=np.array(True)), [X])
    assert all(dim.dim_value != -1 for _, dim in specification.types.dims(read_model(proto.SerializeToString())))


@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_zero_pads_beside_computed_ones_are_none(auto: str) -> None:
    """Shape inference would take them, and onnxruntime takes no model with both."""
    size = "3,2" if auto == "VALID" else "4,3"
    body = f"""g (float[1,1,7,5] x, float[1,1,3,3] w) => (float[1,1,{size}] y)
        {{ y = Conv<kernel_shape=[3,3], PADS strides=[2,2], auto_pad="{auto}">(x, w) }}"""
    both, one = (text(body.replace("PADS", pads), ("", 21)) for pads in ("pads=[0,0,0,0],", ""))
    rng = np.random.default_rng(0)
    feeds = {name: rng.normal(size=(1, 1, *shape)).astype(np.float32) for name, shape in (("x", (7, 5)), ("w", (3, 3)))}
    wanted = onnxruntime.InferenceSession(one.SerializeToString()).run(None, feeds)
    same(ours(both, **feeds), wanted)
