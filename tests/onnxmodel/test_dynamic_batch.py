"""Open first dimensions of inputs that cannot be 1: the model tells the size, or the user has to."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper, parser

from onnxhw import InferenceSession
from onnxhw.errors import InvalidModelError, UsageError
from onnxhw.onnxmodel import dynamic_batch
from onnxhw.onnxmodel.prepared import prepare
from onnxhw.partition import load

ONES = np.ones((7, 4), np.float32)
ADD = "g (float[N,4] x) => (float[N,4] y) { y = Add(x, k) }"
SAYS_SEVEN = {
    "output": ("g (float[N,4] x) => (float[7,4] y) { y = Abs(x) }", {}),
    "unnamed": ("g (float[?,4] x) => (float[7,4] y) { y = Abs(x) }", {}),
    "add": (ADD, {"k": ONES}),
    "reshape": ("g (float[N,4] x) => (float[2,14] y) { y = Reshape(x, s) }", {"s": np.array([2, 14])}),
    "concat": ("g (float[N,4] x) => (float[N,6] y) { y = Concat<axis=1>(x, k) }", {"k": ONES[:, :2]}),
    "matmul": ("g (float[N,4] x) => (float[3,4] y) { y = MatMul(k, x) }", {"k": ONES[:, :3].T.copy()}),
}


def model(body: str, **constants: np.ndarray) -> onnx.ModelProto:
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17], domain: "org.example">\n{body}')
    proto.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return proto


def codes(proto: onnx.ModelProto, **shapes: int) -> list[str]:
    return [one.code for one in prepare(proto, shapes=shapes).diagnostics]


@pytest.mark.parametrize("name", SAYS_SEVEN)
def test_a_first_dimension_that_cannot_be_one_is_what_the_model_says(name: str) -> None:
    body, constants = SAYS_SEVEN[name]
    proto = model(body, **constants)
    found = prepare(proto)
    (note,) = [one for one in found.diagnostics if one.code == "W3400"]
    assert "taken as 7" in note.what
    assert note.hint.startswith("--shape x:0=" if name == "unnamed" else "--shape N=")
    assert found.shapes["x"] == (7, 4)
    x = np.arange(28, dtype=np.float32).reshape(7, 4)
    (ours,) = InferenceSession(proto).run(None, {"x": x})
    wanted = {"output": x, "unnamed": x, "add": x + 1, "reshape": x.reshape(2, 14)}
    wanted |= {"concat": np.hstack([x, ONES[:, :2]]), "matmul": ONES[:, :3].T @ x}
    np.testing.assert_array_equal(ours, wanted[name])


def test_a_size_that_is_given_says_nothing() -> None:
    assert codes(model(ADD, k=ONES), N=7) == []
    with pytest.raises(InvalidModelError, match="E3010"):
        codes(model(ADD, k=ONES), N=6)


TWO = "g (float[N,4] x, float[M,4] z) => (float[7,4] y) { w = Abs(z) y = Abs(x) }"
LONGER = """g (float[N,1,4] x) => (float[1,4,K] y) {
    t = Transpose<perm=[1, 2, 0]>(x) y = MaxPool<kernel_shape=[3]>(t) }"""


def refused(proto: onnx.ModelProto) -> str:
    """The hint of what needs one size; the model can be run without."""
    assert codes(proto) == ["W3460"]
    with pytest.raises(UsageError, match=r"E2542 .*cannot be 1") as caught:
        load(proto)
    return caught.value.hint


def test_a_size_that_nothing_says_has_to_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(model(TWO)) == "say it: --shape N=SIZE --shape M=SIZE"
    assert refused(model(LONGER + " ", s=np.array([5]))) == "say it: --shape N=SIZE; 3, 4, 5 would fit"
    monkeypatch.setattr(dynamic_batch, "NODES", 0)  # too many nodes to try sizes
    assert refused(model(ADD, k=ONES)) == "say it: --shape N=SIZE"


def test_what_no_size_mends_is_invalid() -> None:
    with pytest.raises(InvalidModelError, match="E3010"):
        prepare(model("g (float[N,4] x) => (float[N,3] y) { y = MatMul(x, k) }", k=ONES))


OPEN = {
    "reshape": ("float[2,K] y) { y = Reshape(v, s) }", [2, -1], (0, 2, 4), (1, 3)),
    "rows": ("float[K,6] y) { y = Reshape(v, s) }", [-1, 6], (0, 2, 4), (1, 3)),
    "split": ("float[K,3] y, float[K,3] z) { y, z = Split<axis=0>(v) }", None, (0, 2, 4), (1, 3)),
    "topk": ("float[K,3] y) { y, i = TopK<axis=0>(v, s) }", [2], (2, 3, 4), (0, 1)),
    "pad": ("float[K,3] y) { y = Pad(v, s) }", [-2, 0, 0, 0], (3, 4), (0, 1)),
    "gather": ("float[K,3] y) { y = Gather(v, s) }", [1, 2], (3, 4), (0, 1, 2)),
    "parts": ("float[K,3] y, float[1,3] z) { y, z = Split<axis=0>(v, s) }", [2, 1], (3,), (1, 4)),
}
"""The rest of a model, a constant, numbers of rows that it takes, and such that it does not."""


@pytest.mark.parametrize("before", ["v = Identity(x)", "q = QuantizeLinear(x, f, o) v = DequantizeLinear(q, f, o)"])
@pytest.mark.parametrize("name", OPEN)
def test_an_open_dimension_is_bound_only_where_every_other_size_is_an_error(name: str, before: str) -> None:
    rest, constant, taken, not_taken = OPEN[name]
    body = f"g (float[N,3] x) => ({rest}".replace("{ ", "{ " + before + " ")
    constants = {} if constant is None else {"s": np.array(constant)}
    constants |= {"f": np.float32(0.25), "o": np.int8(0)} if "q" in before.split() else {}
    proto = model(body, **constants)
    proto.opset_import[0].version = 13 if name == "split" else 17
    theirs = ort.InferenceSession(proto.SerializeToString())
    session = InferenceSession(proto)
    for rows in taken:
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3) / 4
        for ours, wanted in zip(session.run(None, {"x": x}), theirs.run(None, {"x": x}), strict=True):
            assert ours.shape == wanted.shape
            np.testing.assert_array_equal(ours, wanted)
    for rows in not_taken:
        with pytest.raises(UsageError, match=f"E2503 .*the model does not take {rows} row.* of 'x'"):
            session.run(None, {"x": np.zeros((rows, 3), np.float32)})


@pytest.mark.parametrize("declared", ["[7,4]", "[N,4]", "[4,4]"])
def test_what_an_output_is_declared_with_forbids_no_size(declared: str) -> None:
    session = InferenceSession(model(f"g (float[N,4] x) => (float{declared} y) {{ y = Abs(x) }}"))
    for rows in (0, 1, 3, 4, 7):
        x = np.full((rows, 4), -1, np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], -x)
