"""The depthwise unit at work beside the array: order of loads and tasks, and what the checker sees of it."""

import dataclasses
import random
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from onnxhw import emu, golden
from onnxhw.config import HwConfig
from onnxhw.errors import InternalError
from onnxhw.ir.graph import Graph
from onnxhw.isa.instructions import Array, Depthwise, Load
from onnxhw.isa.timeline import timeline
from onnxhw.program import DeviceProgram
from onnxhw.sched import check, footprint, lower, schedule
from onnxhw.sched.load_order import OwnedLoad, ordered, parts
from onnxhw.sched.readiness import ReadinessMap
from onnxhw.sched.task_order import sequence
from onnxhw.sched.tiling import chained

CONFIG = HwConfig(
    "beside", rows=8, cols=8, word=8, lanes=4, load_rows=8, acc_bits=27, act_depth=1024, weight_depth=1024,
    acc_depth=128, param_depth=512, window_depth=128, depthwise=16, array_ucode=4096, vector_ucode=8192,
    load_ucode=4096, depthwise_ucode=2048,
)  # fmt: skip


def separable(net: Any, layers: int = 2, channels: int = 24) -> Graph:
    """Depthwise and pointwise convolutions in turn, on maps of 8 x 6."""
    y = net.conv(net.input(8, 8, 6), channels, (1, 1))
    for _ in range(layers):
        y = net.conv(net.conv(y, channels, pads=(1, 1, 1, 1), groups=channels), channels, (1, 1))
    return net.graph(y)


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_a_load_are_its_tiles(seed: int) -> None:
    draw = random.Random(seed)
    nt, step = draw.randint(1, 5), draw.randint(0, 40)
    load = Load(base=draw.randint(0, 99), tiles=draw.randint(1, 6), nt_n=nt, nt_step=step)
    whole = footprint.tile_words(load, CONFIG).tolist()
    first, end = sorted(draw.sample(range(len(whole) + 1), 2))
    found = [word for part in parts(load, first, end, CONFIG) for word in footprint.tile_words(part, CONFIG).tolist()]
    assert found == whole[first:end]


@pytest.mark.parametrize("seed", range(20))
def test_loads_keep_the_order_of_each_unit_and_hold_nobody_up(seed: int) -> None:
    """All tiles come, in their unit's order; and the run ends sooner than with all of the array's first."""
    draw = random.Random(seed)
    arrays: list[tuple[Array, OwnedLoad]] = []
    strips: list[tuple[Depthwise, OwnedLoad]] = []
    for n in range(draw.randint(2, 5)):
        kt, nt = draw.randint(1, 4), draw.randint(1, 3)
        array = Array(kt_n=kt, nt_n=nt, oh_n=draw.randint(1, 8), ow_n=draw.randint(1, 6), after_depthwise=len(strips))
        arrays.append((array, OwnedLoad(Load(base=50 * n, tiles=kt, nt_n=nt, nt_step=9), f"array {n}")))
        for _ in range(draw.randint(0, 4)):
            kh = draw.randint(1, 2)
            strip = Depthwise(kh_n=kh, oh_n=draw.randint(3, 6), ow_n=draw.randint(3, 9), after_array=draw.randint(0, n))
            strips.append((strip, OwnedLoad(Load(base=500 + 10 * len(strips), tiles=kh, depthwise=1), f"window {n}")))
    found = ordered(arrays, strips, [], CONFIG)

    def words(loads: list[OwnedLoad], kind: int) -> list[tuple[int, str]]:
        return [(int(word), one.op) for one in loads if one.load.depthwise == kind
                for word in footprint.tile_words(one.load, CONFIG)]  # fmt: skip

    assert words(found, 0) == words([owned for _, owned in arrays], 0)
    assert words(found, 1) == words([owned for _, owned in strips], 1)
    code = {"array": [i for i, _ in arrays], "depthwise": [i for i, _ in strips]}
    cycles = timeline(CONFIG, {**code, "load": [one.load for one in found]}).cycles
    ideal = timeline(CONFIG, code, weightless=True).cycles
    assert ideal <= cycles <= ideal + 30 * (1 + len(found))


@pytest.mark.parametrize("clocked", [False, True])
@pytest.mark.parametrize("eager", [False, True])
def test_tasks_stand_behind_what_they_need(clocked: bool, eager: bool, new_net: Any) -> None:
    graph = separable(new_net(1))
    lowered = lower.lower(graph, CONFIG)
    tasks = {name: lowered.tasks(name, tiling) for name, tiling in chained(graph, CONFIG).items()}
    order = sequence(graph, tasks, lowered.aliases, CONFIG, eager, clocked)
    assert sorted(id(task) for task in order) == sorted(id(task) for mine in tasks.values() for task in mine)
    written = ReadinessMap(graph, lowered.aliases, CONFIG)
    for task in order:
        assert written.complete(task)
        for step in task.vectors:
            written.mark(step)


