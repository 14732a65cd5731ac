"""If, Loop and Scan of a known course: the unrolled model computes the same; the rest stays."""

import time
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from onnxhw.onnxfile.limits import Limits
from onnxhw.onnxmodel import specification
from onnxhw.onnxmodel import unroll as unrolling
from onnxhw.onnxmodel.subgraph_copy import FreshNames
from onnxhw.onnxmodel.unroll import unroll

X = np.array([[-2.0, 0.5, 3.0], [1.0, -7.0, 0.25]], np.float32)
CONTROL = {"If", "Loop", "Scan"}


def model(body: str, opset: int = 21, **constants: Any) -> onnx.ModelProto:
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}], domain: "org.example">\n{body}')
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return proto


def kinds(proto: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in proto.graph.node]


def run(proto: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install onnxhw[ort])")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def check(proto: onnx.ModelProto, **feeds: Any) -> onnx.ModelProto:
    """Unrolled, valid, and with the same outputs; the given model is untouched."""
    before = proto.SerializeToString()
    assert {one.severity for one in specification.diagnose(proto)} <= {"info"}
    flat = unroll(proto)
    assert proto.SerializeToString() == before
    assert {one.severity for one in specification.diagnose(flat)} <= {"info"}
    onnx.checker.check_model(flat, full_check=True)
    feeds = feeds or {"x": X}
    ours, theirs = run(flat, feeds), run(proto, feeds)
    for mine, yours in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, yours)
    return flat


def stays(proto: onnx.ModelProto, limits: Limits | None = None) -> None:
    """As many control nodes as before, and nothing else changed."""
    flat = unroll(proto, limits or Limits())
    assert [node.SerializeToString() for node in flat.graph.node] == [
        node.SerializeToString() for node in proto.graph.node
    ]
    assert len(flat.graph.initializer) == len(proto.graph.initializer)


def test_a_model_without_control_flow_is_returned_as_it_is() -> None:
    plain = model("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    assert unroll(plain) is plain


IF = """g (float[2,3] x{more}) => (float[2,3] y) {{ {before} t = Neg(x) y = If (c) <
    then_branch = p () => (float[2,3] a) {{ b = Abs(t) a = Add(b, one) }},
    else_branch = q () => (float[2,3] u) {{ u = Sub(t, one) }}> }}"""


@pytest.mark.parametrize("condition", [True, False])
def test_an_if_of_a_constant(condition: bool) -> None:
    flat = check(model(IF.format(more="", before=""), c=condition, one=np.float32(1)))
    assert kinds(flat) == ["Neg", *(["Abs", "Add"] if condition else ["Sub"]), "Identity"]


def test_an_if_of_what_can_be_computed() -> None:
    before = "two = Constant<value_int=2>() three = Constant<value_int=3>() "
    before += "l = Less(three, two) n = Not(l) c = Cast<to=9>(n)"
    assert CONTROL.isdisjoint(kinds(check(model(IF.format(more="", before=before), one=np.float32(1)))))


def test_an_if_of_an_input_stays() -> None:
    stays(model(IF.format(more=", bool c", before=""), one=np.float32(1)))


def test_a_default_value_that_may_be_overridden_is_not_known() -> None:
    stays(model(IF.format(more=", bool c", before=""), c=True, one=np.float32(1)))


def test_initializers_of_a_branch() -> None:
    proto = model(
        "g (float[2,3] x) => (float[2,3] y) { y = If (c) <then_branch = p () => (float[2,3] a) { a = Add(x, w) },"
        "else_branch = q () => (float[2,3] w2) { w2 = Neg(x) }> }",
        c=True,
    )
    proto.graph.node[0].attribute[0].g.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "w"))
    check(proto)


def test_a_branch_that_only_passes_on() -> None:
    proto = model(
        "g (float[2,3] x) => (float[2,3] y) { y = If (c) <then_branch = p () => (float[2,3] w) { n = Neg(x) },"
        "else_branch = q () => (float[2,3] w2) { w2 = Neg(x) }> }",
        c=True,
    )
    proto.graph.node[0].attribute[0].g.initializer.append(numpy_helper.from_array(X, "w"))
    check(proto)


