"""Model-local functions: inlining is exact, bounded before it happens, and refuses what contradicts itself."""

import time
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, parser

from onnxhw.errors import InvalidModelError
from onnxhw.onnxfile.limits import LimitError, Limits
from onnxhw.onnxmodel import specification
from onnxhw.onnxmodel.inline import inline
from onnxhw.partition import read
from onnxhw.runtime.session import InferenceSession

X = np.array([[-2.0, 0.5, 3.0]], np.float32)
IO = "g (float[1,3] x) => (float[1,3] y)"
HEAD = '<ir_version: 10, opset_import: ["" : 21, "f" : 1], domain: "org.example">'


def model(body: str, *functions: str, head: str = HEAD) -> onnx.ModelProto:
    return parser.parse_model("\n".join([head, body, *functions]))


def function(text: str, opset: int = 21, overload: str = "") -> str:
    more = f', overload: "{overload}"' if overload else ""
    return f'<domain: "f", opset_import: ["" : {opset}, "f" : 1]{more}> {text}'


def run(proto: onnx.ModelProto, **feeds: Any) -> list[Any]:
    ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install onnxhw[ort])")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds or {"x": X}))


def check(proto: onnx.ModelProto, **feeds: Any) -> onnx.ModelProto:
    """Inlined, valid, and the same function; the given model is untouched."""
    before = proto.SerializeToString()
    assert {one.severity for one in specification.diagnose(proto)} <= {"info"}
    flat = inline(proto)
    assert proto.SerializeToString() == before
    assert not flat.functions
    assert {one.severity for one in specification.diagnose(flat)} <= {"info"}
    onnx.checker.check_model(flat)
    for ours, theirs in zip(run(flat, **feeds), run(proto, **feeds), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    return flat


def refused(proto: onnx.ModelProto, code: str) -> str:
    """Found by diagnosis, and by inlining without it."""
    assert code in {one.code for one in specification.diagnose(proto)}
    with pytest.raises(InvalidModelError, match=code) as caught:
        inline(proto)
    return str(caught.value)


DOUBLE = function("double (a) => (b) { t = Add(a, a) b = Identity(t) }")


def test_a_model_without_functions_is_returned_as_it_is() -> None:
    plain = model(f"{IO} {{ y = Relu(x) }}")
    assert inline(plain) is plain


def test_calls_become_bodies_under_fresh_names() -> None:
    flat = check(model(f"{IO} {{ t = f.double(x) y = f.double(t) }}", DOUBLE))
    assert [node.op_type for node in flat.graph.node] == ["Add", "Identity"] * 2
    assert [entry.domain for entry in flat.opset_import] == [""]


def test_attributes_and_their_defaults() -> None:
    text = function(
        "act <slope, alpha: float = 0.25> (a) => (b) {"
        " t = LeakyRelu<alpha: float = @slope>(a) b = Elu<alpha: float = @alpha>(t) }"
    )
    flat = check(model(f"{IO} {{ t = f.act<slope=0.5>(x) y = f.act<slope=0.5, alpha=2.0>(t) }}", text))
    assert [node.attribute[0].f for node in flat.graph.node] == [0.5, 0.25, 0.5, 2.0]
    assert not any(attribute.ref_attr_name for node in flat.graph.node for attribute in node.attribute)


def test_an_attribute_that_is_not_given_is_the_operators_default() -> None:
    act = function("act <alpha> (a) => (b) { b = Elu<alpha: float = @alpha>(a) }")
    outer = function("outer <k> (a) => (b) { b = f.act<alpha: float = @k>(a) }")
    plain = model(f"{IO} {{ y = Elu(x) }}", act)
    for proto in (model(f"{IO} {{ y = f.act(x) }}", act), model(f"{IO} {{ y = f.outer(x) }}", act, outer)):
        assert {one.code for one in specification.diagnose(proto) if one.severity == "warning"} == {"W3334"}
        flat = inline(proto)
        assert not flat.graph.node[0].attribute
        assert [got.tolist() for got in run(flat)] == [got.tolist() for got in run(plain)]
        assert [got.tolist() for got in InferenceSession(proto.SerializeToString()).run(None, {"x": X})] == [
            got.tolist() for got in run(proto)
        ]
    given = model(f"{IO} {{ y = f.act<alpha=3.0>(x) }}", act)
    assert run(inline(given))[0].tolist() != run(plain)[0].tolist()
    proto.functions[0].ClearField("attribute")
    assert not inline(proto).graph.node[0].attribute


def test_the_default_of_a_function_that_is_called_comes_before_the_operators() -> None:
    act = function("act <alpha: float = 3.0> (a) => (b) { b = Elu<alpha: float = @alpha>(a) }")
    outer = function("outer <k> (a) => (b) { b = f.act<alpha: float = @k>(a) }")
    flat = inline(model(f"{IO} {{ y = f.outer(x) }}", act, outer))
    assert [node.attribute[0].f for node in flat.graph.node] == [3.0]


def test_an_attribute_that_is_not_given_and_has_no_default_anywhere() -> None:
    proto = model(f"{IO} {{ y = f.act(x) }}", function("act <to> (a) => (b) { b = Cast<to: int = @to>(a) }"))
    with pytest.raises(InvalidModelError, match=r"E3367.*'to'.*must have"):
        inline(proto)


def test_attributes_pass_through_calls() -> None:
    inner = function("inner <k> (a) => (b) { b = Elu<alpha: float = @k>(a) }")
    outer = function("outer <k> (a) => (b) { b = f.inner<k: float = @k>(a) }")
    flat = check(model(f"{IO} {{ y = f.outer<k=3.0>(x) }}", inner, outer))
    assert [node.attribute[0].f for node in flat.graph.node] == [3.0]


def test_an_attribute_of_another_type() -> None:
    proto = model(f"{IO} {{ y = f.act<k=3>(x) }}", function("act <k> (a) => (b) { b = Elu<alpha: float = @k>(a) }"))
    with pytest.raises(InvalidModelError, match="E3369"):
        inline(proto)


def test_omitted_inputs_and_outputs() -> None:
    text = function("clip (a, low, high) => (b, c) { b = Clip(a, low, high) c = Neg(a) }")
    flat = inline(model('g (float[1,3] x, float m) => (float[1,3] y) { y = f.clip(x, "", m) }', text))
    assert list(flat.graph.node[0].input) == ["x", "", "m"]
    np.testing.assert_array_equal(run(flat, x=X, m=np.array(1, np.float32))[0], np.minimum(X, 1))
    flat = inline(model(f'{IO} {{ "", y = f.clip(x) }}', text))
    assert list(flat.graph.node[0].input) == ["x"]
    np.testing.assert_array_equal(run(flat)[0], -X)


def test_a_function_that_returns_its_input() -> None:
    text = function("both (a, u) => (a, b) { b = Neg(a) }")
    flat = inline(model("g (float[1,3] x) => (float[1,3] p, float[1,3] q) { p, q = f.both(x, x) }", text))
    np.testing.assert_array_equal(run(flat)[0], X)
    np.testing.assert_array_equal(run(flat)[1], -X)
    text = function("second (a, u) => (u) { b = Neg(a) }")
    with pytest.raises(InvalidModelError, match="E3368"):
        inline(model(f"{IO} {{ y = f.second(x) }}", text))


PAIR = "pair (a, b) => (p, q) { p = Neg(a) s = Add(a, b) q = Relu(s) }"


@pytest.mark.parametrize(
    "text",
    [
        "add (a, b) => (c) { c = Add(a, b) }",
        "add (a, b) => (c) { m = Max(b, a) s = Neg(m) c = Sub(s, a) }",
        "add (a, b) => (c) { c = f.inner(a, b) }",
        "add (a, b) => (c) { c = f.inner(a) }",
        "add (a, b) => (c) { n, c = f.pair(a, b) }",
    ],
)
@pytest.mark.parametrize("call", ["f.add(x)", 'f.add(x, "")'])
def test_an_input_that_is_left_out_and_needed(text: str, call: str) -> None:
    functions = [function(one) for one in (text, "inner (u, v) => (w) { w = Mul(u, v) }", PAIR)]
    proto = model(f"{IO} {{ [here] y = {call} }}", *functions)
    with pytest.raises(InvalidModelError, match=r"E3373.*leaves out input '[bv]'"):
        read(proto)
    whole = functions[0], function("inner (u, v) => (w) { w = Neg(u) }"), functions[2]
    assert read(model(f"{IO} {{ y = f.add(x, x) }}", *whole)).placement


def test_an_input_that_is_left_out_and_not_needed() -> None:
    proto = model(f"{IO} {{ y, n = f.pair(x) m = Abs(n) }}", function(PAIR))
    flat = inline(proto)
    assert [node.op_type for node in flat.graph.node] == ["Neg"]
    np.testing.assert_array_equal(run(flat)[0], -X)
    assert [row.op_type for row in read(proto).placement] == ["Neg"]
    clip = inline(model(f"{IO} {{ y = f.clip(x) }}", function("clip (a, l, h) => (c) { c = Clip(a, l, h) }")))
    assert list(clip.graph.node[0].input) == ["x"]


def test_overloads_are_different_functions() -> None:
    proto = model(
        "g (float[1,3] x) => (float[1,3] y, float[1,3] z) { y = f.act(x) z = f.act(x) }",
        function("act (a) => (b) { b = Neg(a) }", overload="one"),
        function("act (a) => (b) { b = Abs(a) }", overload="two"),
    )
    proto.graph.node[0].overload, proto.graph.node[1].overload = "two", "one"
    flat = inline(proto)
    np.testing.assert_array_equal(run(flat)[0], np.abs(X))
    np.testing.assert_array_equal(run(flat)[1], -X)
    proto.graph.node[0].overload = "three"
    assert "it has f::act:one, f::act:two" in refused(proto, "E3362")


def test_metadata_of_nodes_is_kept() -> None:
    proto = model(f"{IO} {{ y = f.double(x) }}", DOUBLE)
    proto.functions[0].node[0].metadata_props.add(key="origin", value="here")
    proto.functions[0].node[0].doc_string = "a sum"
    (node, _) = inline(proto).graph.node
    assert (node.metadata_props[0].value, node.doc_string) == ("here", "a sum")


NESTED = """cond (a, c) => (b) { b = If (c) <
    then_branch = p () => (t) { t = f.double(a) }, else_branch = q () => (u) { w = Neg(a) u = f.double(w) }> }"""


@pytest.mark.parametrize("condition", [True, False])
def test_nested_graphs_in_functions_and_calls_in_nested_graphs(condition: bool) -> None:
    proto = model(
        "g (float[1,3] x, bool c) => (float[1,3] y) { t = Abs(x) w = f.cond(t, c) y = f.cond(w, c) }",
        DOUBLE,
        function(NESTED),
    )
    check(proto, x=X, c=np.array(condition))


def test_a_doc_string_that_is_not_utf8_is_nobodys_business() -> None:
    """protobuf reads it all the same, as bytes; in nodes and in nested graphs."""
    proto = model("g (float[1,3] x, bool c) => (float[1,3] y) { y = f.cond(x, c) }", DOUBLE, function(NESTED))
    for one in proto.functions:
        one.node[0].doc_string = "sum"
        for attribute in one.node[0].attribute:
            attribute.g.doc_string = "sum"
    data = proto.SerializeToString()
    assert data.count(b"sum") > 2
    assert read(data.replace(b"sum", b"s\xa0m")).counts() == read(data).counts()


def test_a_graph_that_is_passed_keeps_the_callers_names() -> None:
    proto = model(
        f"{IO} {{ t = Abs(x) y = f.pick<g = h () => (float[1,3] r) {{ r = Neg(t) }}>(x) }}",
        function(
            "pick <g> (x) => (b) { c = Constant<value = bool {1}>() t = Exp(x) "
            "b = If (c) <then_branch: graph = @g, else_branch: graph = @g> }"
        ),
    )
    np.testing.assert_array_equal(run(inline(proto))[0], -np.abs(X))


def test_names_that_meet_are_kept_apart() -> None:
    """Values of the model called like those of the body, and like the fresh ones."""
    proto = model(f"{IO} {{ t = Neg(x) b = f.double(t) y = f.double(b) }}", DOUBLE)
    proto.graph.node[0].output[0] = proto.graph.node[1].input[0] = "double.1/t"
    check(proto)


def test_the_long_name_of_the_default_domain() -> None:
    proto = model(f"{IO} {{ y = Relu(x) }}")
    proto.graph.node[0].domain = proto.opset_import[0].domain = "ai.onnx"
    flat = inline(proto)
    assert {node.domain for node in flat.graph.node} == {""}
    assert {entry.domain: entry.version for entry in flat.opset_import}[""] == 21


def test_the_implied_default_domain_is_imported() -> None:
    proto = model(f"{IO} {{ y = Relu(x) }}", head='<ir_version: 8, opset_import: ["ai.onnx.ml" : 3]>')
    assert {entry.domain: entry.version for entry in inline(proto).opset_import}[""] == 18


REFUSED = [
    ("E3360", f"{IO} {{ y = f.double(x) }}", [DOUBLE, DOUBLE]),
    ("E3362", f"{IO} {{ y = f.triple(x) }}", [DOUBLE]),
    ("E3363", f"{IO} {{ y = f.a(x) }}", [function("a (p) => (q) { q = f.a(p) }")]),
    (
        "E3363",
        f"{IO} {{ y = f.a(x) }}",
        [
            function("a (p) => (q) { q = f.b(p) }"),
            function("b (p) => (q) { q = f.c(p) }"),
            function("c (p) => (q) { q = f.a(p) }"),
        ],
    ),
    ("E3366", f"{IO} {{ y = f.double(x, x) }}", [DOUBLE]),
    ("E3366", f"{IO} {{ y, z = f.double(x) }}", [DOUBLE]),
    ("E3365", f"{IO} {{ y = f.a(x) }}", [function("a (p) => (q) { q = Softmax(p) }", opset=12)]),
]


@pytest.mark.parametrize(
    ("code", "body", "functions"), REFUSED, ids=[f"{code}-{n}" for n, (code, _, _) in enumerate(REFUSED)]
)
def test_function_rules(code: str, body: str, functions: list[str]) -> None:
    refused(model(body, *functions), code)


def test_a_call_needs_the_import_of_its_domain() -> None:
    proto = model(f"{IO} {{ y = f.double(x) }}", DOUBLE, head='<ir_version: 10, opset_import: ["" : 21]>')
    assert "E3304" in {one.code for one in specification.diagnose(proto)}
    proto.opset_import.add(domain="f", version=1)
    assert "E3304" not in {one.code for one in specification.diagnose(proto)}


def test_another_version_of_the_same_operators_is_fine() -> None:
    check(model(f"{IO} {{ y = f.a(x) }}", function("a (p) => (q) { q = Relu(p) }", opset=18)))


def test_interfaces_of_functions() -> None:
    def codes(text: str) -> set[str]:
        return {one.code for one in specification.diagnose(model(f"{IO} {{ y = Relu(x) }}", function(text)))}

    assert codes("a (p, q) => (r) { r = Add(p, q) }") == set()
    assert codes("a (p, p) => (r) { r = Add(p, p) }") == {"E3364"}
    assert codes("a (p) => (r, r) { r = Neg(p) }") == {"E3364"}
    assert codes("a (p) => (r) { s = Neg(p) }") == {"E3319"}
    assert codes("a (p) => (r) { r = Neg(nowhere) }") == {"E3313"}
    assert codes("a <k, k: float = 1.0> (p) => (r) { r = Neg(p) }") == {"E3364"}


def test_a_function_without_a_name_or_in_an_early_ir() -> None:
    proto = model(f"{IO} {{ y = f.double(x) }}", DOUBLE)
    proto.ir_version = 7
    assert {one.code for one in specification.diagnose(proto)} == {"W3308"}
    proto.ir_version = 10
    proto.functions[0].domain = ""
    assert "E3361" in {one.code for one in specification.diagnose(proto)}


def test_an_attribute_that_the_function_does_not_have_is_dropped() -> None:
    proto = model(f"{IO} {{ y = f.double<extra=1>(x) }}", DOUBLE)
    assert {one.code for one in specification.diagnose(proto)} == {"W3360"}
    assert not any(node.attribute for node in inline(proto).graph.node)


def doubling(levels: int) -> onnx.ModelProto:
    """Every function calls the one below it twice."""
    functions = [function("f0 (a) => (b) { b = Neg(a) }")]
    functions += [function(f"f{n} (a) => (b) {{ t = f.f{n - 1}(a) b = f.f{n - 1}(t) }}") for n in range(1, levels + 1)]
    return model(f"{IO} {{ y = f.f{levels}(x) }}", *functions)


def test_expansion_is_counted_before_it_happens() -> None:
    assert len(inline(doubling(10)).graph.node) == 1 << 10
    with pytest.raises(LimitError, match=r"E3370 .*1024.*--limit expansion=1024"):
        inline(doubling(10), Limits(expansion=1023))
    start = time.process_time()
    with pytest.raises(LimitError, match=f"E3370 .*{1 << 62}"):
        inline(doubling(200))
    assert time.process_time() - start < 20


def test_a_long_chain_of_calls_needs_no_stack() -> None:
    functions = [function("f0 (a) => (b) { b = Neg(a) }")]
    functions += [function(f"f{n} (a) => (b) {{ b = f.f{n - 1}(a) }}") for n in range(1, 3000)]
    assert len(inline(model(f"{IO} {{ y = f.f2999(x) }}", *functions)).graph.node) == 1


def test_bytes_of_the_expansion() -> None:
    proto = doubling(4)
    tensor = helper.make_tensor("c", 1, [1000], np.zeros(1000, np.float32).tobytes(), raw=True)
    proto.functions[0].node.append(helper.make_node("Constant", [], ["c"], value=tensor))
    inline(proto)
    with pytest.raises(LimitError, match="E3371"):
        inline(proto, Limits(total_bytes=50_000))


def test_graphs_nested_by_inlining() -> None:
    functions = [DOUBLE, function(NESTED.replace("cond", "c0"))]
    functions += [
        function(NESTED.replace("cond", f"c{n}").replace("f.double(a)", f"f.c{n - 1}(a, c)")) for n in range(1, 9)
    ]
    proto = model("g (float[1,3] x, bool c) => (float[1,3] y) { y = f.c8(x, c) }", *functions)
    inline(proto)
    with pytest.raises(LimitError, match="E3372"):
        inline(proto, Limits(subgraph_depth=8))


def test_a_tensor_that_is_passed_counts_wherever_it_goes() -> None:
    uses = " ".join(f"c{n} = Constant<value: tensor = @t>()" for n in range(50))
    proto = model(f"{IO} {{ y = f.a(x) }}", function(f"a <t> (p) => (q) {{ {uses} q = Neg(p) }}"))
    tensor = helper.make_tensor("c", 1, [1000], np.zeros(1000, np.float32).tobytes(), raw=True)
    proto.graph.node[0].attribute.append(helper.make_attribute("t", tensor))
    inline(proto)
    with pytest.raises(LimitError, match="E3371"):
        inline(proto, Limits(total_bytes=100_000))


def test_a_function_that_casts_its_scale_runs_on_the_hardware() -> None:
    text = function(
        "fake <scale> (v) => (o) { c = Constant<value_float: float = @scale>() s = CastLike(c, v) "
        "n = Constant<value_int = 3>() z = Cast<to = 3>(n) q = QuantizeLinear(v, s, z) "
        "d = DequantizeLinear(q, s, z) r = Relu(d) p = QuantizeLinear(r, s, z) o = DequantizeLinear(p, s, z) }"
    )
    body = "g (float[1,3] x) => (float[1,3] y) { a = f.fake<scale = 0.0625>(x) y = f.fake<scale = 0.125>(a) }"
    proto = model(body, text)
    mixed = read(proto)
    assert [len(part.graph.ops) for part in mixed.hardware] == [3]
    assert not mixed.host
    (ours,) = InferenceSession(proto).run(None, {"x": X})
    np.testing.assert_array_equal(ours, run(proto)[0])
