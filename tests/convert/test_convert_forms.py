"""Operators whose operands moved from attributes to inputs: both forms are one, folded and on the hardware."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import numpy_helper, parser

from onnxhw.partition import PartitionedModel, read
from onnxhw.runtime.session import InferenceSession

Array = npt.NDArray[Any]
X = np.random.default_rng(4).normal(0, 2, (1, 4, 6, 6)).astype(np.float32)
CONSTANTS = {
    "s": np.float32(0.05), "zp": np.int8(3), "zero": np.int64([0]), "one": np.int64([1]), "two": np.int64([2]),
    "last": np.int64([-1]), "space": np.int64([2, 3]), "begin": np.int64([1, 2]), "end": np.int64([5, 6]),
    "halves": np.int64([1, 3]), "first": np.int64(0), "pads": np.int64([0, 0, 1, 0, 0, 0, 2, 1]), "low": np.float32(0),
    "high": np.float32(1.5), "ratio": np.float32(0.5), "off": np.array(False),
    "both": np.int64([0, 1]), "four": np.int64([4]), "scales": np.float32([1, 1, 2, 2]), "nothing": np.float32([]),
}  # fmt: skip


def model(body: str, opset: int) -> onnx.ModelProto:
    """The body between a quantized `d` and a real `r`."""
    domain = "com.microsoft." if opset < 10 else ""  # the default one has none before
    proto = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]> g (float[1,4,6,6] x) => (float y) {{
        q = {domain}QuantizeLinear(x, s, zp)  d = {domain}DequantizeLinear(q, s, zp)  {body}
        p = {domain}QuantizeLinear(r, s, zp)  y = {domain}DequantizeLinear(p, s, zp) }}"""
    )
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    used = {name for node in proto.graph.node for name in node.input}
    proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name)
                                   for name, value in CONSTANTS.items() if name in used)  # fmt: skip
    return proto


def places(mixed: PartitionedModel) -> list[tuple[str, str]]:
    """Where each node runs, those that make constants aside."""
    return [(row.op_type, row.where) for row in mixed.placement if row.op_type != "Constant"]


HARDWARE = [
    (11, "a = Squeeze<axes = [0]>(d) r = Unsqueeze<axes = [0]>(a)", 13, "a = Squeeze(d, zero) r = Unsqueeze(a, zero)"),
    (12, "a = Unsqueeze<axes = [2]>(d) b = Squeeze<axes = [-3]>(a) r = Relu(b)",
     21, "a = Unsqueeze(d, two) b = Squeeze(a, two) r = Relu(b)"),
    (11, "r = ReduceSum<axes = [2, 3], keepdims = 1>(d)", 13, "r = ReduceSum<keepdims = 1>(d, space)"),
    (13, "r = ReduceMean<axes = [2, 3], keepdims = 1>(d)", 18, "r = ReduceMean<keepdims = 1>(d, space)"),
    (12, "r = ReduceMax<axes = [2, 3], keepdims = 1>(d)", 18, "r = ReduceMax<keepdims = 1>(d, space)"),
    (11, "a, b = Split<axis = 1, split = [1, 3]>(d) r = Relu(b)", 13, "a, b = Split<axis = 1>(d, halves) r = Relu(b)"),
    (10, "a, b = Split<axis = 2>(d) r = Add(a, b)", 18, "a, b = Split<axis = 2, num_outputs = 2>(d) r = Add(a, b)"),
    (9, "a = Slice<axes = [2, 3], starts = [1, 2], ends = [5, 6]>(d) r = Relu(a)",
     10, "a = Slice(d, begin, end, space) r = Relu(a)"),
    (10, "r = Pad<pads = [0, 0, 1, 0, 0, 0, 2, 1], value = 0.0>(d)", 13, "r = Pad(d, pads, low)"),
    (10, "r = Pad<pads = [0, 0, 1, 0, 0, 0, 2, 1], mode = 'reflect'>(d)".replace("'", '"'),
     11, 'r = Pad<mode = "reflect">(d, pads)'),
    (10, "r = Clip<min = 0.0, max = 1.5>(d)", 11, "r = Clip(d, low, high)"),
    (10, "a = Dropout<ratio = 0.5>(d) r = Relu(a)", 13, "a = Dropout(d, ratio, off) r = Relu(a)"),
    (10, "r = Resize<mode = \"nearest\">(d, scales)",
     11, 'r = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">'
         "(d, nothing, scales)"),
    (9, 'r = Upsample<mode = "nearest">(d, scales)',
     10, 'r = Resize<mode = "nearest">(d, scales)'),
    (8, 'r = Upsample<mode = "nearest", scales = [1.0, 1.0, 2.0, 2.0]>(d)',
     10, 'r = Resize<mode = "nearest">(d, scales)'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "before", "new", "after"), HARDWARE, ids=[case[1].split(" = ")[1][:9] for case in HARDWARE]
)
def test_both_forms_are_one_on_the_hardware(old: int, before: str, new: int, after: str) -> None:
    first, second = (model(body, opset).SerializeToString() for body, opset in ((before, old), (after, new)))
    ours, theirs = (InferenceSession(proto).run(None, {"x": X})[0] for proto in (first, second))
    assert len(np.unique(theirs)) > 2
    np.testing.assert_array_equal(ours, theirs)
    here, there = ([where for _, where in places(read(proto))] for proto in (first, second))
    assert here == there


