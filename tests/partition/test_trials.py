"""What no run can compute is known before any."""

import pickle
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from onnxhw import InferenceSession
from onnxhw.errors import InvalidModelError
from onnxhw.hostops import in_worker, onnxruntime_node
from onnxhw.onnxmodel.batch_analysis import OTHERS
from onnxhw.partition import read, trials

X = {"x": (T.FLOAT, [2, 3]), "c": (T.FLOAT, [1, 3, 2, 2]), "b": (T.FLOAT, ["N", 3]),
     "big": (T.FLOAT, [1, 16, 64, 64]), "seq": (T.FLOAT, [4, 2, 3]), "n": (T.INT32, [2])}  # fmt: skip


def model(op_type: str, inputs: str, constants: dict[str, Any], domain: str = "", **attributes: Any) -> onnx.ModelProto:
    """One node; inputs that are no constants are those of `X`."""
    names = inputs.split(" ")
    node = helper.make_node(op_type, names, ["y"], domain=domain, **attributes)
    given = [helper.make_tensor_value_info(name, *X[name]) for name in dict.fromkeys(names) if name in X]
    known = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph([node], "g", given, [onnx.ValueInfoProto(name="y")], known)
    graph.output[0].type.tensor_type.elem_type = T.FLOAT
    imports = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


INDICES = {
    "gather": ("Gather", "x i", {"i": [5]}, {}, {"i": [1]}),
    "negative": ("Gather", "x i", {"i": [-3]}, {}, {"i": [-2]}),
    "axis": ("Gather", "x i", {"i": [3]}, {"axis": 1}, {"i": [2]}),
    "elements": ("GatherElements", "x i", {"i": [[3]]}, {"axis": 1}, {"i": [[2]]}),
    "nd": ("GatherND", "x i", {"i": [[0, 3]]}, {}, {"i": [[1, 2]]}),
    "batch": ("GatherND", "x i", {"i": [[3], [0]]}, {"batch_dims": 1}, {"i": [[2], [0]]}),
    "scatter": ("ScatterElements", "x i u", {"i": [[2]], "u": np.ones((1, 1), np.float32)}, {}, {"i": [[-2]]}),
    "scatternd": ("ScatterND", "x i u", {"i": [[2]], "u": np.ones((1, 3), np.float32)}, {}, {"i": [[1]]}),
    "lengths": ("ReverseSequence", "x i", {"i": [1, 1, 3]}, {}, {"i": [1, 1, 2]}),
}


@pytest.mark.parametrize("name", INDICES)
def test_indices_beyond_a_known_size(name: str) -> None:
    op_type, inputs, wrong, attributes, right = INDICES[name]
    with pytest.raises(InvalidModelError, match=r"E3359 .*is not between"):
        read(model(op_type, inputs, wrong, **attributes))
    proto, x = model(op_type, inputs, {**wrong, **right}, **attributes), np.arange(6, dtype=np.float32).reshape(2, 3)
    (wanted,) = ort.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    np.testing.assert_array_equal(InferenceSession(proto).run(None, {"x": x})[0], wanted)


