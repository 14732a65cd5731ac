"""Host nodes of old operator sets equal onnxruntime: operators changed their meaning, not only their types.

Float results are compared within 1e-5 of the largest magnitude: both sides sum in an order of their own.
"""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxhw.frontend.hostrun import evaluate

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
RECURRENT = {"hidden_size": 3}
LENGTHS = np.array([4, 2], np.int32)


def _cells(gates: int, directions: int) -> list[np.ndarray[Any, Any]]:
    return [_f(directions, gates * 3, 5), _f(directions, gates * 3, 3), _f(directions, 2 * gates * 3)]


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
    ("Upsample", 9, [IMAGE, SCALES], {"mode": "linear"}),
    ("Resize", 10, [IMAGE, SCALES], {}),
    ("Resize", 10, [IMAGE, SCALES], {"mode": "linear"}),
    ("Resize", 10, [IMAGE, np.array([1, 1, 0.5, 0.6], np.float32)], {"mode": "linear"}),
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
    ("ConvTranspose", 7, [_f(1, 2, 4, 5), _f(2, 3, 3, 3)], {"strides": [2, 3], "output_shape": [9, 14]}),
    ("ConvTranspose", 11, [_f(1, 2, 4, 5), _f(2, 3, 3, 3)], {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ("ConvTranspose", 11, [_f(2, 2, 7), _f(2, 3, 4)], {"strides": [3], "pads": [2, 1], "output_padding": [2]}),
    ("ConvTranspose", 11, [_f(1, 4, 4, 5), _f(4, 3, 3, 3)], {"group": 2, "pads": [1, 0, 1, 1], "dilations": [2, 1]}),
    ("Conv", 7, [_f(1, 4, 7, 8), _f(6, 2, 3, 2), _f(6)], {"group": 2, "strides": [2, 1], "pads": [1, 0, 1, 1]}),
    ("Conv", 11, [_f(2, 3, 9), _f(4, 3, 3)], {"strides": [2], "auto_pad": "SAME_UPPER"}),
    ("Conv", 11, [_f(1, 1, 5, 6, 7), _f(2, 1, 2, 3, 2)], {"auto_pad": "SAME_LOWER", "strides": [2, 2, 2]}),
    ("RoiAlign", 10, [IMAGE, np.array([[0, 0, 5, 5], [1, 2, 6, 7]], np.float32), _i(0, 0)],
     {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.9}),
    ("RoiAlign", 16, [IMAGE, np.array([[0, 0, 5, 5], [1, 2, 6, 7]], np.float32), _i(0, 0)],
     {"output_height": 3, "output_width": 2, "sampling_ratio": 2}),
    ("Scatter", 9, [_f(3, 3), _i(1, 0, 2, 0, 2, 1).reshape(2, 3), _f(2, 3)], {}),
    ("ScatterElements", 11, [_f(3, 3), _i(1, -1).reshape(1, 2), _f(1, 2)], {"axis": 1}),
    ("GridSample", 16, [IMAGE, np.clip(_f(1, 3, 4, 2), -1.2, 1.2)], {"padding_mode": "reflection"}),
    ("GridSample", 16, [IMAGE, np.clip(_f(1, 3, 4, 2), -1.2, 1.2)], {"mode": "bicubic", "align_corners": 1}),
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
    ("RNN", 7, [_f(4, 2, 5), *_cells(1, 2), LENGTHS, _f(2, 2, 3)],
     {**RECURRENT, "direction": "bidirectional", "activations": ["Relu", "Tanh"], "clip": 0.4}),
    ("GRU", 7, [_f(4, 2, 5), *_cells(3, 1), LENGTHS], {**RECURRENT, "direction": "reverse"}),
    ("GRU", 7, [_f(4, 2, 5), *_cells(3, 1)],
     {**RECURRENT, "linear_before_reset": 1, "activations": ["HardSigmoid", "Softsign"]}),
    ("LSTM", 7, [_f(4, 2, 5), *_cells(4, 2), LENGTHS, _f(2, 2, 3), _f(2, 2, 3), _f(2, 9)],
     {**RECURRENT, "direction": "bidirectional"}),
    ("LSTM", 7, [_f(4, 2, 5), *_cells(4, 1)], {**RECURRENT, "input_forget": 1, "clip": 0.5}),
    ("LSTM", 7, [_f(4, 2, 5), *_cells(4, 1), LENGTHS],
     {**RECURRENT, "activations": ["HardSigmoid", "ScaledTanh", "LeakyRelu"], "activation_alpha": [0.3, 0.9, 0.1],
      "activation_beta": [0.4, 0.8]}),
]  # fmt: skip

OUTPUTS = {"TopK": 2, "RNN": 2, "GRU": 2, "LSTM": 3, "Split": 2}


def _outputs(op: str, attributes: dict[str, Any]) -> int:
    return 2 if "storage_order" in attributes else OUTPUTS.get(op, 1)


@pytest.mark.parametrize(
    ("op", "opset", "inputs", "attributes"), CASES, ids=lambda v: str(v) if isinstance(v, (str, int)) else ""
)
def test_a_node_of_an_old_operator_set_equals_onnxruntime(
    op: str, opset: int, inputs: list[Any], attributes: dict[str, Any]
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    names = [f"x{i}" for i in range(len(inputs))]
    arrays = {name: np.asarray(value) for name, value in zip(names, inputs, strict=True)}
    node = helper.make_node(op, names, [f"y{i}" for i in range(_outputs(op, attributes))], **attributes)
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in arrays.items()
    ]
    graph = helper.make_graph([node], op, values, [onnx.ValueInfoProto(name=name) for name in node.output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6)
    model = onnx.shape_inference.infer_shapes(model)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, arrays)
    for value in model.graph.output:  # before operator set 22 onnx infers a window too many in ceil mode
        value.ClearField("type")
    del model.graph.value_info[:]
    found = evaluate(model, arrays)
    for name, wanted in zip(node.output, expected, strict=True):
        assert found[name].dtype == wanted.dtype
        assert found[name].shape == wanted.shape
        if wanted.dtype.kind in "biu":
            assert np.array_equal(found[name], wanted)
        else:
            assert np.abs(found[name] - wanted).max() <= 1e-5 * max(1.0, np.abs(wanted).max())
