"""Dimension variables get one value each, shapes are inferred, bounded and held against what the model declares."""

import contextlib
import glob
import logging
import time
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from onnxhw.errors import InvalidModelError, UnsupportedError, UsageError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.onnxfile.limits import LimitError, Limits
from onnxhw.onnxmodel.shape_surrogates import SURROGATES
from onnxhw.onnxmodel.shapes import require_static, specialise
from onnxhw.onnxmodel.specification import Findings

MODELS = Path(__file__).resolve().parents[3] / "shared" / "models"


def model(body: str, more: str = "", **constants: Any) -> onnx.ModelProto:
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21{more}]>\n{body}')
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return proto


def shapes(proto: onnx.ModelProto, **sizes: int) -> dict[str, tuple[int, ...]]:
    return specialise(proto, "m.onnx", sizes)[1]


RELU = "g (float[{dims}] x) => (y) {{ z = Relu(x) y = Neg(z) }}"
TWO = "g (float[{a}] a, float[{b}] b) => (y) {{ p = Relu(a) q = Neg(b) y = Abs(q) }}"


def test_the_model_is_not_changed() -> None:
    proto = model(RELU.format(dims="N,3"))
    before = proto.SerializeToString()
    specialise(proto)
    assert proto.SerializeToString() == before


@pytest.mark.parametrize("dims", ["N,3", "?,3"])
def test_an_open_batch_is_one_and_says_so(dims: str, caplog: pytest.LogCaptureFixture) -> None:
    findings = Findings()
    with caplog.at_level(logging.INFO):
        _, found = specialise(model(RELU.format(dims=dims)), "m.onnx", findings=findings)
    assert found == {"x": (1, 3), "z": (1, 3), "y": (1, 3)}
    assert "set to 1" in caplog.text
    assert [(one.code, one.severity) for one in findings.found] == [("W3400", "info")]


def test_a_given_batch_is_taken_and_says_nothing() -> None:
    findings = Findings()
    for sizes in ({"N": 4}, {"x:0": 4}):
        _, found = specialise(model(RELU.format(dims="N,3")), "m.onnx", sizes, findings=findings)
        assert found["y"] == (4, 3)
    assert not findings.found


def test_a_variable_has_one_value_in_the_whole_model() -> None:
    found = shapes(model(TWO.format(a="N,M", b="M,2")), M=5)
    assert (found["a"], found["b"], found["y"]) == ((1, 5), (5, 2), (5, 2))
    found = shapes(model(TWO.format(a="N,2", b="3,N")))
    assert (found["a"], found["b"]) == ((1, 2), (3, 1))


def test_a_variable_in_nested_graphs_and_sequences() -> None:
    proto = model(
        "g (float[1,K] x, bool c) => (float[1,K] y) { y = If (c) <"
        "then_branch = p () => (float[1,K] t) { t = Relu(x) }, else_branch = q () => (float[1,K] u) { u = Neg(x) }> }"
    )
    proto.graph.input.append(
        helper.make_value_info("s", helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, ["K", 2])))
    )
    fixed, found = specialise(proto, shapes={"K": 7})
    assert found["y"] == (1, 7)
    assert b"K" not in fixed.graph.node[0].SerializeToString()
    assert fixed.graph.input[2].type.sequence_type.elem_type.tensor_type.shape.dim[0].dim_value == 7


@pytest.mark.parametrize(
    ("sizes", "code"),
    [
        ({"Q": 1}, "E2540"),
        ({"a:9": 1}, "E2540"),
        ({"nobody:0": 1}, "E2540"),
        ({"a:1": 4}, "E2541"),
        ({"M": -1}, "E2541"),
        ({"M": 2, "b:0": 3}, "E2541"),
    ],
)
def test_sizes_that_cannot_be(sizes: dict[str, int], code: str) -> None:
    proto = model(TWO.format(a="N,3", b="M,2"))
    with pytest.raises(UsageError, match=code):
        specialise(proto, "m.onnx", sizes)
    assert specialise(proto, "m.onnx", {"M": 2, "b:0": 2, "a:1": 3})[1]["b"] == (2, 2)


