"""Inferences on a device: the run itself, its outputs as files, and what is said about it."""

import io
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...compiler.cost import waiting
from ...driver.device import Device
from ...errors import LinkError, UsageError
from ...program.parts import Program
from ...program.throughput import throughput_of
from ...program.traffic import Rates
from ...report.premises import premises
from ...runtime.inputs import joined
from ...runtime.session import InferenceSession
from .artifacts import described
from .device import bar
from .inputs import Inputs
from .outdir import refuse_unwritable_file, write_atomically
from .output import Output

AT_ONCE = 256
"""Inferences that are handed to the device together."""
SHOWN = 20
"""Classes that are printed."""
MOST_CLASSES = 1 << 15
"""Of a vector of scores: ImageNet's 21,841 and what is fewer."""


@dataclass
class TimedOutputs:
    """The outputs of one round, by name for each inference, and what the rounds took.

    `alone`: seconds of the first inference, from inputs to outputs. `seconds` of all others together (of that one, if
    there are none), in which transfers and runs overlap. `line`: seconds that the line's busier direction needs for an
    inference, `host` those of the parts on the host. `counters`: of an inference, for each hardware part; they do not
    depend on its data.
    """

    results: list[dict[str, Any]]
    counters: list[dict[str, int]]
    runs: int = 0
    alone: float = 0.0
    seconds: float = 0.0
    line: float = 0.0
    host: float = 0.0


