"""Host operators that onnxruntime does not have: QONNX's, by their formulas, and maps and sequences."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnxhw.errors import UnsupportedError
from onnxhw.hostops.evaluator import evaluate

QONNX = "qonnx.custom_op.general"


def _run(op: str, domain: str, x: Any, *constants: Any, version: int = 1, **attributes: Any) -> Any:
    names = ["x", *(f"c{i}" for i in range(len(constants)))]
    node = helper.make_node(op, names, ["y"], domain=domain, **attributes)
    floats = onnx.TensorProto.FLOAT
    kind = helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype) if not isinstance(x, dict) else floats
    type_ = helper.make_tensor_type_proto(kind, None)
    if isinstance(x, dict):
        type_ = onnx.TypeProto()
        type_.map_type.key_type = onnx.TensorProto.INT64
        type_.map_type.value_type.tensor_type.elem_type = floats
    arrays = [numpy_helper.from_array(np.asarray(c, np.float32), n) for n, c in zip(names[1:], constants, strict=True)]
    value = helper.make_value_info("x", type_)
    graph = helper.make_graph([node], op, [value], [onnx.ValueInfoProto(name="y")], arrays)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(domain, version)]
    return evaluate(helper.make_model(graph, opset_imports=opsets, ir_version=8), {"x": x})["y"]


def test_quant_rounds_clips_and_scales() -> None:
    x = np.array([-9, -0.25, 0.25, 0.75, 9], np.float32)
    assert _run("Quant", QONNX, x, 0.5, 0, 4).tolist() == [-4, 0, 0, 1, 3.5]
    assert _run("IntQuant", QONNX, x, 0.5, 0, 4, narrow=1).tolist() == [-3.5, 0, 0, 1, 3.5]
    assert _run("Quant", "onnx.brevitas", x, 0.5, 0, 2, signed=0).tolist() == [0, 0, 0, 1, 1.5]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("ROUND", [-2, -2, -0.0, 0, 2, 2]),
        ("ceil", [-2, -1, -0.0, 1, 2, 3]),
        ("FLOOR", [-3, -2, -1, 0, 1, 2]),
        ("UP", [-3, -2, -1, 1, 2, 3]),
        ("DOWN", [-2, -1, -0.0, 0, 1, 2]),
        ("HALF_UP", [-3, -2, -1, 1, 2, 3]),
        ("HALF_DOWN", [-2, -1, -0.0, 0, 1, 2]),
    ],
)
def test_rounding_modes_at_ties(mode: str, expected: list[float]) -> None:
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32)
    assert _run("Quant", QONNX, x, 1, 0, 8, rounding_mode=mode).tolist() == expected


def test_one_bit_and_bipolar_have_no_zero() -> None:
    x = np.array([-1, 0, 1], np.float32)
    assert _run("BipolarQuant", "finn.custom_op.general", x, 0.5).tolist() == [-0.5, 0.5, 0.5]
    assert _run("Quant", QONNX, x, 0.5, 0, 1).tolist() == [-0.5, 0.5, 0.5]


def test_trunc_in_both_versions() -> None:
    x = np.array([-17, -1, 15, 17], np.float32)
    assert _run("Trunc", QONNX, x, 1, 0, 8, 4).tolist() == [-2, -1, 0, 1]
    assert _run("Trunc", QONNX, x, 1, 0, 8, 16, 4, version=2).tolist() == [-32, -16, 0, 16]
    assert _run("Trunc", QONNX, x * 9, 1, 0, 8, 16, 4, version=2).tolist() == [-128, -16, 112, 112]


def test_multi_threshold_counts_per_channel() -> None:
    x = np.array([[[[-1.0, 0.0]], [[1.0, 2.0]]]], np.float32)
    thresholds = [[-1, 0, 1], [0, 2, 4]]
    assert _run("MultiThreshold", QONNX, x, thresholds).tolist() == [[[[1, 2]], [[1, 2]]]]
    scaled = _run("MultiThreshold", QONNX, x, thresholds, out_scale=2.0, out_bias=-1.0)
    assert scaled.tolist() == [[[[1, 3]], [[1, 3]]]]


def test_a_bit_width_that_is_no_integer_is_refused() -> None:
    with pytest.raises(UnsupportedError) as caught:
        _run("Quant", QONNX, np.ones(1, np.float32), 1, 0, 3.5)
    assert caught.value.code == "E4752"


def test_zip_map_and_cast_map_are_inverse() -> None:
    x = np.array([[0.25, 0.75]], np.float32)
    maps = _run("ZipMap", "ai.onnx.ml", x, classlabels_int64s=[3, 5])
    assert maps == [{3: 0.25, 5: 0.75}]
    assert np.array_equal(_run("CastMap", "ai.onnx.ml", maps[0]), x)
    sparse = _run("CastMap", "ai.onnx.ml", maps[0], map_form="SPARSE", max_map=6)
    assert sparse.tolist() == [[0, 0, 0, 0.25, 0, 0.75]]


def test_category_mapper_in_both_directions() -> None:
    attributes = {"cats_int64s": [7, 8], "cats_strings": ["a", "b"]}
    strings = np.array(["b", "c", "a"], object)
    assert _run("CategoryMapper", "ai.onnx.ml", strings, **attributes).tolist() == [8, -1, 7]
    integers = np.array([8, 9, 7], np.int64)
    assert _run("CategoryMapper", "ai.onnx.ml", integers, **attributes).tolist() == ["b", "_Unused", "a"]
