"""More functions than the hardware has tables: those beyond run on the host, the result is the same."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxhw import InferenceSession
from onnxhw.cli.app import run
from onnxhw.compiler import compile, place, place_and_schedule
from onnxhw.compiler.capacity import fit
from onnxhw.ir.graph import Add, Graph, Op, Table, Tensor
from onnxhw.onnxmodel import prepared
from onnxhw.onnxmodel.prepared import prepare
from onnxhw.onnxmodel.read import read as reading_of
from onnxhw.partition import PartitionedModel, read
from onnxhw.partition.pipeline import converted, parts_of
from onnxhw.presets import SDRAM, preset
from onnxhw.program.container import dumps
from onnxhw.sched import over_table_limit, tables_of

FOUR = dataclasses.replace(preset("mini"), name="four", tables=4)
FUNCTIONS = ["Sigmoid", "Tanh", "Gelu", "HardSwish", "Elu", "Softplus", "Softsign", "Erf", "Selu"]


def chain(model: Any, functions: list[str], shape: tuple[int, ...] = (1, 3, 4, 5)) -> Any:
    """Functions one after another, with a pool between, on grids of powers of two."""
    x = model.input(shape, 1 / 16, 3)
    for index, op_type in enumerate(functions):
        x = model.requantize(model.node("MaxPool", x, kernel_shape=[1, 1]), 1 / 16, 3) if index % 2 else x
        x = model.requantize(model.node(op_type, x), 1 / 16, 3)
    return model.output(x)


def most_tables(mixed: PartitionedModel) -> int:
    return max(len(set(tables_of(part.graph).values())) for part in mixed.hardware)


@pytest.mark.parametrize("count", range(5, 10))
def test_what_is_beyond_the_tables_runs_on_the_host(models: Any, count: int) -> None:
    model = chain(models(opset=20), FUNCTIONS[:count])
    feeds = model.feeds()
    with InferenceSession(model.bytes(), device="emulator", config=FOUR) as session:
        (found,) = session.run(None, feeds)
        mixed = session.model
    with InferenceSession(model.bytes(), device="golden") as session:
        assert most_tables(session.model) == count, "nothing is moved where there is no limit"
        np.testing.assert_array_equal(found, session.run(None, feeds)[0])
    np.testing.assert_array_equal(found, next(iter(model.onnxruntime(feeds).values())))
    (row,) = (row for row in mixed.placement if row.where == "host" and row.op_type in FUNCTIONS)
    assert row.op_type == FUNCTIONS[4], "the fifth: four are before it, and four may be behind it"
    assert "one more than the 4 of four" in row.reason
    assert "share" in row.hint
    assert most_tables(mixed) == 4


def test_the_function_of_the_fewest_elements_goes(models: Any) -> None:
    model = models(opset=20)
    for index, op_type in enumerate(FUNCTIONS[:6]):
        x = model.input((1, 2, 4, 2 if index in (1, 3) else 6), 1 / 16, 3, name=f"x{index}")
        model.output(model.requantize(model.node(op_type, x), 1 / 16, 3))
    mixed = place_and_schedule(model.bytes(), FOUR).model
    moved = {row.op_type for row in mixed.placement if row.where == "host" and row.op_type in FUNCTIONS}
    assert moved == {FUNCTIONS[1], FUNCTIONS[3]}


def test_equal_tables_are_one_and_a_model_that_fits_stays(models: Any) -> None:
    model = chain(models(opset=20), FUNCTIONS[:4] * 3)
    placed = place_and_schedule(model.bytes(), FOUR)
    mixed, program = placed.model, placed.made
    assert not [row for row in mixed.placement if row.where == "host" and row.op_type in FUNCTIONS]
    assert len(program.only().tables) == 4
    assert dumps(program) == dumps(compile(model.bytes(), FOUR))


def test_what_one_function_gives_to_others_stays(models: Any) -> None:
    """A function that another operation needs as well is not moved with the table that reads it."""
    model = models(opset=20)
    x = chain(model, FUNCTIONS[2:5]).outputs.pop().name
    real = model.node("Relu", x)
    model.output(model.requantize(model.node("Add", real, model.input((1, 3, 4, 5), 1 / 16, 3, name="z")), 1 / 16, 3))
    model.output(model.requantize(model.node("Tanh", real), 1 / 8, 0))
    mixed = place_and_schedule(model.bytes(), FOUR).model
    where = {row.op_type: row.where for row in mixed.placement if row.op_type in ("Add", "Tanh")}
    assert where == {"Add": "hardware", "Tanh": "host"}
    with InferenceSession(model.bytes(), device="emulator", config=FOUR) as session:
        found = session.run(None, model.feeds())
    for ours, wanted in zip(found, model.onnxruntime(model.feeds()).values(), strict=True):
        np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("name", ["ulx3s-85f", "ulx3s-85f+sdram"])
def test_check_says_what_compile_does(models: Any, tmp_path: Path, capsys: Any, name: str) -> None:
    """Also beyond the operations that `check` schedules; no preset of a board has more than four tables, but external
    memory brings others."""
    for count in (9, 90):
        model = models(opset=20)
        x = model.input((1, 2, 3, 3), 1 / 16, 3)
        for index in range(count):
            x = model.requantize(model.node("LeakyRelu", x, alpha=index / 128), 1 / 16, 3)
        proto = model.output(x).bytes()
        (tmp_path / "model.onnx").write_bytes(proto)
        assert run(["check", str(tmp_path / "model.onnx"), "--preset", name, "--json"]) == 0
        record = json.loads(capsys.readouterr().out)
        moved = [row for row in record["placement"] if row["where"] == "host" and row["op_type"] == "LeakyRelu"]
        assert len(moved) == (0 if name.endswith(SDRAM) else count // 5)
        assert all(row["hint"] for row in moved)
        mixed = place_and_schedule(proto, preset(name)).model
        assert [dict(vars(row)) for row in mixed.placement] == record["placement"]


def test_large_models_are_placed_in_two_readings(models: Any) -> None:
    model = models(opset=20)
    x = model.input((1, 2, 3, 3), 1 / 16, 3)
    for index in range(200):
        x = model.requantize(model.node("LeakyRelu", x, alpha=index / 256), 1 / 16, 3)
    seen: list[PartitionedModel] = []

    def attempt(mixed: PartitionedModel) -> None:
        from onnxhw.errors import DoesNotFitError

        seen.append(mixed)
        found = fit([part.graph for part in mixed.hardware], FOUR)
        if found.fits is False:
            raise DoesNotFitError(found.code, found.reason)

    place(model.output(x).bytes(), FOUR, attempt)
    assert len(seen) == 2


def test_a_model_is_read_once_however_often_it_is_placed(models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, read = chain(models(opset=20), FUNCTIONS), []
    monkeypatch.setattr(prepared, "read", lambda *a, **k: read.append(a) or reading_of(*a, **k))
    mixed = place_and_schedule(model.bytes(), FOUR).model
    assert len(read) == 1
    assert mixed.golden


def test_placements_of_one_preparation_do_not_know_of_each_other(models: Any) -> None:
    """In any order, each is that of a model read for it alone."""
    proto = chain(models(opset=20), FUNCTIONS).bytes()
    ready = prepare(proto)
    names = [row.node for row in read(proto).placement if row.op_type in FUNCTIONS]
    for excluded in ({}, {names[0]: ("a", "")}, {names[4]: ("b", "")}, {}):
        assert repr(parts_of(*converted(ready, excluded))) == repr(read(proto, excluded=excluded))


@pytest.mark.parametrize("seed", range(40))
def test_parts_of_random_graphs_keep_to_the_tables(seed: int) -> None:
    """With what `over_table_limit` names on the host, no part has more tables; without any of it, nothing is named."""
    rng = np.random.default_rng(seed)
    count, ops = int(rng.integers(1, 5)), list[Op]()
    tensors = {"t0": Tensor("t0", (1, 1, 2, 2), 1.0, 0)}
    pool = rng.integers(-128, 128, (12, 256)).astype(np.int8)
    for index in range(1, 60):
        tensors[f"t{index}"] = Tensor(f"t{index}", (1, 1, 2, int(rng.integers(1, 4))), 1.0, 0)
        a, b = rng.integers(max(0, index - 8), index, 2)
        if rng.random() < 0.7:
            ops.append(Table(f"op{index}", (f"t{a}",), f"t{index}", (f"op{index}",), pool[rng.integers(12)]))
        else:
            ops.append(Add(f"op{index}", (f"t{a}", f"t{b}"), f"t{index}", (f"op{index}",)))
    graph = Graph("random", tensors, ops, [], [])
    moved = {op.name for op in over_table_limit(graph, count)}
    assert moved
    entries, level = tables_of(graph), {"t0": 0}
    used: dict[int, set[bytes]] = {}
    for index, op in enumerate(ops):
        here = max(level[name] for name in op.inputs)
        level[op.output] = here + (op.name in moved)
        if index in entries and op.name not in moved:
            used.setdefault(here, set()).add(entries[index])
    assert max(map(len, used.values())) <= count
    assert not over_table_limit(graph, len(set(entries.values())))
