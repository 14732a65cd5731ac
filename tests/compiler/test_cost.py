"""Where line, core and host decide: which parts are left to the host, and that no result changes."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw import InferenceSession
from onnxhw.cli import main
from onnxhw.compiler import compile, place_and_schedule
from onnxhw.compiler.cost import Cost, golden_ms, of_graph, of_program, slower, waiting
from onnxhw.ir.graph import Add, Concat, Copy, Graph, Piece, Port, Table, Tensor
from onnxhw.presets import preset
from onnxhw.program.container import dumps
from onnxhw.program.traffic import Rates, Traffic

MINI, RATES = preset("mini"), Rates(1_000_000, 100_000_000)
FAST = Rates(1_000_000_000, 100_000_000)
"""A line on which nearly nothing waits."""


def cost(line: float, host: float, load: float = 0.0, core: float = 0.0, computes: bool = True) -> Cost:
    return Cost(line, core, load, host, host, computes=computes)


@pytest.mark.parametrize(
    ("costs", "left"),
    [
        ([cost(5, 1)], set()),  # the whole model: whoever compiles it wants it there
        ([cost(5, 1), cost(5, 1)], set()),  # all of it
        ([cost(50, 9), cost(5, 0.1), cost(50, 9), cost(4, 0.1)], {1, 3}),  # but for what is next to nothing of it
        ([cost(50, 9), cost(5, 3, computes=False)], {1}),  # and what only joins tensors
        ([cost(5, 3, computes=False), cost(5, 3, computes=False)], set()),
        ([cost(1, 5), cost(5, 1)], {1}),
        ([cost(5, 1), cost(1, 5), cost(1, 2, load=9)], {0, 2}),  # two would have to be loaded in turn
        ([cost(1, 9, load=2), cost(1, 9, load=2)], set()),
        ([cost(1, 9, load=20), cost(1, 8, load=20)], {1}),
        ([cost(1, 9, load=2), cost(2, 1, load=2), cost(1, 9, load=2)], {1}),
        ([cost(1, 1), cost(2, 1)], {1}),  # not slower
    ],
)
def test_which_parts_are_left_to_the_host(costs: list[Cost], left: set[int]) -> None:
    assert slower(costs) == left


@pytest.mark.parametrize("seed", range(30))
def test_no_other_choice_that_keeps_something_takes_less(seed: int) -> None:
    random = np.random.default_rng(seed)
    costs = [cost(*random.integers(1, 9, 4).tolist()) for _ in range(random.integers(2, 6))]

    def time(kept: list[int]) -> float:
        load = sum(costs[at].load for at in kept) if len(kept) > 1 else 0.0
        return load + sum(c.hardware if at in kept else c.host for at, c in enumerate(costs))

    ways = [[at for at in range(len(costs)) if mask >> at & 1] for mask in range(1, 1 << len(costs))]
    left, host = slower(costs), sum(c.host for c in costs)
    kept = [at for at in range(len(costs)) if at not in left]
    if left:
        assert time(kept) == min(map(time, ways)) <= host
    else:
        assert min(map(time, ways)) >= min(host, time(kept))


def model() -> onnx.ModelProto:
    """A product that is worth the line, a node of the host, and an Add that is not."""
    random, nodes, count = np.random.default_rng(3), [], 0

    def node(kind: str, *inputs: str, **more: Any) -> str:
        nonlocal count
        count += 1
        nodes.append(helper.make_node(kind, inputs, [f"v{count}"], name=f"{kind}_{count}", **more))
        return f"v{count}"

    def grid(x: str) -> str:
        return node("DequantizeLinear", node("QuantizeLinear", x, "s", "z"), "s", "z")

    conv = grid(node("Conv", grid("a"), node("DequantizeLinear", "w", "s", "z"), pads=[4, 4, 4, 4]))
    for name in "uv":
        conv = grid(node("Conv", conv, node("DequantizeLinear", name, "s", "z"), pads=[4, 4, 4, 4]))
    both = grid(node("Add", grid(node("Trilu", conv)), grid("b")))
    sizes = {"w": (4, 1, 9, 9), "u": (4, 4, 9, 9), "v": (4, 4, 9, 9)}
    tensors = [numpy_helper.from_array(random.integers(-8, 8, size).astype(np.int8), name)
               for name, size in sizes.items()]  # fmt: skip
    tensors += [numpy_helper.from_array(np.float32(0.125), "s"), numpy_helper.from_array(np.int8(0), "z")]
    inputs = [helper.make_tensor_value_info("a", TensorProto.FLOAT, [1, 1, 4, 4]),
              helper.make_tensor_value_info("b", TensorProto.FLOAT, [1, 4, 4, 4])]  # fmt: skip
    outputs = [helper.make_tensor_value_info(both, TensorProto.FLOAT, [1, 4, 4, 4])]
    graph = helper.make_graph(nodes, "priced", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It, as a file."""
    path = tmp_path_factory.mktemp("priced") / "model.onnx"
    onnx.save(model(), path)
    return path


