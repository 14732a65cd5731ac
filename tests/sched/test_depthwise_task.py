"""Convolutions on the depthwise unit: golden model and emulator agree on every layer that it can take."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnxhw import emu, golden
from onnxhw.config import HwConfig
from onnxhw.errors import InternalError, UsageError
from onnxhw.ir.graph import Graph
from onnxhw.ir.verify import verify
from onnxhw.ir.windows import window_size
from onnxhw.isa.instructions import Load
from onnxhw.program import DeviceProgram
from onnxhw.sched import array_lowering, check, depthwise_task, schedule

NetType = Any
SIZES = {"act_depth": 1024, "weight_depth": 1 << 14, "param_depth": 2048, "acc_depth": 64, "window_depth": 64,
         "array_ucode": 16384, "depthwise_ucode": 16384, "vector_ucode": 16384, "load_ucode": 8192}  # fmt: skip
CONFIGS = {
    "W4 C5": HwConfig("W4 C5", rows=4, cols=5, word=4, lanes=2, depthwise=16, **SIZES),
    "W16 C16": HwConfig("W16 C16", rows=16, cols=16, word=16, lanes=8, load_rows=2, depthwise=24, **SIZES),
    "W8 C6": HwConfig("W8 C6", rows=8, cols=6, word=8, lanes=2, depthwise=16, **SIZES),
    "W6 C7": HwConfig("W6 C7", rows=3, cols=7, word=6, lanes=1, depthwise=9, **SIZES),
    "shortest line": HwConfig("shortest line", rows=4, cols=4, word=4, lanes=4, load_rows=4, depthwise=3, **SIZES),
}
"""D = W beyond and equal to C, half words, words that R does not fill, strips of one output column."""


def windows(program: DeviceProgram) -> int:
    """How many instructions the depthwise unit has."""
    return len(program.code["depthwise"])


def only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the depthwise unit for all that it can do, however long it takes."""
    monkeypatch.setattr(array_lowering, "cycles_alone", lambda works, config: works[0].on_array)


def equal(net: NetType, graph: Graph, hw: HwConfig) -> DeviceProgram:
    verify(graph)
    program = schedule(graph, hw)
    values = net.values()
    wanted = golden.run(graph, values)
    for name, found in emu.Emulator(program).run(values, trace=True).tensors.items():
        np.testing.assert_array_equal(found, wanted[name], err_msg=name)
    return program


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS.keys())
def unit(request: pytest.FixtureRequest) -> HwConfig:
    return request.param


CASES = {
    "3x3": ((9, 7, 6), (3, 3), (1, 1), (1, 1, 1, 1)),
    "stride 2": ((5, 9, 12), (3, 3), (2, 2), (0, 0, 1, 1)),
    "stride 3 and 1": ((4, 11, 5), (3, 3), (3, 1), (1, 0, 2, 1)),
    "asymmetric": ((6, 4, 7), (2, 3), (1, 2), (1, 0, 0, 2)),
    "column": ((7, 12, 4), (3, 1), (1, 1), (1, 0, 1, 0)),
    "row": ((7, 1, 30), (1, 3), (1, 1), (0, 1, 0, 1)),
    "one pixel": ((18, 1, 1), (3, 3), (1, 1), (1, 1, 1, 1)),
    "1x1": ((10, 4, 3), (1, 1), (1, 1), (0, 0, 0, 0)),
    "5x5": ((6, 8, 9), (5, 5), (1, 1), (2, 2, 2, 2)),
    "7x4, stride 2": ((5, 12, 9), (7, 4), (2, 2), (3, 1, 3, 2)),
    "more padding than window": ((3, 2, 2), (3, 3), (1, 1), (4, 4, 4, 4)),
    "rows left out": ((3, 8, 7), (3, 3), (1, 1), (-2, 1, -1, 1)),
    "wide": ((5, 3, 90), (3, 3), (1, 1), (1, 1, 1, 1)),
    "tall": ((5, 150, 2), (3, 3), (1, 1), (1, 1, 1, 1)),
}


