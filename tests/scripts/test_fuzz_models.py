"""Mutants of small models never get past the errors of this project; the fuzzer itself sees what would."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fuzz_models
import mutants
import onnx
import pytest

from onnxhw import partition
from onnxhw.errors import InternalError

MUTANTS = 1500


def test_mutants_are_read_or_refused_with_a_code() -> None:
    found = fuzz_models.run(7, range(MUTANTS))
    assert found.findings == {}
    assert sum(found.counts.values()) == MUTANTS
    assert found.slowest[0] < fuzz_models.PATIENCE


def test_mutants_reach_every_stage() -> None:
    """Some are read as a whole, and all kinds of errors are met: bytes, names, tensors, external data, shapes."""
    found = fuzz_models.run(8, range(MUTANTS))
    assert found.counts["read"] > MUTANTS / 20
    assert {"E3006", "E3104", "E3121", "E3153", "E3010"} <= set(found.counts)
    reached = [found.reached[name] for name, _, _ in fuzz_models.STAGES]
    assert reached == sorted(reached, reverse=True)
    assert (reached[0], reached[-1]) == (MUTANTS, found.counts["read"])


def test_seeds_are_read() -> None:
    for data in mutants.seeds():
        assert fuzz_models.outcome(data) == "read"


def test_a_mutant_depends_on_its_number_only() -> None:
    one, other = mutants.Mutator(3), mutants.Mutator(3)
    wanted = [one.mutant(index) for index in range(20)]
    assert [other.mutant(index) for index in reversed(range(20))] == wanted[::-1]
    assert len(set(wanted)) > 15


def test_escapes_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(data: object) -> None:
        raise InternalError("E1301", "a bug") if isinstance(data, bytes) else KeyError("x")

    monkeypatch.setattr(partition, "read", fail)
    found = fuzz_models.run(1, range(100))
    assert found.counts == {"escaped": 100}
    assert sorted(text.split()[0] for text in found.findings) == ["AssertionError", "KeyError"]


def test_processes_that_die_or_hang_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """And every other mutant of their batch is still run."""
    deadly, endless = mutants.Mutator(1).mutant(17), mutants.Mutator(1).mutant(45)

    def outcome(data: bytes) -> str:
        if data == deadly:
            os._exit(9)
        while data == endless:
            pass
        return "read"

    monkeypatch.setattr(fuzz_models, "outcome", outcome)
    monkeypatch.setattr(fuzz_models, "PATIENCE", 5)
    monkeypatch.setattr(fuzz_models, "STILL", 100)
    monkeypatch.setattr(fuzz_models, "BATCH", 20)
    found = fuzz_models.parallel(1, range(60), 2)
    assert found.counts == {"read": 58, "escaped": 2}
    assert sorted((text.partition(" (")[0], numbers) for text, numbers in found.findings.items()) == [
        ("a mutant takes too long", [45]),
        ("the process died", [17]),
    ]


def test_a_process_that_has_to_wait_is_no_finding_but_one_that_works_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """`stuck` counts processor time; the time by the clock only after `STILL` times as long."""
    worker = fuzz_models.Worker(1)
    worker.numbers, worker.seen = range(5), worker.current.value
    used = 0.0
    monkeypatch.setattr(fuzz_models, "cpu_seconds", lambda pid: used)
    worker.since = time.monotonic() - 2 * fuzz_models.PATIENCE
    assert not worker.stuck()
    used = fuzz_models.PATIENCE + 1.0
    assert worker.stuck()
    used = 0.0
    worker.since = time.monotonic() - (fuzz_models.STILL + 1) * fuzz_models.PATIENCE
    assert worker.stuck()
    worker.process.kill()
    worker.process.join()


def test_memory_of_a_worker_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome(data: bytes) -> str:
        return str(len(bytearray(2 << 30)))

    monkeypatch.setattr(fuzz_models, "outcome", outcome)
    monkeypatch.setattr(fuzz_models, "MEMORY", 2 << 30)
    found = fuzz_models.parallel(1, range(2), 1)
    assert [text.split()[0] for text in found.findings] == ["MemoryError"]


def test_the_command_writes_a_mutant_again(tmp_path: Path) -> None:
    path = tmp_path / "mutant.onnx"
    assert fuzz_models.main(["--seed", "3", "--first", "5", "--write", str(path)]) == 0
    assert path.read_bytes() == mutants.Mutator(3).mutant(5)


def test_the_command_reports(capsys: pytest.CaptureFixture[str]) -> None:
    fuzz_models.main(["--count", "20", "--processes", "1"])
    assert "20 mutants" in capsys.readouterr().out


def test_mutants_are_of_both_kinds() -> None:
    parsed = 0
    for index in range(200):
        try:
            onnx.ModelProto.FromString(mutants.Mutator.mutant(MUTATOR, index))
            parsed += 1
        except Exception:
            pass
    assert 100 < parsed < 200


MUTATOR = mutants.Mutator(5)


def test_a_lost_batch_of_lower_numbers_is_run_again_once() -> None:
    """What a worker ran before says nothing of the batch that it has now."""
    worker = fuzz_models.Worker(1)
    worker.give(range(40, 42))
    worker.channel.recv()
    assert worker.process.pid is not None
    os.kill(worker.process.pid, signal.SIGSTOP)
    worker.give(range(3, 6))
    found, left = worker.lost("lost")
    assert (found.counts, left) == ({"escaped": 1}, [range(4, 6)])
    worker.process.kill()
    worker.process.join()


def test_a_cluster_finds_what_one_process_does(monkeypatch) -> None:
    """In pieces, by processes of their own."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(fuzz_models, "PIECE", 40)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as local:
        parts = list(fuzz_models.on_cluster("fuzz_models.py", 7, range(5, 105), local.scheduler_address, 40))
    total = fuzz_models.Outcome()
    for _, part in parts:
        total.add(part)
    assert [numbers for numbers, _ in parts] == [range(5, 45), range(45, 85), range(85, 105)]
    command = [sys.executable, fuzz_models.__file__, "--seed", "7", "--first", "5", "--count", "100", "--outcome"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    alone = fuzz_models.from_record(json.loads(told.splitlines()[-1]))
    assert (total.counts, total.reached, total.findings) == (alone.counts, alone.reached, alone.findings)


def test_an_outcome_is_read_back() -> None:
    found = fuzz_models.run(7, range(10))
    assert fuzz_models.record(fuzz_models.from_record(fuzz_models.record(found))) == fuzz_models.record(found)