def test_a_part_that_the_host_runs_quicker_is_left_to_it(file: Path) -> None:
    """At a rate at which the product is worth the line, and the Add beside it is not."""
    placed = place_and_schedule(file, MINI, rates=RATES, prefer="hardware")
    kept, whole = placed.model, placed.made
    parts = list(zip(kept.hardware, whole.programs, strict=True))
    assert len(parts) == 2
    several = (Rates(baud, RATES.clock_hz) for baud in range(1_000_000, 60_000_000, 500_000))
    rates = next(each for each in several if slower([of_program(part.graph, made, each) for part, made in parts]))
    placed = place_and_schedule(file, MINI, rates=rates)
    mixed, made = placed.model, placed.made
    assert len(made.programs) == 1
    assert [note.code for note in mixed.diagnostics if note.code == "W3480"] == ["W3480"]
    rows = [row for row in mixed.placement if "ms on the line" in row.reason]
    assert rows
    assert all(row.hint.startswith("--prefer hardware") for row in rows)
    assert compile(file, MINI).cycles == whole.cycles  # without a line nothing is left


def test_results_are_the_same_wherever_parts_run(file: Path) -> None:
    random = np.random.default_rng(5)
    feeds = {"a": random.normal(0, 3, (1, 1, 4, 4)).astype(np.float32),
             "b": random.normal(0, 3, (1, 4, 4, 4)).astype(np.float32)}  # fmt: skip
    found = []
    for prefer in ("speed", "hardware"):
        with InferenceSession(file, device="emu:mini", prefer=prefer) as session:
            found.append(session.run(None, feeds)[0])
    with InferenceSession(file) as session:
        found.append(session.run(None, feeds)[0])
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_check_says_what_an_inference_takes_and_what_the_host_would(file: Path, capsys: Any) -> None:
    assert main(["check", str(file), "-p", "mini"]) == 0
    printed = capsys.readouterr().out
    assert "ms on the line at" in printed
    assert "the host alone would take about" in printed
    assert main(["check", str(file), "-p", "virtual"]) == 0
    assert "ms on the line" not in capsys.readouterr().out  # no board has it: there is no line


def test_what_a_person_waits_for_is_bytes_and_cycles(digits: Path) -> None:
    made = compile(digits, MINI, rates=RATES)
    found = waiting(made.programs, RATES)
    assert found.load == 0
    assert found.record()["line_ms"] == pytest.approx(found.size * 10 / RATES.baud * 1e3, abs=1e-4)
    assert found.record()["core_ms"] == pytest.approx(made.cycles / RATES.clock_hz * 1e3, abs=1e-4)
    assert found.host_faster is (found.host_ms < found.line_ms + found.core_ms)


@pytest.mark.parametrize("rates", [RATES, FAST])
def test_line_and_core_decide_where_parts_run_and_not_how(digits: Path, rates: Rates) -> None:
    assert dumps(compile(digits, MINI, rates=rates)) == dumps(compile(digits, MINI))


def test_the_golden_models_time_grows_with_its_work(digits: Path) -> None:
    from onnxhw.partition import load

    graph = load(digits)
    assert 0 < golden_ms(graph) < 100


@pytest.mark.parametrize(("kind", "computes"), [("Concat", False), ("Copy", True), ("Add", True)])
def test_what_joins_tensors_computes_nothing(kind: str, computes: bool) -> None:
    """Brought onto one grid by tables, and put behind one another."""
    shape = (1, 4, 2, 2)
    last = {
        "Concat": Concat("last", ("t", "b"), "y"),
        "Copy": Copy("last", ("t",), "y", pieces=(Piece(0, 0, 2, 1, 2, 2),)),
        "Add": Add("last", ("t", "b"), "y"),
    }[kind]
    shapes = {"a": shape, "b": shape, "t": shape, "y": (1, 8 if kind == "Concat" else 4, 2, 2)}
    tensors = {name: Tensor(name, each, 0.1, 0) for name, each in shapes.items()}
    inputs = [Port(name, shape, "int8", name) for name in ("a", "b")]
    graph = Graph("g", tensors, [Table("table", ("a",), "t"), last], inputs, [Port("y", shapes["y"], "int8", "y")])
    assert of_graph(graph, 100, Traffic(10, 10, 20, 10), 10, FAST).computes is computes
