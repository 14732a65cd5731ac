"""``onnxhw selftest``: a good device passes, and each kind of damage is found."""

import json

import pytest

from onnxhw.cli import main
from onnxhw.driver.emulated_core import EmulatedCore
from onnxhw.isa.memory import Control, Space


def test_a_good_device(capsys):
    assert main(["selftest", "-d", "emu:mini", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [test["test"] for test in record["tests"]] == ["description", "activation memory", "line", "network"]
    assert all(test["ok"] for test in record["tests"])
    assert main(["selftest", "-d", "emu:mini"]) == 0
    assert "16,384 bytes, twice" in capsys.readouterr().out


def stuck_bit(monkeypatch):
    """One bit of one word of activation memory is always 0."""
    real = EmulatedCore.read

    def read(self, space, address, count, step=1):
        words = real(self, space, address, count, step)
        if space == Space.ACT and address <= 1000 < address + count:
            words[1000 - address] &= ~(1 << 13) & 0xFFFFFFFF
        return words

    monkeypatch.setattr(EmulatedCore, "read", read)


def wrong_core(monkeypatch):
    """The core is of another configuration than the description says."""
    real = EmulatedCore.__init__

    def make(self, config):
        real(self, config)
        self.memory[Space.CONTROL][Control.FINGERPRINT_LOW] ^= 1

    monkeypatch.setattr(EmulatedCore, "__init__", make)


def wrong_arithmetic(monkeypatch):
    """A value of every run is off by one."""
    real = EmulatedCore._run

    def run(self):
        real(self)
        self.memory[Space.ACT] ^= 1

    monkeypatch.setattr(EmulatedCore, "_run", run)


@pytest.mark.parametrize(
    ("damage", "failed"),
    [(stuck_bit, "activation memory"), (wrong_core, "description"), (wrong_arithmetic, "network")],
    ids=["stuck bit", "wrong core", "wrong arithmetic"],
)
def test_damage_is_found(damage, failed, monkeypatch, capsys):
    damage(monkeypatch)
    assert main(["selftest", "-d", "emu:mini", "--json"]) == 9
    record = json.loads(capsys.readouterr().out)
    assert record["error"]["code"] == "E9170"
    assert [test["test"] for test in record["tests"] if not test["ok"]] == [failed]


def test_no_device(capsys):
    pytest.importorskip("serial")
    assert main(["selftest", "-d", "/dev/no-such-port"]) == 9
    assert "E9101" in capsys.readouterr().err


def test_the_network_uses_every_operation():
    from onnxhw.cli.common.selftest_network import network
    from onnxhw.compiler import compile_graph
    from onnxhw.ir.verify import verify
    from onnxhw.isa.instructions import VectorOp
    from onnxhw.presets import preset

    graph = network()
    verify(graph)
    code = compile_graph(graph, preset("mini")).code
    assert {instruction.op for instruction in code["vector"]} == set(VectorOp)