FOUR = np.ones(4, np.float32)
MS = "com.microsoft"
IMPOSSIBLE = {
    "axis": model("CumSum", "x a", {"a": np.array(2)}),
    "reflect": model("Pad", "x p", {"p": [0, 3, 0, 3]}, mode="reflect"),
    "depth": model("DepthToSpace", "c", {}, blocksize=2),
    "contraction": model("Einsum", "x x", {}, equation="ij,jk->ik"),
    "features": model("LayerNormalization", "x s", {"s": FOUR}),
    "open": model("LayerNormalization", "b s", {"s": FOUR}),
    "another domain": model("FusedMatMul", "x w", {"w": np.ones((4, 5), np.float32)}, MS),
    "a kernel that reads beyond": model("Inverse", "x", {}, MS),
    "labels": model("Scaler", "x", {}, "ai.onnx.ml", offset=[1.0, 2.0], scale=[1.0, 2.0]),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_no_kernel_computes_of_these_shapes_is_known_before(name: str) -> None:
    (row,) = read(IMPOSSIBLE[name]).refused
    assert row.code == "E4401"
    assert "cannot be computed of" in row.reason


I64, F = T.INT64, T.FLOAT
PLACED = {
    "updates": ("ScatterElements", [(F, [2, 3]), (I64, [1, 1]), (F, [1, 2])], {}, 18),
    "updates of tuples": ("ScatterND", [(F, [2, 3]), (I64, [1, 1]), (F, [2, 3])], {}, 18),
    "batches": ("GatherND", [(F, [2, 3]), (I64, [3, 1])], {"batch_dims": 1}, 18),
    "sequences": ("ReverseSequence", [(F, [2, 3]), (I64, [4])], {}, 18),
    "rotation": ("RotaryEmbedding", [(F, [1, 2, 3, 4]), (F, [8, 3]), (F, [8, 3]), (I64, [1, 3])], {}, 23),
    "keys": ("Attention", [(F, [1, 2, 3, 4]), (F, [1, 2, 5, 4]), (F, [1, 2, 6, 4]), (I64, [3, 5])], {}, 23),
    "steps": ("Adagrad", [(F, []), (I64, []), (F, [2]), (F, [3]), (F, [2])], {}, 1),
    "bfloat16": ("LayerNormalization", [(T.BFLOAT16, [2, 3]), (T.BFLOAT16, [4])], {}, 17),
}
"""Operators with places that an input gives, and operands whose sizes do not fit each other."""
FITTING = {
    "updates": [(F, [2, 3]), (I64, [1, 2]), (F, [1, 2])],
    "updates of tuples": [(F, [2, 3]), (I64, [2, 1]), (F, [2, 3])],
    "batches": [(F, [2, 3]), (I64, [2, 1])],
    "sequences": [(F, [2, 3]), (I64, [3])],
    "rotation": [(F, [1, 2, 3, 4]), (F, [8, 2]), (F, [8, 2]), (I64, [1, 3])],
    "steps": [(F, []), (I64, []), (F, [2]), (F, [2]), (F, [2])],
    "bfloat16": [(T.BFLOAT16, [2, 3]), (T.BFLOAT16, [3])],
}


def placed(name: str, operands: list[tuple[int, list[int]]]) -> onnx.ModelProto:
    """One node that reads nothing but inputs."""
    op_type, _, attributes, version = PLACED[name]
    domain = trials.TRAINING if name == "steps" else ""
    given = [helper.make_tensor_value_info(f"x{i}", *one) for i, one in enumerate(operands)]
    outputs = ["y", "z"] if name == "steps" else ["y"]
    node = helper.make_node(op_type, [one.name for one in given], outputs, domain=domain, **attributes)
    graph = helper.make_graph([node], "g", given, [onnx.ValueInfoProto(name=one) for one in outputs])
    for value in graph.output:
        value.type.tensor_type.elem_type = operands[-1 if name == "steps" else 0][0]
    imports = [helper.make_opsetid("", version if not domain else 18)]
    imports += [helper.make_opsetid(domain, version)] if domain else []
    return helper.make_model(graph, opset_imports=imports, ir_version=11)


@pytest.mark.parametrize("name", PLACED)
def test_places_that_inputs_give_forbid_no_trial(name: str) -> None:
    """What refuses a run whatever the places are is known before."""
    (row,) = read(placed(name, PLACED[name][1])).refused
    assert row.code == "E4401", row


@pytest.mark.parametrize("name", FITTING)
def test_what_some_places_are_right_for_is_not_refused(name: str) -> None:
    assert not read(placed(name, FITTING[name])).refused


def test_what_fails_of_one_row_is_not_refused_where_the_batch_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    proto = model("LayerNormalization", "b s", {"s": FOUR})
    seen: list[tuple[int, ...]] = []

    def refusal(alone: onnx.ModelProto, attempts: list[dict[str, np.ndarray]]) -> str:
        seen.append(attempts[0]["b"].shape)
        return "one is too few" if attempts[0]["b"].shape == (1, 3) else ""

    monkeypatch.setattr(trials, "refusal", refusal)
    assert read(proto).refused == []
    assert seen[0] == (1, 3)
    assert {shape[0] for shape in seen[1:]} == set(OTHERS)


def test_a_kernel_that_gives_another_shape_than_inferred_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """In every run its result would be E4756. A shape that is only declared binds no trial."""
    monkeypatch.setattr(trials, "refusal", lambda one, attempts: in_worker._try(
        pickle.dumps((one.SerializeToString(), attempts))).decode())  # fmt: skip
    proto = model("Relu", "x", {})
    assert not read(proto).refused
    run = onnxruntime_node.NativeNode.run
    monkeypatch.setattr(onnxruntime_node.NativeNode, "run", lambda *given: tuple(one[None] for one in run(*given)))
    (row,) = read(proto).refused
    assert "value 'y' is" in row.reason
    assert "[1, 2, 3]" in row.reason
    unknown = model("QuickGelu", "x", {}, MS)  # onnx knows nothing of its shape
    unknown.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(T.FLOAT, [2, 3]))
    assert not read(unknown).refused


