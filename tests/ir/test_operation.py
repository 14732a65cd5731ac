"""Every operation has a whole specification, and its parts agree with what it means."""

import ast
import dataclasses
from math import prod
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from every_operation import every
from hypothesis import given
from hypothesis import strategies as st

import onnxhw
from onnxhw.ir.graph import Copy, Op, Tensor
from onnxhw.ir.operation import Clamped, Operation
from onnxhw.ir.text import parse, text
from onnxhw.ir.verify import verify


def classes(kind: type[Operation]) -> set[type[Operation]]:
    """What can be made of the classes below one."""
    below = {found for sub in kind.__subclasses__() for found in classes(sub)}
    return below | ({kind} if not getattr(kind, "__abstractmethods__", True) else set())


def test_the_union_is_every_operation() -> None:
    """An operation that is not in `Op`, nor a kind of one that is, would pass every `assert_never` by."""
    found = {kind for kind in classes(Operation) if kind.__module__.startswith("onnxhw.")}
    union = get_args(Op)
    assert {kind for kind in found if not issubclass(kind, union) or kind in union} == set(union)


def test_an_operation_without_a_definition_cannot_be_made() -> None:
    class Half(Operation):
        def check(self, inputs: list[Tensor], y: Tensor) -> None:
            """Takes anything."""

    with pytest.raises(TypeError, match="evaluate"):
        Half("half", ("x",), "y")  # type: ignore[abstract]


def test_of_what_is_not_said_the_careful_answer_holds() -> None:
    class Any8(Operation):
        def check(self, inputs: list[Tensor], y: Tensor) -> None:
            """Takes anything."""

        def evaluate(self, arrays: Any, inputs: list[Tensor], y: Tensor) -> Any:
            raise NotImplementedError

    op = Any8("any", ("x",), "y")
    assert op.range([(3, 4)]) == (-128, 127)
    assert (op.moves, op.elementwise, op.channelwise) == (False, False, False)
    assert op.where == "node 'any' (Any8)"


def test_every_operation_is_read_back() -> None:
    graph = every()
    verify(graph)
    assert {type(op) for op in graph.ops} == set(get_args(Op))
    written = text(graph, constants=True)
    assert text(parse(written), constants=True) == written


@given(st.integers(0, 2**32), st.integers(-128, 127), st.integers(0, 100))
def test_results_lie_in_their_ranges(seed: int, low: int, more: int) -> None:
    """Of each operation in the self-test's network, for operands of a narrow range."""
    graph, high = every(), min(127, low + more)
    rng = np.random.default_rng(seed)
    for op in graph.ops:
        arrays = [rng.integers(low, high + 1, x.shape).astype(np.int8) for x in graph.operands(op)]
        made = op.evaluate(arrays, graph.operands(op), graph.tensors[op.output])
        first, last = op.range([(low, high)] * len(arrays))
        assert first <= made.min(), op.where
        assert made.max() <= last, op.where


@given(st.integers(0, 2**32))
def test_declared_dependences_are_all_there_are(seed: int) -> None:
    """A changed channel changes that channel alone, a changed element that element alone, where operations say so."""
    graph, rng = every(), np.random.default_rng(seed)
    for op in graph.ops:
        inputs, y = graph.operands(op), graph.tensors[op.output]
        arrays = [rng.integers(-128, 128, x.shape).astype(np.int8) for x in inputs]
        channel = int(rng.integers(y.channels))
        before = op.evaluate(arrays, inputs, y)
        if op.channelwise:
            for array in arrays:
                array[:, channel] = rng.integers(-128, 128, array[:, channel].shape)
            differs = (op.evaluate(arrays, inputs, y) != before).any(axis=(0, 2, 3))
            assert set(np.flatnonzero(differs)) <= {channel}, op.where
        if op.elementwise:
            before = op.evaluate(arrays, inputs, y)
            for array in arrays:
                array[0, channel, -1, -1] ^= 0x55
            differs = op.evaluate(arrays, inputs, y) != before
            differs[0, channel, -1, -1] = False
            assert not differs.any(), op.where


def test_what_moves_chooses_among_its_operands_elements() -> None:
    graph, rng = every(), np.random.default_rng(0)
    moving = [op for op in graph.ops if op.moves]
    assert moving
    for op in moving:
        inputs = graph.operands(op)
        arrays = [rng.integers(-128, 128, x.shape).astype(np.int8) for x in inputs]
        made = op.evaluate(arrays, inputs, graph.tensors[op.output])
        fill = {op.fill} if isinstance(op, Copy) else set()
        assert set(made.ravel().tolist()) <= fill | {value for array in arrays for value in array.ravel().tolist()}


def test_what_joins_is_its_operands_one_after_the_other() -> None:
    graph, rng = every(), np.random.default_rng(1)
    joining = [op for op in graph.ops if op.joins]
    assert {len(op.inputs) > 1 for op in joining} == {False, True}
    for op in joining:
        inputs = graph.operands(op)
        arrays = [rng.integers(-128, 128, x.shape).astype(np.int8) for x in inputs]
        made = op.evaluate(arrays, inputs, graph.tensors[op.output])
        assert made.ravel().tolist() == [value for array in arrays for value in array.ravel().tolist()], op.where


@given(st.integers(-128, 127), st.integers(0, 255))
def test_a_narrower_clamp_cuts_what_is_computed(low: int, more: int) -> None:
    graph, high, rng = every(), min(127, low + more), np.random.default_rng(2)
    for op in graph.ops:
        inputs, y = graph.operands(op), graph.tensors[op.output]
        arrays = [rng.integers(-128, 128, x.shape).astype(np.int8) for x in inputs]
        narrowed = op.clamped(low, high)
        assert (narrowed is not None) == op.clamps == isinstance(op, Clamped), op.where
        if narrowed is not None:
            assert np.array_equal(narrowed.evaluate(arrays, inputs, y), op.evaluate(arrays, inputs, y).clip(low, high))


def test_constants_are_told_by_their_sizes() -> None:
    """Of each operation the memories hold what `weight` and `table` have, and `taps` counts a kernel's positions."""
    for op in every().ops:
        fields = {field.name for field in dataclasses.fields(op)}
        assert bool(op.weight.size) == ("weight" in fields), op.where
        assert bool(op.table.size) == ("table" in fields), op.where
        assert op.taps == ("pads" in fields) * prod(op.window.kernel), op.where


def test_one_place_asks_for_the_class_of_an_operation() -> None:
    """Who wants to know something of an operation asks a member of it, or `sched.operations`."""
    names = {kind.__name__ for kind in classes(Operation)} | {"Operation", "Clamped", "Pool", "Movement", "Joining"}
    source, found = Path(onnxhw.__file__).parent, []
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                asked = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
                found += [str(path.relative_to(source))] * bool(asked & names)
    assert found == ["passes/packed_inputs.py"]  # where a Conv becomes a PackedConv
