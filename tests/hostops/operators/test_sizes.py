"""The host refuses what would allocate without bound, before it allocates; and computes what is large but bounded."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw.errors import UnsupportedError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.hostops.operators import sizes

I64, F = np.int64, np.float32


def model(op_type: str, kinds: list[int]) -> onnx.ModelProto:
    names = [f"x{index}" for index in range(len(kinds))]
    inputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(names, kinds, strict=True)]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["y"])], "g", inputs, [helper.make_tensor_value_info("y", kinds[0], None)]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(op_type: str, *operands: "np.typing.NDArray[np.generic]") -> "np.typing.NDArray[np.generic]":
    kinds = [TensorProto.INT64 if operand.dtype == I64 else TensorProto.FLOAT for operand in operands]
    feeds = {f"x{index}": operand for index, operand in enumerate(operands)}
    made = model(op_type, kinds)
    made.graph.output[0].ClearField("type")  # it is that of the first operand, which ConstantOfShape's is not
    return np.asarray(evaluate(made, feeds)["y"])


@pytest.mark.parametrize(
    ("op_type", "operands"),
    [
        ("ConstantOfShape", (np.array([1 << 20, 1 << 20], I64),)),
        ("Expand", (np.zeros((3, 1), F), np.array([1 << 40], I64))),
        ("Tile", (np.zeros((2, 2), F), np.array([1 << 30, 1 << 30], I64))),
        ("Range", (np.array(0, I64), np.array(1 << 60, I64), np.array(1, I64))),
        ("Range", (np.array(0, F), np.array(1e9, F), np.array(-1e-9, F) * F(-1))),
        ("Range", (np.array(0, F), np.array(3e38, F), np.array(1e-38, F))),
    ],
)
def test_a_few_bytes_that_ask_for_too_much(
    op_type: str, operands: tuple["np.typing.NDArray[np.generic]", ...]
) -> None:
    with pytest.raises(UnsupportedError, match=r"E4755 .*the host makes at most") as caught:
        run(op_type, *operands)
    assert op_type in caught.value.where


@pytest.mark.parametrize(
    ("op_type", "operands"),
    [
        ("ConstantOfShape", (np.array([3, 0, 2], I64),)),
        ("ConstantOfShape", (np.array([5, 7], I64),)),
        ("Expand", (np.zeros((3, 1), F), np.array([2, 1, 6], I64))),
        ("Expand", (np.zeros((2, 3, 4), F), np.array([3, 1], I64))),
        ("Tile", (np.zeros((2, 3), F), np.array([4, 5], I64))),
        ("Range", (np.array(3, I64), np.array(20, I64), np.array(4, I64))),
        ("Range", (np.array(20, I64), np.array(3, I64), np.array(-4, I64))),
        ("Range", (np.array(3, I64), np.array(20, I64), np.array(-4, I64))),
        ("Range", (np.array(0.5, F), np.array(3, F), np.array(0.5, F))),
    ],
)
def test_the_count_is_that_of_the_result(
    op_type: str, operands: tuple["np.typing.NDArray[np.generic]", ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    size = run(op_type, *operands).size
    assert sizes.elements(op_type, operands) == size
    monkeypatch.setattr(sizes, "LARGEST", size)
    assert run(op_type, *operands).size == size
    if size:
        monkeypatch.setattr(sizes, "LARGEST", size - 1)
        with pytest.raises(UnsupportedError, match="E4755"):
            run(op_type, *operands)


def test_other_operators_and_operands_are_not_counted() -> None:
    assert sizes.elements("Relu", [np.zeros(3)]) == 0
    assert sizes.elements("ConstantOfShape", [[1, 2]]) == 0


@pytest.mark.parametrize("version", [1, 7])
def test_an_upsample_of_scales_that_are_attributes(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its data are no scales, whatever they are."""
    scales = {"width_scale": 3.0, "height_scale": 2.0} if version == 1 else {"scales": [1.0, 1.0, 2.0, 3.0]}
    node = helper.make_node("Upsample", ["x"], ["y"], **scales)
    x = np.full((1, 2, 3, 4), 100, np.int8 if version == 7 else F)
    value = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), list("abcd"))
    graph = helper.make_graph([node], "g", [value], [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=5)
    assert evaluate(model, {"x": x})["y"].shape == (1, 2, 6, 12)
    monkeypatch.setattr(sizes, "LARGEST", 143)
    with pytest.raises(UnsupportedError, match="E4755"):
        evaluate(model, {"x": x})
