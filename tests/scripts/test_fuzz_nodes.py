"""Mutants of onnx's node models: read, placed, computed or compiled, or refused with a code."""

import json

import fuzz_nodes
import node_mutants
import pytest

from onnxhw import emu, worker
from onnxhw.onnxmodel import in_worker

MUTANTS = 600


@pytest.fixture(scope="module")
def found():
    return fuzz_nodes.run(5, range(MUTANTS))


def test_no_mutant_is_a_finding(found):
    assert found.findings == {}
    assert sum(found.counts.values()) == MUTANTS


def test_enough_of_them_come_far(found):
    """A fifth passes reading and diagnosis, one in twenty is compared between golden model and emulator."""
    assert found.reached["parts"] > MUTANTS * 0.2
    assert found.reached["golden against emulator"] > MUTANTS * 0.03
    assert found.reached["computed on the host"] > MUTANTS * 0.03


def test_a_mutant_depends_on_its_number_only():
    one, other = node_mutants.NodeMutator(3), node_mutants.NodeMutator(3)
    wanted = [one.mutant(index) for index in range(40)]
    assert [other.mutant(index) for index in reversed(range(40))] == wanted[::-1]
    assert len(set(wanted)) > 35


def test_the_forms_come_from_the_whole_suite():
    plain, quantized = node_mutants.seeds()
    assert (len(plain) > 1500, len(quantized) > 300) == (True, True)


def test_a_wrong_emulator_is_a_finding(monkeypatch):
    def run(program, inputs, trace=False):
        result = original(program, inputs, trace)
        for array in result.outputs.values():
            array[...] ^= 1
        return result

    original = emu.run
    monkeypatch.setattr(emu, "run", run)
    found = fuzz_nodes.run(5, range(120))
    assert found.counts["escaped"] > 0
    assert all("DifferentError" in text for text in found.findings)


def test_a_crash_of_shape_inference_is_no_end(monkeypatch):
    """What its C++ code does is done in another process: every mutant of which it was asked ends with that code."""

    def crashing(task, question):
        import os

        os.abort()

    asked, original = [], in_worker._asked

    def counted(*question):
        asked.append(question)
        return original(*question)

    monkeypatch.setattr(worker, "_answer", crashing)
    monkeypatch.setattr(in_worker, "_asked", counted)
    worker._current().close()
    found = fuzz_nodes.run(5, range(60))
    assert found.findings == {}
    assert found.counts["E3450"] == len(asked) > 0


def test_a_campaign_goes_on_behind_its_log(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(fuzz_nodes, "PIECE", 20)
    log = tmp_path / "log"
    for _ in range(2):
        assert fuzz_nodes.main(["--seed", "5", "--count", "40", "--log", str(log)]) == 0
    pieces = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(piece["first"], piece["stop"]) for piece in pieces] == [(0, 20), (20, 40), (40, 60), (60, 80)]
    assert "\n80 mutants in" in capsys.readouterr().out
