"""What describes a model and decides nothing: value_info, annotations, denotations, devices."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw.runtime.session import InferenceSession

from .conftest import found, text_model

BODY = "g (float[1,3] x) => (float[1,3] y) { z = Relu(x) y = Neg(z) }"
X = np.array([[-1.0, 0.5, 2.0]], np.float32)


def run(model: onnx.ModelProto) -> list[float]:
    """What the model computes of X."""
    (made,) = InferenceSession(model.SerializeToString()).run(None, {"x": X})
    return [float(value) for value in np.asarray(made).ravel()]


RIGHT = run(text_model(BODY))


def described(*types: tuple[str, int, list[int | str | None] | None]) -> onnx.ModelProto:
    model = text_model(BODY)
    model.graph.value_info.extend(helper.make_tensor_value_info(*one) for one in types)
    return model


F, INT = TensorProto.FLOAT, TensorProto.INT32
SAME = [[("z", F, [1, 3]), ("z", F, [1, 3])], [("z", F, [1, 3]), ("z", F, ["N", 3])],
        [("z", F, None), ("z", F, [1, 3])],
        [("z", F, [None, 3]), ("z", F, [1, None]), ("z", F, [1, 3])]]  # fmt: skip
OTHER = [
    [("z", F, [1, 3]), ("z", F, [1, 4])],
    [("z", F, [1, 3]), ("z", INT, [1, 3])],
    [("z", F, [1, 3]), ("z", F, [3])],
]


@pytest.mark.parametrize("types", SAME, ids=str)
def test_value_info_of_one_name_twice(types: list[tuple[str, int, list[int | str | None] | None]]) -> None:
    model = described(*types)
    assert found(model) == {"W3337"}
    assert run(model) == RIGHT
    assert found(described(types[0])) == set()
    for wrong in OTHER:
        assert found(described(*wrong)) == {"E3338"}


def test_value_info_of_no_value() -> None:
    model = described(("gone", F, [7]), ("z", F, [1, 3]), ("x", F, [1, 3]))
    assert found(model) == {"W3336"}
    assert run(model) == RIGHT


def annotated(name: str, scale: str) -> onnx.ModelProto:
    model = text_model("g (float[1,3] x) => (float[1,3] y) <float s = {0.5}> { z = Relu(x) y = Neg(z) }")
    entry = model.graph.quantization_annotation.add(tensor_name=name)
    entry.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=scale)
    return model


def test_quantization_annotations() -> None:
    assert found(annotated("z", "s")) == set()
    assert run(annotated("z", "s")) == RIGHT
    for names in (("gone", "s"), ("z", "gone")):
        assert found(annotated(*names)) == {"W3335"}
        assert run(annotated(*names)) == RIGHT


def test_denotations_mean_nothing_here() -> None:
    model = text_model(BODY)
    kind = model.graph.input[0].type
    kind.denotation = "IMAGE"
    kind.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    kind.tensor_type.shape.dim[1].denotation = "of nobody's list"
    assert found(model) == set()
    assert run(model) == RIGHT


def with_devices(names: list[str], wanted: str, count: int = 2, devices: tuple[str, ...] = ()) -> onnx.ModelProto:
    model = text_model(BODY, ir=11)
    for name in names:
        model.configuration.add(name=name, num_devices=count, device=devices)
    if wanted:
        model.graph.node[0].device_configurations.add(configuration_id=wanted, pipeline_stage=1)
    return model


def test_device_configurations() -> None:
    for right in (with_devices(["a", "b"], "b"), with_devices(["a"], "", devices=("cpu:0", "cpu:1"))):
        assert found(right) == set()
        assert run(right) == RIGHT
    for wrong in (
        with_devices(["a"], "b"),
        with_devices([], "a"),
        with_devices(["a", "a"], "a"),
        with_devices([""], ""),
        with_devices(["a"], "a", devices=("cpu:0",)),
    ):
        assert found(wrong) == {"E3337"}
