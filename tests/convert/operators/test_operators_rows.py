"""Matrices with a row per position: Gemm of all rows, and what comes beside and after it, as transformers have them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onnxhw.ir.graph import Add, AveragePool, Conv, MaxPool, Mul, Table

S, T = 0.125, 0.25
RNG = np.random.default_rng(3)


def matrix(model: Any, rows: int, columns: int) -> str:
    found: str = model.constant(RNG.integers(-60, 61, (rows, columns)).astype(np.int8), 2.0**-7)
    return found


def shaped(model: Any, x: str, *shape: int) -> str:
    found: str = model.node("Reshape", x, model.const(np.array(shape)))
    return found


def kinds(graph: Any) -> list[type]:
    return [type(op) for op in graph.ops]


@pytest.mark.parametrize("turned", [0, 1])
def test_gemm_of_several_rows(model: Any, check: Callable[[Any], Any], turned: int) -> None:
    x = model.requantize(shaped(model, model.input([1, 5, 6], S, 3), 5, 6), S, 3)
    bias = model.constant(RNG.integers(-900, 900, 4).astype(np.int32), S / 128)
    w = matrix(model, *((4, 6) if turned else (6, 4)))
    y = model.requantize(model.node("Gemm", x, w, bias, transB=turned), T, -3)
    graph = check(model.output(shaped(model, y, 1, 5, 4), 3))
    assert kinds(graph) == [Conv]


def test_rows_that_the_model_is_given(model: Any, check: Callable[[Any], Any]) -> None:
    """A matrix that becomes one of a single row keeps its rows apart: they are no batch."""
    x = model.input([5, 6], S, 3)
    y = model.requantize(model.node("Gemm", x, matrix(model, 6, 4)), T, -3)
    flat = model.requantize(shaped(model, y, 1, 20), T, -3)
    graph = check(model.output(model.requantize(model.node("Gemm", flat, matrix(model, 20, 3)), 1.0), 2))
    assert kinds(graph) == [Conv, Conv]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul"])
def test_an_input_beside_what_a_matrix_makes_of_it(
    model: Any, check: Callable[[Any], Any], op_type: str, swapped: bool
) -> None:
    x = model.input([1, 5, 6], S, 3)
    y = model.requantize(model.node("MatMul", x, matrix(model, 6, 6)), T, -3)
    pair = (x, y) if swapped else (y, x)
    graph = check(model.output(model.requantize(model.node(op_type, *pair), 2.0, 7), 3))
    assert len([op for op in graph.ops if isinstance(op, Conv)]) == 1  # nothing is moved
    assert set(kinds(graph)) - {Conv, Table} == {Mul if op_type == "Mul" else Add}


def test_inputs_that_lie_in_two_ways(model: Any, check: Callable[[Any], Any]) -> None:
    a, b = model.input([1, 5, 20], S, 3, "a"), model.input([1, 20, 5], S, 3, "b")
    turned = model.node("Transpose", b, perm=[0, 2, 1])
    graph = check(model.output(model.requantize(model.node("Add", a, turned), T), 3))
    assert kinds(graph) == [Add]


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(("op_type", "kind"), [("ReduceMean", AveragePool), ("ReduceSum", Conv), ("ReduceMax", MaxPool),
                                               ("ReduceMin", MaxPool)])  # fmt: skip
def test_reduction_over_the_rows(
    model: Any, check: Callable[[Any], Any], op_type: str, kind: type, keepdims: int
) -> None:
    x = model.input([1, 20, 6], S, 3)
    y = model.requantize(model.node("MatMul", x, matrix(model, 6, 18)), T, -3)
    axes = [model.const(np.array([1]))] if op_type == "ReduceSum" else []
    z = model.node(op_type, y, *axes, keepdims=keepdims, **({} if axes else {"axes": [1]}))
    graph = check(model.output(model.requantize(z, {"ReduceSum": 4.0}.get(op_type, T), -3), 2 + keepdims))
    assert kinds(graph).count(kind) == 1 + (kind is Conv)
    assert set(kinds(graph)) <= {Conv, kind, Table}


def test_reduction_over_the_columns(model: Any, check: Callable[[Any], Any]) -> None:
    x = model.input([1, 20, 6], S, 3)
    y = model.requantize(model.node("MatMul", x, matrix(model, 6, 18)), T, -3)
    graph = check(model.output(model.requantize(model.node("ReduceMean", y, axes=[2], keepdims=0), T, -3), 2))
    assert kinds(graph) == [Conv, Conv]


@pytest.mark.parametrize(("shape", "leading"), [((1, 6), (1,)), ((5, 6), (1, 1)), ((1, 5, 6), (1, 1))])
def test_a_matrix_of_more_dimensions_gives_its_result_them(
    model: Any, check: Callable[[Any], Any], shape: tuple[int, ...], leading: tuple[int, ...]
) -> None:
    w = model.constant(RNG.integers(-60, 61, (*leading, 6, 4)).astype(np.int8), 2.0**-7)
    y = model.requantize(model.node("MatMul", model.input(shape, S, 3), w), T, -3)
    rank = max(len(shape), len(leading) + 2)
    assert kinds(check(model.output(y, rank))) == [Conv]
