"""Mutants of onnx's own node models: ``python scripts/fuzz_nodes.py --seed 1 --count 1000000 --log FILE``.

Each mutant is read and placed. What nothing runs on the hardware of is computed on the host; the rest is compiled, and
golden model and emulator must agree in every tensor. Whatever else happens is a finding, as in fuzz_models.py, whose
harness this is. With ``--log`` every finished piece is a line of JSON there, and a later call goes on behind it.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import fuzz_models as harness
import onnx
from fuzz_models import Outcome
from node_mutants import NodeMutator, seeds

from onnxhw import compiler, emu, golden, partition
from onnxhw.errors import InternalError, OnnxhwError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.hostops.operators import control
from onnxhw.ir.parts import HardwarePart, HostPart, ValueInfo
from onnxhw.presets import preset
from onnxhw.program.model import DeviceProgram
from onnxhw.runtime.inputs import matches
from onnxhw.worker import worker_scope

PIECE = 10_000
"""Mutants between two lines of the log."""
PATIENCE = 6
"""Seconds of processor time that one mutant may take."""
COMPILED = 0.8
"""How many of the mutants with operations of the hardware are compiled and run; it takes longer than all else."""
COMPUTED = 0.5
"""How many of the others are computed on the host."""
ELEMENTS = 1 << 16
"""Elements of inputs up to which a mutant is run."""
SAMPLES = 32
"""Samples per bin and axis up to which a RoiAlign is run: more take seconds, which is work and not a finding."""
RESULTS = 1 << 26
"""Elements of results up to which a mutant is run, by a declared shape or an input's sizes: more take seconds, which is
work and not a finding."""
ITERATIONS = 1_000
"""After which a loop is ended: the ten million that a run allows take seconds, which is work and not a finding."""
CONFIG = replace(preset("mini"), name="fuzz", load_ucode=2048, array_ucode=4096, vector_ucode=4096, act_depth=4096)
"""Small, so that a program is made and run quickly, and with room for most."""
STAGES = (*harness.STAGES, ("compiled", "", ""), ("golden against emulator", "", ""), ("computed on the host", "", ""))


class DifferentError(AssertionError):
    """Golden model and emulator."""


def outcome(data: bytes, feeds: dict[str, Any], rng: Random, begun: set[str]) -> str:
    """What becomes of a mutant: a code, or how far it came. Exceptions of any other kind pass."""
    try:
        placed = partition.read(data)
        if placed.refused:
            return "refused"
        hardware = any(isinstance(part, HardwarePart) for part in placed.parts)
        if rng.random() > (COMPILED if hardware else COMPUTED):
            return "placed, hardware" if hardware else "placed, host"
    except InternalError:
        raise
    except OnnxhwError as error:
        return error.code
    values = _inputs(placed.inputs, feeds, rng)
    if values is None or _takes_long(data) or _is_large(placed.outputs, values):
        return "placed, not run"
    try:
        return _run_hardware(data, values, begun) if hardware else _run_host(placed, values, begun)
    except InternalError:
        raise
    except OnnxhwError as error:
        return f"run: {error.code}"


def _takes_long(data: bytes) -> bool:
    return b"RoiAlign" in data and any(
        attribute.name == "sampling_ratio" and attribute.i > SAMPLES
        for node in onnx.ModelProto.FromString(data).graph.node for attribute in node.attribute
    )  # fmt: skip


def _is_large(results: tuple[ValueInfo, ...], values: dict[str, Any]) -> bool:
    shapes = [[size for size in value.shape or () if isinstance(size, int)] for value in results]
    shapes += [[abs(int(size)) for size in array] for array in values.values()
               if isinstance(array, np.ndarray) and array.dtype == np.int64 and array.ndim == 1]  # fmt: skip
    return any(prod(shape) > RESULTS for shape in shapes)


def _inputs(wanted: tuple[ValueInfo, ...], feeds: dict[str, Any], rng: Random) -> dict[str, Any] | None:
    """Data for all inputs: the suite's where they fit, else random; None if there are none for it, or too many."""
    found: dict[str, Any] = {}
    random = np.random.default_rng(rng.randrange(1 << 32))
    for value in wanted:
        given = feeds.get(value.name)
        if given is not None and not value.dtype:
            found[value.name] = given
            continue
        if not value.dtype or value.shape is None:
            return None
        if isinstance(given, np.ndarray) and given.dtype == np.dtype(value.dtype) and matches(value.shape, given.shape):
            found[value.name] = given
            continue
        shape = [size if isinstance(size, int) else 2 for size in value.shape]
        kind = np.dtype(value.dtype)
        if prod(shape) > ELEMENTS or kind.kind not in "iufb":
            return None
        found[value.name] = (random.standard_normal(shape) * 3).astype(kind)
    return found


