"""Sets of column tiles: what goes ahead of what, that it is exact, and that chains of small maps gain by it."""

import random
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from onnxhw import emu, golden
from onnxhw.config import HwConfig
from onnxhw.ir.graph import Conv, Graph
from onnxhw.isa.instructions import Array, Vector
from onnxhw.isa.timing import MIN_TILE
from onnxhw.presets import preset
from onnxhw.sched import lower, schedule, search
from onnxhw.sched.column_groups import boundaries, chains, column_cuts, grouped, linked
from onnxhw.sched.task import Tiling
from onnxhw.sched.tiling import chained

DENSE = preset("ulx3s-85f-dense")


def chain(net: Any, channels: tuple[int, ...], size: int = 1) -> Graph:
    """Convolutions of 1 x 1, one after the other."""
    y = net.input(channels[0], size, size)
    for count in channels[1:]:
        y = net.conv(y, count, (1, 1))
    found: Graph = net.graph(y)
    return found


def run_of(graph: Graph, tilings: dict[str, Tiling], config: HwConfig, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The checked program of these tilings."""
    monkeypatch.setattr("onnxhw.sched.search._descend", lambda lowered, found, ways, tries: found)
    monkeypatch.setattr(search, "first_points", lambda lowered: iter([[search.SearchPoint(lowered.graph, tilings)]]))
    return schedule(graph, config)


def drawn(graph: Graph, config: HwConfig, draw: random.Random) -> dict[str, Tiling]:
    """Any sets of column tiles, any cuts of the input, anything ahead."""
    found = {}
    for op in graph.ops:
        assert isinstance(op, Conv)
        x, y = graph.tensors[op.inputs[0]], graph.tensors[op.output]
        count, blocks = -(-y.channels // config.used_cols), -(-x.channels // config.word)
        inner = draw.sample(range(1, count), min(count - 1, draw.randint(0, 2)))
        split = draw.sample(range(1, blocks), min(blocks - 1, draw.randint(0, 2)))
        rows = tuple(sorted({0, draw.randint(0, y.height - 1), y.height}))
        found[op.name] = Tiling(
            rows, columns=(0, *sorted(inner), count), split=tuple(sorted(split)), lookahead=draw.randint(0, blocks)
        )
    return found


@pytest.mark.parametrize("seed", range(6))
def test_whatever_goes_ahead_every_tensor_is_exact(
    seed: int, hw: HwConfig, new_net: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, net = random.Random(seed), new_net(seed)
    graph = chain(net, tuple(draw.randint(5, 40) for _ in range(4)), draw.choice([1, 1, 3]))
    program = run_of(graph, drawn(graph, hw, draw), hw, monkeypatch)
    values = net.values()
    wanted = golden.run(graph, values)
    for name, found in emu.run(program, values, trace=True).tensors.items():
        np.testing.assert_array_equal(found, wanted[name], err_msg=name)


@pytest.mark.parametrize(("split", "lookahead", "order"), [
    ((), 3, [(0, 0, 8), (1, 0, 8)]),
    ((4,), 0, [(0, 0, 4), (0, 4, 8), (1, 0, 8)]),
    ((4,), 2, [(0, 0, 4), (1, 0, 2), (0, 4, 8), (1, 2, 8)]),
    ((3, 5), 4, [(0, 0, 3), (0, 3, 5), (1, 0, 4), (0, 5, 8), (1, 4, 8)]),
])  # fmt: skip
def test_the_second_set_goes_ahead_of_the_last_part_of_the_first(
    split: tuple[int, ...], lookahead: int, order: list[tuple[int, int, int]], new_net: Any
) -> None:
    """Steps as (bank, blocks from, to): those of a set in their order, whatever comes between."""
    graph = chain(new_net(1), (128, 128))
    tasks = lower.lower(graph, DENSE).tasks(graph.ops[0].name, Tiling((0, 1), (), (0, 4, 8), split, lookahead))
    found, fresh = [], defaultdict(list)
    for number, task in enumerate(tasks):
        for step in task.arrays:
            bank = step.bank + number
            found.append((bank, *step.reads[0].blocks))
            assert isinstance(step.array, Array)
            fresh[bank].append(step.array.accumulate)
    assert found == order
    assert all(kinds == [0] + [1] * (len(kinds) - 1) for kinds in fresh.values())
    written = [(step.writes.blocks, step.bank + number) for number, task in enumerate(tasks) for step in task.vectors]
    assert written == [((0, 4), 0), ((4, 8), 1)]


def test_a_set_is_drained_while_the_rest_of_the_other_is_streamed(
    new_net: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = chain(new_net(1), (128, 128, 128))
    tiling = Tiling((0, 1), (), (0, 4, 8), (4,), 2)
    program = run_of(graph, {op.name: tiling for op in graph.ops}, DENSE, monkeypatch)
    drains = [i for i in program.code["vector"] if isinstance(i, Vector)]
    assert [(i.acc_bank, i.after_array) for i in drains] == [(0, 3), (1, 4), (0, 7), (1, 8)]
    assert [i.acc_bank for i in program.code["array"] if isinstance(i, Array)] == [0, 1, 0, 1] * 2


def test_a_chain_gains_by_what_goes_ahead(new_net: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Per layer: 77 cycles at least, the pipelines of array and vector unit (28 and 30) and 40, whatever goes ahead,
    less the 10 and 11 by which their instructions are counted early."""
    graph = chain(new_net(1), (128,) * 7)
    base = chained(graph, DENSE)
    two = grouped(graph, base, DENSE, 0.5)
    cycles = [run_of(graph, tilings, DENSE, monkeypatch).cycles for tilings in (base, two, linked(two))]
    monkeypatch.undo()
    assert [*cycles, schedule(graph, DENSE).cycles] == [1813, 645, 617, 612]


@pytest.mark.parametrize("seed", range(20))
def test_changes_keep_a_chain_together(seed: int, new_net: Any) -> None:
    """Readers are cut where the sets end; nothing goes ahead of what is not cut; no set is so small that it waits."""
    draw = random.Random(seed)
    config = preset(draw.choice(["ulx3s-85f-dense", "ulx3s-45f", "ulx3s-25f"]))
    graph = chain(new_net(seed), tuple(draw.randint(1, 400) for _ in range(4)), draw.randint(1, 4))
    tilings = grouped(graph, chained(graph, config), config, 0.5)
    at = draw.randrange(3)
    op, y = graph.ops[at], graph.tensors[graph.ops[at].output]
    changes = chains(op, graph, tilings, config)
    assert changes
    least = -(-MIN_TILE // (y.height * y.width))
    for change in changes:
        made = change[op.name]
        assert made.columns[0] == 0
        assert made.columns[-1] == -(-y.channels // config.used_cols)
        if len(made.columns) > 2:
            assert min(end - first for first, end in pairwise(made.columns)) >= least
        if at:
            assert made.split in ((), boundaries(tilings[graph.ops[at - 1].name], config))
        assert made.lookahead <= max(made.split, default=0)
        assert set(change) == {one.name for one in graph.ops[at : at + 2] if one is op or tilings[one.name].split}
        for name, reader in change.items():
            if name != op.name:
                assert reader == replace(tilings[name], split=boundaries(made, config))


def test_sets_end_where_blocks_do(new_net: Any) -> None:
    tensor = next(iter(chain(new_net(1), (100, 1)).tensors.values()))
    narrow = replace(DENSE, cols=24)
    assert column_cuts(tensor, DENSE, 0.5) == (0, 4, 7)
    assert boundaries(Tiling((0, 1), columns=(0, 2, 3, 5)), narrow) == (3, 4)
