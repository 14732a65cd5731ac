"""Which nodes keep the samples of a batch apart: by rule, and held against onnx's own cases."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnxhw.conformance.cases import all_cases, load
from onnxhw.errors import InvalidModelError, OnnxhwError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.onnxmodel.batch_analysis import Batch, OneSample, one_sample, open_batch, prove_open
from onnxhw.onnxmodel.batch_dependence import KNOWN, constants_of
from onnxhw.onnxmodel.shapes import specialise
from onnxhw.partition import read

APART = {
    "addition of what has no rows": "y = Add(x, c)",
    "per-sample sums": "y = ReduceSum<keepdims = 1>(x, one)",
    "sums of nothing": "none = Constant<value = int64[0] {}>() y = ReduceSum<noop_with_empty_axes = 1>(x, none)",
    "softmax of rows": "y = Softmax<axis = -1>(x)",
    "rows of a matrix": "y = MatMul(x, w)",
    "rows of a matrix and a bias": "y = Gemm<transB = 1>(x, w, c)",
    "transposition within samples": "u = Unsqueeze(x, one) y = Transpose<perm = [0, 2, 1]>(u)",
    "several rows per sample": "s = Constant<value_ints = [-1, 2]>() y = Reshape(x, s)",
    "rows and back": "s = Constant<value_ints = [-1, 1]>() r = Reshape(x, s) t = Constant<value_ints = [-1, 4]>() "
    "y = Reshape(r, t)",
    "a shape that is computed": "n = Shape<end = 1>(x) f = Constant<value_ints = [2, 2]>() s = Concat<axis = 0>(n, f) "
    "y = Reshape(x, s)",
    "a constant for each sample": "n = Shape(x) z = ConstantOfShape(n) y = Add(x, z)",
    "what is expanded": "n = Shape(x) e = Expand(c, n) y = Mul(x, e)",
    "columns": "y = Gather<axis = 1>(x, one)",
    "look-up": "i = Cast<to = 7>(x) y = Gather(c, i)",
    "a slice of columns": "two = Constant<value_ints = [2]>() y = Slice(x, one, two, one)",
    "padded columns": "p = Constant<value_ints = [0, 1, 0, 1]>() y = Pad(x, p)",
    "sides": "y = Concat<axis = 1>(x, x)",
    "sums along columns": "y = CumSum(x, i1)",
    "products by sample": "u = Unsqueeze(x, one) v = Transpose<perm = [0, 2, 1]>(u) y = MatMul(u, v)",
    "an unused reduction": "unused = ReduceMax<keepdims = 0>(x) y = Relu(x)",
}
MEET = {
    "a sum over samples": ("y = ReduceSum<keepdims = 1>(x, zero)", "reduces axis 0"),
    "a sum over all": ("y = ReduceMax<keepdims = 1>(x)", "reduces all axes"),
    "a negative axis": ("m = Constant<value_ints = [-2]>() y = ReduceSum<keepdims = 1>(x, m)", "reduces axis 0"),
    "axes that are computed": ("m = Identity(one) y = ReduceSum<keepdims = 1>(x, m)", "not constant"),
    "softmax over samples": ("y = Softmax<axis = 0>(x)", "along axis 0"),
    "samples by samples": ("t = Transpose(x) y = MatMul(x, t)", "moves the first dimension"),
    "transA": ("y = Gemm<transA = 1>(x, x)", "not the rows"),
    "a running sum": ("y = CumSum(x, i0)", "along axis 0"),
    "samples after samples": ("y = Concat<axis = 0>(x, x)", "along axis 0"),
    "the first sample": ("y = Gather<axis = 0>(x, zero)", "gathers along axis 0"),
    "samples left out": ("two = Constant<value_ints = [2]>() y = Slice(x, zero, two, zero)", "leaves out samples"),
    "samples in reverse": ("m = Constant<value_ints = [-1]>() l = Constant<value_ints = [-9]>() "
                           "y = Slice(x, m, l, zero, m)", "leaves out samples"),
    "samples put before": ("p = Constant<value_ints = [1, 0, 0, 0]>() y = Pad(x, p)", "adds samples"),
    "rows that mix samples": ("s = Constant<value_ints = [4, -1]>() y = Reshape(x, s)", "batch 1"),
    "one row": ("y = Flatten<axis = 0>(x)", "does not begin with the batch"),
    "one row and back": ("s = Constant<value_ints = [1, -1]>() f = Reshape(x, s) t = Constant<value_ints = [-1, 4]>() "
                         "r = Reverse(f) y = Reshape(r, t)", "does not begin with the batch"),
    "the size itself": ("n = Size(x) f = Cast<to = 1>(n) y = Mul(x, f)", "computes with the size"),
    "a size that is no line": ("n = Shape<end = 1>(x) m = Mul(n, n) s = Concat<axis = 0>(n, m) e = Expand(k, s) "
                               "v = ReduceSum<keepdims = 1>(e, one) y = Add(x, v)", "computes with the size"),
    "the size as an output": ("y = Shape(x)", "tells the size"),
    "a range over all": ("q, s, z = DynamicQuantizeLinear(x) y = DequantizeLinear(q, s, z)", "nothing is known"),
    "a random number": ("r = RandomNormal<shape = [4]>() y = Add(x, r)", "random"),
    "training": ("t = Constant<value = bool {1}>() r = Constant<value_float = 0.5>() y = Dropout(x, r, t)", "training"),
    "what is no operator": ("y = Reverse(x)", "nothing is known"),
}  # fmt: skip
OPSET = '<ir_version: 10, opset_import: ["" : 17]>'
CONSTANTS = (
    "float[4] c = {1, 2, 3, 4}, float[4, 4] w = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 2, 1}, float[1, 1] k = {1}, "
    "int64[1] zero = {0}, int64[1] one = {1}, int64 i0 = {0}, int64 i1 = {1}"
)


def text(body: str, batch: Any) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f"{OPSET} g (float[{batch}, 4] x) => (y) <{CONSTANTS}> {{ {body} }}")
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64 if body == "y = Shape(x)" else 1
    return model


def proved(body: str) -> Batch:
    model = text(body, "N")
    assert open_batch(model, {}) == {"x"}
    _, one = specialise(model)
    return prove_open(model, one, {}, frozenset({"x"}))


@pytest.mark.parametrize("name", APART)
def test_samples_stay_apart(name: str) -> None:
    found = proved(APART[name])
    assert (found.mixing, found.outputs, found.size) == ("", {"y"}, 0)
    x = np.arange(12, dtype=np.float32).reshape(3, 4) % 4
    (together,) = evaluate(text(APART[name], 3), {"x": x}).values()
    ones = [evaluate(text(APART[name], 1), {"x": x[i : i + 1]})["y"] for i in range(3)]
    np.testing.assert_array_equal(together, np.concatenate(ones))


@pytest.mark.parametrize("name", MEET)
def test_samples_may_meet(name: str) -> None:
    body, reason = MEET[name]
    found = proved(body)
    assert reason in found.mixing
    assert not found.outputs


@pytest.mark.parametrize("name", APART)
def test_a_fixed_batch_becomes_one_sample(name: str) -> None:
    model, many = specialise(text(APART[name], 3))
    found = one_sample(model, many)
    assert isinstance(found, OneSample)
    assert found.shapes["x"] == (1, 4)
    x = np.arange(12, dtype=np.float32).reshape(3, 4) % 4
    (together,) = evaluate(model, {"x": x}).values()
    ones = [evaluate(found.model, {"x": x[i : i + 1]})["y"] for i in range(3)]
    np.testing.assert_array_equal(together, np.concatenate(ones))


@pytest.mark.parametrize(
    "body",
    [
        "s = Constant<value_ints = [3, 2, 2]>() y = Reshape(x, s)",
        "s = Constant<value_ints = [3, -1]>() r = Reshape(x, s) t = Constant<value_ints = [6, 2]>() y = Reshape(r, t)",
        "s = Constant<value = int64[2] {3, 4}>() y = Expand(x, s)",
    ],
)  # fmt: skip
def test_constants_with_the_batch_in_them(body: str) -> None:
    model, many = specialise(text(body, 3))
    found = one_sample(model, many)
    assert isinstance(found, OneSample)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    ones = [evaluate(found.model, {"x": x[i : i + 1]})["y"] for i in range(3)]
    np.testing.assert_array_equal(evaluate(model, {"x": x})["y"], np.concatenate(ones))


@pytest.mark.parametrize("name", [name for name in MEET if "size" not in name])
def test_a_fixed_batch_whose_samples_may_meet_stays(name: str) -> None:
    body = MEET[name][0]
    model, many = specialise(text(body, 3))
    assert isinstance(one_sample(model, many), str)


def test_a_constant_with_a_row_per_sample_is_not_for_one() -> None:
    rows = "k3 = Constant<value = float[3, 4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>() y = Add(x, k3)"
    model, many = specialise(text(rows, 3))
    assert "rows of its own" in str(one_sample(model, many))


def test_inputs_beside_the_batch() -> None:
    """A vector may go with every sample, or hold a number for each of them."""
    for body, batched in (("y = Add(x, v)", {"x"}), ("u = Unsqueeze(v, one) y = Add(x, u)", {"x", "v"})):
        source = f"{OPSET} g (float[3, 3] x, float[3] v) => (float[3, 3] y) <{CONSTANTS}> {{ {body} }}"
        model, many = specialise(onnx.parser.parse_model(source))
        found = one_sample(model, many)
        assert isinstance(found, OneSample)
        assert found.batch.inputs == batched


def test_an_output_that_is_the_same_for_all() -> None:
    source = f"{OPSET} g (float[N, 4] x) => (float[N, 4] y, float[4] z) <{CONSTANTS}> {{ y = Relu(x) z = Neg(c) }}"
    model = onnx.parser.parse_model(source)
    assert prove_open(model, specialise(model)[1], {}, frozenset({"x"})).outputs == {"y"}


def test_which_inputs_leave_the_batch_open() -> None:
    source = f"{OPSET} g (float[N, 4] x, float[M, K] y, float[1, N] z) => (float[N, 4] o) {{ o = Relu(x) }}"
    model = onnx.parser.parse_model(source)
    assert open_batch(model, {}) == {"x", "y"}
    assert open_batch(model, {"N": 1}) == {"y"}
    assert open_batch(model, {"z:1": 2, "y:0": 2}) == set()


def test_an_old_operator_set_is_not_proved() -> None:
    source = '<ir_version: 3, opset_import: ["" : 6]> g (float[N, 4] x) => (float[N, 4] y) { y = Relu(x) }'
    model = onnx.parser.parse_model(source)
    assert "older than 7" in prove_open(model, specialise(model)[1], {}, frozenset({"x"})).mixing


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_onnx_cases_that_are_proved_hold() -> None:
    """Every case of onnx's own suite whose first dimension is proved to count samples gives them one by one."""
    count = 0
    for case in all_cases():
        model, data = load(case)
        try:
            static, many = specialise(model)
            found = one_sample(static, many)
        except OnnxhwError:
            continue
        if isinstance(found, str) or not data:
            continue
        default = {tensor.name for tensor in model.graph.initializer}
        names = [value.name for value in model.graph.input if value.name not in default]
        feeds = dict(zip(names, data[0][0], strict=True))
        rows = found.batch.inputs
        together = evaluate(static, feeds)
        ones = [
            evaluate(found.model, {name: x[i : i + 1] if name in rows else x for name, x in feeds.items()})
            for i in range(found.batch.size)
        ]
        for name, wanted in together.items():
            by_sample = [one[name] for one in ones]
            got = np.concatenate(by_sample) if name in found.batch.outputs else by_sample[0]
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), case.name
            if wanted.dtype.kind in "biu":
                np.testing.assert_array_equal(got, wanted, err_msg=case.name)
            else:  # numpy sums rows of another length in another order
                np.testing.assert_allclose(got.astype(float), wanted.astype(float), rtol=1e-5, atol=1e-6,
                                           err_msg=case.name)  # fmt: skip
        count += 1
    assert count > 700