def measure(
    session: InferenceSession, device: Device, inputs: Inputs, repeat: int, loaded: float, output: Output
) -> TimedOutputs:
    """Run all inputs `repeat` times, from the initial values of states each time; `LinkError` E9171 if an output is not
    what it was the first time.

    `loaded`: seconds of the line that the first program took, which is loaded already: where several run in turn, each
    call loads all of them, and so would the first have.
    """
    total, stateful = inputs.count * repeat, any(program.states for program in session.program.programs)
    images = [inputs.one(index) for index in range(inputs.count)]
    with BusierDirection(device) as line:
        start = time.perf_counter()
        results = session.infer(images[:1])
        alone = time.perf_counter() - start + loaded
    found = TimedOutputs(results, session.counters, total, alone, alone, line.seconds + loaded, session.host_seconds)
    if total == 1:
        return found
    found.seconds = found.host = 0.0
    with bar(output, f"{total} inferences") as progress, BusierDirection(device) as line:
        for numbers in _batches(total, inputs.count if stateful else total):
            if stateful and numbers[0] % inputs.count == 0:
                session.clear_state()
            start = time.perf_counter()
            outputs = session.infer([images[number % inputs.count] for number in numbers])
            found.seconds += time.perf_counter() - start
            found.host += session.host_seconds / (total - 1)
            for number, result in zip(numbers, outputs, strict=True):
                index = number % inputs.count
                if number < inputs.count:
                    results.append(result)
                else:
                    compare(results[index], result, f"inference {index}", number // inputs.count)
            if progress is not None:
                progress(numbers[-1] + 1, total)
    found.line = line.seconds / (total - 1)
    return found


def _batches(total: int, count: int) -> Iterator[range]:
    """From the second to the last of `total` inferences, those that are handed to the device together; `count` of them
    are one repetition, and those of two are not together."""
    first = 1
    while first < total:
        end = min(first + AT_ONCE, first - first % count + count, total)
        yield range(first, end)
        first = end


class BusierDirection:
    """How many seconds the bytes of the line's busier direction take, over USB of both; a context manager."""

    def __init__(self, device: Device) -> None:
        self.client, self.seconds = device.client, 0.0

    def __enter__(self) -> "BusierDirection":
        self.before = replace(self.client.counters)
        return self

    def __exit__(self, *_: object) -> None:
        now, before = self.client.counters, self.before
        rates = Rates(self.client.transport.baud, 1)
        self.seconds = rates.both_ms(now.sent - before.sent, now.received - before.received) / 1e3


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


def check_outputs(where: Path, program: Program, path: Path | None, source: Path) -> None:
    """`UsageError` E2560 if the outputs are no arrays of numbers, or do not go into a file of that name; E2561 and
    E2903 if that is the `source` of the inputs, or cannot be written."""
    for value in program.outputs:
        if value.dtype in ("", "object"):
            raise UsageError("E2560", f"output {value.name!r} is no tensor of numbers", where=str(where))
    names = [value.name for value in program.outputs]
    if path is not None and path.suffix not in (".npy", ".npz"):
        raise UsageError("E2560", "outputs are written as .npy or .npz", where=str(path))
    if path is not None and path.suffix == ".npy" and len(names) > 1:
        what = f"an .npy file holds one array, the model has {len(names)} outputs: {', '.join(names)}"
        raise UsageError("E2560", what, where=str(path), hint="choose a name that ends in .npz")
    if path is not None:
        refuse_unwritable_file(path, source)


def whole(results: Sequence[Mapping[str, Any]], program: Program) -> dict[str, npt.NDArray[Any]]:
    """The outputs of all inferences, by name, from those of each."""
    names = [value.name for value in program.outputs]
    return {name: joined([one[name] for one in results], name, program.batch) for name in names}


def save(path: Path, outputs: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write the outputs, completely or not at all."""
    buffer = io.BytesIO()
    if path.suffix == ".npy":
        (array,) = outputs.values()
        np.save(buffer, array, allow_pickle=False)
    else:
        np.savez_compressed(buffer, **outputs)  # type: ignore[arg-type]  # it may be allow_pickle, for all mypy knows
    write_atomically(path, buffer.getvalue())


def record(
    program: Program, device: Device, found: TimedOutputs, inputs: Inputs, target: Path | None
) -> dict[str, Any]:
    """What a run gave, for ``--json``."""
    info = device.head
    rates = Rates(info.baud, info.clock_hz)
    counters = added(found.counters)
    cycles, latency = counters.pop("cycles", 0), counters.pop("latency", 0)
    bounds = {"link": found.line, "core": cycles / info.clock_hz, "host": found.host}
    bound = max(bounds, key=bounds.__getitem__)
    return {
        **described(program),
        "device": device.address,
        "clock_mhz": info.clock_hz / 1e6,
        "inferences": inputs.count,
        "runs": found.runs,
        "cycles": latency,
        "predicted_cycles": program.latency,
        "core_ms": bounds["core"] * 1e3,
        "line_ms": found.line * 1e3,
        "host_ms": found.host * 1e3,
        **premises(program.programs),
        "bound": bound,
        "bound_per_second": 1 / bounds[bound],
        "latency_ms": found.alone * 1e3,
        "waiting": waiting(program.programs, rates).record(),
        "throughput": throughput_of(program.programs, rates).record() if program.programs else None,
        "inferences_per_second": max(1, found.runs - 1) / found.seconds,
        "counters": counters,
        "parts": len(program.parts),
        "part_counters": found.counters,
        "outputs": None if target is None else str(target),
        "images": list(inputs.images),
    }


def added(counters: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The counters of all hardware parts together."""
    found: Counter[str] = Counter()
    for part in counters:
        found.update(part)
    return dict(found)


def top_classes(outputs: dict[str, npt.NDArray[Any]], count: int) -> list[int] | None:
    """The class of each inference, if the one output is a vector of scores: one dimension of 2 to 32,768."""
    if len(outputs) != 1:
        return None
    (scores,) = outputs.values()
    if scores.ndim < 2 or len(scores) != count or scores.dtype.kind not in "iuf":
        return None
    flat = scores.reshape(count, -1)
    vector = flat.shape[1] == max(scores.shape[1:])
    return [int(index) for index in flat.argmax(1)] if vector and 1 < flat.shape[1] <= MOST_CLASSES else None


def print_outputs(output: Output, record: Mapping[str, Any]) -> None:
    """The classes of a record, each with its image if there are such, and where its outputs are."""
    classes = record["classes"] or []
    if record["images"]:
        for image, number in list(zip(record["images"], classes, strict=False))[:SHOWN]:
            output.line(f"class: {number}  {image}")
        if len(classes) > SHOWN:
            output.line(f"and {len(classes) - SHOWN:,} more images (all of them: --json)")
    elif classes:
        shown = ", ".join(str(number) for number in classes[:SHOWN])
        output.line(f"class: {shown}{' ...' if len(classes) > SHOWN else ''}")
    if record["outputs"]:
        output.line(f"outputs: {record['outputs']}")