FOLDED = [
    (11, "t = Unsqueeze<axes = [0]>(n)", 13, "t = Unsqueeze(n, zero)"),
    (11, "u = Unsqueeze<axes = [0, 1]>(n) t = Squeeze<axes = [0]>(u)",
     13, "u = Unsqueeze(n, both) t = Squeeze(u, zero)"),
    (9, "h = Shape(d) t = Slice<axes = [0], starts = [0], ends = [1]>(h)", 10, "h = Shape(d) t = Slice(h, zero, one)"),
    (12, "h = Shape(d) v = Slice(h, one, four, zero) w = ReduceProd<axes = [0], keepdims = 0>(v)"
     " e = Div(w, w) t = Reshape(e, one)",
     18, "h = Shape(d) v = Slice(h, one, four, zero) w = ReduceProd<keepdims = 0>(v, zero) "
     "e = Div(w, w) t = Reshape(e, one)"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "before", "new", "after"), FOLDED, ids=["unsqueeze", "squeeze", "slice", "reduce"])
def test_both_forms_are_folded(old: int, before: str, new: int, after: str) -> None:
    """The shape arithmetic of ``x.view(x.size(0), -1)``, whose target onnx does not infer."""
    around = (
        "s0 = Shape(d) n = Gather<axis = 0>(s0, first) {} c = Concat<axis = 0>(t, last) m = Reshape(d, c) r = Relu(m)"
    )
    for opset, body in ((old, before), (new, after)):
        proto = model(around.format(body), opset)
        mixed = read(proto)
        kinds = {"Unsqueeze", "Squeeze", "Slice", "Gather", "Shape", "ReduceProd", "Concat"}
        assert {where for op_type, where in places(mixed) if op_type in kinds} <= {"folded", "free"}
        assert ("Relu", "hardware") in places(mixed)
        (made,) = InferenceSession(proto.SerializeToString()).run(None, {"x": X})
        (wanted,) = InferenceSession(model("r = Relu(d)", 13).SerializeToString()).run(None, {"x": X})
        np.testing.assert_array_equal(made, wanted.reshape(1, 144))


@pytest.mark.parametrize(
    ("target", "shape"),
    [
        ([0, -1], [1, 144]),
        ([1, 4, -1], [1, 4, 36]),
        ([0, 0, 36], [1, 4, 36]),
        ([1, 144], [1, 144]),
        ([-1, 4, 6, 6], [1, 4, 6, 6]),
    ],
)
def test_a_target_that_is_computed(target: list[int], shape: list[int]) -> None:
    """Of constants by nodes that onnx's inference does not follow."""
    proto = model("k = Neg(minus) c = Neg(k) k2 = Neg(c) t = Neg(k2) m = Reshape(d, c) r = Relu(m)", 13)
    proto.graph.initializer.append(numpy_helper.from_array(np.int64(target), "minus"))
    (made,) = InferenceSession(proto.SerializeToString()).run(None, {"x": X})
    (wanted,) = InferenceSession(model("r = Relu(d)", 13).SerializeToString()).run(None, {"x": X})
    np.testing.assert_array_equal(made, wanted.reshape(shape))
    assert ("Relu", "hardware") in places(read(proto))
