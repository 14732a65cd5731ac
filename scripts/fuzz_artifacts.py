"""Mutants of programs, arrays, board files and manifests: ``python scripts/fuzz_artifacts.py --kind program``.

A mutant is refused with a user's error, or taken. A program that is taken runs on the emulator and on the RTL of the
preset `mini`: equal outputs, equal activation memory word by word, equal counters, and the cycles that it predicts.
Anything else is a finding: a traceback, a bug of ours, a dead process, too much time or memory. It is printed with the
number that makes the mutant again (``--first``); a mutant depends on its kind, the seed and its number only.
"""

import argparse
import logging
import os
import pickle
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from artifact_mutants import KINDS, Base, bases, mutant

from onnxhw.emu.emulator import Emulator
from onnxhw.engines.cxxrtl.core_model import CoreModel, core_library
from onnxhw.engines.cxxrtl.engine import execute, load
from onnxhw.errors import InternalError, OnnxhwError
from onnxhw.isa.memory import Space, host_stride
from onnxhw.presets import preset
from onnxhw.program.layout import to_host
from onnxhw.program.model import DeviceProgram
from onnxhw.program.parts import Program
from onnxhw.runtime import loading

MEMORY = 4 << 30
"""Address space of a process, libraries included."""
PATIENCE = 60
"""Seconds of processor time that one mutant may take."""
BATCH = 100
"""Mutants per process."""
LONG = 300_000
"""Cycles beyond which a program is not simulated; it is proved all the same."""


def same(program: DeviceProgram, core: CoreModel) -> str:
    """Run on the emulator and the RTL; what was compared."""
    config = program.config
    if config.fingerprint != preset("mini").fingerprint:
        return "taken, for another configuration"
    if program.cycles > LONG:
        return "taken, too long to simulate"
    random = np.random.default_rng(program.cycles)
    shapes = {port.tensor: program.tensors[port.tensor].shape for port in program.inputs}
    inputs = {name: random.integers(-128, 128, shape).astype(np.int8) for name, shape in shapes.items()}
    emulator = Emulator(program)
    wanted = emulator.run(inputs)
    stride = host_stride(config.word)
    core.write(Space.ACT, 0, np.zeros(config.act_words * stride, np.uint32))
    load(core, program)
    found = execute(core, program, inputs, trace=False)
    assert found.cycles == wanted.cycles == program.cycles, f"cycles {found.cycles} {wanted.cycles} {program.cycles}"
    for name, values in wanted.outputs.items():
        assert np.array_equal(values, found.outputs[name]), f"output {name!r:.20} differs"
    assert found.counters == wanted.counters, "counters differ"
    act = core.read(Space.ACT, 0, config.act_words * stride)
    assert np.array_equal(act, to_host(emulator.machine.act.view(np.uint8), config.word)), "activation memory differs"
    return "taken, equal"


def program(path: Path, core: CoreModel) -> str:
    """Load, prove, and run each part for the hardware; the parts for the host must not fail in an unknown way."""
    found = loading.load(path)
    results = [same(part, core) for part in found.programs]
    from onnxhw.runtime.session import InferenceSession

    session = InferenceSession(path, device="emulator")
    feeds = {}
    for value in session.get_inputs():
        shape = [size if isinstance(size, int) else 1 for size in value.shape or ()]
        if np.prod(shape) > 1 << 20:
            return "taken, too large to run"
        feeds[value.name] = np.zeros(shape, value.dtype if value.dtype in np.sctypeDict else np.float32)
    try:
        session.run(None, feeds)
    except OnnxhwError as error:
        if isinstance(error, InternalError):
            raise
        return f"taken, host refuses to run it: {error.code}"
    return min(results, default="taken, nothing on the hardware")


def arrays(path: Path, core: CoreModel) -> str:
    """Every sample of a file of inputs."""
    from onnxhw.cli.common.inputs import file_inputs
    from onnxhw.driver.artifact import interface_graph
    from onnxhw.golden import host
    from onnxhw.preprocess import Preprocess

    graph = interface_graph(_whole().only())
    inputs = file_inputs(_whole().inputs, path, 4, Preprocess())
    for index in range(inputs.count):
        for name, values in host.prepare(graph, inputs.one(index)).items():
            assert values.dtype == np.int8, name
            assert values.shape == graph.tensors[name].shape, name
    return "taken"


def _whole() -> Program:
    from onnxhw.program import container

    return container.loads(bases().programs[0])


def board(path: Path, core: CoreModel) -> str:
    """Read a board file, and what uses boards."""
    from onnxhw.board import read_board

    found = read_board(path)
    found.program_command("top.bit")
    preset(found.preset)
    return "taken"


def command(*words: str) -> str:
    """Run a command of the command line; its code, or "taken"."""
    import contextlib
    import io
    import json

    from onnxhw.cli import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        status = main([*words, "--json"])
    record = json.loads(out.getvalue()) if status else {}
    code = record["error"]["code"] if record else "taken"
    assert status != 1, record
    assert not record or int(code[1]) == status, record
    return str(code)


@cache
def _quick() -> None:
    """The program of the directory is always the same: load it once, and draw it once."""
    from onnxhw.cli.common import artifacts
    from onnxhw.report import page

    whole = _whole()
    summaries = artifacts.profiles(whole)
    drawings = page.svg.units(whole.only(), summaries[0]), page.svg.memory(whole.only(), summaries[0])
    mock.patch.multiple(artifacts, load=lambda path: whole, profiles=lambda program: summaries).start()
    mock.patch.multiple(page.svg, units=lambda *_: drawings[0], memory=lambda *_: drawings[1]).start()


