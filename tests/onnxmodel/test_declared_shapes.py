"""Declared shapes that contradict the nodes: what inference gives counts, and the rest is warned of."""

import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from onnxhw import InferenceSession
from onnxhw.cli.app import run
from onnxhw.errors import DeclaredShapeWarning, OnnxhwError
from onnxhw.onnxmodel.declared_shapes import MARK
from onnxhw.onnxmodel.prepared import prepare
from onnxhw.onnxmodel.shapes import specialise
from onnxhw.partition import read

X = np.arange(6, dtype=np.float32).reshape(2, 3)
LINEAR = helper.make_node(
    "LinearRegressor", ["x"], ["y"], domain="ai.onnx.ml", targets=2, coefficients=[0.0] * 6, intercepts=[1.0, 2.0]
)
"""Two targets, of which onnx's inference knows nothing."""


def model(body: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17], domain: "org.example">\n{body}')


def linear(*declared: Any, more: tuple[onnx.NodeProto, ...] = (), end: str = "y") -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    graph = helper.make_graph([LINEAR, *more], "g", [value("x", 1, [2, 3])], [value(end, 1, [*declared])])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def found(proto: onnx.ModelProto, **shapes: int) -> list[str]:
    return [one.code for one in prepare(proto, shapes=shapes).diagnostics if one.severity == "warning"]


def code(proto: onnx.ModelProto, x: Any = X) -> str:
    try:
        with InferenceSession(proto) as session:
            session.run(None, {"x": x})
    except OnnxhwError as error:
        return error.code
    return ""


@pytest.mark.parametrize("declared", ["2,4", "6", "2,3,1", "?", "", "N"])
def test_an_output_has_the_shape_that_its_node_gives(declared: str) -> None:
    proto = model(f"g (float[2,3] x) => (float[{declared}] y) {{ y = Relu(x) }}")
    if not declared:
        proto.graph.output[0].type.tensor_type.shape.SetInParent()
    assert found(proto) == ["W3390"]
    with InferenceSession(proto) as session:
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], X)
        assert session.get_outputs()[0].shape == [2, 3]


@pytest.mark.parametrize("kind", ["SequenceConstruct", "Optional"])
@pytest.mark.parametrize("declared", [[2, 4], [6], [], [2, 3]])
def test_what_a_sequence_is_declared_with_is_warned_of(kind: str, declared: list[int]) -> None:
    element = helper.make_tensor_type_proto(1, declared)
    make = helper.make_sequence_type_proto if kind == "SequenceConstruct" else helper.make_optional_type_proto
    node, x = helper.make_node(kind, ["x"], ["y"]), helper.make_tensor_value_info("x", 1, [2, 3])
    graph = helper.make_graph([node], "g", [x], [helper.make_value_info("y", make(element))])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert found(proto) == ([] if declared == [2, 3] else ["W3390"])
    with InferenceSession(proto) as session:
        (result,) = session.run(None, {"x": X})
    np.testing.assert_array_equal(result[0] if isinstance(result, list) else result, X)


def test_value_info_of_another_shape_is_not_believed() -> None:
    proto = model("g (float[2,3] x) => (float[2,3] y) { z = Relu(x) y = Relu(z) }")
    for dims in ([2, 4], [6]):
        del proto.graph.value_info[:]
        proto.graph.value_info.append(helper.make_tensor_value_info("z", 1, dims))
        assert found(proto) == ["W3390"]
        assert code(proto) == ""


@pytest.mark.parametrize(
    "body",
    [
        "g (float[2,3] x) => (double[2,3] y) { y = Relu(x) }",
        "g (float[2,3] x) => (float[2,4] y) <int64[3] w = {1, 2, 3}> { y = Add(x, w) }",
        "g (float[2,3] x, float[2,4] w) => (float[2,3] y) { y = Add(x, w) }",
    ],
)
def test_types_and_inputs_that_contradict_stay_errors(body: str) -> None:
    with pytest.raises(OnnxhwError, match="E3010"):
        read(model(body))