def test_what_depends_on_values_is_not_tried() -> None:
    """No number that a trial would take is an image."""
    node = helper.make_node("ImageDecoder", ["x"], ["y"])
    x, y = (helper.make_tensor_value_info(*one) for one in (("x", T.UINT8, [100]), ("y", T.UINT8, None)))
    graph = helper.make_graph([node], "g", [x], [y])
    assert read(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)).refused == []


@pytest.mark.parametrize("kind", [T.INT64, T.FLOAT])
def test_categories_are_not_made_up(kind: int) -> None:
    """An unknown one is an error of the run, as scikit-learn's OneHotEncoder without `handle_unknown` is exported."""
    node = helper.make_node("OneHotEncoder", ["x"], ["y"], domain="ai.onnx.ml", cats_int64s=[10, 20, 30], zeros=0)
    x, y = helper.make_tensor_value_info("x", kind, [3]), helper.make_tensor_value_info("y", T.FLOAT, [3, 3])
    graph, opsets = helper.make_graph([node], "g", [x], [y]), [helper.make_opsetid("ai.onnx.ml", 3)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    assert read(proto).refused == []
    values = np.array([30, 10, 20], helper.tensor_dtype_to_np_dtype(kind))
    (found,) = InferenceSession(proto).run(None, {"x": values})
    assert np.array_equal(found, np.eye(3, dtype=np.float32)[[2, 0, 1]])


def test_offsets_and_scales_are_as_many() -> None:
    with pytest.raises(InvalidModelError, match=r"E3460 .*offset 3, scale 1"):
        read(model("Scaler", "x", {}, "ai.onnx.ml", offset=[1.0, 2.0, 3.0], scale=[2.0]))
    assert not read(model("Scaler", "x", {}, "ai.onnx.ml", offset=[1.0, 2.0, 3.0], scale=[2.0, 1.0, 3.0])).refused


@pytest.mark.parametrize("count_include_pad", [0, 1])
@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("how", [{"pads": [1, 1, 1, 1]}, {"pads": [0, 1, 1, 0]}, {"auto_pad": "SAME_UPPER"}, {}])
def test_average_pools_of_com_microsoft_are_onnxruntimes(
    how: dict[str, Any], ceil_mode: int, count_include_pad: int
) -> None:
    node = helper.make_node("QLinearAveragePool", ["x", "s", "z", "t", "o"], ["y"], domain="com.microsoft",
                            kernel_shape=[3, 2], strides=[2, 3], ceil_mode=ceil_mode,
                            count_include_pad=count_include_pad, **how)  # fmt: skip
    constants = {"s": np.float32(0.25), "t": np.float32(0.25), "z": np.uint8(7), "o": np.uint8(7)}
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", T.UINT8, [1, 2, 6, 7])],
        [helper.make_tensor_value_info("y", T.UINT8, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    proto = helper.make_model(graph, opset_imports=imports, ir_version=8)
    x = np.random.default_rng(1).integers(0, 256, (1, 2, 6, 7)).astype(np.uint8)
    (wanted,) = ort.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    (ours,) = InferenceSession(proto).run(None, {"x": x})
    assert ours.shape == wanted.shape
    assert np.abs(ours.astype(int) - wanted.astype(int)).max() <= 1  # it rounds in float32 steps