def test_samples_whose_rank_nobody_knows() -> None:
    """Operators of other domains leave the shape open where a dimension beside the batch is."""
    number = [onnx.numpy_helper.from_array(np.float32(value), name) for name, value in (("s", 0.5), ("z", 0), ("b", 8))]
    domain = "qonnx.custom_op.general"
    attributes = {"narrow": 0, "signed": 1, "rounding_mode": "ROUND"}
    quant = onnx.helper.make_node("Quant", ["x", "s", "z", "b"], ["a"], domain=domain, **attributes)
    graph = onnx.helper.make_graph(
        [quant, onnx.helper.make_node("Relu", ["a"], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3, "m", 25])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        number,
    )
    imports = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(domain, 2)]
    found = read(onnx.helper.make_model(graph, opset_imports=imports, ir_version=8))
    (warning,) = [one.what for one in found.diagnostics if one.code == "W3401"]
    assert "the shape of 'x' is not known" in warning


def test_constants_are_decoded_when_they_are_looked_at() -> None:
    values = {"a": np.arange(3), "b": np.float32(2), "large": np.zeros(KNOWN + 1)}
    wrong = onnx.TensorProto(name="wrong", data_type=onnx.TensorProto.INT64, dims=[2], raw_data=b"1")
    node = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array([7, 8]), "c"))
    tensors = [*(numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()), wrong]
    found = constants_of(helper.make_model(helper.make_graph([node], "g", [], [], tensors)))
    assert sorted(found) == ["a", "b", "c", "wrong"]
    assert len(found) == 4
    assert "wrong" in found
    assert "large" not in found
    for name, wanted in {"a": values["a"], "b": values["b"], "c": [7, 8]}.items():
        np.testing.assert_array_equal(found[name], wanted)
    with pytest.raises(InvalidModelError, match="E3153"):
        found["wrong"]