def test_a_variable_of_two_sizes_stays_an_error() -> None:
    """Given, inferred, or in value_info; `check` and `run` refuse it."""
    proto = model("g (float[1,N] x) => (float[1,N] y) { y = Concat<axis=1>(x, x) }")
    assert code(proto, X[:1]) == "E4756"
    with pytest.raises(OnnxhwError, match="E3400"):
        prepare(proto, shapes={"N": 3})
    proto = model("g (float[1,N] x) => (float[1,?] y) { z = Concat<axis=1>(x, x) y = Relu(z) }")
    proto.graph.value_info.append(helper.make_tensor_value_info("z", 1, [1, "N"]))
    assert code(proto, X[:1]) == "E4756"
    with pytest.raises(OnnxhwError, match="E3400"):
        prepare(proto, shapes={"N": 3})


def test_strictly_it_is_an_error() -> None:
    wanted = r"E3010 .*'y': its shape is declared as \[2, 4\], and its node gives \[2, 3\]"
    with pytest.raises(OnnxhwError, match=wanted):
        specialise(model("g (float[2,3] x) => (float[2,4] y) { y = Relu(x) }"))


@pytest.mark.parametrize("declared", [(2, 1), (None, 1), (2,), (), (2, 2, 1)])
def test_what_inference_does_not_know_is_warned_of_in_a_run(declared: tuple[int | None, ...]) -> None:
    wanted = np.array([[1, 2], [1, 2]], np.float32)
    with InferenceSession(linear(*declared)) as session, pytest.warns(DeclaredShapeWarning, match="W3391 value 'y'"):
        (y,) = session.run(None, {"x": X})
    np.testing.assert_array_equal(y, wanted)
    after = helper.make_node("Neg", ["y"], ["z"])  # what follows from a wrong declaration is as wrong
    proto = linear(*declared, more=(after,), end="z")
    proto.graph.output.append(helper.make_tensor_value_info("y", 1, [*declared]))
    with InferenceSession(proto) as session, pytest.warns(DeclaredShapeWarning):
        (z, y) = session.run(None, {"x": X})
    np.testing.assert_array_equal([z, y], [-wanted, wanted])


def test_a_value_that_is_declared_twice_is_warned_of() -> None:
    proto = linear(2, 1)
    proto.graph.value_info.append(helper.make_tensor_value_info("y", 1, [1, 4, 5]))
    with InferenceSession(proto) as session, pytest.warns(DeclaredShapeWarning, match="W3391 value 'y'"):
        session.run(None, {"x": X})


def test_a_right_declaration_is_not_warned_of() -> None:
    for declared in ((2, 2), (None, 2), ("M", 2)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeclaredShapeWarning)
            assert code(linear(*declared)) == ""


def test_a_variable_and_an_element_type_bind_where_inference_knows_nothing() -> None:
    proto = linear("K", "K")
    assert code(proto) == ""
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "K"
    assert code(proto) == "E4756"
    proto = linear(2, 1)
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    assert code(proto).startswith("E")


def test_marks_in_a_file_mean_nothing() -> None:
    proto = model("g (float[2,M] x) => (float[2,M] y) { y = Relu(x) }")
    proto.graph.output[0].metadata_props.add(key=MARK, value="rank 0 1")
    proto.graph.value_info.append(proto.graph.output[0])
    fixed, _ = specialise(proto)
    assert not any(entry.key == MARK for value in [*fixed.graph.output, *fixed.graph.value_info]
                   for entry in value.metadata_props)  # fmt: skip


def test_the_command_line_says_it(tmp_path: Any, capfd: pytest.CaptureFixture[str]) -> None:
    onnx.save(model("g (float[2,3] x) => (float[2,4] y) { y = Relu(x) }"), tmp_path / "m.onnx")
    assert run(["check", str(tmp_path / "m.onnx")]) in (0, 4)
    assert "W3390" in "".join(capfd.readouterr())


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_axes_of_pad_are_of_both_types(dtype: type, constant: bool) -> None:
    """onnx's inference refuses those of int32, which the operator takes."""
    axes = numpy_helper.from_array(np.array([1], dtype), "a")
    nodes = [helper.make_node("Constant", [], ["a"], value=axes)] if constant else []
    nodes += [helper.make_node("Pad", ["x", "p", "", "a"], ["y"])]
    value = helper.make_tensor_value_info
    constants = [numpy_helper.from_array(np.array([1, 2]), "p"), *([] if constant else [axes])]
    graph = helper.make_graph(nodes, "g", [value("x", 1, [2, 3])], [value("y", 1, [2, 6])], constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    assert found(proto) == []
    with InferenceSession(proto) as session:
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], np.pad(X, [(0, 0), (1, 2)]))