LOOP = """g (float[2,3] x{more}) => (float[2,3] y, float[N,2,3] s) {{ y, s = Loop ({args}, x) <
    body = b (int64 i, bool k, float[2,3] v) => (bool k2, float[2,3] w, float[2,3] p) {{
        k2 = {cond} f = Cast<to=1>(i) p = Mul(v, f) w = Add(p, one) }}> }}"""


@pytest.mark.parametrize("opset", [11, 13, 21])
@pytest.mark.parametrize("trips", [1, 2, 5])
def test_a_loop_of_constant_trips(trips: int, opset: int) -> None:
    body = LOOP.format(more="", args='n, ""', cond="Identity(k)")
    flat = check(model(body, opset=opset, n=np.int64(trips), one=np.float32(1)))
    assert kinds(flat).count("Mul") == trips


def test_a_loop_that_ends_by_a_known_condition() -> None:
    body = LOOP.format(more="", args='"", go', cond="Less(i, three)")
    flat = check(model(body, go=True, one=np.float32(1), three=np.int64(3)))
    assert kinds(flat).count("Mul") == 4


def test_a_loop_of_no_trips() -> None:
    body = """g (float[2,3] x) => (float[2,3] y) { y = Loop (n, go, x) <
        body = b (int64 i, bool k, float[2,3] v) => (bool k2, float[2,3] w) { k2 = Identity(k) w = Neg(v) }> }"""
    assert kinds(check(model(body, n=np.int64(0), go=True))) == ["Identity"]
    assert kinds(check(model(body, n=np.int64(9), go=False))) == ["Identity"]
    stays(model(LOOP.format(more="", args='n, ""', cond="Identity(k)"), n=np.int64(0), one=np.float32(1)))


@pytest.mark.parametrize(
    ("more", "args", "cond"),
    [(", int64 m", 'm, ""', "Identity(k)"), (", bool h", "n, h", "Identity(k)"), (", bool h", 'n, ""', "Identity(h)")],
)
def test_loops_of_an_unknown_course_stay(more: str, args: str, cond: str) -> None:
    stays(model(LOOP.format(more=more, args=args, cond=cond), n=np.int64(3), one=np.float32(1)))


def test_loops_beyond_the_limits_stay() -> None:
    body = LOOP.format(more="", args='n, ""', cond="Identity(k)")
    proto = model(body, n=np.int64(20), one=np.float32(1))
    check(proto)
    stays(proto, Limits(loop_trips=19))
    stays(proto, Limits(expansion=60))
    stays(model(body, n=np.int64(1 << 40), one=np.float32(1)))
    stays(model(LOOP.format(more="", args='"", go', cond="Identity(k)"), go=True, one=np.float32(1)))


NESTED = """g (float[2,3] x{more}) => (float[2,3] y) {{ y = Loop (n, "", x) <
    body = outer (int64 i, bool k, float[2,3] v) => (bool k2, float[2,3] w) {{
        k2 = Identity(k)
        w = Loop (n, "", v) <body = inner (int64 j, bool l, float[2,3] a) => (bool l2, float[2,3] c) {{
            l2 = Identity(l) e = Equal(i, j)
            c = If ({cond}) <then_branch = p () => (float[2,3] r) {{ r = Neg(a) }},
                             else_branch = q () => (float[2,3] u) {{ u = Add(a, x) }}> }}> }}> }}"""


def test_control_flow_in_control_flow() -> None:
    flat = check(model(NESTED.format(more="", cond="e"), n=np.int64(3)))
    assert CONTROL.isdisjoint(kinds(flat))
    assert (kinds(flat).count("Neg"), kinds(flat).count("Add")) == (3, 6)


@pytest.mark.parametrize("value", [True, False])
def test_what_is_not_known_inside_stays_inside(value: bool) -> None:
    flat = check(model(NESTED.format(more=", bool h", cond="h"), n=np.int64(3)), x=X, h=np.array(value))
    assert kinds(flat).count("If") == 9
    assert kinds(flat).count("Loop") == 0


