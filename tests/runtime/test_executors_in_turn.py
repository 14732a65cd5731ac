"""Models larger than a configuration: programs that run in turn give what the whole model gives."""

import dataclasses
import json
from itertools import accumulate, pairwise

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from onnxhw import InferenceSession
from onnxhw.cli import main
from onnxhw.compiler import place_and_schedule
from onnxhw.compiler.split import OperationRanges, groups
from onnxhw.ir.verify import verify
from onnxhw.partition import load
from onnxhw.presets import preset

MINI = preset("mini")
CHANNELS = 64


def run_json(capsys, *arguments, status=0):
    assert main([*map(str, arguments), "--json", "-q"]) == status
    return json.loads(capsys.readouterr().out)


def network(links, widths=None, last=None):
    """Convolutions of 1 x 1 of the channels of `widths`, number n of value ``links[n]``, added up; `last` is the width
    of one more."""
    random = np.random.default_rng(7)
    nodes, constants = [], [("s", np.float32(0.125)), ("z", np.int8(0))]

    def node(kind, *inputs, **more):
        nodes.append(helper.make_node(kind, inputs, [f"v{len(nodes)}"], name=f"{kind}_{len(nodes)}", **more))
        return nodes[-1].output[0]

    def grid(x):
        return node("DequantizeLinear", node("QuantizeLinear", x, "s", "z"), "s", "z")

    def conv(x, width, before):
        constants.append((f"w{len(constants)}", random.integers(-9, 10, (width, before, 1, 1)).astype(np.int8)))
        return grid(node("Conv", x, node("DequantizeLinear", constants[-1][0], "s", "z")))

    widths = widths or [CHANNELS] * len(links)
    values, before = [grid("x")], [CHANNELS]
    for link, width in zip(links, widths, strict=True):
        values.append(conv(values[link], width, before[link]))
        before.append(width)
    y = values[-1]
    read = {values[link] for link in links}
    for value, width in zip(values[1:-1], before[1:-1], strict=True):
        if value not in read and width == before[-1]:
            y = grid(node("Add", y, value))
    y = conv(y, last, before[-1]) if last else y
    graph = helper.make_graph(
        nodes, "long", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, CHANNELS, 2, 2])],
        [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


CHAIN = list(range(5))
"""Five layers of 4 KiB; the preset mini has room for four."""


@st.composite
def trees(draw):
    """What each of up to nine convolutions reads."""
    return [draw(st.integers(0, n)) for n in range(draw(st.integers(1, 9)))]


@settings(deadline=None, max_examples=25)
@given(links=trees(), most=st.integers(1, 4))
def test_pieces_of_random_graphs(links, most):
    """Each has room, all operations are there in order, and what a piece reads an earlier one gives."""
    graph = load(network(links))
    found = groups(graph, lambda piece: len(piece.ops) <= most)
    assert [name for group in found for name in group] == [op.output for op in graph.ops]
    starts = [0, *accumulate(map(len, found))]
    pieces, given_before = OperationRanges(graph), {port.tensor for port in graph.inputs}
    for first, last in pairwise(starts):
        piece = pieces.piece(first, last)
        verify(piece)
        assert 0 < len(piece.ops) <= most
        assert {port.tensor for port in piece.inputs} <= given_before
        given_before |= {port.tensor for port in piece.outputs}
    assert {port.tensor for port in graph.outputs} <= given_before
    assert starts == sorted(set(starts))


def test_cuts_move_to_where_least_work_is_beside_them():
    """From the last on, to places where as few bytes pass: cut 9, before the large operation, becomes cut 6."""
    graph = load(network(range(10), [64, 64, 64, 64, 8, 64, 64, 64, 64, 640]))
    pieces, work = OperationRanges(graph), [graph.macs_of(op) for op in graph.ops]
    assert pieces.work_at_cut() == [0, *map(min, pairwise(work)), 0]
    most = sum(work[6:])

    def room(piece):
        return len(piece.ops) <= 5 and piece.macs() <= most

    assert list(accumulate(map(len, groups(graph, room)))) == [5, 6, 10]
    assert list(accumulate(map(len, groups(graph, lambda piece: len(piece.ops) <= 5)))) == [5, 10]


@settings(deadline=None, max_examples=12)
@given(links=trees())
def test_random_graphs_in_turn(links):
    """A weight memory for two layers: every layer on the hardware, no part beyond the memory, every output equal."""
    model = network(links)
    config = dataclasses.replace(MINI, name="tiny", weight_depth=MINI.weight_depth // 2)
    placed = place_and_schedule(model.SerializeToString(), config)
    mixed, program = placed.model, placed.made
    assert mixed.counts()["hardware"] > 0
    assert sum(part.graph.macs() for part in mixed.hardware) == load(model).macs()
    assert all(len(each.weights) <= config.weight_depth for each in program.programs)
    x = np.random.default_rng(3).normal(0, 3, (2, CHANNELS, 2, 2)).astype(np.float32)
    with InferenceSession(model, device="emulator", config=config) as ours, InferenceSession(model) as golden:
        assert np.array_equal(ours.run(None, {"x": x})[0], golden.run(None, {"x": x})[0])


def test_a_chain_takes_as_few_programs_as_have_room():
    mixed = place_and_schedule(network(CHAIN).SerializeToString(), MINI).model
    assert [len(part.graph.ops) for part in mixed.hardware] == [4, 1]
    (note,) = [note for note in mixed.diagnostics if note.code == "W3405"]
    assert "2 programs" in note.what
    assert "20,480 bytes" in note.what
    assert "ulx3s-25f" in note.hint
    assert not [note for note in mixed.diagnostics if note.code == "W3406"]
    whole = place_and_schedule(network(CHAIN).SerializeToString(), preset("ulx3s-25f")).model
    assert len(whole.hardware) == 1
    assert not [note for note in whole.diagnostics if note.code == "W3405"]


def test_a_cut_is_where_little_passes():
    """Between the third and the fourth layer 8 channels pass, elsewhere 64 and more."""
    widths = [64, 96, 8, 128, 64, 64]
    mixed = place_and_schedule(network(range(6), widths).SerializeToString(), MINI).model
    assert [port.shape[1] for port in mixed.hardware[0].graph.outputs] == [8]


def test_an_operation_that_is_too_large_alone_goes_to_the_host():
    model = network([0, 1], last=400)
    mixed = place_and_schedule(model.SerializeToString(), MINI).model
    (note,) = [note for note in mixed.diagnostics if note.code == "W3406"]
    assert note.what.startswith("1 of 3 operations")
    assert "76%" in note.what  # 400 of 528 channels
    rows = {row.node: row for row in mixed.placement}
    last = [row for row in rows.values() if row.op_type == "Conv"][-1]
    assert (last.where, last.code) == ("host", "E4001")
    assert "mini has" in last.reason
    x = np.random.default_rng(3).normal(0, 3, (1, CHANNELS, 2, 2)).astype(np.float32)
    with InferenceSession(model, device="emulator", config=MINI) as ours, InferenceSession(model) as golden:
        assert np.array_equal(ours.run(None, {"x": x})[0], golden.run(None, {"x": x})[0])


@pytest.fixture
def chain(tmp_path):
    onnx.save(network(CHAIN), tmp_path / "chain.onnx")
    return tmp_path / "chain.onnx"


def test_check_says_so(chain, capsys):
    record = run_json(capsys, "check", chain, "--preset", "mini")
    assert record["runs"] is True
    assert [part["where"] for part in record["parts"]] == ["hardware", "hardware"]
    assert record["fit"]["fits"] is True
    assert record["fit"]["weight_bytes"] == 4 * CHANNELS**2
    assert [note["code"] for note in record["diagnostics"] if note["code"] > "W34"] == ["W3405"]
    assert main(["check", str(chain), "--preset", "mini"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "fits, as 2 programs in turn" in lines
    assert " of them to load its programs, " in lines[-2]
    assert main(["compile", str(chain), "--preset", "mini", "-o", str(chain.parent / "out")]) == 0
    assert "W3405 warning: model: larger than the memory of mini: 2 programs" in capsys.readouterr().err


def test_boards_names_those_that_hold_it_at_once(chain, capsys):
    fits = {one["preset"]: one for one in run_json(capsys, "boards", chain)["presets"]}
    assert fits["mini"]["fits"] is False
    assert "2 programs run in turn" in fits["mini"]["reason"]
    assert fits["ulx3s-25f"]["fits"] is True
    assert fits["mini"]["predicted_cycles"] > fits["ulx3s-25f"]["predicted_cycles"] > 0


def test_a_device_runs_the_programs_in_turn(chain, capsys):
    out = chain.parent / "out"
    run_json(capsys, "compile", chain, "--preset", "mini", "-o", out)
    x = np.random.default_rng(3).normal(0, 3, (3, CHANNELS, 2, 2)).astype(np.float32)
    np.save(chain.parent / "x.npy", x)
    arguments = ["-d", "emu:", "-i", chain.parent / "x.npy", "-o", chain.parent / "y.npz"]
    record = run_json(capsys, "run", out, *arguments)
    assert (record["parts"], record["cycles"]) == (2, record["predicted_cycles"])
    with InferenceSession(chain) as session, np.load(chain.parent / "y.npz") as found:
        assert np.array_equal(found[found.files[0]], session.run(None, {"x": x})[0])


def test_bench_counts_all_programs(chain, capsys):
    """On the engine, too: each program is run and compared."""
    (row,) = run_json(capsys, "bench", "-m", chain, "-p", "mini", "--no-rtl")
    placed = place_and_schedule(chain.read_bytes(), MINI)
    mixed, made = placed.model, placed.made
    assert row["programs"] == len(made.programs) > 1
    assert (row["cycles_predicted"], row["macs_nominal"]) == (made.latency, sum(p.graph.macs() for p in mixed.hardware))
    assert {layer["name"] for layer in row["layers"]} >= {op.name for p in mixed.hardware for op in p.graph.ops}
    assert row["note"] == f"{row['programs']} programs that run in turn, without the time to load them"


def test_check_does_not_schedule_more_tiles_than_it_has_time_for(tmp_path, capsys):
    """Many multiplications by few weights: equal channels count once, so all have room, but each takes its cycles."""
    model = network(range(2), [1024, 1024], last=1024)
    for weight in model.graph.initializer:
        if weight.dims[1:2] and weight.dims[0] == 1024:
            same = np.tile(numpy_helper.to_array(weight)[:1], (1024, 1, 1, 1))
            weight.CopyFrom(numpy_helper.from_array(same, weight.name))
    onnx.save(model, tmp_path / "equal.onnx")
    record = run_json(capsys, "check", tmp_path / "equal.onnx", "--preset", "mini")
    assert (record["fit"]["exact"], record["fit"]["fits"]) == (False, None)
    assert "16384 weight tiles" in record["fit"]["reason"]
    assert record["fit"]["cycles"] > 0
