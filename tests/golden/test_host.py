"""The host's steps at a model's edges: ONNX's formulas in float32, batches, and what is refused."""

from typing import Any

import numpy as np
import pytest

from onnxhw.errors import InternalError, UsageError
from onnxhw.golden import host
from onnxhw.ir.graph import Graph, Port, Table, Tensor
from onnxhw.ir.steps import ELEMENTWISE, apply

SHAPE = (1, 3, 2, 2)
Q = {"op": "QuantizeLinear", "name": "q", "scale": 0.5, "zero_point": 3, "dtype": "int8"}
DQ = {"op": "DequantizeLinear", "name": "dq", "scale": 0.5, "zero_point": 3}


def graph(dtype: str = "float32", into: tuple[Any, ...] = (Q,), out: tuple[Any, ...] = (DQ,)) -> Graph:
    tensors = {name: Tensor(name, SHAPE, 0.5, 3) for name in "xy"}
    inputs, outputs = [Port("in", SHAPE, dtype, "x", into)], [Port("out", SHAPE, "float32", "y", out)]
    return Graph("edge", tensors, [Table("t", ("x",), "y")], inputs, outputs)


def test_a_batch_is_its_samples_side_by_side() -> None:
    x = np.random.default_rng(0).normal(0, 30, (5, *SHAPE[1:])).astype(np.float32)
    whole = host.prepare(graph(), {"in": x})["x"]
    assert whole.dtype == np.int8
    for i in range(5):
        assert np.array_equal(host.prepare(graph(), {"in": x[i : i + 1]})["x"], whole[i : i + 1])
    out = host.finish(graph(), {"y": whole})["out"]
    assert out.shape == x.shape
    inside = (x > -65) & (x < 61)
    assert np.abs(out - x)[inside].max() <= 0.25


@pytest.mark.parametrize(
    ("feeds", "code", "message"),
    [
        ({}, "E2203", "'in' is missing"),
        ({"in": np.zeros(SHAPE, np.float32), "other": 1}, "E2203", "no input 'other'"),
        ({"in": np.zeros((1, 3, 2, 3), np.float32)}, "E2204", r"must have shape \[1, 3, 2, 2\], not \[1, 3, 2, 3\]"),
        ({"in": np.zeros((0, 3, 2, 2), np.float32)}, "E2204", "must have shape"),
        ({"in": np.zeros(SHAPE, np.complex64)}, "E2204", "must be float32, not complex64"),
        ({"in": np.full(SHAPE, "a")}, "E2204", "must be float32"),
        ({"in": np.full(SHAPE, np.nan, np.float32)}, "E2202", "contains NaN"),
    ],
)
def test_what_is_no_input_is_refused(feeds: dict[str, Any], code: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        host.prepare(graph(), feeds)
    assert caught.value.code == code
    assert caught.value.exit_status == 2


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8, np.int8, np.bool_])
def test_integers_for_a_float_input_are_refused(kind: Any) -> None:
    """Pixels 0..255 where the model was trained on 0..1 would give wrong classes and no message."""
    with pytest.raises(UsageError, match=rf"E2204 .*must be float32, not {np.dtype(kind)} .*astype\(numpy.float32\)"):
        host.prepare(graph(), {"in": np.ones(SHAPE, kind)})


@pytest.mark.parametrize("kind", [np.float64, np.float16])
def test_floats_of_another_width_are_refused_as_onnxruntime_does(kind: Any) -> None:
    with pytest.raises(UsageError, match=rf"E2204 .*must be float32, not {np.dtype(kind)} .*astype\(numpy.float32\)"):
        host.prepare(graph(), {"in": np.ones(SHAPE, kind)})


@pytest.mark.parametrize("form", ["list", "other byte order"])
def test_python_s_numbers_have_no_width(form: str) -> None:
    x = np.linspace(-9, 9, 12).reshape(SHAPE).astype(np.float32)
    wanted = host.prepare(graph(), {"in": x})["x"]
    given = x.tolist() if form == "list" else x.astype(">f4")
    assert np.array_equal(host.prepare(graph(), {"in": given})["x"], wanted)
    assert len(np.unique(wanted)) > 3


def test_numbers_beyond_float32_saturate_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    x = np.full(SHAPE, 1e300)
    assert set(host.prepare(graph(), {"in": x.tolist()})["x"].ravel()) == {127}
    assert set(host.prepare(graph(), {"in": (-x).tolist()})["x"].ravel()) == {-128}
    assert not recwarn.list


