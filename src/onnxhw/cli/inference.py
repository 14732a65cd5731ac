"""Inferences on a device: the run itself, its outputs as files, and what is said about it."""

import io
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cost import waiting
from ..errors import LinkError, UsageError
from ..golden import host
from ..host.artifact import stacked
from ..host.device import Device
from ..ir.graph import Graph
from ..program.mixed import MixedProgram
from ..program.model import DeviceProgram
from ..program.result import Result
from ..program.traffic import Rates
from ..report.kept import premises
from .device import bar
from .inputs import Inputs
from .outdir import write_atomically
from .output import Output

AT_ONCE = 256
"""Inferences that are handed to the device together."""


@dataclass
class Measured:
    """The results of one round, and what the rounds took.

    `alone`: seconds of the first inference, from inputs to outputs. `seconds` of all others together (of that one, if
    there are none), in which transfers and runs overlap. `line`: seconds that the line's busier direction needs for an
    inference.
    """

    results: list[Result]
    runs: int = 0
    alone: float = 0.0
    seconds: float = 0.0
    line: float = 0.0

    @property
    def counters(self) -> dict[str, int]:
        """Cycles and counters of an inference; they do not depend on its data."""
        return {"cycles": self.results[0].cycles, **self.results[0].counters}


def measure(device: Device, inputs: Inputs, repeat: int, output: Output) -> Measured:
    """Run all inputs `repeat` times; `LinkError` E9171 if an output is not what it was the first time."""
    total = inputs.count * repeat
    images = [inputs.one(index) for index in range(inputs.count)]
    found = Measured([], runs=total)
    with Busier(device) as line:
        start = time.perf_counter()
        found.results.append(device.run_int8(images[0]))
        found.alone = found.seconds = time.perf_counter() - start
    found.line = line.seconds
    if total == 1:
        return found
    found.seconds = 0.0
    with bar(output, f"{total} inferences") as progress, Busier(device) as line:
        for first in range(1, total, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, total))
            start = time.perf_counter()
            results = device.run_batch([images[number % inputs.count] for number in numbers])
            found.seconds += time.perf_counter() - start
            for number, result in zip(numbers, results, strict=True):
                index = number % inputs.count
                if number < inputs.count:
                    found.results.append(result)
                else:
                    compare(found.results[index].outputs, result.outputs, f"inference {index}", number // inputs.count)
            if progress is not None:
                progress(numbers[-1] + 1, total)
    found.line = line.seconds / (total - 1)
    return found


class Busier:
    """How many seconds the bytes of the line's busier direction take; a context manager."""

    def __init__(self, device: Device) -> None:
        self.client, self.seconds = device.client, 0.0

    def __enter__(self) -> "Busier":
        self.before = replace(self.client.counters)
        return self

    def __exit__(self, *_: object) -> None:
        now, before = self.client.counters, self.before
        most = max(now.sent - before.sent, now.received - before.received)
        self.seconds = 10 * most / self.client.transport.baud


def compare(
    first: Mapping[str, npt.NDArray[Any]], again: Mapping[str, npt.NDArray[Any]], where: str, repetition: int
) -> None:
    """`LinkError` E9171 if a repetition's outputs are not those of the first run, NaN being equal to NaN."""
    for name, values in first.items():
        same = (values == again[name]) | ((values != values) & (again[name] != again[name]))
        if not np.all(same):
            different = int((~same).sum())
            raise LinkError(
                "E9171",
                f"repetition {repetition + 1} gives another result: {different} of {values.size} elements of "
                f"{name!r} differ",
                where=where,
                hint="`onnxhw selftest` looks for damaged memories; the clock may be too fast for the board",
            )


def check_target(path: Path, program: DeviceProgram | MixedProgram) -> None:
    """`UsageError` E2560 if the outputs do not go into a file of that name."""
    names = [port.name for port in program.outputs]
    if path.suffix not in (".npy", ".npz"):
        raise UsageError("E2560", "outputs are written as .npy or .npz", where=str(path))
    if path.suffix == ".npy" and len(names) > 1:
        what = f"an .npy file holds one array, the model has {len(names)} outputs: {', '.join(names)}"
        raise UsageError("E2560", what, where=str(path), hint="choose a name that ends in .npz")


def finish(ports: Graph, found: Measured) -> dict[str, npt.NDArray[Any]]:
    """The model's outputs by name, a first dimension of all inferences."""
    return host.finish(ports, stacked(found.results))


def save(path: Path, outputs: dict[str, npt.NDArray[Any]]) -> None:
    """Write the outputs, completely or not at all."""
    buffer = io.BytesIO()
    if path.suffix == ".npy":
        (array,) = outputs.values()
        np.save(buffer, array, allow_pickle=False)
    else:
        np.savez_compressed(buffer, **outputs)  # type: ignore[arg-type]  # it may be allow_pickle, for all mypy knows
    write_atomically(path, buffer.getvalue())


def record(
    program: DeviceProgram, device: Device, found: Measured, inputs: Inputs, target: Path | None
) -> dict[str, Any]:
    """What a run gave, for ``--json``."""
    info = device.head
    counters = found.counters
    core = counters["cycles"] / info.clock_hz
    return {
        "model": program.model,
        "preset": program.config.name,
        "config": program.config.fingerprint,
        "device": device.address,
        "clock_mhz": info.clock_hz / 1e6,
        "inferences": inputs.count,
        "runs": found.runs,
        "cycles": counters["cycles"],
        "predicted_cycles": program.cycles,
        "core_ms": core * 1e3,
        "line_ms": found.line * 1e3,
        "macs_executed": program.macs,
        "macs_nominal": program.nominal,
        **premises([program]),
        "bound": "link" if found.line > core else "core",
        "bound_per_second": 1 / max(found.line, core),
        "latency_ms": found.alone * 1e3,
        "waiting": waiting([program], Rates(info.baud, info.clock_hz)).record(),
        "inferences_per_second": max(1, found.runs - 1) / found.seconds,
        "counters": {name: count for name, count in counters.items() if name != "cycles"},
        "outputs": None if target is None else str(target),
    }


def top_classes(outputs: dict[str, npt.NDArray[Any]], count: int) -> list[int] | None:
    """The class of each inference, if the one output is a vector of scores: one dimension of 2 to 1,000."""
    if len(outputs) != 1:
        return None
    (scores,) = outputs.values()
    if scores.ndim < 2 or len(scores) != count or scores.dtype.kind not in "iuf":
        return None
    flat = scores.reshape(count, -1)
    vector = flat.shape[1] == max(scores.shape[1:])
    return [int(index) for index in flat.argmax(1)] if vector and 1 < flat.shape[1] <= 1000 else None
