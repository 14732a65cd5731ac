"""Operators of two and more activations: golden = onnxruntime = emulator (scales are powers of two)."""

from typing import Any

import numpy as np
import pytest

from onnxhw.convert.blockers import UnsupportedNodesError
from onnxhw.convert.operators import chain, perchannel
from onnxhw.ir.graph import Add, Conv, Copy, MaxPool, Mul, Table
from onnxhw.partition import read

S, T = 2.0**-3, 2.0**-4


def kinds(graph: Any) -> list[type]:
    return [type(op) for op in graph.ops]


@pytest.mark.parametrize(("za", "zb"), [(0, 0), (-128, 127), (127, -128), (5, -77)])
def test_sub(za: int, zb: int, model: Any, check: Any) -> None:
    a, b = model.input([1, 3, 4, 5], S, za, name="a"), model.input([1, 3, 4, 5], T, zb, name="b")
    y = model.node("Clip", model.node("Sub", a, b), model.const(np.float32(-9)))
    graph = check(model.output(model.requantize(y, S, -20)))
    assert kinds(graph) == [Table, Add]


def test_a_sum_of_two_is_an_add_and_of_three_the_hosts(model: Any, check: Any) -> None:
    a, b = model.input([1, 3, 4, 5], S, 3, name="a"), model.input([1, 3, 4, 5], T, 5, name="b")
    assert kinds(check(model.output(model.requantize(model.node("Sum", a, b), S, -20)))) == [Add]
    with pytest.raises(UnsupportedNodesError, match="a Sum of 3 values"):
        model.output(model.requantize(model.node("Sum", a, b, a), S)).load()


def test_sub_of_a_tensor_from_itself_is_nothing(model: Any, emulate: Any) -> None:
    a = model.input([1, 3, 4, 5], S, 3)
    graph = model.output(model.requantize(model.node("Sub", a, a), S, 7)).load()
    assert set(graph.ops[0].table) == {7}
    emulate(graph, model.feeds())


@pytest.mark.parametrize("op_type", ["Max", "Min"])
@pytest.mark.parametrize("scales", [(S, S, S), (S, T, T), (T, S, 2 * S)])
def test_max_and_min(op_type: str, scales: tuple[float, float, float], model: Any, check: Any) -> None:
    a, b = model.input([1, 5, 4, 3], scales[0], 3, name="a"), model.input([1, 5, 4, 3], scales[1], 3, name="b")
    y = model.node(op_type, a, b)
    graph = check(model.output(model.requantize(y, scales[2], 3)))
    assert [kind for kind in kinds(graph) if kind is not Table] == [Copy, MaxPool]


def test_max_of_three_and_of_functions(model: Any, check: Any) -> None:
    parts = [model.input([1, 2, 3, 4], S, z, name=f"x{z}") for z in (0, 9, -9)]
    functions = model.node("Tanh", parts[1]), model.node("Neg", parts[2])
    y = model.node("Max", parts[0], *functions, model.const(np.float32(-1)))
    check(model.output(model.requantize(y, T, -70)))


def test_max_of_a_result_that_was_not_quantized(model: Any, check: Any) -> None:
    x = model.input([1, 2, 3, 4], S, 3)
    weight = model.constant(np.array([[3, -5], [2, 7]], np.int8).reshape(2, 2, 1, 1), np.float32(0.25), np.int8(0))
    y = model.node("Max", model.node("Relu", model.node("Conv", x, weight)), x)
    check(model.output(model.requantize(y, S, -90)))


@pytest.mark.parametrize("op_type", ["Max", "Min", "Concat"])
def test_a_clamp_of_results_that_were_not_quantized(op_type: str, model: Any, check: Any) -> None:
    x = model.input([1, 2, 3, 4], S, 3)
    weight = model.constant(np.array([[3, -5], [2, 7]], np.int8).reshape(2, 2, 1, 1), np.float32(0.25), np.int8(0))
    parts = model.node("Conv", x, weight), model.node("Tanh", x)
    y = model.node(op_type, *parts, **({"axis": 1} if op_type == "Concat" else {}))
    bounds = model.const(np.float32(-0.75)), model.const(np.float32(0.625))
    check(model.output(model.requantize(model.node("Clip", y, *bounds), T, -30)))


SHAPES = [
    ([1, 4, 3, 5], [1, 4, 1, 1]),
    ([1, 4, 3, 5], [1, 1, 3, 5]),
    ([1, 4, 3, 5], [1, 1, 1, 1]),
    ([1, 4, 3, 1], [1, 4, 1, 5]),
    ([1, 1, 3, 5], [1, 4, 1, 1]),
    ([1, 4, 3, 5], [1, 1]),
    ([1, 6], [1, 1]),
    ([1, 4, 6], [1, 1, 6]),
]


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Max"])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_broadcast(op_type: str, left: list[int], right: list[int], model: Any, check: Any) -> None:
    a, b = model.input(left, S, 3, name="a"), model.input(right, S, -4, name="b")
    check(model.output(model.requantize(model.node(op_type, a, b), 8 * S if op_type == "Mul" else S, -5), len(left)))


def test_mul_repeats_one_pixel_by_itself(model: Any) -> None:
    a, b = model.input([1, 4, 3, 5], S, 3, name="a"), model.input([1, 4, 1, 1], S, -4, name="b")
    assert kinds(model.output(model.requantize(model.node("Mul", b, a), S)).load()) == [Mul]


def test_functions_that_stay_on_the_grid_need_no_quantization(model: Any, check: Any) -> None:
    a, b = model.input([1, 4, 3, 5], S, 3, name="a"), model.input([1, 4, 3, 5], T, -4, name="b")
    y = model.node("Add", model.node("Relu", a), b)
    graph = check(model.output(model.requantize(y, S, 3)))
    assert kinds(graph) == [Table, Add]