def test_failed_attempts_are_bounded() -> None:
    """Every loop turns out not to be static only after those inside were unrolled: twice the work per level."""
    body = """r0 = Loop (n, "", v0) <
        body = b (int64 i, bool k, float[2,3] v) => (bool c, float[2,3] r) { c = Identity(k) r = Neg(v) }>"""
    for n in range(1, 13):
        body = (
            f'r{n} = Loop (n, "", v{n}) <body = b{n} (int64 i{n}, bool k{n}, float[2,3] v{n - 1}) => '
            f"(bool c{n}, float[2,3] r{n - 1}) {{ c{n} = Identity(h) {body} }}>"
        )
    proto = model(f"g (float[2,3] v12, bool h) => (float[2,3] r12) {{ {body} }}", n=np.int64(100))
    start = time.process_time()
    assert kinds(unroll(proto, Limits(expansion=2000))) == ["Loop"]
    assert time.process_time() - start < 20


SCAN = """g (float[2,3] x, float[3] s) => (float[3] t, {out}) {{ {before} t, y = Scan<num_scan_inputs=1, {more}
    body = b (float[3] a, float[3] e) => (float[3] c, float[3] d) {{ c = Add(a, e) d = Mul(c, e) }}>(s, {source}) }}"""
S = np.array([10, 20, 30], np.float32)


@pytest.mark.parametrize(
    "more", ["", "scan_input_directions=[1],", "scan_output_directions=[1],", "scan_output_axes=[1],"]
)
def test_a_scan_of_known_length(more: str) -> None:
    out = "float[3,2] y" if "axes" in more else "float[2,3] y"
    flat = check(model(SCAN.format(out=out, more=more, before="z = Neg(x)", source="z")), x=X, s=S)
    assert kinds(flat).count("Mul") == 2


def test_a_scan_along_another_axis() -> None:
    body = SCAN.format(out="float[2,3] y", more="scan_input_axes=[1],", before="z = Transpose(x)", source="z")
    assert CONTROL.isdisjoint(kinds(check(model(body), x=X, s=S)))


def test_a_scan_of_unknown_length_stays() -> None:
    body = SCAN.format(out="float[N,3] y", more="", before="", source="x").replace("float[2,3] x", "float[N,3] x")
    stays(model(body))


def test_a_scan_with_its_own_batch_stays() -> None:
    proto = model(SCAN.format(out="float[2,3] y", more="", before="", source="x"), opset=9)
    assert kinds(unroll(proto)).count("Scan") == 0
    proto.opset_import[0].version = 8
    stays(proto)


def test_an_input_that_hides_a_known_value() -> None:
    """`c` inside the loop's body is the carried value, not the constant of that name."""
    body = """g (bool x, int64 m) => (bool y) { y = Loop (m, "", x) <
        body = b (int64 i, bool k, bool c) => (bool k2, bool w) { k2 = Identity(k)
            w = If (c) <then_branch = p () => (bool r) { r = Not(c) },
                        else_branch = q () => (bool u) { u = Identity(c) }> }> }"""
    stays(model(body, c=True))


def test_names_that_meet_are_kept_apart() -> None:
    proto = model(IF.format(more="", before=""), c=True, one=np.float32(1))
    proto.graph.node[0].output[0] = "If.1/b"
    for branch in proto.graph.node[1].attribute:
        branch.g.node[0].input[0] = "If.1/b"
    check(proto)


def nested(trips: list[int]) -> onnx.ModelProto:
    """Loops in each other, each of a constant number of iterations and with its condition passed on."""
    body = ""
    for level, count in reversed(list(enumerate(trips))):
        given = f"v{level - 1}" if level else "x"
        inputs = f"int64 i{level}, bool c{level}, float[2,3] v{level}"
        nodes = f"d{level} = Identity(c{level}) {body} r{level} = Neg({value_of(level, trips)})"
        body = (
            f"n{level} = Constant<value_int={count}>() w{level} = Loop (n{level}, t, {given})"
            f" <body = b{level} ({inputs}) => (bool d{level}, float[2,3] r{level}) {{ {nodes} }}> "
        )
    return model(f"g (float[2,3] x) => (float[2,3] w0) {{ {body} }}", t=True)