def test_depthwise_layers_run_beside_the_array(new_net: Any) -> None:
    net = new_net(2)
    graph = separable(net, 3)
    program = schedule(graph, CONFIG)
    values = net.values()
    np.testing.assert_array_equal(
        emu.run(program, values).outputs[graph.outputs[0].tensor], golden.run(graph, values)[graph.outputs[0].tensor]
    )
    spans = timeline(CONFIG, program.code).spans
    streamed = {unit: sum(span.end - span.issue for span in spans[unit]) for unit in ("array", "depthwise")}
    together = sum(
        max(0, min(a.end, d.end) - max(a.issue, d.issue)) for a in spans["array"] for d in spans["depthwise"]
    )
    assert together > 0.25 * streamed["depthwise"]
    alone = schedule(graph, dataclasses.replace(CONFIG, depthwise=0))
    assert program.cycles < 0.6 * alone.cycles


def test_an_input_of_the_depthwise_unit_is_free_when_a_drain_has_waited_for_it(new_net: Any) -> None:
    net = new_net(3)
    x = net.input(8, 8, 6)
    program = schedule(net.graph(net.conv(net.conv(x, 8, pads=(1, 1, 1, 1), groups=8), 16, (1, 1))), CONFIG)
    array, vector = program.input_free
    last = len(program.code["depthwise"])
    assert (array, program.code["vector"][vector - 1].after_depthwise) == (0, last)
    with pytest.raises(InternalError, match=r"E1212 .*depthwise"):
        check(dataclasses.replace(program, input_free=(0, vector - 1)))


def strips_of(program: DeviceProgram) -> list[Depthwise]:
    """The instructions of the depthwise unit."""
    return [i for i in program.code["depthwise"] if isinstance(i, Depthwise)]


def changed(program: DeviceProgram, unit: str, index: int, **fields: int) -> DeviceProgram:
    """The program with other fields in one instruction, its cycles right."""
    code = {name: list(mine) for name, mine in program.code.items()}
    code[unit][index] = dataclasses.replace(code[unit][index], **fields)
    return dataclasses.replace(program, code=code, cycles=timeline(program.config, code).cycles)


@pytest.mark.parametrize(
    ("index", "fields", "code"),
    [
        (0, {"after_vector": 0, "more_reads": 0}, "E120[67]"),  # before its operands are written
        (-1, {"acc_base": -1}, "E120[89]"),  # onto sums that are being drained, or not yet
    ],
)
def test_the_checker_sees_strips_that_come_too_early(
    index: int, fields: dict[str, int], code: str, new_net: Any
) -> None:
    program = schedule(separable(new_net(4)), CONFIG)
    strips = strips_of(program)
    if "acc_base" in fields:
        fields = {"acc_base": strips[index - 1].acc_base}
    with pytest.raises(InternalError, match=code):
        check(changed(program, "depthwise", index, **fields))


def test_who_accumulates_has_the_read_port_to_itself(new_net: Any) -> None:
    """A kernel of several windows waits until all drains of the unit's sums have read."""
    net = new_net(5)
    y = net.conv(net.input(16, 8, 6), 16, (5, 5), pads=(2, 2, 2, 2), groups=16)
    program = schedule(net.graph(y), CONFIG)
    strips = strips_of(program)
    waits = list(accumulate((i.after_vector + i.more_reads for i in strips), max))
    assert len(strips) > 1
    assert waits[-1] > 0
    with pytest.raises(InternalError, match=r"E1209 .*may fill sums that vector"):
        check(changed(program, "depthwise", len(strips) - 1, after_vector=0, more_reads=0))


def test_readers_of_one_bank_do_not_meet(new_net: Any) -> None:
    program = schedule(separable(new_net(6)), CONFIG)
    spans = timeline(CONFIG, program.code).spans
    pairs = [
        (a, d)
        for a, one in enumerate(spans["array"])
        for d, two in enumerate(spans["depthwise"])
        if one.issue < two.issue < one.end
    ]
    assert pairs
    array, strip = pairs[-1]
    place = strips_of(program)[strip].act_base
    moved = changed(program, "array", array, act_base=place, a_kt=0, a_oh=0, a_ow=0)
    with pytest.raises(InternalError, match=r"E12(06|07|10)"):
        check(moved)