def test_what_is_not_static_is_missing() -> None:
    found = shapes(model("g (float[1,L] x, float[2] w) => (y, z) { y = Relu(x) z = Neg(w) }"))
    assert found == {"w": (2,), "z": (2,)}


def test_a_negative_size_is_no_shape() -> None:
    body = "g (float[1,2,4,4] x) => (y) { y = Resize<mode='nearest'>(x, '', scales) }".replace("'", '"')
    with pytest.raises(InvalidModelError, match=r"E3010.*'y' would have the shape \[1, 2, -4, 8\]"):
        specialise(model(body, scales=np.array([1, 1, -1, 2], np.float32)))


def test_odd_shapes() -> None:
    assert shapes(model("g (float x) => (y) { y = Relu(x) }")) == {"x": (), "y": ()}
    assert shapes(model("g (float[0,3] x) => (y) { y = Relu(x) }"))["y"] == (0, 3)
    proto = model("g (float[1] x) => (y) { y = Relu(x) }")
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    assert shapes(proto) == {}
    proto.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None)))
    proto.graph.node[0].op_type = "SequenceLength"
    assert shapes(proto) == {"y": ()}


def test_open_inputs_are_refused_together_where_they_must_not_be() -> None:
    proto, found = specialise(model(TWO.format(a="N,H", b="2,?")))
    with pytest.raises(UnsupportedError) as caught:
        require_static(proto, found)
    text = str(caught.value)
    assert text.startswith("E4003")
    assert "'H' on axis 1" in text
    assert "--shape H=1 --shape b:1=1" in text
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(UnsupportedError, match=r"E4005 .*'a' is not a tensor of known rank"):
        require_static(proto, found)
    require_static(*specialise(model(TWO.format(a="N,3", b="2,2"))))


def test_default_values_need_no_shape() -> None:
    proto = model("g (float[2] x, float[?,K] w) => (y) { y = Relu(x) }", w=np.zeros((4, 5), np.float32))
    fixed, found = specialise(proto)
    assert found["w"] == (4, 5)
    require_static(fixed, found)


def test_contradictions() -> None:
    with pytest.raises(InvalidModelError, match="E3010"):
        specialise(model("g (float[1,3] x, float[1,4] w) => (y) { y = Add(x, w) }"))
    with pytest.raises(InvalidModelError, match="E3010"):
        specialise(model("g (float[1,3] x, int64[1,3] w) => (y) { y = Add(x, w) }"))
    with pytest.raises(InvalidModelError, match="E3010"):
        specialise(model("g (float[1,3] x) => (float[1,4] y) { y = Relu(x) }"))


@pytest.mark.parametrize(("attribute", "frequencies"), [("", 9), ("<onesided=1>", 9), ("<onesided=0>", 16)])
def test_a_fourier_transform_of_constant_frames(attribute: str, frequencies: int) -> None:
    """onnx's inference takes a missing `onesided` for 0; the schema says 1."""
    body = 'g (float[1,128,1] x) => (float[1,15,{size},2] y) {{ y = STFT{attribute}(x, step, "", length) }}'
    sizes = {"step": np.int64(8), "length": np.int64(16)}
    assert specialise(model(body.format(size=frequencies, attribute=attribute), **sizes))[1]["y"][2] == frequencies
    with pytest.raises(InvalidModelError, match="E3010"):
        specialise(model(body.format(size=frequencies + 1, attribute=attribute), **sizes))