@pytest.mark.parametrize(
    ("given", "dtype", "fits"),
    [
        ([1, 2], "float32", True), ([1.5], "float64", True), (2, "int8", True), ([200], "int8", False),
        ([-1], "uint8", False), ([1.0], "int8", False), ([True], "float32", False), ([True], "bool", True),
        ([], "int8", True), (["a"], "object", True), ([1], "object", False), (np.float64(1), "float32", False),
        ([np.float32(1)], "float32", True), (np.ones(1, "i4"), "int64", False), (3, "bool", False),
        (1 << 70, "int64", False), (["1"], "float32", False), ([[1], [2]], "float16", True),
    ],
)  # fmt: skip
def test_what_an_element_type_takes(given: Any, dtype: str, fits: bool) -> None:
    if fits:
        array = host.of_type(given, dtype)
        assert array.dtype == dtype
        assert array.tolist() == given
        return
    with pytest.raises(TypeError, match="must be"):
        host.of_type(given, dtype)


def test_integer_inputs_are_taken_as_they_are() -> None:
    steps = ({"op": "ToInt8", "name": "x"},)
    x = np.arange(250, 262).astype(np.uint8).reshape(SHAPE)
    assert host.prepare(graph("uint8", steps), {"in": x})["x"].ravel().tolist() == [
        *range(122, 128),
        *range(-128, -122),
    ]
    with pytest.raises(UsageError, match="must be uint8, not int64"):
        host.prepare(graph("uint8", steps), {"in": x.astype(np.int64)})


def test_uint8_outputs() -> None:
    y = np.arange(-128, 128).astype(np.int8)
    assert apply([{"op": "ToUint8", "name": "y"}], y).tolist() == list(range(256))


def test_softmax_over_one_axis_and_over_all_that_follow() -> None:
    x = np.random.default_rng(2).normal(0, 5, (1, 3, 4)).astype(np.float32)
    wide = apply([{"op": "Softmax", "name": "s", "axes": [1, 2]}], x)
    assert wide.dtype == np.float32
    assert wide.sum() == pytest.approx(1, abs=1e-6)
    one = apply([{"op": "Softmax", "name": "s", "axes": [2]}], x)
    assert one.sum(axis=2) == pytest.approx(np.ones((1, 3)), abs=1e-6)
    assert np.isfinite(apply([{"op": "Softmax", "name": "s", "axes": [2]}], x * 1000)).all()


def test_a_step_that_does_not_exist_is_our_mistake() -> None:
    with pytest.raises(InternalError, match=r"E1310 .*no host step 'Foo'"):
        apply([{"op": "Foo", "name": "n"}], np.zeros(1))


def test_elementwise_steps_treat_elements_alike() -> None:
    """What makes a chain of them a table: the value of an element depends on nothing else."""
    x = np.linspace(-20, 20, 256, dtype=np.float32)
    attributes = {"scale": 0.5, "zero_point": 3, "dtype": "int8", "alpha": 0.1, "min": -1.0, "max": None, "value": 2.0,
                  "beta": 0.25, "gamma": 1.5, "lambd": 0.5, "bias": 0.5, "approximate": "none",
                  "inputs": x, "values": -x}  # fmt: skip
    for name, function in ELEMENTWISE.items():
        step = {"op": name, "name": name, **attributes}
        whole = function(x, step)
        single = np.concatenate([function(x[i : i + 1], step) for i in range(256)])
        assert np.array_equal(whole, single, equal_nan=whole.dtype.kind == "f"), name


@pytest.mark.parametrize("into", [(Q,), ({"op": "Transpose", "name": "t", "perm": [0, 1, 3, 2]}, Q)])
def test_a_large_batch_is_its_samples_too(into: tuple[Any, ...]) -> None:
    """Longer than what is worked on together, with and without a step that sees one sample at a time."""
    x = np.random.default_rng(0).normal(0, 30, (2 * host.PORTION // 12 + 5, *SHAPE[1:])).astype(np.float32)
    whole = host.prepare(graph(into=into), {"in": x})["x"]
    each = [host.prepare(graph(into=into), {"in": x[i : i + 1]})["x"] for i in range(0, len(x), 7)]
    assert np.array_equal(whole[::7], np.concatenate(each))
    assert len(whole) == len(x)