def directory(name: str) -> Callable[[Path, CoreModel], str]:
    """What an output directory with such a file does in `report`, and in what else reads it."""

    def run(path: Path, core: CoreModel) -> str:
        from onnxhw.driver import artifact

        _quick()
        folder = path.parent
        for other, data in (("program.ohw", bases().programs[0]), ("manifest.json", bases().manifest.encode()),
                            ("simulations.json", bases().simulations.encode())):  # fmt: skip
            (folder / other).write_bytes(path.read_bytes() if other == name else data)
        ended = command("report", str(folder))
        for ask in ("preprocess_of", "manifest"):
            try:
                getattr(artifact, ask)(folder)
            except InternalError:
                raise
            except OnnxhwError as error:
                ended = error.code
        return ended

    return run


RUNS: dict[str, Callable[[Path, CoreModel], str]] = {
    "program": program, "arrays": arrays, "board": board, "manifest": directory("manifest.json"),
    "simulations": directory("simulations.json"),
}  # fmt: skip


def outcome(kind: str, data: bytes, core: CoreModel, folder: Path) -> str:
    """The code that a mutant gives, or how it was taken; exceptions of any other kind pass."""
    path = folder / {"program": "mutant.ohw", "arrays": "mutant.npz", "board": "mutant.toml"}.get(kind, "mutant.json")
    path.write_bytes(data)
    try:
        return RUNS[kind](path, core)
    except InternalError as error:
        raise AssertionError(error.text()) from error
    except OnnxhwError as error:
        return error.code


def batch(kind: str, seed: int, numbers: range, core: CoreModel, sink: int) -> None:
    """Run in a child: a record per mutant into a pipe, before it (its number) and after it."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        for index in numbers:
            start = time.process_time()
            resource.setrlimit(resource.RLIMIT_CPU, (int(start) + PATIENCE, resource.RLIM_INFINITY))
            try:
                ended, finding = outcome(kind, mutant(bases(), kind, seed, index), core, Path(name)), ""
            except BaseException as error:  # every kind of escape is what we look for
                trace = traceback.extract_tb((error.__cause__ or error).__traceback__)
                place = f"{Path(trace[-1].filename).name}:{trace[-1].lineno}"
                finding = f"{type(error).__name__} in {place}: {str(error)[:200]}"
                ended = "escaped"
            record = pickle.dumps((index, ended, finding, time.process_time() - start))
            os.write(sink, len(record).to_bytes(4, "little") + record)


def run(kind: str, seed: int, numbers: range, core: CoreModel) -> tuple[Counter[str], dict[str, list[int]], float]:
    """All mutants of a range, in children; one that dies is a finding, and the rest of its batch is run again."""
    counts: Counter[str] = Counter()
    findings: dict[str, list[int]] = {}
    slowest, at = 0.0, numbers.start
    while at < numbers.stop:
        source, sink = os.pipe()
        child = os.fork()
        if not child:
            os.close(source)
            signal.signal(signal.SIGXCPU, signal.SIG_DFL)
            status = 1
            try:
                batch(kind, seed, range(at, min(at + BATCH, numbers.stop)), core, sink)
                status = 0
            finally:
                os._exit(status)
        os.close(sink)
        stop = min(at + BATCH, numbers.stop)
        with os.fdopen(source, "rb") as file:
            while len(head := file.read(4)) == 4:
                index, ended, finding, seconds = pickle.loads(file.read(int.from_bytes(head, "little")))
                counts[ended] += 1
                slowest, at = max(slowest, seconds), index + 1
                if finding:
                    findings.setdefault(finding, []).append(index)
        status = os.waitpid(child, 0)[1]
        if stop % 1000 < BATCH:
            print(f"{stop - numbers.start:,}: {dict(counts)}", file=sys.stderr, flush=True)
        if at < stop:
            counts["escaped"] += 1
            findings.setdefault(f"the process ended with {os.waitstatus_to_exitcode(status)}", []).append(at)
            at += 1
    return counts, findings, slowest


def main(arguments: list[str] | None = None) -> int:
    """Run, print counts and findings; 1 if there are findings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kind", choices=sorted(KINDS), required=True)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--write", type=Path, help="only write mutant FIRST to this file")
    options = parser.parse_args(arguments)
    base: Base = bases()
    if options.write:
        options.write.write_bytes(mutant(base, options.kind, options.seed, options.first))
        return 0
    config = preset("mini")
    core = CoreModel(core_library(config).path, config)
    start = time.monotonic()
    if options.kind in ("manifest", "simulations"):
        _quick()  # once for all children
    numbers = range(options.first, options.first + options.count)
    counts, findings, slowest = run(options.kind, options.seed, numbers, core)
    total = sum(counts.values())
    for code, count in counts.most_common():
        print(f"{code:40} {count:7,} {count / total:7.2%}")
    print(f"{total:,} mutants of {options.kind}, seed {options.seed}, from {options.first}: "
          f"{time.monotonic() - start:.0f} s; slowest {slowest:.2f} s of processor time")  # fmt: skip
    for text, indices in sorted(findings.items(), key=lambda item: -len(item[1])):
        print(f"FINDING ({len(indices)}, --kind {options.kind} --seed {options.seed} --first {indices[0]}): {text}")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