@pytest.mark.parametrize("opset", [10, 12, 19, 21, 22])
@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "sizes"),
    [(1, 2, [0, 0], (4, 2, 1)), (2, 3, [0, 1], (6, 2, 1)), (2, 2, [1, 1], (5, 3, 2)), (3, 2, [0, 0], (6, 3, 1))],
)
def test_windows_of_ceil_mode_are_those_that_are_computed(
    opset: int, pool: str, kernel: int, stride: int, pads: list[int], sizes: tuple[int, int, int]
) -> None:
    """Two pools: before operator set 22 onnx counts a last window that would start behind the input and its padding."""
    first, second, third = sizes
    window = f"<kernel_shape=[{kernel}], strides=[{stride}], pads={pads}, ceil_mode=1>"
    body = f"g (float[1,2,{first}] x) => (float[1,2,{third}] y) {{ a = {pool}{window}(x) y = {pool}{window}(a) }}"
    proto = model(body)
    proto.opset_import[0].version = opset
    found = specialise(proto)[1]
    assert (found["a"], found["y"]) == ((1, 2, second), (1, 2, third))
    x = np.arange(2 * first, dtype=np.float32).reshape(1, 2, first)
    assert evaluate(proto, {"x": x})["y"].shape == found["y"]


@pytest.mark.parametrize("size", [2, 3])
def test_a_window_that_onnx_counts_may_be_declared(size: int) -> None:
    """By onnx's own inference, in value_info and in outputs; it does not make the window."""
    pool = "MaxPool<kernel_shape=[1], strides=[2], ceil_mode=1>(x)"
    proto = model(
        f"g (float[1,2,4] x) => (float[1,2,{size}] a, float[1,2,{size}] y) {{ a = {pool} b = Relu(a) y = Neg(b) }}"
    )
    proto.opset_import[0].version = 13
    proto.graph.value_info.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [1, 2, size]))
    fixed, found = specialise(proto)
    assert {found[name] for name in "aby"} == {(1, 2, 2)}
    assert {tuple(dim.dim_value for dim in one.type.tensor_type.shape.dim) for one in fixed.graph.output} == {(1, 2, 2)}
    proto.graph.value_info[0].type.tensor_type.shape.dim[2].dim_value = 4
    with pytest.raises(InvalidModelError, match="E3400"):
        specialise(proto)


def test_windows_behind_an_operator_without_a_schema() -> None:
    proto = model(
        "g (uint8[1,2,4] x, float s, uint8 z) => (a) {"
        " w = com.microsoft.QLinearSigmoid(x, s, z, s, z) a = MaxPool<kernel_shape=[1], strides=[2], ceil_mode=1>(w) }"
    )
    proto.opset_import[0].version = 13
    proto.opset_import.add(domain="com.microsoft", version=1)
    assert specialise(proto)[1]["a"] == (1, 2, 2)


def test_value_info_must_not_contradict_what_is_inferred() -> None:
    proto = model(RELU.format(dims="N,3"))
    proto.graph.value_info.append(helper.make_tensor_value_info("z", 1, ["M", 3]))
    specialise(proto)
    proto.graph.value_info[0].type.tensor_type.shape.dim[1].dim_value = 4
    with pytest.raises(
        InvalidModelError, match=r"E3400 .*'z': value_info says its shape is \[None, 4\], inferred is \[1, 3\]"
    ):
        specialise(proto)


def test_value_info_must_not_contradict_the_inferred_element_type() -> None:
    proto = model(RELU.format(dims="N,3"))
    proto.graph.value_info.append(helper.make_tensor_value_info("z", TensorProto.INT8, None))
    with pytest.raises(InvalidModelError, match=r"E3400 .*'z': value_info says its elements are INT8, inferred is F"):
        specialise(proto)


def test_operators_are_checked_once_shapes_are_known() -> None:
    body = "g (float[1,2,{size},4] x) => (y) {{ z = Relu(x) w = Transpose<perm=[0,1,3,2]>(z) y = {node} }}"
    specialise(model(body.format(size=4, node="MaxPool<kernel_shape=[4,4]>(w)")))
    with pytest.raises(InvalidModelError, match="E3388"):
        specialise(model(body.format(size=3, node="MaxPool<kernel_shape=[4,4]>(w)")))


def test_inferred_tensors_are_bounded() -> None:
    proto = model(
        "g (float[1,3] x) => (y) { big = ConstantOfShape(s) y = Add(x, big) }", s=np.array([1 << 20, 1 << 20, 1])
    )
    with pytest.raises(LimitError, match=r"E3410 .*--limit tensor_elements"):
        specialise(proto)
    specialise(proto, limits=Limits(tensor_elements=1 << 50, total_elements=1 << 60))
    small = model(RELU.format(dims="10,10"))
    specialise(small, limits=Limits(total_elements=300))
    with pytest.raises(LimitError, match="E3411"):
        specialise(small, limits=Limits(total_elements=299))


