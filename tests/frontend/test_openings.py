"""Open first dimensions of inputs that cannot be 1: the model tells the size, or the user has to."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from onnxhw import InferenceSession
from onnxhw.errors import InvalidModelError, UsageError
from onnxhw.frontend import openings
from onnxhw.frontend.pipeline import prepare

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
    assert found.known["x"] == (7, 4)
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
    with pytest.raises(UsageError, match=r"E2542 .*cannot be 1") as caught:
        prepare(proto)
    return caught.value.hint


def test_a_size_that_nothing_says_has_to_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(model(TWO)) == "say it: --shape N=SIZE --shape M=SIZE"
    assert refused(model(LONGER + " ", s=np.array([5]))) == "say it: --shape N=SIZE; 3, 4, 5 would fit"
    monkeypatch.setattr(openings, "NODES", 0)  # too many nodes to try sizes
    assert refused(model(ADD, k=ONES)) == "say it: --shape N=SIZE"


def test_what_no_size_mends_is_invalid() -> None:
    with pytest.raises(InvalidModelError, match="E3010"):
        prepare(model("g (float[N,4] x) => (float[N,3] y) { y = MatMul(x, k) }", k=ONES))
