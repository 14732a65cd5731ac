"""External memory through the link: on the emulated device, and faults that the self-test must find."""

import time

import numpy as np
import pytest

from onnxhw.config import HwConfig
from onnxhw.driver import external_test
from onnxhw.driver.device import Device
from onnxhw.driver.emulated_core import EmulatedCore
from onnxhw.driver.selftest import findings
from onnxhw.errors import LinkError, UsageError
from onnxhw.external import ULX3S, ExternalMemory
from onnxhw.isa.memory import Space
from onnxhw.presets import preset

SIZE = ULX3S.host_words


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def failed():
    """Names of the tests that fail on an emulated device."""
    with Device.open("emu:mini+sdram") as device:
        return [finding.name for finding in findings(device) if not finding.ok]


def test_a_right_memory_passes():
    assert failed() == []


@pytest.mark.parametrize("bit", range(32))
def test_a_data_line_that_stands_still_is_found(bit, monkeypatch):
    right = EmulatedCore.read

    def read(self, space, address, count, step=1):
        words = right(self, space, address, count, step)
        return words & ~np.uint32(1 << bit) if space == Space.EXTERNAL else words

    monkeypatch.setattr(EmulatedCore, "read", read)
    assert "external data lines" in failed()


@pytest.mark.parametrize("bit", range(SIZE.bit_length() - 1))
def test_an_address_line_that_stands_still_is_found(bit, monkeypatch):
    read, write = EmulatedCore.read, EmulatedCore.write

    def place(space, address):
        return address & ~(1 << bit) if space == Space.EXTERNAL else address

    def one_by_one(method):
        def call(self, space, address, what, step=1):
            if space != Space.EXTERNAL:
                return method(self, space, address, what, step)
            if method is read:
                return np.concatenate([read(self, space, place(space, address + i), 1) for i in range(what)])
            for i, word in enumerate(what):
                write(self, space, place(space, address + i), [word])
            return None

        return call

    monkeypatch.setattr(EmulatedCore, "read", one_by_one(read))
    monkeypatch.setattr(EmulatedCore, "write", one_by_one(write))
    assert "external address lines" in failed()


def test_rows_that_are_lost_while_nobody_looks_are_found(monkeypatch):
    """The memory forgets one row while the test waits."""
    cores = []
    made = EmulatedCore.__init__

    def make(self, config):
        made(self, config)
        cores.append(self)

    def forget(seconds):
        memory = cores[0].memory[Space.EXTERNAL]
        memory[np.flatnonzero(memory)[40]] = 0

    monkeypatch.setattr(EmulatedCore, "__init__", make)
    with Device.open("emu:mini+sdram") as device:
        assert external_test.retention(device.client, ULX3S) == ""
        monkeypatch.setattr(time, "sleep", forget)
        assert external_test.retention(device.client, ULX3S).startswith("1 of ")


def test_a_device_without_it_refuses_its_space():
    with Device.open("emu:mini") as device:
        device.client.reset()
        with pytest.raises(LinkError, match=r"E9104.*READ of 1 words at 0 of EXTERNAL"):
            device.client.read(Space.EXTERNAL, 0, 1)


def test_writing_it_leaves_a_program_loaded():
    from onnxhw.cli.common.selftest_network import network
    from onnxhw.compiler import compile_graph

    graph = network()
    with Device.open("emu:mini+sdram") as device:
        program = compile_graph(graph, device.info.config)
        device.load(program)
        x = {"x": np.ones(graph.tensors["x"].shape, np.int8)}
        first = device.run_int8(x)
        device.client.write(Space.EXTERNAL, 5, np.array([1, 2, 3]))
        again = device.run_int8(x)
        assert device.client.read(Space.EXTERNAL, 5, 3).tolist() == [1, 2, 3]
    assert first.cycles == again.cycles
    assert all((first.outputs[name] == again.outputs[name]).all() for name in first.outputs)


def test_a_configuration_without_it_keeps_its_text():
    plain, more = preset("mini"), preset("mini+sdram")
    assert "external" not in plain.to_json()
    assert HwConfig.from_json(plain.to_json()) == plain
    assert HwConfig.from_json(more.to_json()) == more
    assert plain.fingerprint != more.fingerprint


@pytest.mark.parametrize(
    ("field", "value"),
    [("data_bits", 8), ("banks", 3), ("rows", 100), ("columns", 2048), ("rcd", 0), ("refresh", 60), ("turn", 16),
     ("capture", 0), ("rp", 2.5), ("cas_latency", 4)],
)  # fmt: skip
def test_memories_that_cannot_exist_are_refused(field, value):
    import dataclasses

    with pytest.raises(UsageError, match="E2170"):
        ExternalMemory(**{**dataclasses.asdict(ULX3S), field: value})