def test_a_tensor_without_elements_has_sizes_that_can_be_addressed() -> None:
    text = "g (float[1,8,2,3] x) => (y) {{ y = DepthToSpace<blocksize={size}>(x) }}"
    specialise(model(text.format(size=1 << 20)))
    with pytest.raises(LimitError, match="E3410"):
        specialise(model(text.format(size=(1 << 31) + 1)))


def test_a_huge_batch_does_no_harm() -> None:
    with pytest.raises(LimitError, match="E3410"):
        specialise(model(RELU.format(dims="N,3")), "m.onnx", {"N": 1 << 62})


def test_a_large_constant_that_inference_asks_for() -> None:
    """The sizes of a Split are more than inference is shown at first."""
    proto = model("g (float[2400] x) => (y) { t = Relu(x) y = Neg(p7) }", sizes=np.full(1200, 2))
    node = helper.make_node("Split", ["t", "sizes"], [f"p{n}" for n in range(1200)], axis=0)
    proto.graph.node.insert(1, node)
    assert shapes(proto)["y"] == (2,)


def test_weights_are_kept() -> None:
    weight = np.arange(6000, dtype=np.float32).reshape(2000, 3)
    fixed, found = specialise(model("g (float[1,2000] x) => (y) { y = MatMul(x, w) }", w=weight))
    assert found["y"] == (1, 3)
    np.testing.assert_array_equal(numpy_helper.to_array(fixed.graph.initializer[0]), weight)


MICROSOFT = ', "com.microsoft" : 1, "qonnx.custom_op.general" : 1'
X = "g (uint8[1,2,6,6] x, float s, uint8 z, uint8[4,2,3,3] w) => (y) "
EXTENSIONS = [
    ("{ y = com.microsoft.QLinearAdd(x, s, z, x, s, z, s, z) }", (1, 2, 6, 6)),
    ("{ y = com.microsoft.QLinearConv<strides=[2,2]>(x, s, z, w, s, z, s, z) }", (1, 4, 2, 2)),
    ("{ y = com.microsoft.QLinearAveragePool<kernel_shape=[2,2], strides=[2,2]>(x, s, z, s, z) }", (1, 2, 3, 3)),
    ("{ y = com.microsoft.QLinearGlobalAveragePool(x, s, z, s, z) }", (1, 2, 1, 1)),
    ("{ y = com.microsoft.QLinearConcat<axis=1>(s, z, x, s, z, x, s, z) }", (1, 4, 6, 6)),
    ("{ y = com.microsoft.QLinearReduceMean<axes=[2,3], keepdims=0>(x, s, z, s, z) }", (1, 2)),
    ("{ y = com.microsoft.QLinearSigmoid(x, s, z, s, z) }", (1, 2, 6, 6)),
    ("{ t = Flatten(x) u = Flatten(x) y = com.microsoft.QGemm<transB=1>(t, s, z, u, s, z) }", (1, 1)),
    ("{ t = com.microsoft.DequantizeLinear(x, s, z) y = qonnx.custom_op.general.Quant(t, s, s, s) }", (1, 2, 6, 6)),
]


@pytest.mark.parametrize(("body", "shape"), EXTENSIONS, ids=[body.split("(")[0][-25:] for body, _ in EXTENSIONS])
def test_shapes_behind_operators_without_a_schema(body: str, shape: tuple[int, ...]) -> None:
    assert shapes(model(X + body, MICROSOFT))["y"] == shape


