"""Mutants of small models through reading and placing: ``python scripts/fuzz_models.py --count 1000000 --processes 2``.

A mutant is a model that is read, placed and converted, or refused with a code. Anything else is a finding: a traceback,
a dead process, a mutant that takes too long, memory beyond the bound. It is printed with the number that makes the
same mutant again (``--first``); a mutant depends on the seed and its number only.
"""

import argparse
import atexit
import gc
import importlib
import json
import logging
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection, wait
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from mutants import DATA_FILE, Mutator

from onnxhw import partition
from onnxhw.cluster import pool, run_script
from onnxhw.errors import InternalError, OnnxhwError
from onnxhw.worker import worker_scope

MEMORY = 4 << 30
"""Address space of a process, libraries included."""
FORK = multiprocessing.get_context("fork")
PATIENCE = 20
"""Seconds of processor time that one mutant may take."""
STILL = 30
"""Times `PATIENCE` that one mutant may take by the clock, if it waits for something."""
BATCH = 500
PIECE = 5000
"""Mutants of one task on a cluster: so many that starting a process and reading the models costs little."""
IN_MEMORY = Path("/dev/shm")
"""Where the files of mutants with external data are written, if there is such a place."""
STAGES = (
    ("container", "onnxmodel.read", "parse"),
    ("names and counts", "onnxmodel.read", "survey"),
    ("external data", "onnxmodel.read", "load_external"),
    ("tensors", "onnxmodel.read", "_tensors"),
    ("specification", "onnxmodel.prepared", "diagnose"),
    ("functions", "onnxmodel.prepared", "inline"),
    ("control flow", "onnxmodel.prepared", "unroll"),
    ("shapes", "onnxmodel.prepared", "resolve_open_batch"),
    ("conversion", "partition.pipeline", "convert"),
    ("parts", "partition.pipeline", "parts_of"),
)
"""The steps in order, each with the module and the name under which it is called."""


@dataclass
class Outcome:
    """What became of some mutants: counts by code, how many reached each stage, findings with the numbers of their
    mutants, the slowest, processor seconds."""

    counts: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    findings: dict[str, list[int]] = field(default_factory=dict)
    slowest: tuple[float, int] = (0.0, -1)
    memory: int = 0
    seconds: float = 0.0

    def add(self, other: "Outcome") -> None:
        """Together with others."""
        self.counts += other.counts
        self.reached += other.reached
        self.seconds += other.seconds
        for text, numbers in other.findings.items():
            self.findings.setdefault(text, []).extend(numbers)
        self.slowest = max(self.slowest, other.slowest)
        self.memory = max(self.memory, other.memory)


@cache
def _folder() -> Path:
    """A folder with the data file, for this process."""
    folder = tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None)
    atexit.register(folder.cleanup)
    (Path(folder.name) / DATA_FILE).write_bytes(bytes(24))
    return Path(folder.name)


def outcome(data: bytes) -> str:
    """The code that a mutant gives; ``read`` if it is a model. Exceptions of any other kind pass."""
    try:
        if DATA_FILE.encode() not in data:
            partition.read(data)
        else:
            (_folder() / "model.onnx").write_bytes(data)
            partition.read(_folder() / "model.onnx")
    except InternalError as error:
        raise AssertionError(error.text()) from error
    except OnnxhwError as error:
        return error.code
    return "read"