def value_of(level: int, trips: list[int]) -> str:
    """What the body of a loop negates: the result of the loop in it."""
    return f"w{level + 1}" if level + 1 < len(trips) else f"v{level}"


def test_loops_in_loops() -> None:
    assert kinds(check(nested([2, 3]))).count("Neg") == 2 * 4


def test_what_nested_loops_become_is_counted_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    copied = []
    copy = unrolling.copy_node

    def counted(node: onnx.NodeProto, *more: Any) -> onnx.NodeProto:
        copied.append(node.op_type)
        return copy(node, *more)

    monkeypatch.setattr(unrolling, "copy_node", counted)
    flat = unroll(nested([300, 300, 1000]))
    assert kinds(flat) == ["Constant", "Loop"]
    assert len(copied) < 3 * 1000  # the innermost alone, once
    assert kinds(unroll(nested([2, 1000, 60]))).count("Loop") == 2
    assert kinds(unroll(nested([2, 100, 60]))).count("Neg") == 2 * (100 * (60 + 1) + 1)


def test_names_are_found_in_linear_time() -> None:
    fresh = FreshNames({"p/a.1"})
    names = [fresh.name("p", "a") for _ in range(20_000)]
    assert names[:3] == ["p/a", "p/a.2", "p/a.3"]
    assert len(set(names)) == len(names)
    start = time.process_time()
    for _ in range(20_000):
        fresh.name("p", "a")
    assert time.process_time() - start < 2


BIG = np.arange(600, dtype=np.float32).reshape(100, 2, 3)
"""More than is copied with every iteration."""


def big_loop(inside: str, trips: int, more: str = "") -> onnx.ModelProto:
    proto = model(
        f"g (float[2,3] x{more}) => (float[2,3] y) {{ y = Loop (n, t, x) <body = b (int64 i, bool k, float[2,3] v)"
        f" => (bool k2, float[2,3] w) {{ k2 = Identity(k) {inside} }}> }}",
        n=trips,
        t=True,
    )
    left = [proto.graph]
    while left:
        for node in left.pop().node:
            if node.op_type == "Constant":
                node.attribute[0].t.CopyFrom(numpy_helper.from_array(BIG))
            left.extend(one.g for one in node.attribute if one.type == onnx.AttributeProto.GRAPH)
    return proto


CONSTANT = "k9 = Constant<value=float {1}>() s = Gather(k9, i) "


def test_large_constants_of_a_body_are_shared() -> None:
    flat = check(big_loop(CONSTANT + "w = Add(v, s)", 20))
    assert "Constant" not in kinds(flat)
    assert sum(tensor.ByteSize() > BIG.nbytes for tensor in flat.graph.initializer) == 1


def test_initializers_of_a_loop_in_a_loop_are_shared() -> None:
    proto = nested([4, 5])
    inner = next(node for node in proto.graph.node[1].attribute[0].g.node if node.op_type == "Loop").attribute[0].g
    inner.initializer.append(numpy_helper.from_array(BIG, "big"))
    inner.node[-1].CopyFrom(onnx.helper.make_node("Gather", ["big", "i1"], ["r1"]))
    flat = check(proto)
    assert sum(tensor.ByteSize() > BIG.nbytes for tensor in flat.graph.initializer) == 1


def test_constants_that_would_be_copied_have_a_limit() -> None:
    branches = (
        f"w = If (d) <then_branch = p () => (float[2,3] a) {{ {CONSTANT} a = Add(v, s) }},"
        "else_branch = q () => (float[2,3] u) { u = Neg(v) }>"
    )
    proto = big_loop(branches, 20, ", bool d")
    assert kinds(unroll(proto)).count("If") == 20
    stays(proto, Limits(folded_bytes=19 * BIG.nbytes))
