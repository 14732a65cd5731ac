"""``simulate`` on a model in parts: the run and its record."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..preprocess import Preprocess
from .artifacts import record_simulation
from .mixed import MixedSubject, feeds, run, save_outputs
from .outdir import refuse_unwritable_file
from .output import Output
from .simulation import mismatch_error, no_golden


def simulate_parts(
    output: Output, subject: MixedSubject, engine: str, source: Path | None, count: int | None, number: int,
    seed: int, results: Path | None, trace: bool, preprocess: Preprocess, refuse: Callable[[int], None],
) -> None:  # fmt: skip
    """Run, compare, write and print; the record has the fields of any simulation, cycles being sums over the parts.

    `refuse` is told the number of inferences before the first.
    """
    from .simulate import print_simulation

    if engine == "golden" and subject.reference != "golden model":
        raise no_golden(subject.folder)
    place = results or subject.folder / "outputs.npz"
    refuse_unwritable_file(place)
    samples = feeds(subject, source, count, number, seed, preprocess)
    refuse(len(samples))
    start = time.monotonic()
    found = run(subject, engine, samples, trace, output)
    seconds = time.monotonic() - start
    save_outputs(place, found)
    program = subject.program
    config = program.programs[0].config
    record: dict[str, Any] = {
        "model": program.model,
        "preset": config.name,
        "config": config.fingerprint,
        "engine": engine,
        "inferences": len(samples),
        "inputs": str(source) if source else f"random, seed {seed}",
        "cycles": found.cycles,
        "predicted_cycles": program.cycles,
        "macs": program.macs,
        "utilization": program.macs / (program.cycles * config.macs_per_cycle),
        "reference": subject.reference,
        "tensors_compared": found.compared,
        "equal": found.mismatch is None,
        "top1": None,
        "parts": len(program.parts),
        "part_cycles": found.part_cycles or [None] * len(program.programs),
        "outputs": str(place),
        "seconds": round(seconds, 3),
    }
    if subject.directory:
        keep = ("engine", "inferences", "cycles", "predicted_cycles", "part_cycles", "reference", "equal")
        record_simulation(subject.folder, {name: record[name] for name in keep})
    if found.mismatch:
        output.found = {**record, "first_difference": found.mismatch}
        raise mismatch_error(subject.reference, found.mismatch, engine, record)
    print_simulation(output, record)