@contextmanager
def watched(begun: set[str]) -> Iterator[None]:
    """Within, every stage that begins adds its name to `begun`."""
    places = [(name, importlib.import_module(f"onnxhw.{home}"), what) for name, home, what in STAGES]
    originals = [getattr(module, what) for _, module, what in places]

    def noting(name: str, function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            begun.add(name)
            return function(*arguments, **named)

        return call

    for (name, module, what), function in zip(places, originals, strict=True):
        setattr(module, what, noting(name, function))
    try:
        yield
    finally:
        for (_, module, what), function in zip(places, originals, strict=True):
            setattr(module, what, function)


def run(seed: int, numbers: range, current: "Synchronized[int] | None" = None) -> Outcome:
    """Mutants by number, in this process; `current` is always the number being run."""
    mutator = _mutator(seed)
    with worker_scope():
        return judged(lambda index, begun: outcome(mutator.mutant(index)), numbers, current)


@contextmanager
def quiet() -> Iterator[None]:
    """What the block warns of or logs is not shown, unless it is critical."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


Judge = Callable[[int, set[str]], str]
"""What becomes of a mutant by its number; it may add names of stages that it reaches."""


def judged(judge: Judge, numbers: range, current: "Synchronized[int] | None" = None) -> Outcome:
    """What becomes of each mutant, one after the other."""
    found, begun = Outcome(), set[str]()
    first = start = time.process_time()
    with watched(begun), quiet():
        for index in numbers:
            if current is not None:
                current.value = index
            begun.clear()
            try:
                found.counts[judge(index, begun)] += 1
            except Exception as error:  # every kind of escape is what we look for
                trace = traceback.extract_tb((error.__cause__ or error).__traceback__)
                text = f"{type(error).__name__} in {Path(trace[-1].filename).name}:{trace[-1].lineno}"
                found.counts["escaped"] += 1
                found.findings.setdefault(f"{text}: {str(error)[:160]}", []).append(index)
            for name in begun:
                found.reached[name] += 1
            before, start = start, time.process_time()
            found.slowest = max(found.slowest, (start - before, index))
    found.seconds = start - first
    found.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return found


Work = Callable[[int, range, "Synchronized[int] | None"], Outcome]
"""What a worker does with the mutants of a seed."""


@cache
def _mutator(seed: int) -> Mutator:
    return Mutator(seed)


def _worker(seed: int, work: Work, channel: "Connection[Any, Any]", current: "Synchronized[int]") -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.freeze()  # what the parent holds is not this process's garbage, however much it is
    gc.disable()  # once per batch is enough: a mutant's cycles are small
    while (numbers := channel.recv()) is not None:
        channel.send(work(seed, numbers, current))
        gc.collect()
    shutil.rmtree(_folder())  # a forked process does not come past atexit


def cpu_seconds(pid: int | None) -> float:
    """Processor time of a process so far; 0 where the system does not tell."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Worker:
    """A process that runs batches; the next one takes its place if it dies."""

    def __init__(self, seed: int, work: Work | None = None) -> None:
        self.seed, self.work = seed, work or run
        self.numbers = range(0)
        self._start()

    def _start(self) -> None:
        self.channel, other = FORK.Pipe()
        self.current = FORK.Value("q", -1)
        self.process = FORK.Process(target=_worker, args=(self.seed, self.work, other, self.current), daemon=True)
        self.process.start()
        other.close()
        self.seen, self.since, self.used = -1, time.monotonic(), 0.0

    def give(self, numbers: range) -> None:
        """Another batch."""
        self.numbers, self.since, self.used = numbers, time.monotonic(), cpu_seconds(self.process.pid)
        self.current.value = self.seen = numbers.start
        self.channel.send(numbers)

    def stuck(self) -> bool:
        """Has the same mutant been running for too long? On a busy machine a process waits without being at fault."""
        if self.current.value != self.seen:
            self.seen, self.since, self.used = self.current.value, time.monotonic(), cpu_seconds(self.process.pid)
        if not self.numbers or time.monotonic() - self.since <= PATIENCE:
            return False
        worked = cpu_seconds(self.process.pid) - self.used > PATIENCE
        return worked or time.monotonic() - self.since > STILL * PATIENCE

    def lost(self, what: str) -> tuple[Outcome, list[range]]:
        """After a death or a hang: the finding, and the batches that are left of this one."""
        self.process.kill()
        self.process.join()
        bad, numbers = self.current.value, self.numbers
        found = Outcome(Counter(escaped=1), findings={f"{what} (exit status {self.process.exitcode})": [bad]})
        self.numbers = range(0)
        self._start()
        return found, [part for part in (range(numbers.start, bad), range(bad + 1, numbers.stop)) if part]


def parallel(seed: int, numbers: range, processes: int, work: Work | None = None) -> Outcome:
    """All mutants over some processes; one that dies or hangs is a finding, and the rest of its batch is run again."""
    batches = [numbers[first : first + BATCH] for first in range(0, len(numbers), BATCH)][::-1]
    total, workers = Outcome(), [Worker(seed, work) for _ in range(processes)]
    while batches or any(worker.numbers for worker in workers):
        for worker in workers:
            if batches and not worker.numbers:
                worker.give(batches.pop())
        ready = wait([worker.channel for worker in workers], timeout=1)
        for worker in workers:
            what = ""
            if worker.channel in ready:
                try:
                    total.add(worker.channel.recv())
                    worker.numbers = range(0)
                except EOFError:
                    what = "the process died"
            elif worker.stuck():
                what = "a mutant takes too long"
            if what:
                found, left = worker.lost(what)
                total.add(found)
                batches.extend(left)
    for worker in workers:
        worker.channel.send(None)
        worker.process.join()
    return total


def on_cluster(script: str, seed: int, numbers: range, scheduler: str, piece: int) -> Iterator[tuple[range, Outcome]]:
    """Pieces of the mutants and what became of them, in order, run by a Dask cluster's workers; each runs the script of
    its own checkout in a process of its own."""
    with pool(scheduler=scheduler) as workplace:
        pieces = [numbers[first : first + piece] for first in range(0, len(numbers), piece)]
        words = [["--seed", str(seed), "--first", str(part.start), "--count", str(len(part)), "--outcome"]
                 for part in pieces]  # fmt: skip
        waiting = [workplace.submit(run_script, f"scripts/{script}", each) for each in words]
        for part, wait in zip(pieces, waiting, strict=True):
            yield part, from_record(json.loads(wait().splitlines()[-1]))


def record(found: Outcome) -> dict[str, Any]:
    """An outcome as plain data; `from_record` reads it back."""
    return {"counts": dict(found.counts), "reached": dict(found.reached), "findings": found.findings,
            "slowest": found.slowest, "memory": found.memory, "seconds": round(found.seconds, 1)}  # fmt: skip


def from_record(entry: dict[str, Any]) -> Outcome:
    """Inverse of `record`."""
    return Outcome(Counter(entry["counts"]), Counter(entry["reached"]), entry["findings"],
                   tuple(entry["slowest"]), entry["memory"], entry["seconds"])  # fmt: skip


def told(run: Callable[[], int]) -> int:
    """The status of a program; of one that cannot go on (no scheduler answers) with its message: 1 means findings."""
    try:
        return run()
    except OnnxhwError as error:
        print(error.text(), file=sys.stderr)
        return error.exit_status


def main(arguments: list[str] | None = None) -> int:
    """Run, print counts and findings; 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--write", type=Path, help="only write mutant FIRST to this file")
    parser.add_argument("--scheduler", default="", metavar="ADDRESS", help="a Dask scheduler whose workers run them")
    parser.add_argument("--outcome", action="store_true", help="print one line of JSON")
    options = parser.parse_args(arguments)
    if options.write:
        options.write.write_bytes(Mutator(options.seed).mutant(options.first))
        return 0
    start = time.monotonic()
    numbers, found = range(options.first, options.first + options.count), Outcome()
    if options.scheduler:
        for _, part in on_cluster("fuzz_models.py", options.seed, numbers, options.scheduler, PIECE):
            found.add(part)
    else:
        found = parallel(options.seed, numbers, options.processes)
    if options.outcome:
        print(json.dumps(record(found)))
    else:
        report(found, time.monotonic() - start, options.seed)
    return int(bool(found.findings))


def report(found: Outcome, seconds: float, seed: int, stages: Sequence[tuple[str, str, str]] = STAGES) -> None:
    total = sum(found.counts.values())
    for code, count in found.counts.most_common():
        print(f"{code:8} {count:9,} {count / total:7.2%}")
    for name, _, _ in stages:
        print(f"reached {name:24} {found.reached[name]:9,} {found.reached[name] / total:7.2%}")
    print(f"{total:,} mutants in {seconds:.0f} s, {total / max(found.seconds, 1e-9):,.0f} per second of processor time")
    print(f"slowest {found.slowest[0]:.2f} s (mutant {found.slowest[1]})")
    print(f"peak memory of a process {found.memory >> 20} MiB, of {MEMORY >> 20} MiB allowed")
    for text, indices in sorted(found.findings.items(), key=lambda item: -len(item[1])):
        print(f"FINDING ({len(indices)} mutants, --seed {seed} --first {indices[0]}): {text}")


if __name__ == "__main__":
    sys.exit(told(main))
