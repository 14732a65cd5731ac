"""`golden_ms`: what the golden model takes, worked out by hand of each kind of operation, and what follows from it."""

import numpy as np
import pytest

from onnxhw.compiler.cost import golden_ms
from onnxhw.ir.graph import Add, AveragePool, Conv, Graph, MatMul, MaxPool, Op, Port, Tensor

SHAPE = (1, 8, 6, 5)
ELEMENTS = 8 * 6 * 5


def graph(*ops: Op, shape: tuple[int, ...] = SHAPE) -> Graph:
    """Operations of equal shapes."""
    tensors = {name: Tensor(name, shape, 1.0, 0) for op in ops for name in (*op.inputs, op.output)}
    return Graph("g", tensors, list(ops), [], [Port("y", shape, "int8", ops[-1].output)])


def conv(groups: int, width: int = 3, channels: int = 8) -> Conv:
    return Conv("c", ("x",), "y", weight=np.ones((8, channels // groups, 3, width), np.int8), groups=groups)


@pytest.mark.parametrize(
    ("op", "nanoseconds"),
    [
        (Add("a", ("x", "z"), "y"), 40_000 + 12 * ELEMENTS),
        (MaxPool("m", ("x",), "y", kernel=(2, 3)), 40_000 + 6 * 5_000 + 12 * ELEMENTS),
        (AveragePool("m", ("x",), "y", kernel=(5, 1)), 40_000 + 5 * 5_000 + 12 * ELEMENTS),
        (conv(1), 40_000 + 9 * 5_000 + 0.2 * 576 * 30 + 1.5 * 576 + 12 * ELEMENTS),
        (conv(2), 40_000 + 9 * 5_000 + 0.2 * 288 * 30 + 1.5 * 288 + 12 * ELEMENTS),
        (conv(8), 40_000 + 9 * 5_000 + 3.5 * 72 * 30 + 1.5 * 72 + 12 * ELEMENTS),
        (conv(8, 1), 40_000 + 3 * 5_000 + 3.5 * 24 * 30 + 1.5 * 24 + 12 * ELEMENTS),
        (conv(1, channels=1), 40_000 + 9 * 5_000 + 0.2 * 72 * 30 + 1.5 * 72 + 12 * ELEMENTS),
        (MatMul("p", ("x", "z"), "y"), 40_000 + 0.2 * ELEMENTS * 5 + 12 * ELEMENTS),
    ],
)
def test_an_operation_costs_calls_taps_products_weights_and_elements(op: Op, nanoseconds: float) -> None:
    """At the rates that `bench/hostcost.py --rates` measured; a rate that is measured anew is written here too."""
    assert golden_ms(graph(op)) == pytest.approx(nanoseconds / 1e6, rel=1e-12)


def test_operations_add_up() -> None:
    first, second = conv(8), Add("a", ("y", "y"), "z")
    assert golden_ms(graph(first, second)) == pytest.approx(golden_ms(graph(first)) + golden_ms(graph(second)))


def test_products_of_single_channels_take_longer_than_those_of_matrices() -> None:
    """A depthwise convolution of an eighth of the products takes longer: it is no matrix product."""
    many = (1, 8, 96, 96)
    assert golden_ms(graph(conv(8), shape=many)) > golden_ms(graph(conv(1), shape=many))
