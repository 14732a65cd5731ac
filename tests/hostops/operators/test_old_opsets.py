"""Host nodes of old operator sets: operators changed their meaning, not only their types.

The host computes with onnxruntime's kernels, so the other side is numpy: onnx's reference implementation, or, for
operators that it lacks in these versions or computes as in later ones, their definition here (`DEFINED`). Float results
are compared within 1e-5 of the largest magnitude: both sides sum in an order of their own.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from onnxhw.hostops.evaluator import evaluate

RNG = np.random.default_rng(7)


def _f(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


def _i(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


X = _f(2, 3, 4, 5)
IMAGE = _f(1, 2, 7, 8)
SCALES = np.array([1, 1, 2, 3], np.float32)
POOL = {"kernel_shape": [3, 2], "strides": [2, 2]}
CHANNELS = [_f(3), _f(3), _f(3), np.abs(_f(3))]

CASES: list[tuple[str, int, list[Any], dict[str, Any]]] = [
    ("Softmax", 7, [X], {}),
    ("Softmax", 11, [X], {"axis": 2}),
    ("Softmax", 12, [X], {"axis": -1}),
    ("Softmax", 13, [X], {"axis": 1}),
    ("LogSoftmax", 9, [X], {}),
    ("LogSoftmax", 13, [X], {}),
    ("Hardmax", 7, [X], {}),
    ("Hardmax", 11, [X], {"axis": 2}),
    ("Hardmax", 13, [X], {"axis": 1}),
    ("BatchNormalization", 7, [X, *CHANNELS], {}),
    ("BatchNormalization", 9, [X, *CHANNELS], {"momentum": 0.5, "epsilon": 0.01}),
    ("BatchNormalization", 14, [X, *CHANNELS], {}),
    ("BatchNormalization", 15, [X, *CHANNELS], {"epsilon": 0.01}),
    ("Dropout", 7, [X], {"ratio": 0.3}),
    ("Dropout", 10, [X], {"ratio": 0.3}),
    ("Dropout", 12, [X], {}),
    ("Clip", 7, [X], {"min": -0.5, "max": 0.25}),
    ("Clip", 11, [X, np.float32(-0.5), np.float32(0.5)], {}),
    ("Upsample", 7, [IMAGE], {"scales": [1.0, 1.0, 2.0, 3.0]}),
    ("Upsample", 9, [IMAGE, SCALES], {}),
    ("Resize", 10, [IMAGE, SCALES], {}),
    ("Resize", 11, [IMAGE, np.zeros(0, np.float32), SCALES], {"mode": "linear"}),
    ("Resize", 11, [IMAGE, np.zeros(0, np.float32), SCALES], {"nearest_mode": "floor"}),
    ("Slice", 7, [X], {"starts": [1, -3], "ends": [3, 1000], "axes": [1, 3]}),
    ("Slice", 10, [X, _i(3, -1), _i(0, -1000), _i(1, 3), _i(-1, -2)], {}),
    ("Pad", 7, [X], {"pads": [0, 1, 0, 2, 0, 0, 1, 0], "value": 1.5}),
    ("Pad", 7, [X], {"pads": [0, 0, 2, 1, 0, 0, 1, 2], "mode": "reflect"}),
    ("Pad", 11, [X, _i(0, 0, 2, 1, 0, 0, 1, 2)], {"mode": "edge"}),
    ("ReduceSum", 7, [X], {"axes": [1, 3]}),
    ("ReduceSum", 11, [X], {"axes": [-1], "keepdims": 0}),
    ("ReduceMean", 7, [X], {}),
    ("ReduceL2", 11, [X], {"axes": [2]}),
    ("ReduceLogSumExp", 7, [X], {"axes": [1]}),
    ("ReduceMax", 12, [X], {"axes": [1], "keepdims": 0}),
    ("Squeeze", 7, [_f(1, 3, 1, 2)], {"axes": [0]}),
    ("Squeeze", 11, [_f(1, 3, 1, 2)], {}),
    ("Unsqueeze", 7, [_f(3, 2)], {"axes": [0, 2]}),
    ("Split", 7, [X], {"axis": 3, "split": [2, 3]}),
    ("Split", 11, [_f(4, 2)], {}),
    ("TopK", 7, [X], {"k": 3}),
    ("TopK", 10, [X, _i(2)], {"axis": 1}),
    ("TopK", 11, [X, _i(2)], {"axis": 1, "largest": 0}),
    ("Cast", 7, [X * 100], {"to": onnx.TensorProto.INT32}),
    ("Gemm", 7, [_f(3, 4), _f(4, 5), _f(5)], {"alpha": 0.5, "beta": 2.0}),
    ("Gemm", 9, [_f(4, 3), _f(5, 4), _f(1, 5)], {"transA": 1, "transB": 1}),
    ("AveragePool", 7, [IMAGE], {**POOL, "pads": [1, 1, 1, 0]}),
    ("AveragePool", 7, [IMAGE], {**POOL, "pads": [1, 1, 1, 0], "count_include_pad": 1}),
    ("AveragePool", 10, [IMAGE], {**POOL, "ceil_mode": 1}),
    ("AveragePool", 19, [IMAGE], {**POOL, "dilations": [2, 1], "pads": [1, 0, 1, 1]}),
    ("AveragePool", 7, [IMAGE], {**POOL, "auto_pad": "SAME_LOWER"}),
    ("MaxPool", 8, [IMAGE], {**POOL, "pads": [1, 1, 1, 0]}),
    ("MaxPool", 10, [IMAGE], {**POOL, "ceil_mode": 1, "dilations": [2, 2]}),
    ("MaxPool", 10, [_f(1, 1, 2, 4)], {"kernel_shape": [1, 1], "strides": [2, 3], "ceil_mode": 1}),
    ("AveragePool", 10, [_f(1, 1, 2, 4)], {"kernel_shape": [1, 1], "strides": [2, 3], "ceil_mode": 1}),
    ("AveragePool", 10, [IMAGE], {**POOL, "ceil_mode": 1, "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ("MaxPool", 12, [IMAGE], {**POOL, "storage_order": 1}),
    ("MaxPool", 12, [RNG.integers(-128, 127, (1, 2, 6, 6)).astype(np.int8)], POOL),
    ("MaxPool", 8, [_f(1, 2, 9)], {"kernel_shape": [4], "auto_pad": "SAME_UPPER", "strides": [2]}),
    ("MaxPool", 8, [_f(1, 2, 4, 5, 6)], {"kernel_shape": [2, 3, 2]}),
    ("LpPool", 7, [IMAGE], {**POOL, "p": 3}),
    ("LpPool", 7, [IMAGE], {**POOL, "pads": [1, 1, 1, 0]}),
    ("LpPool", 18, [IMAGE], {**POOL, "dilations": [2, 1]}),
    ("GlobalLpPool", 7, [IMAGE], {"p": 3}),
    ("GlobalAveragePool", 7, [IMAGE], {}),
    ("ConvTranspose", 7, [_f(1, 2, 4, 5), _f(2, 3, 3, 3), _f(3)], {"strides": [2, 2], "output_padding": [1, 1]}),
    ("ConvTranspose", 11, [_f(1, 2, 4, 5), _f(2, 3, 3, 3)], {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ("ConvTranspose", 11, [_f(2, 2, 7), _f(2, 3, 4)], {"strides": [3], "pads": [2, 1], "output_padding": [2]}),
    ("Conv", 7, [_f(1, 4, 7, 8), _f(6, 2, 3, 2), _f(6)], {"group": 2, "strides": [2, 1], "pads": [1, 0, 1, 1]}),
    ("Conv", 11, [_f(2, 3, 9), _f(4, 3, 3)], {"strides": [2], "auto_pad": "SAME_UPPER"}),
    ("Conv", 11, [_f(1, 1, 5, 6, 7), _f(2, 1, 2, 3, 2)], {"auto_pad": "SAME_LOWER", "strides": [2, 2, 2]}),
    ("RoiAlign", 16, [IMAGE, np.array([[0, 0, 5, 5], [1, 2, 6, 7]], np.float32), _i(0, 0)],
     {"output_height": 3, "output_width": 2, "sampling_ratio": 2}),
    ("Scatter", 9, [_f(3, 3), _i(1, 0, 2, 0, 2, 1).reshape(2, 3), _f(2, 3)], {}),
    ("ScatterElements", 11, [_f(3, 3), _i(1, -1).reshape(1, 2), _f(1, 2)], {"axis": 1}),
    ("GridSample", 16, [IMAGE, np.clip(_f(1, 3, 4, 2), -1.2, 1.2)], {"padding_mode": "reflection"}),
    ("LogSoftmax", 13, [X * 50], {"axis": 0}),
    ("OneHot", 9, [_i(1, -1, 7), np.array([4], np.int64), np.array([0, 1], np.float32)], {}),
    ("ArgMax", 7, [X], {"axis": 1}),
    ("ArgMin", 11, [X], {"axis": -1, "keepdims": 0}),
    ("PRelu", 7, [X, _f(3, 1, 1)], {}),
    ("Pow", 7, [np.abs(X), _f(5)], {}),
    ("Mod", 10, [_i(5, -5, 7), _i(3, 3, -4)], {}),
    ("InstanceNormalization", 7, [X, _f(3), _f(3)], {}),
    ("LRN", 7, [_f(1, 7, 3, 3)], {"size": 5, "alpha": 0.1}),
    ("MeanVarianceNormalization", 9, [X], {}),
    ("DepthToSpace", 7, [_f(1, 8, 2, 3)], {"blocksize": 2}),
    ("SpaceToDepth", 7, [_f(1, 2, 4, 6)], {"blocksize": 2}),
    ("LpNormalization", 7, [X], {"p": 1, "axis": 1}),
    ("ReverseSequence", 10, [_f(4, 3), _i(4, 2, 1)], {"time_axis": 0, "batch_axis": 1}),
    ("Max", 8, [X, _f(5), _f(4, 1)], {}),
    ("Mean", 8, [X, _f(5)], {}),
    ("Flatten", 7, [X], {"axis": 2}),
    ("EyeLike", 9, [_f(3, 4)], {"k": 1}),
    ("ThresholdedRelu", 10, [X], {"alpha": 0.5}),
    ("HardSigmoid", 7, [X], {"alpha": 0.3}),
    ("Selu", 7, [X], {}),
    ("Elu", 7, [X], {"alpha": 0.7}),
    ("Shrink", 9, [X], {"lambd": 0.3, "bias": 0.1}),
    ("CumSum", 11, [X, np.array(2, np.int64)], {"exclusive": 1, "reverse": 1}),
    ("GatherND", 11, [X, _i(0, 1, 1, 2).reshape(2, 2)], {}),
    ("Gather", 7, [X, _i(2, 0)], {"axis": 1}),
    ("Shape", 7, [X], {}),
    ("Concat", 7, [X, X], {"axis": 2}),
    ("Tile", 7, [_f(2, 3), _i(2, 2)], {}),
    ("Expand", 8, [_f(3, 1), _i(2, 1, 4)], {}),
    ("Reshape", 7, [X, _i(0, -1, 2, 5)], {}),
]  # fmt: skip

OUTPUTS = {"TopK": 2, "Split": 2}


def _outputs(op: str, attributes: dict[str, Any]) -> int:
    return 2 if "storage_order" in attributes else OUTPUTS.get(op, 1)


Values = np.ndarray[Any, Any]


def _softmax(x: Values, axis: int = 1) -> Values:
    """Before operator set 13: over all dimensions from the axis on."""
    rows = np.exp(x.astype(np.float64)).reshape(int(np.prod(x.shape[:axis])), -1)
    return (rows / rows.sum(1, keepdims=True)).reshape(x.shape)


def _hardmax(x: Values, axis: int = 1) -> Values:
    rows = x.reshape(int(np.prod(x.shape[:axis])), -1)
    return np.eye(rows.shape[1])[rows.argmax(1)].reshape(x.shape)


def _batch_normalization(
    x: Values, scale: Values, bias: Values, mean: Values, var: Values, epsilon: float = 1e-5, momentum: float = 0.9
) -> Values:
    scale, bias, mean, var = (one.astype(np.float64).reshape(-1, 1, 1) for one in (scale, bias, mean, var))
    return (x - mean) / np.sqrt(var + epsilon) * scale + bias


def _repeated(x: Values, *_: Values, scales: Any = None) -> Values:
    """Nearest, asymmetric, rounded down, by whole factors 2 and 3."""
    return x.repeat(2, 2).repeat(3, 3)


def _scatter(x: Values, indices: Values, updates: Values) -> Values:
    result = x.copy()
    for (row, column), index in np.ndenumerate(indices):
        result[index, column] = updates[row, column]
    return result


def _one_hot(indices: Values, depth: Values, values: Values) -> Values:
    rows = [[values[int(i in (column, column - depth[0]))] for column in range(depth[0])] for i in indices]
    return np.array(rows)


def _lrn(x: Values, size: int, alpha: float) -> Values:
    squares = np.pad(x.astype(np.float64) ** 2, [(0, 0), (size // 2, size // 2), (0, 0), (0, 0)])
    sums = sum(squares[:, i : i + x.shape[1]] for i in range(size))
    return np.asarray(x / (1 + alpha / size * sums) ** 0.75)


DEFINED: dict[str, tuple[range, Callable[..., Values]]] = {
    "Softmax": (range(13), _softmax),
    "LogSoftmax": (range(13), lambda x, axis=1: np.log(_softmax(x, axis))),
    "Hardmax": (range(13), _hardmax),
    "BatchNormalization": (range(14), _batch_normalization),
    "Upsample": (range(10), _repeated),
    "Resize": (range(11), _repeated),
    "GlobalLpPool": (range(99), lambda x, p: (np.abs(x) ** p).sum((2, 3), keepdims=True) ** (1 / p)),
    "Scatter": (range(11), _scatter),
    "OneHot": (range(11), _one_hot),
    "LRN": (range(13), _lrn),
    "LpNormalization": (range(22), lambda x, p, axis: x / np.abs(x).sum(axis, keepdims=True)),
}
"""The first operator sets of each, and what it gives there."""


@pytest.mark.parametrize(
    ("op", "opset", "inputs", "attributes"), CASES, ids=lambda v: str(v) if isinstance(v, (str, int)) else ""
)
def test_a_node_of_an_old_operator_set_is_as_defined(
    op: str, opset: int, inputs: list[Any], attributes: dict[str, Any]
) -> None:
    names = [f"x{i}" for i in range(len(inputs))]
    arrays = {name: np.asarray(value) for name, value in zip(names, inputs, strict=True)}
    node = helper.make_node(op, names, [f"y{i}" for i in range(_outputs(op, attributes))], **attributes)
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in arrays.items()
    ]
    graph = helper.make_graph([node], op, values, [onnx.ValueInfoProto(name=name) for name in node.output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6)
    sets, define = DEFINED.get(op, (range(0), None))
    if define is not None and opset in sets:
        expected = [define(*arrays.values(), **attributes).astype(arrays["x0"].dtype if op != "OneHot" else "f4")]
    else:
        expected = list(ReferenceEvaluator(model).run(None, arrays))
    found = evaluate(model, arrays)
    for name, wanted in zip(node.output, expected, strict=True):
        assert found[name].dtype == wanted.dtype
        assert found[name].shape == wanted.shape
        if wanted.dtype.kind in "biu":
            assert np.array_equal(found[name], wanted)
        else:
            assert np.abs(found[name] - wanted).max() <= 1e-5 * max(1.0, np.abs(wanted).max())
