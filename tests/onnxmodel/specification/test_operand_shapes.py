"""Operands whose shapes follow from others: what the text excludes is known before a run, of any size."""

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, helper

from onnxhw.errors import InvalidModelError
from onnxhw.partition import read


def model(op_type: str, shapes: list[list[Any] | None], version: int = 21, **attributes: Any) -> ModelProto:
    names = ["" if shape is None else f"x{index}" for index, shape in enumerate(shapes)]
    kinds = {4: TensorProto.INT32} if op_type in ("LSTM", "GRU", "RNN") else {}
    inputs = [helper.make_tensor_value_info(name, kinds.get(index, TensorProto.FLOAT), shape)
              for index, (name, shape) in enumerate(zip(names, shapes, strict=True)) if name]  # fmt: skip
    node = helper.make_node(op_type, names, ["y"], **attributes)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=10)


BIG = [1, 8, 512, 512]
CASES: dict[str, tuple[str, list[list[int] | None], int, dict[str, Any]]] = {
    "conv": ("Conv", [BIG, [4, 8, 3, 3], [4]], 2, {}),
    "transposed": ("ConvTranspose", [BIG, [8, 4, 3, 3], [8]], 2, {"group": 2}),
    "instance": ("InstanceNormalization", [BIG, [8], [8]], 1, {}),
    "batch": ("BatchNormalization", [BIG, [8], [8], [8], [8]], 4, {}),
    "groups": ("GroupNormalization", [BIG, [8], [8]], 2, {"num_groups": 4}),
    "gemm": ("Gemm", [[64, 300], [300, 7], [64, 1]], 2, {}),
    "transposed gemm": ("Gemm", [[300, 64], [7, 300], [7]], 2, {"transA": 1, "transB": 1}),
    "slope": ("PRelu", [BIG, [8, 1, 1]], 1, {}),
    "state": ("LSTM", [[4, 2, 3], [1, 20, 3], [1, 20, 5], None, [2], [1, 2, 5], [1, 2, 5]], 6, {"hidden_size": 5}),
    "both ways": (
        "GRU", [[4, 2, 3], [2, 15, 3], [2, 15, 5], [2, 30]], 3, {"hidden_size": 5, "direction": "bidirectional"},
    ),
    "by batch": ("RNN", [[2, 4, 3], [1, 5, 3], [1, 5, 5], None, None, [2, 1, 5]], 5, {"hidden_size": 5, "layout": 1}),
}


@pytest.mark.parametrize("case", CASES)
def test_one_size_more_is_refused(case: str) -> None:
    op_type, shapes, index, attributes = CASES[case]
    assert read(model(op_type, shapes, **attributes)).parts
    for axis in range(len(shapes[index] or ())):
        wrong = [list(shape) if shape is not None else None for shape in shapes]
        wrong[index][axis] += 2  # type: ignore[index]  # it is the operand that is asked about
        with pytest.raises(InvalidModelError, match=r"E3376|E3010|E3400"):
            read(model(op_type, wrong, **attributes))


OPEN: dict[str, tuple[str, list[list[Any] | None], int, dict[str, Any]]] = {
    "slope": ("PRelu", [["n", "c"], [1, 1]], 1, {}),
    "addend": ("Gemm", [["n", 3], [3, "m"], [1, 1]], 2, {}),
    "scale": ("InstanceNormalization", [["n", 8, "h", "w"], [8], ["c"]], 1, {}),
    "state": ("LSTM", [["t", "n", 3], [1, 20, 3], [1, 20, 5], None, ["n"], [1, "n", 5]], 5, {"hidden_size": 5}),
}


@pytest.mark.parametrize("case", OPEN)
def test_a_rank_more_is_refused_whatever_the_open_sizes_are(case: str) -> None:
    op_type, shapes, index, attributes = OPEN[case]
    assert read(model(op_type, shapes, **attributes)).parts
    wrong = [[1, *(shape or ())] if place == index else shape for place, shape in enumerate(shapes)]
    with pytest.raises(InvalidModelError, match=r"E3376|E3010"):
        read(model(op_type, wrong, **attributes))


@pytest.mark.parametrize("case", ["conv", "instance", "gemm", "state", "both ways"])
def test_what_is_accepted_runs(case: str) -> None:
    op_type, shapes, _, attributes = CASES[case]
    proto = model(op_type, [[1, 8, 16, 16] if shape == BIG else shape for shape in shapes], **attributes)
    session = ort.InferenceSession(proto.SerializeToString())
    session.run(None, {one.name: np.ones(one.shape, np.int32 if "int32" in one.type else np.float32)
                       for one in session.get_inputs()})  # fmt: skip


def test_older_versions_have_other_rules() -> None:
    """Each element may have its own scale."""
    shapes = [[1, 3, 2, 2], [12], [12], [12], [12]]
    with pytest.raises(InvalidModelError, match="E3376"):
        read(model("BatchNormalization", shapes, version=15))
    assert read(model("BatchNormalization", shapes, version=7)).parts


def test_an_open_size_is_bound_where_the_sum_asks_for_it() -> None:
    assert read(model("Gemm", [["N", 3], [3, 7], [5, 7]])).parts
