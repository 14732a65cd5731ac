"""``simulate`` for a model in parts: each hardware part on an engine and compared, the host between."""

import io
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import golden
from ..errors import UsageError
from ..feeds import typed
from ..frontend.partitioned import PartitionedModel
from ..ir.graph import Array8, Graph
from ..ir.parts import GoldenPart, HostPart, Value
from ..preprocess import Preprocess, open_samples
from ..program.mixed import MixedProgram
from ..program.model import DeviceProgram
from ..targets import host_runner
from .engine import Execute, runner
from .inputs import named_arrays, refuse_too_many, wanted_inputs
from .outdir import write_atomically
from .output import Output
from .simulation import difference, skeleton

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class MixedSubject:
    """A program in parts with what it is compared with; see `simulation.Subject`.

    `graphs`: of each hardware part, in order; with operations if the reference is the golden model.
    """

    program: MixedProgram
    graphs: list[Graph]
    reference: str
    folder: Path
    directory: bool


@dataclass
class MixedFound:
    """What a run gave: per inference the outputs; one cycle count for all; the first difference."""

    outputs: list[dict[str, Any]] = field(default_factory=list)
    cycles: int | None = None
    part_cycles: list[int] = field(default_factory=list)
    """Of the last inference, part by part."""
    compared: int = 0
    mismatch: dict[str, Any] | None = None


def subject(program: MixedProgram, mixed: PartitionedModel | None, folder: Path, directory: bool) -> MixedSubject:
    """The subject of a program; `mixed` is the model it was made of, if that is known."""
    graphs = [part.graph for part in mixed.hardware] if mixed else []
    if [_ports(graph) for graph in graphs] == [_ports(part) for part in program.programs]:
        return MixedSubject(program, graphs, "golden model", folder, directory)
    return MixedSubject(program, [skeleton(part) for part in program.programs], "emulator", folder, directory)


def _ports(part: Graph | DeviceProgram) -> list[tuple[str, str]]:
    return [(port.name, port.tensor) for port in [*part.inputs, *part.outputs]]


def feeds(
    found: MixedSubject, source: Path | None, count: int | None, number: int, seed: int, preprocess: Preprocess
) -> list[dict[str, Any]]:
    """One dict of arrays by input name per inference: the first `count` of a file, or `number` random ones.

    In a file the first dimension of an array counts inferences where the input has batch 1; other inputs are the same
    in all of them. `UsageError` E2905: an array of another shape, or different numbers of inferences.
    """
    inputs = [value for value in found.program.inputs if not value.optional]
    if source is None:
        shapes = (value.shape or () for value in inputs)
        refuse_too_many(number, sum(prod(dim for dim in shape if isinstance(dim, int)) for shape in shapes))
        random = np.random.default_rng(seed)
        return [{value.name: _random(found, value.name, value.shape, value.dtype, random) for value in inputs}
                for _ in range(number)]  # fmt: skip
    if preprocess.needed(source):
        return list(open_samples(source, wanted_inputs(inputs), preprocess).feeds(0, count))
    rows = [value.name for value in inputs if _by_row(value)]
    arrays = named_arrays(source, [value.name for value in inputs], count, rows)
    given = {value.name: typed(value, arrays[value.name]) for value in inputs}
    batched = {value.name for value in inputs if _counts(value, given[value.name], source)}
    sizes = {name: len(array) for name, array in given.items() if name in batched}
    if len(set(sizes.values())) > 1:
        text = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise UsageError("E2905", f"the inputs hold different numbers of inferences: {text}", where=str(source))
    return [
        {name: array[i : i + 1] if name in batched else array for name, array in given.items()}
        for i in range(next(iter(sizes.values()), 1))[:count]
    ]


def _by_row(value: Value) -> bool:
    """May the first dimension of an input's array count inferences?"""
    return value.shape is None or value.shape[:1] == (1,)


def _counts(value: Value, array: Array, source: Path) -> bool:
    """Does the first dimension of an input's array count inferences? `UsageError` E2905 for a shape that is not its."""
    shape, counts = value.shape, _by_row(value)
    if shape is None:
        return array.ndim > 0
    fits = len(shape) == array.ndim and all(
        not isinstance(want, int) or want == size or (counts and axis == 0 and size)
        for axis, (want, size) in enumerate(zip(shape, array.shape, strict=True))
    )
    if not fits:
        wanted = ["N", *shape[1:]] if counts else list(shape)
        text = ", ".join(str("?" if dim is None else dim) for dim in wanted)
        what = f"input {value.name!r} must have shape [{text}], not {list(array.shape)}"
        raise UsageError("E2905", what, where=str(source))
    return counts


