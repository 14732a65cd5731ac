"""`verify` names what is inconsistent; `text` reads itself back."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onnxhw.errors import InternalError, UsageError
from onnxhw.ir.graph import (
    Add,
    AveragePool,
    Concat,
    Conv,
    Graph,
    MatMul,
    MaxPool,
    Mul,
    Op,
    Port,
    Reshape,
    Table,
    Tensor,
)
from onnxhw.ir.text import parse, text
from onnxhw.ir.verify import verify


def tensor(name: str, *shape: int, scale: float = 0.5, zero_point: int = 3) -> Tensor:
    return Tensor(name, (1, *shape), scale, zero_point)  # type: ignore[arg-type]  # also of wrong lengths


def whole() -> Graph:
    """A graph with every operation once."""
    rng = np.random.default_rng(0)
    tensors = [
        tensor("x", 3, 4, 4), tensor("c", 4, 4, 4), tensor("a", 4, 4, 4, scale=0.1), tensor("m", 4, 4, 4),
        tensor("n", 4, 3, 4), tensor("q", 4, 4, 3),
        tensor("p", 4, 2, 2), tensor("g", 4, 1, 1), tensor("t", 4, 2, 2), tensor("k", 8, 2, 2), tensor("r", 32, 1, 1),
    ]  # fmt: skip
    weight = rng.integers(-128, 128, (4, 3, 3, 3)).astype(np.int8)
    multiplier = rng.uniform(0.001, 0.1, 4).astype(np.float32)
    ops: list[Op] = [
        Conv(
            "conv",
            ("x",),
            "c",
            ("conv", "relu"),
            weight,
            np.arange(4, dtype=np.int32),
            multiplier,
            pads=(1, 1, 1, 1),
            lo=3,
        ),
        Add("add", ("c", "c"), "a", (), 5.0, 5.0),
        Mul("mul", ("a", "c"), "m", (), 0.1),
        MaxPool("columns", ("c",), "n", (), (2, 1)),
        MatMul("matmul", ("c", "n"), "q", (), 0.25, True, True),
        MaxPool("pool", ("c",), "p", (), (2, 2), (2, 2)),
        AveragePool("mean", ("c",), "g", (), (4, 4), ratio=1.0),
        Table("table", ("p",), "t"),
        Concat("concat", ("p", "t"), "k"),
        Reshape("reshape", ("k",), "r"),
    ]
    step = {"op": "QuantizeLinear", "name": 'q "1"', "scale": 0.1, "zero_point": 3, "dtype": "int8"}
    inputs = [Port("input", (1, 3, 4, 4), "float32", "x", (step,))]
    outputs = [Port(name, (1, 4), "int8", name) for name in ("r", "g", "m")]
    return Graph("whole graph", {t.name: t for t in tensors}, ops, inputs, outputs)


def test_a_consistent_graph_passes() -> None:
    verify(whole())


def change(graph: Graph, where: str, fields: dict[str, Any]) -> None:
    for index, op in enumerate(graph.ops):
        if op.name == where:
            graph.ops[index] = replace(op, **fields)
            return
    graph.tensors[where] = replace(graph.tensors[where], **fields)


BROKEN: list[tuple[str, dict[str, Any], str]] = [
    ("conv", {"inputs": ("nothing",)}, "E1301"),
    ("conv", {"output": "nothing"}, "E1301"),
    ("conv", {"output": "a"}, "E130"),
    ("conv", {"inputs": ("g",)}, "E1301"),
    ("add", {"name": "conv"}, "E1301"),
    ("conv", {"groups": 2}, "E1302"),
    ("conv", {"bias": np.zeros(3, np.int32)}, "E1302"),
    ("conv", {"bias": np.zeros(4, np.int64)}, "E1302"),
    ("conv", {"multiplier": np.zeros(4, np.float32)}, "E1302"),
    ("conv", {"multiplier": np.full(4, np.inf, np.float32)}, "E1302"),
    ("conv", {"weight": np.zeros((4, 3, 3, 3), np.int16)}, "E1302"),
    ("conv", {"pads": (0, 1, 1, 1)}, "E1302"),
    ("conv", {"strides": (2, 1)}, "E1302"),
    ("conv", {"lo": 5, "hi": 4}, "E1302"),
    ("add", {"inputs": ("c", "x")}, "E1302"),
    ("add", {"inputs": ("c",)}, "E1302"),
    ("add", {"ratio_a": float("nan")}, "E1302"),
    ("mul", {"inputs": ("a", "x")}, "E1302"),
    ("mul", {"ratio": 0.0}, "E1302"),
    ("matmul", {"inputs": ("c", "x")}, "E1302"),
    ("matmul", {"inputs": ("c",)}, "E1302"),
    ("matmul", {"inputs": ("n", "c")}, "E1302"),
    ("matmul", {"transposed_b": False}, "E1302"),
    ("matmul", {"multiplier": 0.0}, "E1302"),
    ("matmul", {"lo": -129}, "E1302"),
    ("pool", {"inputs": ("a",)}, "E1302"),
    ("pool", {"kernel": (3, 3)}, "E1302"),
    ("mean", {"kernel": (3, 4)}, "E1302"),
    ("mean", {"hi": 128}, "E1302"),
    ("table", {"table": np.zeros(255, np.int8)}, "E1302"),
    ("table", {"inputs": ("c",)}, "E1302"),
    ("concat", {"inputs": ("p",)}, "E1302"),
    ("concat", {"inputs": ("p", "g")}, "E1302"),
    ("reshape", {"inputs": ("p",)}, "E1302"),
    ("x", {"scale": 0.0}, "E1302"),
    ("x", {"scale": float("inf")}, "E1302"),
    ("x", {"zero_point": 128}, "E1302"),
    ("x", {"shape": (2, 3, 4, 4)}, "E1302"),
    ("x", {"name": "z"}, "E1301"),
]


@pytest.mark.parametrize(("name", "fields", "code"), BROKEN)
def test_an_inconsistent_graph_is_refused(name: str, fields: dict[str, Any], code: str) -> None:
    graph = whole()
    change(graph, name, fields)
    with pytest.raises(InternalError, match=code) as caught:
        verify(graph)
    assert caught.value.where


def test_ports_name_tensors_that_exist() -> None:
    for kind in ("inputs", "outputs"):
        graph = whole()
        getattr(graph, kind).append(Port("other", (1,), "int8", "nothing"))
        with pytest.raises(InternalError, match="E1301"):
            verify(graph)
    graph = whole()
    graph.inputs.clear()
    with pytest.raises(InternalError, match="not made before it is used"):
        verify(graph)


def test_text_is_read_back() -> None:
    graph = whole()
    written = text(graph, constants=True)
    again = parse(written)
    verify(again)
    assert text(again, constants=True) == written
    for ours, theirs in zip(graph.ops, again.ops, strict=True):
        assert type(ours) is type(theirs)
        for field in vars(ours):
            assert np.array_equal(getattr(ours, field), getattr(theirs, field)), field
    assert again.inputs == graph.inputs
    assert again.tensors == graph.tensors


def test_text_for_people_shows_digests() -> None:
    lines = text(whole()).splitlines()
    assert lines[0] == 'graph "whole graph"'
    assert 'tensor "c" [1, 4, 4, 4] scale 0.5 zero_point 3' in lines
    conv = next(line for line in lines if line.startswith("Conv"))
    assert conv.startswith(
        'Conv "conv" ["x"] -> "c" {"nodes": ["conv", "relu"], "weight": {"int8": [4, 3, 3, 3], "digest": '
    )
    assert '"lo": 3' in conv
    with pytest.raises(UsageError, match=r"E2210 .*line 14: .*digest only"):
        parse(text(whole()))


def test_text_changes_with_every_constant() -> None:
    before = text(whole())
    graph = whole()
    assert isinstance(graph.ops[0], Conv)
    graph.ops[0].weight[3, 2, 2, 2] ^= 1
    assert text(graph) != before


def test_lines_that_are_no_graph_are_named() -> None:
    for line in ("nonsense", "tensor", 'Conv "c"', 'tensor "x" [1] size 3 zero_point 1', "graph"):
        with pytest.raises(UsageError, match=r"E2210 .*line 1"):
            parse(line)
