"""``run`` for a model in parts: its hardware parts on the device, one after the other, and the host's between them."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import LinkError
from ..host.device import Device
from ..preprocess import Preprocess
from ..program.mixed import MixedProgram
from ..session import InferenceSession
from .mixed import MixedFound, feeds, save_outputs, subject
from .mixing import refuse_mixing
from .output import Output
from .reading import TRUSTED


def run(
    output: Output, path: Path, program: MixedProgram, device: Device, source: Path, target: Path | None,
    count: int | None, repeat: int,
) -> dict[str, Any]:  # fmt: skip
    """Run the inputs of a file `repeat` times and write `target`; the record for ``--json``.

    `path` is the program file or its directory. `LinkError` E9171 if an output is not what it was the first time.
    """
    samples = feeds(subject(program, None, path, path.is_dir()), source, count, 0, 0, Preprocess())
    refuse_mixing(path, TRUSTED, len(samples))
    inputs = samples[0]
    if len(samples) > 1:
        each = {value.name for value in program.inputs if value.shape is None or value.shape[:1] == (1,)}
        inputs |= {name: np.concatenate([sample[name] for sample in samples]) for name in each & inputs.keys()}
    found, seconds, cycles = MixedFound(), 0.0, 0
    with InferenceSession(path, device) as session:
        names = [value.name for value in session.get_outputs()]
        for again in range(repeat):
            with output.stage(f"{len(samples)} inferences"):
                start = time.perf_counter()
                outputs = dict(zip(names, session.run(None, inputs), strict=True))
                seconds, cycles = seconds + time.perf_counter() - start, cycles + session.cycles
            if again:
                _compare(found.outputs[0], outputs, again)
            found.outputs = [outputs]
        config = session.config
    if target is not None:
        save_outputs(target, found)
    info, runs = device.head, len(samples) * repeat
    return {
        "model": program.model,
        "preset": config.name,
        "config": config.fingerprint,
        "device": device.address,
        "clock_mhz": info.clock_hz / 1e6,
        "inferences": len(samples),
        "runs": runs,
        "parts": ["hardware" if part in program.programs else "host" for part in program.parts],
        "cycles": cycles // runs,
        "predicted_cycles": program.cycles,
        "core_ms": cycles / runs / info.clock_hz * 1e3,
        "latency_ms": seconds / runs * 1e3,
        "outputs": None if target is None else str(target),
    }


def _compare(first: dict[str, Any], again: dict[str, Any], repetition: int) -> None:
    for name, value in first.items():
        if not _same(value, again[name]):
            raise LinkError(
                "E9171", f"repetition {repetition + 1} gives another result: {name!r} differs",
                hint="`onnxhw selftest` looks for damaged memories; the clock may be too fast for the board",
            )  # fmt: skip


def _same(one: Any, other: Any) -> bool:
    """Equal, where a NaN is a NaN."""
    a, b = np.asarray(one), np.asarray(other)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def print_record(output: Output, record: dict[str, Any]) -> None:
    """The record in words."""
    output.line(f"{record['model']} on {record['device']}, {record['preset']} at {record['clock_mhz']:g} MHz: "
                f"{record['runs']:,} inference{'s' if record['runs'] > 1 else ''} of {record['cycles']:,} cycles "
                f"({record['core_ms']:.3f} ms), as predicted")  # fmt: skip
    output.line(f"in {len(record['parts'])} parts in turn: {', '.join(record['parts'])}; with link, host and the "
                f"change of programs {record['latency_ms']:.1f} ms per inference")  # fmt: skip
    if record["outputs"]:
        output.line(f"outputs: {record['outputs']}")
