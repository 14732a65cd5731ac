"""MatMul of two activations: on the hardware, transposes for nothing; a small attention."""

from typing import Any

import numpy as np
import pytest

from onnxhw import emu, golden
from onnxhw.convert.blockers import UnsupportedNodesError
from onnxhw.ir.graph import Conv, Copy, MatMul, Reshape
from onnxhw.presets import preset
from onnxhw.sched import schedule

S = 0.125
CONFIG = preset("ulx3s-25f")


def kinds(graph: Any) -> list[type]:
    return [type(op) for op in graph.ops]


@pytest.mark.parametrize("shapes", [
    ([1, 3, 5, 6], [1, 3, 6, 4]), ([1, 5, 6], [1, 6, 4]), ([1, 3, 5, 6], [1, 6, 4]), ([1, 2, 6], [1, 6, 1]),
    ([1, 1, 5, 6], [1, 4, 6, 2]), ([1, 1], [1, 7]),
])  # fmt: skip
def test_shapes(model: Any, shapes: tuple[list[int], list[int]]) -> None:
    a, b = model.input(shapes[0], S, 3, "a"), model.input(shapes[1], S, -90, "b")
    graph = model.output(model.requantize(model.node("MatMul", a, b), 1.0, 7), max(map(len, shapes))).check()
    assert MatMul in kinds(graph)
    assert set(kinds(graph)) <= {MatMul, Conv, Copy, Reshape}


def test_transposed_operands_are_only_read_so(model: Any) -> None:
    a, b = model.input([1, 3, 6, 5], S, name="a"), model.input([1, 3, 4, 6], S, name="b")
    turned = [model.node("Transpose", x, perm=[0, 1, 3, 2]) for x in (a, b)]
    graph = model.output(model.requantize(model.node("MatMul", *turned), 1.0)).check()
    assert kinds(graph) == [MatMul]
    assert (graph.ops[0].transposed_a, graph.ops[0].transposed_b) == (True, True)
    assert graph.macs() == 3 * 5 * 6 * 4


@pytest.mark.parametrize("way", ["same", "transposed", "reshaped"])
def test_a_tensor_by_itself_is_copied(model: Any, way: str) -> None:
    x = model.requantize(model.node("Neg", model.input([1, 3, 4, 4], S)), S)
    y = {"same": lambda: x, "transposed": lambda: model.node("Transpose", x, perm=[0, 1, 3, 2]),
         "reshaped": lambda: model.node("Reshape", x, model.const(np.array([1, 3, 4, 4])))}[way]()  # fmt: skip
    model.output(model.requantize(model.node("MatMul", x, y), 1.0))
    graph = model.check()
    assert kinds(graph)[-2:] == [Copy, MatMul]
    program = schedule(graph, CONFIG)
    values = golden.host.prepare(graph, model.feeds())
    name = graph.outputs[0].tensor
    np.testing.assert_array_equal(emu.run(program, values).outputs[name], golden.run(graph, values)[name])


def test_clamps_join_the_product(model: Any) -> None:
    a, b = model.input([1, 2, 3, 4], S, name="a"), model.input([1, 2, 4, 3], S, name="b")
    y = model.node("Relu", model.node("MatMul", a, b))
    graph = model.output(model.requantize(y, 1.0, -20)).check()
    assert kinds(graph) == [MatMul]
    assert graph.ops[0].lo == -20


@pytest.mark.parametrize(("depth", "zero"), [(1023, 0), (258, -128)])
def test_sums_beyond_25_bits_stay_on_the_host(model: Any, models: Any, depth: int, zero: int) -> None:
    def built(made: Any, count: int) -> Any:
        a, b = made.input([1, 1, 1, count], S, zero, "a"), made.input([1, 1, count, 9], S, zero, "b")
        return made.output(made.requantize(made.node("MatMul", a, b), -8.0 * zero or 64.0))

    with pytest.raises(UnsupportedNodesError, match=rf"a sum of {depth + 1} products can reach .* beyond 25"):
        built(model, depth + 1).load()
    graph = built(models(), depth).check()
    program = schedule(graph, preset("virtual"))
    values = {port.tensor: np.full(graph.tensors[port.tensor].shape, 127 if zero else -128, np.int8)
              for port in graph.inputs}  # fmt: skip
    name = graph.outputs[0].tensor
    np.testing.assert_array_equal(emu.run(program, values).outputs[name], golden.run(graph, values)[name])


@pytest.mark.parametrize("shapes", [([6], [1, 6, 4]), ([1, 3, 6], [6])])
def test_vectors_stay_on_the_host(model: Any, shapes: tuple[list[int], list[int]]) -> None:
    a, b = model.input(shapes[0], S, name="a"), model.input(shapes[1], S, name="b")
    with pytest.raises(UnsupportedNodesError):
        model.output(model.requantize(model.node("MatMul", a, b), 1.0), 2).load()


def attention(model: Any, length: int, heads: int, depth: int) -> Any:
    """``x -> (x Wq) (x Wk)^T -> . (x Wv) -> Wo`` over some heads."""
    width, rng = heads * depth, np.random.default_rng(length)
    split, whole = model.const(np.array([1, length, heads, depth])), model.const(np.array([1, length, width]))
    x = model.input([1, length, width], S, 5)

    def dense(y: str) -> str:
        matrix = model.constant(rng.integers(-60, 61, (width, width)).astype(np.int8), 2.0**-7)
        return model.requantize(model.node("MatMul", y, matrix), 0.25, -3)

    q, k, v = (model.node("Transpose", model.node("Reshape", dense(x), split), perm=perm)
               for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))  # fmt: skip
    scores = model.requantize(model.node("MatMul", q, k), 4.0, 2)
    mixed = model.requantize(model.node("MatMul", scores, v), 16.0, 1)
    flat = model.node("Reshape", model.node("Transpose", mixed, perm=[0, 2, 1, 3]), whole)
    return model.output(model.requantize(model.node("MatMul", flat, dense_of(model, rng, width)), 8.0, 0), 3)


def dense_of(model: Any, rng: Any, width: int) -> str:
    found: str = model.constant(rng.integers(-60, 61, (width, width)).astype(np.int8), 2.0**-7)
    return found


def test_deeper_heads_say_how_deep_they_may_be(model: Any) -> None:
    with pytest.raises(UnsupportedNodesError, match="choose channels in 65 ways, at most 64 are performed") as caught:
        attention(model, 6, 2, 65).load()
    assert "heads of up to 64 channels" in caught.value.blockers[0].hint


@pytest.mark.parametrize(("length", "heads", "depth"), [(6, 2, 4), (9, 3, 2), (4, 1, 24)])
def test_attention(model: Any, length: int, heads: int, depth: int) -> None:
    graph = attention(model, length, heads, depth).check()
    assert kinds(graph).count(MatMul) == 2
    program = schedule(graph, CONFIG)
    values = golden.host.prepare(graph, model.feeds())
    found = emu.run(program, values, trace=True).tensors
    wanted = golden.run(graph, values)
    for name, tensor in found.items():
        np.testing.assert_array_equal(tensor, wanted[name], err_msg=name)