def _run_host(placed: partition.PartitionedModel, values: dict[str, Any], begun: set[str]) -> str:
    for part in placed.parts:
        _part(part, values)
    begun.add("computed on the host")
    return "run: host"


def _part(part: Any, values: dict[str, Any]) -> None:
    """What the host computes of a model: a part."""
    if isinstance(part, HostPart):
        given = {name: values[name] for name in part.inputs if name in values}
        values.update(evaluate(onnx.ModelProto.FromString(part.model), given))
    else:
        tensors = golden.run(part.graph, _prepared(part.graph, values))
        values.update(golden.host.finish(part.graph, tensors))


def _prepared(graph: Any, values: dict[str, Any]) -> dict[str, Any]:
    return golden.host.prepare(graph, {port.name: values[port.name] for port in graph.inputs})


def _run_hardware(data: bytes, values: dict[str, Any], begun: set[str]) -> str:
    placed = compiler.place_and_schedule(data, CONFIG)
    begun.add("compiled")
    compared = 0
    for part, made in zip(placed.model.parts, placed.made.parts, strict=True):
        if not isinstance(made, DeviceProgram):
            _part(part, values)
            continue
        assert isinstance(part, HardwarePart)
        tensors = _prepared(part.graph, values)
        if any(len(array) != 1 for array in tensors.values()):
            return "run: several samples"
        wanted = golden.run(part.graph, tensors)
        got = emu.run(made, tensors, trace=True)
        for name, array in {**got.tensors, **got.outputs}.items():
            if name in wanted and not np.array_equal(array, wanted[name]):
                raise DifferentError(f"golden model and emulator differ in {name!r}")
            compared += name in wanted
        values.update(golden.host.finish(part.graph, wanted))
    if compared:
        begun.add("golden against emulator")
    return "run: hardware" if compared else "run: host"


@cache
def _mutator(seed: int) -> NodeMutator:
    return NodeMutator(seed)


def run(seed: int, numbers: range, current: Any = None) -> Outcome:
    """Mutants by number, in this process."""
    mutator = _mutator(seed)

    def judge(index: int, begun: set[str]) -> str:
        data, feeds = mutator.made(index)
        return outcome(data, feeds, Random(seed << 65 | index), begun)

    with mock.patch.object(control, "MAX_ITERATIONS", ITERATIONS), worker_scope():
        return harness.judged(judge, numbers, current)


def record(found: Outcome, seed: int, numbers: range) -> dict[str, Any]:
    """A piece, as a line of the log says it."""
    return {"seed": seed, "first": numbers.start, "stop": numbers.stop, **harness.record(found)}


def logged(path: Path | None, seed: int) -> tuple[Outcome, int]:
    """What the log says of a seed together, and the number behind its last mutant."""
    total, stop = Outcome(), 0
    for line in path.read_text().splitlines() if path and path.exists() else ():
        entry = json.loads(line)
        if entry["seed"] == seed:
            stop = max(stop, entry["stop"])
            total.add(harness.from_record(entry))
    return total, stop


def _pieces(every: range, options: argparse.Namespace) -> Iterator[tuple[range, Outcome]]:
    """The mutants in pieces, and what became of each, in order."""
    if options.scheduler:
        yield from harness.on_cluster("fuzz_nodes.py", options.seed, every, options.scheduler, PIECE)
        return
    for numbers in (every[first : first + PIECE] for first in range(0, len(every), PIECE)):
        yield numbers, harness.parallel(options.seed, numbers, options.processes, run)


def main(arguments: list[str] | None = None) -> int:
    """Run, print counts and findings; 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, help="number of the first mutant; by default 0, or behind the log's last")
    parser.add_argument("--log", type=Path, help="add a line of JSON to this file for every piece")
    parser.add_argument("--write", type=Path, help="only write mutant FIRST to this file")
    parser.add_argument("--scheduler", default="", metavar="ADDRESS", help="a Dask scheduler whose workers run them")
    parser.add_argument("--outcome", action="store_true", help="print one line of JSON")
    options = parser.parse_args(arguments)
    if options.write:
        options.write.write_bytes(NodeMutator(options.seed).mutant(options.first or 0))
        return 0
    total, stop = logged(options.log, options.seed)
    harness.PATIENCE = PATIENCE
    seeds()  # before the first worker is forked: each would collect the suite for itself
    first = stop if options.first is None else options.first
    start = time.monotonic()
    for numbers, found in _pieces(range(first, first + options.count), options):
        total.add(found)
        if options.log:
            with options.log.open("a") as log:
                log.write(json.dumps(record(found, options.seed, numbers)) + "\n")
    if options.outcome:
        print(json.dumps(harness.record(total)))
        return int(bool(total.findings))
    harness.report(total, time.monotonic() - start, options.seed, STAGES)
    return int(bool(total.findings))


if __name__ == "__main__":
    sys.exit(harness.told(main))
