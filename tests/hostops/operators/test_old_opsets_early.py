"""Host nodes of operator sets before 7 compute what those versions say, whatever the newest version means."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxhw.errors import UnsupportedError
from onnxhw.hostops.evaluator import evaluate

RNG = np.random.default_rng(6)


def _f(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


X, SQUARE, CHANNEL, PLANE = _f(2, 3, 4, 5), _f(2, 3, 3, 3), _f(3), _f(4, 5)
INNER, MATRIX = _f(3, 4), _f(2, 3)
ALONG = CHANNEL.reshape(3, 1, 1)
WHOLE = np.array([-7, 7, 8, 0], np.int32)
DOUBLED = X.repeat(2, axis=2).repeat(3, axis=3)
NORMAL = (X - X.mean((2, 3), keepdims=True)) / np.sqrt(X.var((2, 3), keepdims=True) + 1e-5)

CASES: list[tuple[str, int, list[Any], dict[str, Any], Any]] = [
    ("Add", 1, [X, PLANE], {"broadcast": 1}, X + PLANE),
    ("Add", 6, [X, CHANNEL], {"broadcast": 1, "axis": 1}, X + ALONG),
    ("Add", 6, [SQUARE, CHANNEL], {"broadcast": 1, "axis": 1}, SQUARE + ALONG),  # numpy would take the last axis
    ("Add", 6, [SQUARE, CHANNEL], {"broadcast": 1, "axis": -2}, SQUARE + CHANNEL[:, None]),
    ("Sub", 6, [X, np.float32([2])], {"broadcast": 1}, X - 2),
    ("Mul", 6, [X, INNER], {"broadcast": 1, "axis": 1}, X * INNER[:, :, None]),
    ("Div", 6, [WHOLE, np.array([2, -2, 3, 5], np.int32)], {}, np.array([-3, -3, 2, 0], np.int32)),
    ("Pow", 1, [np.abs(SQUARE), CHANNEL], {"broadcast": 1, "axis": 1}, np.abs(SQUARE) ** ALONG),
    ("And", 1, [SQUARE > 0, CHANNEL > 0], {"broadcast": 1, "axis": 1}, (SQUARE > 0) & (ALONG > 0)),
    ("Less", 1, [SQUARE, CHANNEL], {"broadcast": 1, "axis": 1}, SQUARE < ALONG),
    ("Gemm", 6, [MATRIX, np.eye(3, dtype=np.float32), CHANNEL], {"broadcast": 1, "alpha": 2.0}, 2 * MATRIX + CHANNEL),
    ("Dropout", 6, [X], {"is_test": 1}, X),
    ("Dropout", 6, [X], {"ratio": 0.9}, X),  # its default was training, which is not what a model is run for
    ("Reshape", 1, [X], {"shape": [0, -1]}, X.reshape(2, 60)),
    ("Concat", 1, [X, X], {}, np.concatenate([X, X], 1)),
    ("Clip", 1, [X], {"max": 0.5}, np.minimum(X, 0.5)),
    ("Cast", 1, [X], {"to": "INT32"}, X.astype(np.int32)),
    ("Tile", 1, [X, np.float32([2]), np.float32([1])], {}, np.tile(X, (1, 2, 1, 1))),
    ("Selu", 1, [X], {}, np.where(X > 0, 1.0507 * X, 1.0507 * 1.6732 * (np.exp(X) - 1)).astype(np.float32)),
    ("Upsample", 1, [X], {"height_scale": 2.0, "width_scale": 3.0}, DOUBLED),
    ("InstanceNormalization", 1, [X, CHANNEL, CHANNEL], {"consumed_inputs": [0]}, NORMAL * ALONG + ALONG),
]


def _run(op_type: str, version: int, operands: list[Any], attributes: dict[str, Any]) -> Any:
    names = [f"x{index}" for index in range(len(operands))]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.shape(x))
        for name, x in zip(names, operands, strict=True)
    ]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["y"], **attributes)], "one", inputs, [onnx.ValueInfoProto(name="y")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    return evaluate(model, dict(zip(names, operands, strict=True)))["y"]


@pytest.mark.parametrize(("op_type", "version", "operands", "attributes", "expected"), CASES)
def test_operators_before_set_7(op_type, version, operands, attributes, expected):
    found = _run(op_type, version, operands, attributes)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("op_type", "operands", "attributes"),
    [
        ("Add", [X, PLANE], {}),  # not asked for
        ("Add", [X, CHANNEL], {"broadcast": 1}),
        ("Add", [X, PLANE], {"broadcast": 1, "axis": 3}),
        ("Add", [CHANNEL, X], {"broadcast": 1}),
    ],
)
def test_what_those_versions_do_not_have_is_refused(op_type, operands, attributes):
    with pytest.raises(UnsupportedError, match="E4752"):
        _run(op_type, 6, operands, attributes)