def _random(
    found: MixedSubject, name: str, shape: tuple[int | str | None, ...] | None, dtype: str, random: np.random.Generator
) -> Array:
    """A random array: over the grid of a hardware port that reads the input, or like a normal distribution."""
    if shape is None or not dtype or not all(isinstance(dim, int) for dim in shape):
        raise UsageError("E2520", f"input {name!r} has no static shape and type to draw from", hint="give --input FILE")
    size = [int(dim) for dim in shape if isinstance(dim, int)]
    kind = np.dtype(dtype)
    for graph in found.graphs:
        for port in graph.inputs:
            if port.name == name and kind.kind == "f" and port.steps and port.steps[0]["op"] == "QuantizeLinear":
                step = port.steps[0]
                q = random.integers(-128, 128, size) - step["zero_point"]
                return np.asarray(q * step["scale"]).astype(kind)
    if kind.kind == "f":
        return random.standard_normal(size).astype(kind)
    if kind.kind == "b":
        return random.integers(0, 2, size).astype(kind)
    if kind.kind in "iu":
        info = np.iinfo(kind) if kind.itemsize == 1 else None
        return random.integers(*((info.min, info.max + 1) if info else (0, 10)), size).astype(kind)
    raise UsageError("E2520", f"input {name!r} of type {dtype} cannot be drawn at random", hint="give --input FILE")


def run(
    found: MixedSubject, engine: str, samples: list[dict[str, Any]], trace: bool, output: Output
) -> MixedFound:
    """Every inference, part by part, each hardware part on the same inputs as its reference; stops at a difference."""
    result = MixedFound()
    names = [value.name for value in found.program.outputs]
    with ExitStack() as stack:
        steps = _steps(found, engine, trace, result, stack, output)
        with output.stage(f"{engine}, {len(samples)} inferences"):
            for index, sample in enumerate(samples):
                values, result.cycles = dict(sample), None if engine == "golden" else 0
                result.part_cycles.clear()
                for step in steps:
                    values |= step(values, index)
                    if result.mismatch:
                        return result
                result.outputs.append({name: values[name] for name in names})
    return result


Step = Callable[[Mapping[str, Any], int], dict[str, Any]]


def _steps(
    found: MixedSubject, engine: str, trace: bool, result: MixedFound, stack: ExitStack, output: Output
) -> list[Step]:
    steps: list[Step] = []
    graphs = iter(found.graphs)
    for part in found.program.parts:
        if isinstance(part, HostPart | GoldenPart):
            steps.append(_host(part))
        elif engine == "golden":
            steps.append(_golden(next(graphs), result))
        else:
            execute = stack.enter_context(runner(engine, part, output))
            steps.append(_hardware(part, next(graphs), found.reference, execute, trace, result))
    return steps


def _host(part: HostPart | GoldenPart) -> Step:
    run_host = host_runner(part)
    return lambda values, index: run_host(values)


def _golden(graph: Graph, result: MixedFound) -> Step:
    def step(values: Mapping[str, Any], index: int) -> dict[str, Any]:
        tensors = golden.run(graph, _prepare(graph, values))
        result.compared += len(graph.outputs)
        return golden.host.finish(graph, tensors)

    return step


def _hardware(
    program: DeviceProgram, graph: Graph, reference: str, execute: Execute, trace: bool, result: MixedFound
) -> Step:
    def step(values: Mapping[str, Any], index: int) -> dict[str, Any]:
        tensors = _prepare(graph, values)
        got = execute(tensors, trace)
        shown = {**got.tensors, **got.outputs}
        result.compared += len(shown)
        result.cycles = (result.cycles or 0) + got.cycles
        result.part_cycles.append(got.cycles)
        result.mismatch = difference(program, shown, _wanted(program, graph, reference, tensors), index)
        if result.mismatch is None and got.cycles != program.cycles:
            result.mismatch = {"inference": index, "cycles": got.cycles, "predicted_cycles": program.cycles}
        return golden.host.finish(graph, got.outputs)

    return step


def _prepare(graph: Graph, values: Mapping[str, Any]) -> dict[str, Array8]:
    return golden.host.prepare(graph, {port.name: values[port.name] for port in graph.inputs})


def _wanted(program: DeviceProgram, graph: Graph, reference: str, tensors: dict[str, Array8]) -> dict[str, Array8]:
    if reference == "golden model":
        return golden.run(graph, tensors)
    from .. import emu

    return emu.run(program, tensors, trace=True).tensors


def save_outputs(path: Path, result: MixedFound) -> None:
    """Write an .npz: each output by name, all inferences along the first dimension."""
    arrays: dict[str, Array] = {}
    for name in result.outputs[0] if result.outputs else ():
        values = [np.asarray(one[name]) for one in result.outputs]
        same = values[0].ndim > 0 and values[0].shape[0] == 1 and len({v.shape for v in values}) == 1
        arrays[name] = values[0] if len(values) == 1 else np.concatenate(values) if same else np.stack(values)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]  # it may be allow_pickle, for all mypy knows
    write_atomically(path, buffer.getvalue())