@pytest.mark.parametrize("case", CASES)
def test_layers(case: str, unit: HwConfig, new_net: NetType, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch)
    shape, kernel, strides, pads = CASES[case]
    net = new_net(len(case))
    x = net.input(*shape)
    program = equal(net, net.graph(net.conv(x, shape[0], kernel, strides, pads=pads, groups=shape[0])), unit)
    assert windows(program) > 0
    assert not program.code["array"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_layers(data: Any, new_net: NetType) -> None:
    """A random layer between two others."""
    draw = data.draw
    hw = dataclasses.replace(draw(st.sampled_from(list(CONFIGS.values()))), act_depth=4096)  # room for the largest
    net = new_net(draw(st.integers(0, 1 << 30)))
    channels = draw(st.integers(1, 40))
    height, width = draw(st.integers(1, 20)), draw(st.integers(1, 24))
    kernel = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    strides = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    pads = tuple(draw(st.integers(0, 3)) for _ in range(4))
    for axis, size in enumerate((height, width)):
        if window_size(size, pads[axis], pads[axis + 2], kernel[axis], strides[axis], 1) < 1:
            return
    x = net.conv(net.input(3, height, width), channels, (1, 1))
    y = net.conv(x, channels, kernel, strides, pads=pads, groups=channels)
    graph = net.graph(y, net.conv(y, 3, (1, 1)))
    equal(net, graph, hw)


@pytest.mark.parametrize("words", [-1, 1, 2, 4096])
def test_lines_that_make_no_sense_are_refused(words: int) -> None:
    with pytest.raises(UsageError, match="depthwise must be") as caught:
        dataclasses.replace(CONFIGS["W4 C5"], depthwise=words)
    assert caught.value.code == "E2101"


def test_channels_of_the_unit() -> None:
    assert [hw.depthwise_lanes for hw in CONFIGS.values()] == [4, 16, 4, 6, 4]


def test_the_faster_way_is_taken(new_net: NetType) -> None:
    hw = CONFIGS["W16 C16"]
    net = new_net(1)
    x = net.input(16, 12, 12)
    window = net.graph(net.conv(x, 16, pads=(1, 1, 1, 1), groups=16))
    both = schedule(window, hw), schedule(window, dataclasses.replace(hw, depthwise=0))
    assert (windows(both[0]), windows(both[1])) == (6, 0)
    assert both[0].cycles < both[1].cycles / 2
    net = new_net(2)
    x = net.input(16, 12, 12)
    assert windows(schedule(net.graph(net.conv(x, 16, (1, 1), (3, 3), groups=16)), hw)) == 0


@pytest.mark.parametrize(("weight", "fits"), [(60, True), (83, True), (84, False), (127, False)])
def test_sums_that_may_not_fit_are_made_by_the_array(
    weight: int, fits: bool, new_net: NetType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """49 products of up to 128 * 83 fit 20 bits, of 128 * 84 they may not; the depthwise unit has no more for them."""
    hw = CONFIGS["W16 C16"]
    assert (hw.sum_bits, CONFIGS["W4 C5"].sum_bits) == (20, 27)
    only(monkeypatch)
    net = new_net(5)
    x = net.input(16, 12, 12)
    graph = net.graph(net.conv(x, 16, (7, 7), groups=16))
    (conv,) = graph.ops
    weights = np.full(conv.weight.shape, weight, np.int8)
    graph.ops[0] = dataclasses.replace(conv, weight=weights, bias=np.zeros(16, np.int32))
    assert (windows(equal(net, graph, hw)) > 0) == fits


@pytest.mark.parametrize("fields", [{"groups": 2}, {"dilations": (2, 1)}, {"strides": (8, 1)}])
def test_what_it_cannot_do(fields: dict[str, Any], new_net: NetType) -> None:
    net = new_net(4)
    x = net.input(4, 30, 12)
    graph = net.graph(net.conv(x, 4, (3, 3), **{"groups": 4, **fields}))
    assert not depthwise_task.possible(graph.ops[0], graph, CONFIGS["W4 C5"])
    assert windows(equal(net, graph, CONFIGS["W4 C5"])) == 0


def broken(program: DeviceProgram, unit: str, **fields: int) -> DeviceProgram:
    """The program with a field of its first instruction changed, its cycles right."""
    first, *rest = program.code[unit]
    code = {**program.code, unit: [dataclasses.replace(first, **fields), *rest]}
    return dataclasses.replace(program, code=code)


@pytest.mark.parametrize(
    ("unit", "fields", "code"),
    [
        ("depthwise", {"ow_n": 17}, "E1204"),
        ("depthwise", {"ow_n": 2}, "E1204"),
        ("depthwise", {"oh_n": 2}, "E1204"),
        ("depthwise", {"oh_n": 200}, "E1204"),
        ("depthwise", {"sh": 0}, "E1204"),
        ("depthwise", {"group": 1}, "E1204"),
        ("depthwise", {"acc_base": 60}, "E1204"),
        ("depthwise", {"kw_n": 2}, "E1205"),
        ("vector", {"acc_bank": 3}, "E1204"),
        ("vector", {"a_base": 60}, "E1204"),
        ("vector", {"column_group": 1}, "E1204"),
        ("vector", {"after_depthwise": 0}, "E1209"),
        ("load", {"depthwise": 0}, "E1205"),
        ("load", {"base": 60}, "E1204"),
    ],
)
def test_the_checker_sees(unit: str, fields: dict[str, int], code: str, new_net: NetType) -> None:
    net = new_net(5)
    x = net.input(4, 6, 6)
    program = schedule(net.graph(net.conv(x, 4, pads=(1, 1, 1, 1), groups=4)), CONFIGS["W4 C5"])
    assert windows(program) > 0
    assert not program.code["array"]
    assert isinstance(program.code["load"][0], Load)
    with pytest.raises(InternalError) as caught:
        check(broken(program, unit, **fields))
    assert caught.value.code == code