def test_functions_that_leave_the_grid_do(model: Any) -> None:
    a, b = model.input([1, 4, 3, 5], S, 3, name="a"), model.input([1, 4, 3, 5], T, -4, name="b")
    with pytest.raises(UnsupportedNodesError, match="it passes Tanh after DequantizeLinear"):
        model.output(model.requantize(model.node("Add", model.node("Tanh", a), b), S, 3)).load()


CONSTANTS = [(4, 1, 1), (1, 4, 1, 1)]
VALUES = np.array([1.5, -0.25, 3.0, 0.125], np.float32)


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("shape", CONSTANTS)
@pytest.mark.parametrize("scales", [(S, T), (0.0371, 0.0519)])
def test_a_constant_per_channel(
    op_type: str, shape: tuple[int, ...], scales: tuple[float, float], model: Any, check: Any
) -> None:
    values = (VALUES if scales[0] == S else VALUES * np.float32(1.037)).reshape(shape)
    y = model.node(op_type, model.input([1, 4, 3, 30], scales[0], 3), model.const(values))
    graph = check(model.output(model.requantize(y, scales[1], -5)))
    assert kinds(graph) == [Conv]
    assert graph.ops[0].groups == 4


def test_a_constant_less_an_activation(model: Any, check: Any) -> None:
    y = model.node("Sub", model.const(VALUES.reshape(4, 1, 1)), model.input([1, 4, 3, 30], S, 3))
    check(model.output(model.requantize(y, T, -5)))


@pytest.mark.parametrize("op_type", ["Add", "Mul"])
@pytest.mark.parametrize("unsigned", [False, True])
def test_a_quantized_constant_without_a_convolution_becomes_a_tensor(
    op_type: str, unsigned: bool, models: Any, check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perchannel, "constants", lambda *_: None)
    model = models(unsigned)
    q = np.array([0, 255, 200, 17] if unsigned else [-128, 127, 50, -17]).astype(model.dtype).reshape(4, 1, 1)
    x, c = model.input([1, 4, 3, 30], S, 3), model.constant(q, np.float32(T), model.dtype(5))
    graph = check(model.output(model.requantize(model.node(op_type, x, c), 8 * S, 100)))
    assert kinds(graph) == [Conv, Add if op_type == "Add" else Mul]


def test_a_float_constant_without_a_convolution_stays_on_the_host(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perchannel, "constants", lambda *_: None)
    monkeypatch.setattr(chain, "line", lambda *_: None)
    monkeypatch.setattr(chain, "lines", lambda *_: None)
    y = model.node("Add", model.input([1, 4, 3, 5], S), model.const(VALUES.reshape(4, 1, 1)))
    with pytest.raises(UnsupportedNodesError, match="no integer constants give the float results of every channel"):
        model.output(model.requantize(y, S)).load()


def test_a_constant_that_differs_between_pixels_stays_on_the_host(model: Any) -> None:
    y = model.node("Add", model.input([1, 4, 3, 5], S), model.const(np.arange(15, dtype=np.float32).reshape(3, 5)))
    with pytest.raises(UnsupportedNodesError, match=r"Add with a constant of shape \[3, 5\]"):
        model.output(model.requantize(y, S)).load()


@pytest.mark.parametrize("shape", [[1, 4, 3, 30], [1, 4, 60], [1, 4]])
def test_batch_normalization(shape: list[int], model: Any, check: Any) -> None:
    scale, bias, mean, variance = (
        model.const(np.array(values, np.float32))
        for values in ([1, 0.5, -2, 0], [0.25, 0, 1, -1], [0.5, 1, -0.5, 3], [0.9999, 0.2, 3.9, 1])
    )
    y = model.node("BatchNormalization", model.input(shape, 0.11, 3), scale, bias, mean, variance, epsilon=1e-4)
    graph = check(model.output(model.requantize(y, 0.095, -5), len(shape)))
    assert kinds(graph) == [Conv]


@pytest.mark.parametrize("kind", ["BatchNormalization", "constants"])
def test_what_quantizers_leave_behind_a_convolution(model: Any, kind: str) -> None:
    """Eight bits have no room for a finer bias: it is rounded, W3601 says so, a step at most."""
    rng = np.random.default_rng(4)
    weights = model.constant(rng.integers(-127, 128, (6, 4, 3, 3)).astype(np.int8), np.full(6, 2**-7, np.float32))
    y = model.node("Conv", model.input([1, 4, 9, 9], S), weights)
    sign = np.array([1, -1, 1, 1, -1, 1], np.float32)
    if kind == "BatchNormalization":
        numbers = [rng.uniform(0.5, 2, 6) * sign, rng.normal(size=6), rng.normal(size=6), rng.uniform(1, 9, 6)]
        y = model.node("BatchNormalization", y, *(model.const(one.astype(np.float32)) for one in numbers))
    else:
        for op_type in ("Sub", "Mul", "Add", "Div"):
            numbers_ = (rng.uniform(0.5, 2, (6, 1, 1)) * sign.reshape(6, 1, 1)).astype(np.float32)
            y = model.node(op_type, y, model.const(numbers_))
    model.output(model.requantize(y, 0.5, 3))
    mixed = read(model.bytes())
    assert [type(part).__name__ for part in mixed.parts] == ["HardwarePart"]
    assert "W3601" in [diagnostic.code for diagnostic in mixed.diagnostics]
    feeds = {"x": rng.normal(size=(1, 4, 9, 9)).astype(np.float32) * 5}
    ours, theirs = (next(iter(run(feeds).values())) for run in (model.golden, model.onnxruntime))
    gap = np.abs(ours - theirs)
    assert float(gap.max()) <= 0.5
    assert float((gap > 0).mean()) < 0.02
