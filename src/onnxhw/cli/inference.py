"""Inferences on a device: the run itself, its outputs as files, and what is said about it."""

import io
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import LinkError, UsageError
from ..golden import host
from ..host.artifact import stacked
from ..host.device import Device
from ..ir.graph import Graph
from ..program.model import Program
from ..program.result import Result
from .device import bar
from .inputs import Inputs
from .outdir import write_atomically
from .output import Output


@dataclass
class Measured:
    """The results of one round; the seconds of every inference of all rounds, and their bytes on the line."""

    results: list[Result]
    seconds: list[float] = field(default_factory=list)
    bytes: int = 0

    @property
    def counters(self) -> dict[str, int]:
        """Cycles and counters of an inference; they do not depend on its data."""
        return {"cycles": self.results[0].cycles, **self.results[0].counters}


def measure(device: Device, inputs: Inputs, repeat: int, output: Output) -> Measured:
    """Run all inputs `repeat` times; `LinkError` E9171 if an output is not what it was the first time."""
    found = Measured([])
    total = inputs.count * repeat
    before = device.client.counters.bytes
    with bar(output, f"{total} inferences" if total > 1 else "1 inference") as progress:
        for number in range(total):
            index = number % inputs.count
            start = time.perf_counter()
            result = device.run_int8(inputs.one(index))
            found.seconds.append(time.perf_counter() - start)
            if number < inputs.count:
                found.results.append(result)
            else:
                _compare(found.results[index], result, index, number // inputs.count)
            if progress is not None:
                progress(number + 1, total)
    found.bytes = device.client.counters.bytes - before
    return found


def _compare(first: Result, again: Result, index: int, repetition: int) -> None:
    for name, values in first.outputs.items():
        if not np.array_equal(values, again.outputs[name]):
            different = int((values != again.outputs[name]).sum())
            raise LinkError(
                "E9171",
                f"repetition {repetition + 1} gives another result: {different} of {values.size} elements of "
                f"{name!r} differ",
                where=f"inference {index}",
                hint="`onnxhw selftest` looks for damaged memories; the clock may be too fast for the board",
            )


def check_target(path: Path, program: Program) -> None:
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


def record(program: Program, device: Device, found: Measured, inputs: Inputs, target: Path | None) -> dict[str, Any]:
    """What a run gave, for ``--json``."""
    info = device.head
    counters = found.counters
    ordered = sorted(found.seconds)
    core = counters["cycles"] / info.clock_hz
    line = 10 * found.bytes / len(found.seconds) / device.client.transport.baud
    return {
        "model": program.model,
        "preset": program.config.name,
        "config": program.config.fingerprint,
        "device": device.address,
        "clock_mhz": info.clock_hz / 1e6,
        "inferences": inputs.count,
        "runs": len(found.seconds),
        "cycles": counters["cycles"],
        "predicted_cycles": program.cycles,
        "core_ms": core * 1e3,
        "line_ms": line * 1e3,
        "bound": "link" if line > core else "core",
        "latency_ms": {
            "min": ordered[0] * 1e3, "median": statistics.median(ordered) * 1e3, "max": ordered[-1] * 1e3,
        },
        "inferences_per_second": len(ordered) / sum(ordered),
        "counters": {name: count for name, count in counters.items() if name != "cycles"},
        "outputs": None if target is None else str(target),
    }  # fmt: skip


def top_classes(outputs: dict[str, npt.NDArray[Any]], inputs: Inputs) -> list[int] | None:
    """The class of each inference, if the one output is a vector of scores."""
    if len(outputs) != 1:
        return None
    (scores,) = outputs.values()
    flat = np.asarray(scores).reshape(inputs.count, -1)
    return [int(index) for index in flat.argmax(1)] if 1 < flat.shape[1] <= 1000 else None
