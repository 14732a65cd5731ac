"""Operands of a run that an operator's text excludes, of operators that onnx's reference or we compute."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxhw import InferenceSession
from onnxhw.errors import OnnxhwError
from onnxhw.hostops.operators import deviations
from onnxhw.hostops.operators.ranges import GUARDS

F = np.float32


def i64(*values: int) -> Any:
    return np.array(values if len(values) != 1 else values[0], np.int64)


def vec(*values: int) -> Any:
    return np.array(values, np.int64)


def ones(*shape: int) -> Any:
    return np.ones(shape, F)


def states(**more: Any) -> list[Any]:
    """Operands of an RNN of 2 sequences of 4 steps, 2 features and 3 hidden."""
    usual = {"x": ones(4, 2, 2), "w": ones(1, 3, 2), "r": ones(1, 3, 3), "b": None,
             "lengths": np.array([2, 4], np.int32), "h": ones(1, 2, 3)}  # fmt: skip
    return list({**usual, **more}.values())


ROI = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear"}
ALIGNED = {"coordinate_transformation_mode": "align_corners", "mode": "linear"}
RNN = {"activations": ["ThresholdedRelu"], "hidden_size": 3}
POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}
INDICES = np.array([[[[0, 1], [2, 3]]]])
CASES: list[tuple[str, dict[str, Any], list[Any], list[list[Any]]]] = [
    ("DFT", {}, [ones(1, 16, 2), None, i64(1)],
     [[ones(1, 16, 2), None, i64(axis)] for axis in (-1, 2, 5, -4, 1 << 40, -(1 << 63))]),
    ("DFT", {}, [ones(1, 16, 1), i64(16)], [[ones(1, 16, 1), i64(0)], [ones(1, 16, 3)], [ones(1, 16, 1), i64(-1)]]),
    ("STFT", {}, [ones(1, 16, 1), i64(4), None, i64(4)],
     [[ones(1, 16, 1), i64(step), None, i64(size)] for step, size in ((0, 4), (-1, 4), (4, 0), (4, -1), (4, 17))]),
    ("STFT", {}, [ones(1, 16, 1), i64(4), ones(4)], [[ones(1, 16, 1), i64(4), ones(n)] for n in (0, 17)]),
    ("MaxUnpool", POOL, [ones(1, 1, 2, 2), INDICES, vec(1, 1, 4, 4)],
     [[ones(1, 1, 2, 2), INDICES - 1, vec(1, 1, 4, 4)], [ones(1, 1, 2, 2), INDICES, vec(1, 2, 4, 4)],
      [ones(1, 1, 2, 2), INDICES + 99, vec(1, 1, 4, 4)]]),
    ("AffineGrid", {"align_corners": 1}, [ones(1, 2, 3), vec(1, 1, 1, 4)],
     [[ones(1, 2, 3), vec(*size)] for size in ((1, 1, 1, 0), (2, 1, 1, 4), (1, 1, -1, 4), (1, 1, 1, 1, 4))]),
    ("Pad", {}, [ones(4), vec(1, -2)], [[ones(4), vec(*pads)] for pads in ((-5, 0), (-2, -3), (1, 1, 1), (0,))]),
    ("Pad", {"mode": "reflect"}, [ones(4), vec(3, 0)], [[ones(4), vec(4, 0)], [ones(4), vec(-5, 5)]]),
    ("Pad", {}, [ones(4, 4), vec(1, 1), None, vec(1)],
     [[ones(4, 4), vec(1, 1), None, vec(5)], [ones(4, 4), vec(1, 1, 2, 2), None, vec(1, -1)]]),
    ("TopK", {}, [ones(4), vec(4)], [[ones(4), vec(k)] for k in (-1, 5, 1 << 40)]),
    ("RNN", RNN, states(), [states(lengths=np.array([9, 1], np.int32)), states(lengths=np.array([-1, 1], np.int32)),
                            states(lengths=np.array([1], np.int32)), states(h=ones(1, 1, 3)), states(h=ones(1, 2, 1))]),
    ("Attention", {}, [ones(1, 2, 3, 4), ones(1, 2, 5, 4), ones(1, 2, 5, 4), None, None, None, vec(5)],
     [[ones(1, 2, 3, 4), ones(1, 2, 5, 4), ones(1, 2, 5, 4), None, None, None, vec(n)] for n in (6, -1)]),
    ("SplitToSequence", {"keepdims": 0}, [ones(4, 2), vec(1, 3)],
     [[ones(4, 2), parts] for parts in (vec(1, 1), vec(1, -1, 4), vec(5), i64(0), i64(-1))]),
    ("Dropout", {"seed": 1}, [ones(4), np.array(0.5, F), np.array(True)],
     [[ones(4), np.array(ratio, F), np.array(True)] for ratio in (1.0, 2.0, -1.0, np.nan)]),
    ("InstanceNormalization", {}, [ones(1, 3, 4), ones(3), ones(3)],
     [[ones(1, 3, 4), ones(1), ones(3)], [ones(1, 3, 4), ones(3), ones(2)]]),
    ("Slice", {}, [ones(4), vec(3), vec(1 << 62), vec(0), vec(-1)],
     [[ones(4), vec(3), vec(1 << 62), vec(5), vec(-1)], [ones(4), vec(3, 1), vec(1 << 62), vec(0), vec(-1)],
      [ones(4), vec(3, 1), vec(1 << 62, 1), vec(0, -1), vec(-1, -1)]]),
    ("Resize", ALIGNED, [ones(1, 1, 4, 4), None, np.array([1, 1, 2, 2], F)],
     [[ones(1, 1, 4, 4), None, np.array(scales, F)] for scales in ((1, 1, 0, 2), (1, 1, -1, 2), (1, 1, 2))]),
]  # fmt: skip
"""An operator with its attributes, operands that it takes, and those that it does not."""


def run(op_type: str, attributes: dict[str, Any], operands: list[Any]) -> Any:
    """The node alone, of whose inputs the ranks are known."""
    names = [f"x{index}" if value is not None else "" for index, value in enumerate(operands)]
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype),
                                            [f"{name}_{axis}" for axis in range(np.ndim(value))])
              for name, value in zip(names, operands, strict=True) if value is not None]  # fmt: skip
    outputs = {"TopK": ["v", "i"]}.get(op_type, ["s" if op_type == "SplitToSequence" else "y"])
    nodes = [helper.make_node(op_type, names, outputs, **attributes)]
    if op_type == "SplitToSequence":
        nodes.append(helper.make_node("SequenceLength", ["s"], ["y"]))
    last = nodes[-1].output[0]
    kind = TensorProto.INT64 if op_type == "SplitToSequence" else TensorProto.FLOAT
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info(last, kind, None)])
    opset = 24 if op_type == "Attention" else 20
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    feeds = {name: value for name, value in zip(names, operands, strict=True) if value is not None}
    with InferenceSession(model.SerializeToString()) as session:
        return session.run(None, feeds)[0]


@pytest.mark.parametrize(("op_type", "attributes", "right", "wrong"), CASES,
                         ids=[f"{index}-{case[0]}" for index, case in enumerate(CASES)])  # fmt: skip
def test_operands_out_of_range_are_refused(
    op_type: str, attributes: dict[str, Any], right: list[Any], wrong: list[list[Any]]
) -> None:
    run(op_type, attributes, right)
    for operands in wrong:
        with pytest.raises(OnnxhwError) as caught:
            run(op_type, attributes, operands)
        assert caught.value.code in ("E2503", "E4752"), operands


def test_every_guard_is_tried() -> None:
    assert {*GUARDS} - {"GRU", "LSTM"} == {case[0] for case in CASES}
    assert deviations.of("", "DFT")


@pytest.mark.parametrize("length", [1, 3, 16, 40])
@pytest.mark.parametrize("sizes", [["A", "B", "C"], [1, 16, 1], [1, "B", 1]])
@pytest.mark.parametrize("axis", [None, -2, 1])
@pytest.mark.parametrize("kind", [TensorProto.INT32, TensorProto.INT64])
def test_a_run_may_choose_the_length_of_a_dft(length: int, sizes: list[Any], axis: int | None, kind: int) -> None:
    """onnx's inference gives the result the dimension variable of its input."""
    node = helper.make_node("DFT", ["x", "n", "a"][: 2 if axis is None else 3], ["y"])
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes),
              helper.make_tensor_value_info("n", kind, [])]  # fmt: skip
    tensors = [] if axis is None else [helper.make_tensor("a", TensorProto.INT64, [], [axis])]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", 1, None)], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    x = np.arange(16, dtype=F).reshape(1, 16, 1)
    with InferenceSession(model.SerializeToString()) as session:
        (y,) = session.run(None, {"x": x, "n": np.array(length, helper.tensor_dtype_to_np_dtype(kind))})
    wanted = np.fft.fft(x[..., 0], length, axis=1)
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], wanted, atol=1e-3)
