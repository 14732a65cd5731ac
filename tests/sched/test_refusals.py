"""What cannot be mapped or is too large is refused with its name and the numbers."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from onnxhw.errors import DoesNotFitError, OnnxhwError, UnsupportedError
from onnxhw.ir.graph import Graph
from onnxhw.presets import preset
from onnxhw.sched import schedule


def refused(graph: Graph, config: Any, code: str, *words: str) -> None:
    """Scheduling raises that code with these words in its message."""
    with pytest.raises(OnnxhwError) as caught:
        schedule(graph, config)
    assert caught.value.code == code
    for word in words:
        assert word in str(caught.value)


def test_activations_too_large(new_net: Any, configure: Any) -> None:
    net = new_net(1)
    graph = net.graph(net.conv(net.input(3, 20, 20), 8))
    refused(graph, configure(4, 4, 4, 2, act_depth=128), "E5101", "need 1048 words", "has 512", "conv0")


def test_operands_that_cannot_lie_in_different_banks(new_net: Any, configure: Any) -> None:
    net = new_net(1)
    graph = net.graph(net.add(net.input(4, 4, 4), net.input(4, 4, 4)))
    refused(graph, configure(4, 4, 4, 2, act_depth=1024, act_banks=1), "E5101", "different banks", "add0")


def test_weights_parameters_and_tables_too_large(new_net: Any, configure: Any) -> None:
    net = new_net(2)
    y = net.conv(net.input(16, 6, 6), 32)
    refused(net.graph(y), configure(4, 4, 4, 2, weight_depth=100), "E5102", "needs 1152 weight words", "conv0")
    rows = "needs 16 parameter rows of 2 entries"
    refused(net.graph(y), configure(4, 4, 4, 2, param_depth=8), "E5103", rows, "has 8")
    net.table(net.table(y))
    refused(net.graph("t3"), configure(4, 4, 4, 2, tables=1), "E5105", "needs 2 tables", "has 1")


def test_microcode_too_large(new_net: Any, configure: Any) -> None:
    net = new_net(3)
    graph = net.graph(net.conv(net.input(3, 20, 20), 12))
    small = configure(4, 4, 4, 2, array_ucode=64, acc_depth=32)
    refused(graph, small, "E5104", "array", "has 64", "conv0")


def test_a_reshape_that_moves_data(new_net: Any, configure: Any) -> None:
    net = new_net(4)
    graph = net.graph(net.reshape(net.input(4, 2, 3), 24, 1, 1))
    refused(graph, configure(4, 4, 4, 2), "E4302", "reshape0", "move data")


def test_a_window_larger_than_its_field(new_net: Any, configure: Any) -> None:
    net = new_net(5)
    graph = net.graph(net.average_pool(net.input(1, 301, 2), (300, 1)))
    refused(graph, configure(4, 4, 4, 2), "E4307", "averagepool0", "window rows is 300", "8 bits")


def test_a_window_in_the_padding(new_net: Any, configure: Any) -> None:
    net = new_net(6)
    graph = net.graph(net.max_pool(net.input(1, 4, 4), (2, 2), pads=(2, 0, 0, 0)))
    refused(graph, configure(4, 4, 4, 2), "E4306", "maxpool0")


def test_constants_that_cannot_be_proved(new_net: Any, configure: Any) -> None:
    net = new_net(7)
    x = net.conv(net.input(3, 4, 4), 4)
    net.ops[0] = dataclasses.replace(net.ops[0], multiplier=np.full(4, 1e6, np.float32))
    y = net.mul(x, net.conv(x, 4, (1, 1)))
    net.ops[2] = dataclasses.replace(net.ops[2], ratio=1e9)
    refused(net.graph(y), configure(4, 4, 4, 2), "E4300", "2 operations", "E4303", "conv0", "E4304", "mul2")


def test_constants_that_cannot_be_proved_come_with_a_hint(new_net: Any, configure: Any) -> None:
    net = new_net(7)
    x = net.conv(net.input(3, 4, 4), 4)
    y = net.mul(x, net.conv(x, 4, (1, 1)))
    for index, change, code in (
        (0, {"multiplier": np.full(4, 1e6, np.float32)}, "E4303"),
        (2, {"ratio": 1e9}, "E4304"),
    ):
        ops = list(net.ops)
        net.ops[index] = dataclasses.replace(net.ops[index], **change)
        with pytest.raises(UnsupportedError) as caught:
            schedule(net.graph(y), configure(4, 4, 4, 2))
        assert caught.value.code == code
        assert "calibrate again" in caught.value.hint
        assert "output scale" in caught.value.hint
        net.ops = ops


def test_the_kinds_of_error(new_net: Any, configure: Any) -> None:
    net = new_net(8)
    graph = net.graph(net.conv(net.input(3, 20, 20), 8))
    with pytest.raises(DoesNotFitError) as caught:
        schedule(graph, configure(4, 4, 4, 2, act_depth=128))
    assert caught.value.exit_status == 5
    narrow = dataclasses.replace(preset("mini"), acc_bits=20, name="narrow")
    wide = new_net(9)
    deep = wide.graph(wide.conv(wide.input(64, 3, 3), 4))
    with pytest.raises(UnsupportedError, match="E4301") as refusal:
        schedule(deep, narrow)
    assert refusal.value.exit_status == 4
