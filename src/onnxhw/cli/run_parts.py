"""``onnxhw run`` of a model in parts: the device and the host in turn, by a session."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cost import waiting
from ..errors import UsageError
from ..host.artifact import design_of
from ..host.device import Device
from ..preprocess import Preprocess
from ..program.mixed import MixedProgram
from ..program.traffic import Rates
from ..report.kept import premises
from ..session import InferenceSession
from . import inference
from .device_profile import device_profile
from .mixed import feeds, subject
from .mixing import refuse_mixing
from .output import Output
from .reading import TRUSTED

Arrays = dict[str, npt.NDArray[Any]]


def run_parts(
    output: Output, device: Device, directory: Path, program: MixedProgram, preprocess: Preprocess, source: Path,
    target: Path | None, count: int | None, repeat: int, profile: bool,
) -> dict[str, Any]:  # fmt: skip
    """Run, write and give the record of ``run``, in which `cycles` are sums over the parts and nothing is said of what
    bounds the throughput: the host may.

    Errors: those of `InferenceSession`, `LinkError` E9171 as of `inference.measure`, `UsageError` E2560 for an output
    that no file can hold.
    """
    for value in program.outputs:
        if value.dtype in ("", "object"):
            raise UsageError("E2560", f"output {value.name!r} is no tensor of numbers", where=str(directory))
    samples = feeds(subject(program, None, directory, True), source, count, 1, 0, preprocess)
    refuse_mixing(directory, TRUSTED, len(samples))
    wanted = [value for value in program.inputs if not value.optional]
    stacked = {
        value.name: np.concatenate([sample[value.name] for sample in samples])
        if value.shape is None or value.shape[:1] == (1,)
        else samples[0][value.name]
        for value in wanted
    }
    design = design_of(directory if directory.is_dir() else directory.parent)
    with output.stage(f"load {program.model}"):
        with inference.Busier(device) as loading:
            device.load(program.programs[0], design=design)
        session = InferenceSession(directory, device=device)
    # Of several programs each call loads all, and the first has been loaded already.
    loaded = loading.seconds if len(program.programs) > 1 else 0.0
    with session:
        found, alone, seconds, line = _measure(session, device, samples[0], stacked, len(samples), repeat, output)
        if len(samples) == repeat == 1:
            alone, seconds, line = alone + loaded, seconds + loaded, line + loaded
        else:
            alone += loaded
        counted = session.counters
    if target is not None:
        inference.save(target, found)
    clock = device.head.clock_hz
    record: dict[str, Any] = {
        "model": program.model,
        "preset": program.programs[0].config.name,
        "config": program.programs[0].config.fingerprint,
        "device": device.address,
        "clock_mhz": clock / 1e6,
        "inferences": len(samples),
        "runs": len(samples) * repeat,
        "cycles": sum(part["cycles"] for part in counted),
        "predicted_cycles": program.cycles,
        "core_ms": program.cycles / clock * 1e3,
        "line_ms": line * 1e3,
        "macs_executed": program.macs,
        "macs_nominal": program.nominal,
        **premises(program.programs),
        "bound": None,
        "bound_per_second": None,
        "latency_ms": alone * 1e3,
        "waiting": waiting(program.programs, Rates(device.head.baud, clock)).record(),
        "inferences_per_second": 1 / seconds,
        "counters": None,
        "parts": len(program.parts),
        "part_counters": counted,
        "outputs": None if target is None else str(target),
        "classes": inference.top_classes(found, len(samples)),
    }
    if profile:
        parts = [
            device_profile(part, counts, clock / 1e6) for part, counts in zip(program.programs, counted, strict=True)
        ]
        record["profile"] = {"equal": all(part["equal"] for part in parts), "parts": parts}
    return record


def _measure(
    session: InferenceSession, device: Device, first: Arrays, inputs: Arrays, count: int, repeat: int, output: Output
) -> tuple[Arrays, float, float, float]:
    """The outputs; seconds of the first inference alone, of one among all, and of its bytes on the line."""
    names = [value.name for value in session.get_outputs()]

    def run(feeds: Arrays) -> tuple[Arrays, float]:
        start = time.perf_counter()
        found = session.run(None, feeds)
        return dict(zip(names, found, strict=True)), time.perf_counter() - start

    fixed = session.model.batch is not None and session.model.batch.size
    with inference.Busier(device) as line:
        found, alone = run(inputs if fixed else first)
    if count == repeat == 1:
        return found, alone, alone, line.seconds
    seconds, kept = 0.0, None
    with inference.Busier(device) as line, output.stage(f"{count * repeat} inferences"):
        for repetition in range(repeat):
            found, took = run(inputs)
            seconds += took
            kept = kept or found
            inference.compare(kept, found, "all inferences", repetition)
    return found, alone, seconds / (count * repeat), line.seconds / (count * repeat)
