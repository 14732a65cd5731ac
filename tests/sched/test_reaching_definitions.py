"""Words hold the tensor that is read: one that lies over another that is still needed is refused, though no instruction
reads before or while anything is written."""

import dataclasses
from typing import Any

import pytest

from onnxhw.config import HwConfig
from onnxhw.errors import InternalError
from onnxhw.sched import lower, schedule, search
from onnxhw.sched.reaching_definitions import check_reaching_definitions
from onnxhw.sched.scheduler import InitialSchedule, entries, finish, initial_schedule

HW = HwConfig("held", rows=8, cols=8, word=8, lanes=4, act_depth=128, act_banks=6, weight_depth=4096, acc_depth=128)


def residual(net: Any) -> tuple[Any, list[str]]:
    """``y = a + d`` of a chain x, a, b, c, d: `a` is needed until the end."""
    names = [net.input(8, 8, 8)]
    for _ in range(4):
        names.append(net.conv(names[-1], 8, pads=(1, 1, 1, 1)))
    names.append(net.add(names[1], names[4]))
    return net.graph(names[-1]), names


@pytest.mark.parametrize(
    ("bases", "message"),
    [
        ((0, 128, 256, 384, 512, 640), ""),
        ((0, 128, 256, 0, 512, 640), ""),  # over what nobody needs any more
        ((0, 128, 256, 128, 512, 640), "reads 't3' for 't1'"),
        ((0, 128, 256, 150, 512, 640), "reads 't3' for 't1'"),
    ],
)
def test_a_tensor_over_one_that_is_needed(
    bases: tuple[int, ...], message: str, new_net: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, names = residual(new_net(1))
    monkeypatch.setattr(search, "allocate", lambda *_: dict(zip(names, bases, strict=True)))
    lowered = lower.lower(graph, HW)
    candidate = search.build(lowered, next(iter(search.first_points(lowered)))[0])
    assert candidate
    if not message:
        finish(InitialSchedule(lowered, candidate))
        return
    with pytest.raises(InternalError, match=message) as caught:
        finish(InitialSchedule(lowered, candidate))
    assert caught.value.code == "E1213"


@pytest.mark.parametrize(("tensor", "ready"), [("t2", 0), ("t4", 1)])
def test_a_tensor_that_is_not_whole_where_the_table_says(tensor: str, ready: int, new_net: Any) -> None:
    graph, _ = residual(new_net(2))
    begun = initial_schedule(graph, HW)
    table = entries(begun.lowered, begun.candidate)
    check_reaching_definitions(begun.lowered, begun.candidate, table)
    table[tensor] = dataclasses.replace(table[tensor], ready=ready)
    with pytest.raises(InternalError, match="its words hold") as caught:
        check_reaching_definitions(begun.lowered, begun.candidate, table)
    assert caught.value.code == "E1213"
    assert schedule(graph, HW).cycles