@pytest.mark.parametrize(
    ("node", "shape"),
    [
        ("QLinearGlobalAveragePool<channels_last=1>(x, s, z, s, z)", (1, 1, 1, 6)),
        ("QLinearGlobalAveragePool<channels_last=0>(x, s, z, s, z)", (1, 2, 1, 1)),
        ("QLinearAveragePool<channels_last=1, kernel_shape=[2, 3]>(x, s, z, s, z)", (1, 1, 4, 6)),
        ("NhwcMaxPool<kernel_shape=[2, 3], strides=[1, 2]>(x)", (1, 1, 2, 6)),
        ("QLinearConv<channels_last=1, pads=[1, 1, 1, 1], group=3>(x, s, z, w, s, z, s, z)", (1, 2, 6, 3)),
    ],
)
def test_shapes_with_the_channels_last(node: str, shape: tuple[int, ...]) -> None:
    three = X.replace("uint8[4,2,3,3] w", "uint8[3,2,3,3] w")
    assert shapes(model(three + f"{{ y = com.microsoft.{node} }}", MICROSOFT)).get("y") == shape



def test_what_a_model_declares_behind_unknown_operators_counts() -> None:
    proto = model("g (float[1,3] x) => (y) { t = org.nobody.Thing(x) y = Relu(t) }", ', "org.nobody" : 1')
    assert "y" not in shapes(proto)
    proto.graph.value_info.append(helper.make_tensor_value_info("t", 1, [5, 5]))
    assert shapes(proto)["y"] == (5, 5)


def test_surrogates_are_standard_operators() -> None:
    assert all(onnx.defs.has(surrogate.op_type) for surrogate in SURROGATES.values())


@pytest.mark.parametrize("path", sorted(glob.glob(str(MODELS / "*.onnx"))), ids=lambda path: Path(path).stem)
def test_every_value_of_the_reference_models_has_a_shape(path: str) -> None:
    proto = onnx.load(path)
    fixed, found = specialise(proto, path)
    missing = [name for node in fixed.graph.node for name in node.output if name not in found]
    assert not missing
    assert max(map(prod, found.values())) < 1 << 24


N = 1 << 28


@pytest.mark.parametrize(
    "nodes",
    [
        "y = Add(x, x)",
        "t = Exp(x) y = Mul(t, x)",
        "y = Cast<to=7>(x)",
        "y = Concat<axis=0>(x)",
        "n = Shape(x) t = Expand(one, n) y = Add(t, one)",
        "n = Shape(x) m = Mul(n, n) t = Expand(one, m) y = Add(t, one)",
    ],
)
def test_values_are_not_propagated_through_long_vectors(nodes: str) -> None:
    """onnx's own data propagation would take minutes and gigabytes."""
    proto = model(f"g (float[{N}] x) => (y) {{ {nodes} }}", one=np.ones(1, np.float32))
    start = time.process_time()
    with contextlib.suppress(LimitError):
        assert prod(shapes(proto)["y"]) == N
    assert time.process_time() - start < 20


@pytest.mark.parametrize("given", ["", "two = Constant<value_ints=[2]>() "])
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
def test_values_of_constants_alone_are_propagated(given: str, op: str) -> None:
    """Also behind an operator without a shape."""
    constants = {"four": np.array([4, 4])} if given else {"four": np.array([4, 4]), "two": np.array([2])}
    proto = model(f"g (float[N] x) => (y) {{ {given} n = {op}(four, two) y = ConstantOfShape(n) }}", **constants)
    size = {"Add": 6, "Sub": 2, "Mul": 8}[op]
    assert shapes(proto)["y"] == (size, size)


def test_shape_arithmetic_of_exporters() -> None:
    """A flattening that reads the batch, and what follows: sums of the result too."""
    proto = model(
        "g (float[1,4,2,2] x) => (y) { s = Shape(x) b = Gather(s, zero) u = Unsqueeze(b, axes)"
        " c = Concat<axis=0>(u, rest)"
        " f = Reshape(x, c) a = Add(f, f) d = Shape(a) e = Slice(d, axes, one) h = Concat<axis=0>(e, rest)"
        " g2 = Reshape(a, h) y = Mul(g2, a) }",
        zero=np.int64(0),
        axes=np.array([0]),
        one=np.array([1]),
        rest=np.array([-1]),
    )
    assert shapes(proto)["y"] == (1, 16)
